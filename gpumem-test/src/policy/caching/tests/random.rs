//! Random operations: the invariants hold after each, and everything goes back at the end.

use super::{Bed, GIB, MIB, MemoryLimits};
use crate::ids::StreamId;
use crate::policy::{Block, Policy};

/// Random operations on a small device, so that it is full now and then.
pub(super) struct Churn {
    pub(super) bed: Bed,
    held: Vec<Block>,
    state: u64,
}

impl Churn {
    pub(super) fn new(config: &str, seed: u64) -> Self {
        let mut bed = Bed::limited(config, MemoryLimits::device(GIB));
        bed.device.capacity = 400 * MIB;
        Self {
            bed,
            held: Vec::new(),
            state: seed * 2 + 1,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99_991);
        (self.state >> 33) % below
    }

    pub(super) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.random(100) {
            0..50 => {
                let exponent = 5 + self.random(21);
                let size = 1 + self.random(2 << exponent);
                let stream = [0, 0, 0, 16, 32][self.random(5) as usize];
                match self.bed.try_alloc(size, stream) {
                    Ok(block) => self.held.push(block),
                    Err(error) => assert!(error.is_out_of_memory(), "{error}"),
                }
            }
            50..90 if !self.held.is_empty() => {
                let index = self.random(self.held.len() as u64) as usize;
                let block = self.held.swap_remove(index);
                if self.random(4) == 0 {
                    let stream = StreamId(self.random(3) * 16);
                    self.bed.policy.record_stream(block.id, stream).unwrap();
                }
                self.bed.free(block);
            }
            90..93 => self.bed.device.fences_pass ^= true,
            93..95 => self.bed.trim(),
            95..97 => {
                // Two pools that come and go; begin and end are refused where they must be.
                let pool = (1 + self.random(2), 0);
                if self.bed.policy.begin_capture(pool, StreamId(16)).is_err() {
                    let _ = self.bed.policy.end_capture(pool);
                }
            }
            97 => {
                let pool = (1 + self.random(2), 0);
                let _ = self.bed.policy.end_capture(pool);
                let _ = self.bed.policy.release_private_pool(pool.into());
            }
            98 => {
                let fraction = [1.0, 0.2, 0.4][self.random(3) as usize];
                self.bed.policy.set_memory_fraction(fraction).unwrap();
            }
            _ => {}
        }
        self.bed.events.clear();
    }

    /// Frees all, releases all pools, and trims.
    fn finish(mut self) {
        for pool in [(1, 0), (2, 0)] {
            let _ = self.bed.policy.end_capture(pool);
            while self.bed.policy.release_private_pool(pool.into()).is_ok() {}
        }
        for block in std::mem::take(&mut self.held) {
            self.bed.free(block);
        }
        self.bed.trim();
        assert_eq!(self.bed.reserved(), 0);
        // Of a growth that failed at its first page the address range stays, as in the original.
        assert_eq!(self.bed.device.in_use, 0);
        assert!(self.bed.policy.heap_map().segments.is_empty());
        assert_eq!(self.bed.get("active.all.current"), 0);
    }
}

#[test]
fn random_operations_keep_the_invariants_and_everything_goes_back() {
    for config in [
        "",
        "expandable_segments:True",
        "max_split_size_mb:20,max_non_split_rounding_mb:24",
        "garbage_collection_threshold:0.4",
        "roundup_power2_divisions:[1:2,>:8]",
        "expandable_segments:True,garbage_collection_threshold:0.4,max_split_size_mb:24",
    ] {
        for seed in 0..6 {
            let mut churn = Churn::new(config, seed);
            churn.run(600);
            churn.finish();
        }
    }
}

#[test]
fn the_configuration_may_change_at_any_time() {
    let updates = [
        "expandable_segments:True",
        "expandable_segments:False",
        "max_split_size_mb:24,expandable_segments:True",
        "garbage_collection_threshold:0.3,expandable_segments:False",
        "large_segment_size_mb:32,roundup_power2_divisions:4",
        "max_split_size_mb:10",
        "large_segment_size_mb:20",
    ];
    for seed in 0..20 {
        let mut churn = Churn::new("", seed);
        for _ in 0..12 {
            churn.run(60);
            let update = updates[churn.random(updates.len() as u64) as usize];
            let _ = churn.bed.policy.update_config(update);
        }
        churn.finish();
    }
}
