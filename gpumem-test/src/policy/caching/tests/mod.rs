//! The policy on a small made-up device: one claim a test, and random operations.

mod device;
mod out_of_memory;
mod random;
mod restore;
mod rules;

use device::TestDevice;

use super::{CachingConfig, CachingPolicy, MemoryLimits};
use crate::error::Error;
use crate::event::EventKind;
use crate::ids::{BlockId, StreamId};
use crate::policy::{Block, Policy, Request};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A policy, its device and what it said.
struct Bed {
    policy: CachingPolicy,
    device: TestDevice,
    events: Vec<EventKind>,
}

impl Bed {
    /// A policy of this configuration on a device of 1 GiB.
    fn new(config: &str) -> Self {
        Self::limited(config, MemoryLimits::device(GIB))
    }

    fn limited(config: &str, limits: MemoryLimits) -> Self {
        let (config, _) = CachingConfig::parse(config).unwrap();
        Self {
            policy: CachingPolicy::new(config, limits),
            device: TestDevice::new(GIB),
            events: Vec::new(),
        }
    }

    fn try_alloc(&mut self, size: u64, stream: u64) -> Result<Block, Error> {
        let request = Request::new(size, StreamId(stream));
        let result = self
            .policy
            .alloc(&mut self.device, &mut self.events, request);
        self.policy.check().unwrap();
        result
    }

    #[track_caller]
    fn alloc(&mut self, size: u64) -> Block {
        self.try_alloc(size, 0).unwrap()
    }

    #[track_caller]
    fn alloc_on(&mut self, size: u64, stream: u64) -> Block {
        self.try_alloc(size, stream).unwrap()
    }

    #[track_caller]
    fn refused(&mut self, size: u64) -> Error {
        self.try_alloc(size, 0).unwrap_err()
    }

    fn try_free(&mut self, block: BlockId) -> Result<(), Error> {
        let result = self
            .policy
            .free(&mut self.device, &mut self.events, block, StreamId::DEFAULT);
        self.policy.check().unwrap();
        result
    }

    #[track_caller]
    fn free(&mut self, block: Block) {
        self.try_free(block.id).unwrap();
    }

    fn trim(&mut self) {
        self.policy
            .trim(&mut self.device, &mut self.events)
            .unwrap();
        self.policy.check().unwrap();
    }

    fn get(&self, counter: &str) -> i64 {
        self.policy.statistics().get(counter).unwrap()
    }

    fn reserved(&self) -> u64 {
        self.policy.statistics().reserved_bytes.all.current
    }
}
