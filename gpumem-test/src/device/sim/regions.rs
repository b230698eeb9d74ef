//! Where the pages of plain allocations lie: regions of address space.
//!
//! Page numbers count from the first small allocation of a process and may be negative.
//!
//! Source: driver 580.159 on an H200, 29 recorded cases in four processes.

/// Regions are multiples of this many pages.
const REGION_PAGES: i64 = 16;

/// New regions lie below this page.
const TOP: i64 = -207;

/// Pages that are free when a context was made: (first page, pages), the newest region last.
/// They lie above [`TOP`] and are never dropped.
const INITIAL: [(i64, i64); 2] = [(37, 12), (0, 1)];

/// A stretch of address space and its free runs.
#[derive(Clone, Debug)]
struct Region {
    start: i64,
    end: i64,
    /// Free runs `(first page, pages)` by address; no two touch.
    free: Vec<(i64, i64)>,
}

/// All regions, the newest last.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    regions: Vec<Region>,
    /// The extents of the regions that were made here, by descending address.
    made: Vec<(i64, i64)>,
}

impl Default for Regions {
    fn default() -> Self {
        let regions = INITIAL.map(|(first, pages)| Region {
            start: first,
            end: first + pages,
            free: vec![(first, pages)],
        });
        Self {
            regions: regions.into(),
            made: Vec::new(),
        }
    }
}

impl Regions {
    /// Takes `pages` pages in a row: the smallest run that fits (the lowest among equals) of the
    /// newest region that has one, else the start of a new region.
    pub(super) fn take(&mut self, pages: i64) -> i64 {
        for region in self.regions.iter_mut().rev() {
            let fit = region
                .free
                .iter()
                .enumerate()
                .filter(|(_, (_, length))| *length >= pages)
                .min_by_key(|(_, (first, length))| (*length, *first));
            if let Some((index, &(first, length))) = fit {
                if length == pages {
                    region.free.remove(index);
                } else {
                    region.free[index] = (first + pages, length - pages);
                }
                return first;
            }
        }
        let size = (pages + REGION_PAGES - 1) / REGION_PAGES * REGION_PAGES;
        let start = self.make(size);
        let rest = (size > pages).then_some((start + pages, size - pages));
        self.regions.push(Region {
            start,
            end: start + size,
            free: rest.into_iter().collect(),
        });
        start
    }

    /// Finds the upper end of the highest gap that is a good deal larger than `size` pages.
    fn make(&mut self, size: i64) -> i64 {
        let mut upper = TOP;
        let mut place = self.made.len();
        for (index, &(start, end)) in self.made.iter().enumerate() {
            if upper - end >= size + REGION_PAGES {
                place = index;
                break;
            }
            upper = start;
        }
        self.made.insert(place, (upper - size, upper));
        upper - size
    }

    /// Gives `pages` pages back, which were taken in one piece.
    pub(super) fn give(&mut self, first: i64, pages: i64) {
        let index = self
            .regions
            .iter()
            .position(|region| (region.start..region.end).contains(&first))
            .expect("pages come from a region");
        let region = &mut self.regions[index];
        let place = region.free.partition_point(|(start, _)| *start < first);
        let (mut start, mut length) = (first, pages);
        if let Some(&(next, next_length)) = region.free.get(place)
            && next == start + length
        {
            length += next_length;
            region.free.remove(place);
        }
        let before = place.checked_sub(1);
        match before.map(|before| (before, region.free[before])) {
            Some((before, (previous, previous_length))) if previous + previous_length == start => {
                start = previous;
                length += previous_length;
                region.free[before] = (start, length);
            }
            _ => region.free.insert(place, (start, length)),
        }
        if region.start < TOP && length == region.end - region.start {
            self.made.retain(|(made, _)| *made != start);
            self.regions.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Regions;

    #[test]
    fn regions_grow_downwards_and_the_newest_is_searched_first() {
        let mut regions = Regions::default();
        assert_eq!(regions.take(1), 0);
        assert_eq!(regions.take(12), 37);
        assert_eq!(regions.take(10), -223);
        assert_eq!(regions.take(7), -239);
        assert_eq!(
            regions.take(6),
            -232,
            "the newest region has 9 left, the older 6"
        );
        assert_eq!(regions.take(6), -213);
    }

    #[test]
    fn a_free_region_is_dropped_and_its_gap_must_be_larger_than_what_comes_next() {
        let mut regions = Regions::default();
        let first = regions.take(20);
        let second = regions.take(16);
        assert_eq!((first, second), (-239, -255));
        regions.give(first, 20);
        assert_eq!(
            regions.take(17),
            -287,
            "a gap of 32 is not 16 larger than a region of 32"
        );
        assert_eq!(regions.take(16), -223, "a gap of 32 is enough for 16");
    }
}
