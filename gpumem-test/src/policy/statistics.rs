//! The counters of a policy, with the names of `torch.cuda.memory_stats`.

use std::collections::BTreeMap;

use crate::error::Error;

/// A counter with its history. Units are the counter's own: bytes or a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The value now.
    pub current: u64,
    /// The highest value since the start or the last reset.
    pub peak: u64,
    /// The sum of all increases.
    pub allocated: u64,
    /// The sum of all decreases.
    pub freed: u64,
}

impl Stat {
    /// Adds `amount`.
    #[inline]
    pub(crate) fn increase(&mut self, amount: u64) {
        self.current += amount;
        self.allocated += amount;
        self.peak = self.peak.max(self.current);
    }

    /// Takes `amount` away.
    #[inline]
    pub(crate) fn decrease(&mut self, amount: u64) {
        debug_assert!(
            amount <= self.current,
            "{amount} taken from a counter at {}",
            self.current
        );
        self.current -= amount;
        self.freed += amount;
    }

    /// Adds 1 to a counter that may be below zero, as two's complement.
    pub(crate) fn increase_signed(&mut self) {
        self.current = self.current.wrapping_add(1);
        self.allocated += 1;
        if self.current as i64 > self.peak as i64 {
            self.peak = self.current;
        }
    }

    /// Takes 1 from a counter that may go below zero, as two's complement.
    pub(crate) fn decrease_signed(&mut self) {
        self.current = self.current.wrapping_sub(1);
        self.freed += 1;
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        self.allocated = 0;
        self.freed = 0;
    }
}

/// A counter for all blocks, and for those of small and of large pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsByPool {
    /// Both together.
    pub all: Stat,
    /// Blocks of small pools.
    pub small: Stat,
    /// Blocks of large pools.
    pub large: Stat,
}

impl StatsByPool {
    /// Adds `amount` to `all` and to one pool.
    #[inline]
    pub(crate) fn increase(&mut self, small: bool, amount: u64) {
        self.all.increase(amount);
        self.pool(small).increase(amount);
    }

    /// Takes `amount` from `all` and from one pool.
    #[inline]
    pub(crate) fn decrease(&mut self, small: bool, amount: u64) {
        self.all.decrease(amount);
        self.pool(small).decrease(amount);
    }

    #[inline]
    fn pool(&mut self, small: bool) -> &mut Stat {
        if small {
            &mut self.small
        } else {
            &mut self.large
        }
    }

    fn each(&mut self) -> [&mut Stat; 3] {
        [&mut self.all, &mut self.small, &mut self.large]
    }
}

/// All counters of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Blocks handed out.
    pub allocation: StatsByPool,
    /// Segments held.
    pub segment: StatsByPool,
    /// Blocks handed out or pending.
    pub active: StatsByPool,
    /// Free blocks of split segments.
    pub inactive_split: StatsByPool,
    /// Bytes of blocks handed out.
    pub allocated_bytes: StatsByPool,
    /// Bytes held from the device.
    pub reserved_bytes: StatsByPool,
    /// Bytes of blocks handed out or pending.
    pub active_bytes: StatsByPool,
    /// Bytes of free blocks of split segments.
    pub inactive_split_bytes: StatsByPool,
    /// Bytes that the code asked for, of blocks handed out or pending.
    pub requested_bytes: StatsByPool,
    /// Blocks of at least `max_split_size` handed out.
    pub oversize_allocations: Stat,
    /// Segments of at least `max_split_size`.
    pub oversize_segments: Stat,
    /// Second attempts after everything cached was released.
    pub num_alloc_retries: u64,
    /// Requests that failed.
    pub num_ooms: u64,
    /// Times that all outstanding fences were waited for.
    pub num_sync_all_streams: u64,
    /// Times that memory was taken from the device.
    pub num_device_alloc: u64,
    /// Times that memory was given back to the device.
    pub num_device_free: u64,
    /// The split limit in bytes when the policy started; -1 for none.
    pub max_split_size: i64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            allocation: StatsByPool::default(),
            segment: StatsByPool::default(),
            active: StatsByPool::default(),
            inactive_split: StatsByPool::default(),
            allocated_bytes: StatsByPool::default(),
            reserved_bytes: StatsByPool::default(),
            active_bytes: StatsByPool::default(),
            inactive_split_bytes: StatsByPool::default(),
            requested_bytes: StatsByPool::default(),
            oversize_allocations: Stat::default(),
            oversize_segments: Stat::default(),
            num_alloc_retries: 0,
            num_ooms: 0,
            num_sync_all_streams: 0,
            num_device_alloc: 0,
            num_device_free: 0,
            max_split_size: -1,
        }
    }
}

impl Statistics {
    /// Every counter by its PyTorch name (`allocated_bytes.all.peak`): 122 entries.
    ///
    /// Source: torch 2.11 `torch.cuda.memory_stats`.
    pub fn by_name(&self) -> BTreeMap<String, i64> {
        let mut entries = BTreeMap::new();
        let mut put = |name: String, stat: &Stat| {
            for (field, value) in [
                ("current", stat.current),
                ("peak", stat.peak),
                ("allocated", stat.allocated),
                ("freed", stat.freed),
            ] {
                entries.insert(format!("{name}.{field}"), value as i64);
            }
        };
        for (name, stats) in self.arrays() {
            put(format!("{name}.all"), &stats.all);
            put(format!("{name}.small_pool"), &stats.small);
            put(format!("{name}.large_pool"), &stats.large);
        }
        put(
            "oversize_allocations".to_owned(),
            &self.oversize_allocations,
        );
        put("oversize_segments".to_owned(), &self.oversize_segments);
        for (name, value) in [
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_ooms", self.num_ooms),
            ("num_sync_all_streams", self.num_sync_all_streams),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
        ] {
            entries.insert(name.to_owned(), value as i64);
        }
        entries.insert("max_split_size".to_owned(), self.max_split_size);
        entries
    }

    /// The counter of a PyTorch name (`allocated_bytes.all.peak`), if there is one.
    pub fn get(&self, name: &str) -> Option<i64> {
        let plain = match name {
            "num_alloc_retries" => self.num_alloc_retries,
            "num_ooms" => self.num_ooms,
            "num_sync_all_streams" => self.num_sync_all_streams,
            "num_device_alloc" => self.num_device_alloc,
            "num_device_free" => self.num_device_free,
            "max_split_size" => return Some(self.max_split_size),
            _ => {
                let (path, field) = name.rsplit_once('.')?;
                let stat = match path {
                    "oversize_allocations" => &self.oversize_allocations,
                    "oversize_segments" => &self.oversize_segments,
                    _ => {
                        let (array, pool) = path.split_once('.')?;
                        let found = self.arrays().into_iter().find(|(name, _)| *name == array);
                        match pool {
                            "all" => &found?.1.all,
                            "small_pool" => &found?.1.small,
                            "large_pool" => &found?.1.large,
                            _ => return None,
                        }
                    }
                };
                match field {
                    "current" => stat.current,
                    "peak" => stat.peak,
                    "allocated" => stat.allocated,
                    "freed" => stat.freed,
                    _ => return None,
                }
            }
        };
        Some(plain as i64)
    }

    /// The counters of a recorded `torch.cuda.memory_stats`; what it does not name is 0.
    ///
    /// # Errors
    /// A recording error, if a name is not one of [`by_name`](Self::by_name).
    pub fn from_by_name(entries: &BTreeMap<String, i64>) -> Result<Self, Error> {
        let mut statistics = Self::default();
        for (name, &value) in entries {
            let place = match name.as_str() {
                "num_alloc_retries" => &mut statistics.num_alloc_retries,
                "num_ooms" => &mut statistics.num_ooms,
                "num_sync_all_streams" => &mut statistics.num_sync_all_streams,
                "num_device_alloc" => &mut statistics.num_device_alloc,
                "num_device_free" => &mut statistics.num_device_free,
                "max_split_size" => {
                    statistics.max_split_size = value;
                    continue;
                }
                _ => statistics
                    .field_mut(name)
                    .ok_or_else(|| Error::recording(format!("unknown statistic `{name}`")))?,
            };
            *place = value as u64;
        }
        Ok(statistics)
    }

    /// The value that `array.pool.field` names.
    fn field_mut(&mut self, name: &str) -> Option<&mut u64> {
        let (path, field) = name.rsplit_once('.')?;
        let stat = match path {
            "oversize_allocations" => &mut self.oversize_allocations,
            "oversize_segments" => &mut self.oversize_segments,
            _ => {
                let (array, pool) = path.split_once('.')?;
                let stats = match array {
                    "allocation" => &mut self.allocation,
                    "segment" => &mut self.segment,
                    "active" => &mut self.active,
                    "inactive_split" => &mut self.inactive_split,
                    "allocated_bytes" => &mut self.allocated_bytes,
                    "reserved_bytes" => &mut self.reserved_bytes,
                    "active_bytes" => &mut self.active_bytes,
                    "inactive_split_bytes" => &mut self.inactive_split_bytes,
                    "requested_bytes" => &mut self.requested_bytes,
                    _ => return None,
                };
                match pool {
                    "all" => &mut stats.all,
                    "small_pool" => &mut stats.small,
                    "large_pool" => &mut stats.large,
                    _ => return None,
                }
            }
        };
        match field {
            "current" => Some(&mut stat.current),
            "peak" => Some(&mut stat.peak),
            "allocated" => Some(&mut stat.allocated),
            "freed" => Some(&mut stat.freed),
            _ => None,
        }
    }

    fn arrays(&self) -> [(&'static str, &StatsByPool); 9] {
        [
            ("allocation", &self.allocation),
            ("segment", &self.segment),
            ("active", &self.active),
            ("inactive_split", &self.inactive_split),
            ("allocated_bytes", &self.allocated_bytes),
            ("reserved_bytes", &self.reserved_bytes),
            ("active_bytes", &self.active_bytes),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("requested_bytes", &self.requested_bytes),
        ]
    }

    fn stats_mut(&mut self) -> impl Iterator<Item = &mut Stat> {
        [
            &mut self.allocation,
            &mut self.segment,
            &mut self.active,
            &mut self.inactive_split,
            &mut self.allocated_bytes,
            &mut self.reserved_bytes,
            &mut self.active_bytes,
            &mut self.inactive_split_bytes,
            &mut self.requested_bytes,
        ]
        .into_iter()
        .flat_map(StatsByPool::each)
        .chain([&mut self.oversize_allocations, &mut self.oversize_segments])
    }

    /// Sets every peak to the present value.
    pub fn reset_peak(&mut self) {
        self.stats_mut().for_each(Stat::reset_peak);
    }

    /// Sets every sum of increases and decreases, and the five plain counters, to 0.
    pub fn reset_accumulated(&mut self) {
        self.stats_mut().for_each(Stat::reset_accumulated);
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn there_are_as_many_counters_as_in_the_original() {
        assert_eq!(Statistics::default().by_name().len(), 122);
    }

    #[test]
    fn names_lead_back_to_the_counters() {
        let mut statistics = Statistics::default();
        statistics.allocated_bytes.increase(true, 512);
        statistics.num_ooms = 3;
        let entries = statistics.by_name();
        assert_eq!(Statistics::from_by_name(&entries).unwrap(), statistics);
        assert!(
            entries
                .iter()
                .all(|(name, value)| statistics.get(name) == Some(*value))
        );
        assert_eq!(statistics.get("allocated_bytes.all.now"), None);
        let unknown = [("allocated_bytes.all.now".to_owned(), 1)].into();
        assert!(
            Statistics::from_by_name(&unknown)
                .unwrap_err()
                .is_recording()
        );
    }

    #[test]
    fn resets_keep_what_is_current() {
        let mut statistics = Statistics::default();
        statistics.allocated_bytes.increase(true, 512);
        statistics.allocated_bytes.decrease(true, 256);
        statistics.reset_peak();
        statistics.reset_accumulated();
        let stat = statistics.allocated_bytes.all;
        assert_eq!(
            (stat.current, stat.peak, stat.allocated, stat.freed),
            (256, 256, 0, 0)
        );
    }
}
