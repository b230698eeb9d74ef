//! A set of half-open ranges, each with a mark.

use std::collections::BTreeMap;

/// Disjoint ranges `[start, end)` by address, each with a mark.
#[derive(Clone, Debug)]
pub(super) struct Ranges<T> {
    by_start: BTreeMap<u64, (u64, T)>,
    total: u64,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self {
            by_start: BTreeMap::new(),
            total: 0,
        }
    }
}

impl<T: Copy + PartialEq> Ranges<T> {
    /// Bytes in all ranges.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Adds `[start, end)`; what was there is replaced.
    pub(super) fn insert(&mut self, start: u64, end: u64, mark: T) {
        if start < end {
            self.remove(start, end);
            self.by_start.insert(start, (end, mark));
            self.total += end - start;
        }
    }

    /// Takes `[start, end)` out, cutting ranges where it must.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        // PERF: most frees complete at once, so that most sets of pending frees are empty, and
        // most ranges that are taken out are ranges that were put in.
        if self.by_start.is_empty() {
            return;
        }
        let before = self.by_start.range(..start).next_back();
        let mut next = before
            .filter(|(_, (stop, _))| *stop > start)
            .map(|(first, _)| *first)
            .or_else(|| {
                self.by_start
                    .range(start..end)
                    .next()
                    .map(|(first, _)| *first)
            });
        while let Some(first) = next {
            let Some((stop, mark)) = self.by_start.remove(&first) else {
                break;
            };
            if first < start {
                self.by_start.insert(first, (start, mark));
            }
            if stop > end {
                self.by_start.insert(end, (stop, mark));
            }
            self.total -= stop.min(end) - first.max(start);
            next = self
                .by_start
                .range(start..end)
                .next()
                .map(|(first, _)| *first);
        }
    }

    /// The ranges by address.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, T)> {
        self.by_start
            .iter()
            .map(|(start, (end, mark))| (*start, *end, *mark))
    }

    /// The ranges by address, those that touch and have the same mark as one.
    pub(super) fn runs(&self) -> Vec<(u64, u64, T)> {
        let mut runs: Vec<(u64, u64, T)> = Vec::new();
        for (start, end, mark) in self.iter() {
            match runs.last_mut() {
                Some(last) if last.1 == start && last.2 == mark => last.1 = end,
                _ => runs.push((start, end, mark)),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn a_removal_cuts_the_ranges_that_it_touches() {
        let mut ranges = Ranges::default();
        ranges.insert(0, 10, 'a');
        ranges.insert(10, 20, 'a');
        ranges.insert(30, 40, 'b');
        assert_eq!(ranges.runs(), [(0, 20, 'a'), (30, 40, 'b')]);
        ranges.remove(5, 35);
        assert_eq!(ranges.runs(), [(0, 5, 'a'), (35, 40, 'b')]);
        assert_eq!(ranges.total(), 10);
        ranges.remove(1, 2);
        assert_eq!(ranges.runs(), [(0, 1, 'a'), (2, 5, 'a'), (35, 40, 'b')]);
        ranges.insert(0, 100, 'c');
        assert_eq!((ranges.runs(), ranges.total()), (vec![(0, 100, 'c')], 100));
        ranges.remove(0, 100);
        assert!(ranges.is_empty());
    }
}
