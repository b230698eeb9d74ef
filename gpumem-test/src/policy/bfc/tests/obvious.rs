//! The allocator said once more, slowly and obviously, to be held against.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::DeviceMemory;
use crate::ids::Address;
use crate::policy::bfc::BfcOptions;

/// A region and its chunks: address, size, whether it is free.
type RegionMap = (u64, u64, Vec<(u64, u64, bool)>);

/// Free and held chunks by address; nothing is linked, nothing is kept twice. Sizes are bytes.
pub(in crate::policy) struct ObviousBfc {
    options: BfcOptions,
    next_region: u64,
    regions: BTreeMap<u64, u64>,
    /// What the device gave, which regions that became one keep apart.
    parts: BTreeMap<u64, u64>,
    free: BTreeMap<u64, u64>,
    held: BTreeMap<u64, u64>,
}

fn up(size: u64) -> u64 {
    size.div_ceil(256).saturating_mul(256)
}

impl ObviousBfc {
    pub(in crate::policy) fn new(options: &BfcOptions) -> Self {
        let first = match options.allow_growth {
            true => options.limit.min(2 << 20),
            false => options.limit,
        };
        Self {
            next_region: up(first),
            options: options.clone(),
            regions: BTreeMap::new(),
            parts: BTreeMap::new(),
            free: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    fn pool(&self) -> u64 {
        self.regions.values().sum()
    }

    /// The address and size that a request of at least a byte gets.
    pub(in crate::policy) fn alloc<D: DeviceMemory>(
        &mut self,
        device: &mut D,
        size: u64,
        alignment: u64,
    ) -> Option<(u64, u64)> {
        let need = size.checked_next_multiple_of(256)?;
        let passes = if self.options.allow_retry_on_failure {
            4
        } else {
            1
        };
        let align = alignment.max(256);
        let found = (0..passes).find_map(|_| {
            (self.find(need, align))
                .or_else(|| self.extend(device, need).then(|| self.find(need, align))?)
                .or_else(|| {
                    let collects = self.options.garbage_collection;
                    let has_room = collects && self.release(device, need);
                    (has_room && self.extend(device, need)).then(|| self.find(need, align))?
                })
        });
        let (chunk, start) = found?;
        let chunk_size = self.free.remove(&chunk)?;
        if start > chunk {
            self.free.insert(chunk, start - chunk);
        }
        let whole = chunk + chunk_size - start;
        let cap = match self.options.fragmentation_fraction {
            0.0 => 128 << 20,
            fraction => (self.options.limit as f64 * fraction) as u64,
        };
        let is_cut = whole > need && (whole >= 2 * need || whole >= need + cap);
        let got = if is_cut { need } else { whole };
        if is_cut {
            self.free.insert(start + need, whole - need);
        }
        self.held.insert(start, got);
        Some((start, got))
    }

    /// The free chunk that serves, and where in it the request comes to lie.
    fn find(&self, need: u64, align: u64) -> Option<(u64, u64)> {
        let by_size: BTreeSet<_> = self.free.iter().map(|(&at, &size)| (size, at)).collect();
        (by_size.into_iter())
            .map(|(size, at)| (size, at, at.next_multiple_of(align)))
            .find(|&(size, at, start)| size >= need.saturating_add(start - at))
            .map(|(_, at, start)| (at, start))
    }

    fn extend<D: DeviceMemory>(&mut self, device: &mut D, need: u64) -> bool {
        let available = self.options.limit.saturating_sub(self.pool()) / 256 * 256;
        if need > available {
            return false;
        }
        let before = self.next_region;
        while self.next_region < need {
            self.next_region *= 2;
        }
        let mut size = self.next_region.min(available);
        let (at, got) = loop {
            let given = match self.options.uses_padding {
                true => device.malloc_at_least(size),
                false => device.malloc(size).map(|at| (at, size)),
            };
            match given {
                Ok((at, got)) => break (at.0, got),
                Err(_) => size = up((size as f32 * 0.9_f32) as u64).min(size - 256),
            }
            if size < need {
                return false;
            }
        };
        if before == self.next_region {
            self.next_region *= 2;
        }
        self.parts.insert(at, got);
        let left = (self.regions.iter()).find(|&(&start, &size)| start + size == at);
        match left.map(|(&start, _)| start) {
            Some(start) if self.options.may_coalesce => {
                *self.regions.get_mut(&start).unwrap() += got
            }
            _ => _ = self.regions.insert(at, got),
        }
        self.give_back(at, got);
        true
    }

    fn release<D: DeviceMemory>(&mut self, device: &mut D, need: u64) -> bool {
        let idle: Vec<(u64, u64)> = (self.regions.iter())
            .filter(|&(&at, &size)| self.held.range(at..at + size).next().is_none())
            .map(|(&at, &size)| (at, size))
            .collect();
        let total: u64 = idle.iter().map(|(_, size)| size).sum();
        if total == 0 || self.pool() + need > self.options.limit + total {
            return false;
        }
        for (at, size) in idle {
            self.regions.remove(&at);
            self.free.retain(|free, _| !(at..at + size).contains(free));
            let gone: Vec<u64> = self
                .parts
                .range(at..at + size)
                .map(|part| *part.0)
                .collect();
            for part in gone {
                self.parts.remove(&part);
                device.free(Address(part)).unwrap();
            }
        }
        true
    }

    pub(in crate::policy) fn free(&mut self, at: u64) {
        let size = self.held.remove(&at).unwrap();
        self.give_back(at, size);
    }

    /// Adds free bytes, joined with free ones beside them in the same region.
    fn give_back(&mut self, mut at: u64, mut size: u64) {
        if !self.regions.contains_key(&(at + size))
            && let Some(behind) = self.free.remove(&(at + size))
        {
            size += behind;
        }
        if !self.regions.contains_key(&at)
            && let Some((&start, &before)) = self.free.range(..at).next_back()
            && start + before == at
        {
            (at, size) = (start, before + size);
        }
        self.free.insert(at, size);
    }

    /// The regions and their chunks, by address.
    pub(in crate::policy) fn map(&self) -> Vec<RegionMap> {
        let chunks: BTreeMap<u64, (u64, bool)> =
            (self.free.iter().map(|(&at, &size)| (at, (size, true))))
                .chain(self.held.iter().map(|(&at, &size)| (at, (size, false))))
                .collect();
        (self.regions.iter())
            .map(|(&at, &size)| {
                let inside = chunks.range(at..at + size);
                let inside = inside.map(|(&at, &(size, is_free))| (at, size, is_free));
                (at, size, inside.collect())
            })
            .collect()
    }
}

/// What a policy says of its heap, in the same form.
pub(in crate::policy) fn map_of(map: &crate::heap_map::HeapMap) -> Vec<RegionMap> {
    let chunk = |block: &crate::heap_map::BlockState| {
        let is_free = block.usage == crate::heap_map::Usage::Free;
        (block.address.0, block.size, is_free)
    };
    (map.segments.iter())
        .map(|segment| {
            let chunks = segment.blocks.iter().map(chunk).collect();
            (segment.address.0, segment.size, chunks)
        })
        .collect()
}
