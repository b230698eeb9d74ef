//! The policy on a device that counts: what trips implementers, one rule a test.

mod device;
mod log;
pub(in crate::policy) mod obvious;
mod random;
mod rules;

use device::CountingDevice;

use super::{BfcAttributes, BfcOptions, BfcPolicy};
use crate::error::Error;
use crate::event::EventKind;
use crate::ids::StreamId;
use crate::policy::{Block, Policy, Request};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A pool on a device of its own, and what happened.
struct Pool {
    policy: BfcPolicy,
    device: CountingDevice,
    events: Vec<EventKind>,
}

impl Pool {
    fn new(options: BfcOptions, capacity: u64) -> Self {
        Self {
            policy: BfcPolicy::new(options),
            device: CountingDevice::new(capacity),
            events: Vec::new(),
        }
    }

    /// A growing pool on a device that always has memory.
    fn growing(limit: u64) -> Self {
        Self::new(BfcOptions::new(limit), u64::MAX)
    }

    /// A pool that takes its limit at once, on a device that always has memory.
    fn fixed(limit: u64) -> Self {
        let options = BfcOptions {
            allow_growth: false,
            ..BfcOptions::new(limit)
        };
        Self::new(options, u64::MAX)
    }

    fn alloc(&mut self, size: u64) -> Block {
        self.try_alloc(size).unwrap()
    }

    fn try_alloc(&mut self, size: u64) -> Result<Block, Error> {
        self.alloc_with(size, BfcAttributes::default())
    }

    fn alloc_with(&mut self, size: u64, attributes: BfcAttributes) -> Result<Block, Error> {
        let request = Request::new(size, StreamId::DEFAULT);
        let Self {
            policy,
            device,
            events,
        } = self;
        let served = policy.alloc_with(device, events, request, attributes);
        policy.check().unwrap();
        served
    }

    fn refuse(&mut self, size: u64) -> Error {
        let error = self.try_alloc(size).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        error
    }

    fn free(&mut self, block: Block) {
        let Self {
            policy,
            device,
            events,
        } = self;
        let freed = policy.free(device, events, block.id, StreamId::DEFAULT);
        freed.unwrap();
        policy.check().unwrap();
    }

    /// The sizes of the regions, by address.
    fn regions(&self) -> Vec<u64> {
        let map = self.policy.heap_map();
        map.segments.iter().map(|segment| segment.size).collect()
    }

    fn asked(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.device.asked)
    }
}
