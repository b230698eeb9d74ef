//! Segments and held blocks, from the end of a trace back to its start.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::heap_map::Usage;
use crate::ids::Address;
use crate::rounding::round_size;
use crate::trace::torch_snapshot::{Action, FramesId, RecordedSettings, TorchSnapshot, TraceEntry};

/// Page of expandable segments for small blocks, and size of an ordinary segment for them.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `kSmallBuffer`.
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// Page of expandable segments for large blocks.
///
/// Source: torch 2.11 `kLargeBuffer`, the default of `large_segment_size_mb`.
const LARGE_PAGE: u64 = 20 << 20;

/// Segments and held blocks at one moment of a trace.
pub(super) struct Memory {
    /// Segments, or contiguous mapped ranges of expandable ones, by first byte.
    pub(super) ranges: BTreeMap<u64, Range>,
    /// Blocks held or pending, by first byte.
    pub(super) blocks: BTreeMap<u64, Held>,
    /// The lowest address seen mapped of each expandable family.
    bases: FxHashMap<Family, u64>,
}

/// A segment or mapped range.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) size: u64,
    pub(super) family: Family,
    pub(super) expandable: bool,
}

/// What has a reservation of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Family {
    pub(super) stream: u64,
    pub(super) small: bool,
    pub(super) pool: (u64, u64),
}

/// A block that is held or pending.
pub(super) struct Held {
    /// Its length, if it lives to the end; of others only `requested` is known.
    pub(super) size: Option<u64>,
    pub(super) requested: u64,
    pub(super) pending: bool,
    pub(super) frames: FramesId,
}

impl Memory {
    /// The state that the snapshot shows.
    pub(super) fn at_end(snapshot: &TorchSnapshot, device: u32) -> Self {
        let mut memory = Self {
            ranges: BTreeMap::new(),
            blocks: BTreeMap::new(),
            bases: FxHashMap::default(),
        };
        for segment in snapshot
            .segments
            .iter()
            .filter(|segment| segment.device == device)
        {
            let family = Family {
                stream: segment.stream.0,
                small: segment.small,
                pool: segment.pool,
            };
            if segment.expandable {
                memory.note_base(family, segment.address.0);
            }
            memory.ranges.insert(
                segment.address.0,
                Range {
                    size: segment.total_size,
                    family,
                    expandable: segment.expandable,
                },
            );
            for block in segment
                .blocks
                .iter()
                .filter(|block| block.usage != Usage::Free)
            {
                memory.blocks.insert(
                    block.address.0,
                    Held {
                        size: Some(block.size),
                        requested: block.requested_size,
                        pending: block.usage == Usage::PendingFree,
                        frames: block.frames,
                    },
                );
            }
        }
        memory
    }

    /// Goes back over one entry. The error says what is impossible about it.
    pub(super) fn undo(&mut self, entry: &TraceEntry) -> Result<(), String> {
        let address = entry.address;
        let place = Address(address);
        match entry.action {
            Action::Alloc => match self.blocks.remove(&address) {
                Some(block) if !block.pending => Ok(()),
                _ => Err(format!(
                    "allocates {place}, which is neither freed later nor held at the end"
                )),
            },
            Action::FreeRequested => match self.blocks.get_mut(&address) {
                Some(block) if block.pending => {
                    block.pending = false;
                    Ok(())
                }
                _ => Err(format!(
                    "frees {place}, but that is neither completed later nor pending at the end"
                )),
            },
            Action::FreeCompleted => {
                let block = Held {
                    size: None,
                    requested: entry.size,
                    pending: true,
                    frames: FramesId::NONE,
                };
                match self.blocks.insert(address, block) {
                    None => Ok(()),
                    Some(_) => Err(format!(
                        "completes the free of {place}, which is still held after"
                    )),
                }
            }
            Action::SegmentAlloc => match self.ranges.get(&address) {
                Some(range) if range.size == entry.size && !range.expandable => {
                    self.ranges.remove(&address);
                    self.expect_empty(address, entry.size)
                }
                _ => Err(format!(
                    "takes a segment at {place} that is gone without being freed"
                )),
            },
            Action::SegmentFree => {
                self.expect_gap(address, entry.size)?;
                self.ranges.insert(
                    address,
                    Range {
                        size: entry.size,
                        family: Family {
                            stream: entry.stream.0,
                            small: entry.size == SMALL_SEGMENT,
                            pool: (0, 0),
                        },
                        expandable: false,
                    },
                );
                Ok(())
            }
            Action::SegmentMap => {
                self.cut(address, entry.size)?;
                self.expect_empty(address, entry.size)
            }
            Action::SegmentUnmap => self.join(entry),
            Action::OutOfMemory | Action::Snapshot | Action::UserDefined => Ok(()),
        }
    }

    /// Whether emptying the cache now would give nothing back and complete no free.
    pub(super) fn is_trimmed(&self, settings: &RecordedSettings) -> bool {
        let nothing_pends = self.blocks.values().all(|block| !block.pending);
        nothing_pends
            && self
                .ranges
                .iter()
                .filter(|(_, range)| range.family.pool == (0, 0))
                .all(|(&start, range)| match range.expandable {
                    false => self
                        .blocks
                        .range(start..start + range.size)
                        .next()
                        .is_some(),
                    true => !self.has_free_page(start, range, settings),
                })
    }

    /// The address ranges of which something is mapped, but not their first page: the lowest
    /// address that was ever seen mapped of each.
    pub(super) fn unmapped_bases(&self) -> impl Iterator<Item = (Family, u64)> + '_ {
        self.bases.iter().filter_map(|(&family, &base)| {
            let mut mapped = self
                .ranges
                .iter()
                .filter(|(_, range)| range.expandable && range.family == family);
            let (&first, _) = mapped.next()?;
            (base < first).then_some((family, base))
        })
    }

    fn has_free_page(&self, start: u64, range: &Range, settings: &RecordedSettings) -> bool {
        let page = if range.family.small {
            SMALL_SEGMENT
        } else {
            LARGE_PAGE
        };
        // Ranges begin and end on pages, counted from the reservation's base.
        let holds_page = |from: u64, to: u64| {
            let first = (from - start).checked_next_multiple_of(page);
            let end = first.and_then(|first| first.checked_add(page));
            end.is_some_and(|end| end <= to.saturating_sub(start))
        };
        let mut free_from = start;
        for (&address, block) in self.blocks.range(start..start + range.size) {
            if holds_page(free_from, address) {
                return true;
            }
            let size = block
                .size
                .unwrap_or_else(|| round_size(block.requested, &settings.roundup_power2_divisions));
            free_from = address.saturating_add(size).min(start + range.size);
        }
        holds_page(free_from, start + range.size)
    }

    /// Takes a range out of a mapped one that contains it.
    fn cut(&mut self, address: u64, size: u64) -> Result<(), String> {
        let end = address + size;
        let containing = self.ranges.range(..=address).next_back();
        let Some((&start, &range)) = containing
            .filter(|(start, range)| range.expandable && **start + range.size >= end && size > 0)
        else {
            return Err(format!(
                "maps {size} bytes at {}, which are not mapped after",
                Address(address)
            ));
        };
        self.ranges.remove(&start);
        let pieces = [(start, address), (end, start + range.size)];
        for (from, to) in pieces.into_iter().filter(|(from, to)| from < to) {
            self.ranges.insert(
                from,
                Range {
                    size: to - from,
                    ..range
                },
            );
        }
        Ok(())
    }

    /// Adds a range that was unmapped, joined to its neighbours.
    fn join(&mut self, entry: &TraceEntry) -> Result<(), String> {
        self.expect_gap(entry.address, entry.size)?;
        let (mut start, mut end) = (entry.address, entry.address + entry.size);
        let before = self
            .ranges
            .range(..start)
            .next_back()
            .map(|(&at, &range)| (at, range));
        let before = before.filter(|(at, range)| {
            range.expandable && range.family.stream == entry.stream.0 && at + range.size == start
        });
        let after = self.ranges.get(&end).copied();
        let after = after.filter(|range| range.expandable && range.family.stream == entry.stream.0);
        let family = match (before, after) {
            (Some((_, range)), _) | (None, Some(range)) => range.family,
            // Nothing else tells the kind of a range that is gone at the end.
            (None, None) => Family {
                stream: entry.stream.0,
                small: !entry.size.is_multiple_of(LARGE_PAGE),
                pool: (0, 0),
            },
        };
        if let Some((at, _)) = before {
            self.ranges.remove(&at);
            start = at;
        }
        if let Some(range) = after.filter(|range| range.family == family) {
            self.ranges.remove(&end);
            end += range.size;
        }
        self.note_base(family, start);
        self.ranges.insert(
            start,
            Range {
                size: end - start,
                family,
                expandable: true,
            },
        );
        Ok(())
    }

    fn note_base(&mut self, family: Family, address: u64) {
        let base = self.bases.entry(family).or_insert(address);
        *base = (*base).min(address);
    }

    fn expect_gap(&self, address: u64, size: u64) -> Result<(), String> {
        let end = address + size;
        let before = self.ranges.range(..end).next_back();
        match before {
            Some((&start, range)) if start + range.size > address => Err(format!(
                "gives back {size} bytes at {}, which are still held after",
                Address(address)
            )),
            _ if size == 0 => Err("gives back nothing".to_owned()),
            _ => Ok(()),
        }
    }

    fn expect_empty(&self, address: u64, size: u64) -> Result<(), String> {
        match self.blocks.range(address..address + size).next() {
            Some((&block, _)) => Err(format!(
                "takes memory at {} that has a block at {} already",
                Address(address),
                Address(block)
            )),
            None => Ok(()),
        }
    }
}
