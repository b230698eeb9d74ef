//! The end of a request that could not be served.

use super::BfcPolicy;
use super::options::BfcFramework;
use super::short::Short;
use crate::config::Card;
use crate::device::DeviceMemory;
use crate::error::{Error, OutOfMemory};
use crate::event::EventSink;
use crate::ids::DeviceId;
use crate::policy::Request;
use crate::policy::oom::Shortage;

impl BfcPolicy {
    /// Counts and reports a request that failed.
    #[cold]
    #[inline(never)]
    pub(super) fn out_of_memory<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &D,
        events: &mut S,
        request: Request,
        rounded: u64,
    ) -> Error {
        let memory = device.memory_info();
        let class = self.shortage(device, rounded).class();
        let largest_free = self.free.largest();
        let held_by_others = device.held_by_others();
        self.statistics.num_ooms += 1;
        let facts = OutOfMemory {
            device: DeviceId::default(),
            stream: request.stream,
            requested: request.size,
            rounded,
            segment: rounded,
            class,
            limit: Some(self.options.limit),
            allocated: self.in_use(),
            reserved: self.pool,
            device_free: memory.free,
            device_total: memory.total,
            largest_free,
            held_by_others,
        };
        events.record(facts.event(request.origin));
        let message = message(&facts, self.options.framework);
        Error::out_of_memory(facts, message)
    }

    /// What was free, and where.
    fn shortage<D: DeviceMemory>(&self, device: &D, rounded: u64) -> Shortage {
        let within_limit = self.options.limit.saturating_sub(self.pool);
        let on_device = device.memory_info().free;
        let held_by_others = device.held_by_others().unwrap_or(0);
        let within_limit_alone = self.limit_alone(held_by_others).saturating_sub(self.pool);
        let mut shortage = Shortage {
            need: rounded,
            free_here: self.pool - self.in_use(),
            largest_here: self.free.largest(),
            headroom: on_device.min(within_limit),
            headroom_without_budget: device.free_without_budget(),
            headroom_without_others: device.free_without_others().min(within_limit_alone),
            held_by_others,
            ..Shortage::default()
        };
        // Backing off passes over sizes that the device has: they were of no use.
        if shortage.headroom >= rounded {
            shortage.headroom = 0;
            // Without a budget this is no more than the device says is free: less its tail.
            if shortage.headroom_without_budget <= on_device {
                shortage.headroom_without_budget = 0;
            }
        }
        shortage
    }

    /// What the limit would be if other processes held nothing: one that is made of what is free
    /// is small because of them.
    fn limit_alone(&self, held_by_others: u64) -> u64 {
        self.made_of.as_ref().map_or(self.options.limit, |made_of| {
            let (config, card) = made_of.as_ref();
            let free = card.free.saturating_add(held_by_others).min(card.total);
            config.options(&Card { free, ..*card }).limit
        })
    }
}

/// A sentence like the framework's.
fn message(facts: &OutOfMemory, framework: BfcFramework) -> String {
    let [requested, limit, pool, in_use, largest] = [
        facts.requested,
        facts.limit.unwrap_or(u64::MAX),
        facts.reserved,
        facts.allocated,
        facts.largest_free,
    ]
    .map(Short);
    let rounded = facts.rounded;
    let what = match framework {
        BfcFramework::Xla => format!(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes (rounded to \
             {rounded})",
            facts.requested
        ),
        BfcFramework::TensorFlow | BfcFramework::Plain => format!(
            "Allocator (GPU_{}_bfc) ran out of memory trying to allocate {requested} (rounded to \
             {rounded})",
            facts.device.0
        ),
    };
    format!(
        "{what}: {in_use} in use of a pool of {pool} with a limit of {limit}, largest free chunk \
         {largest}"
    )
}
