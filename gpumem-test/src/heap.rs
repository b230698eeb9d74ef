//! One policy on one device, recorded: the only place where a request becomes events.

mod reuse;

use std::sync::Arc;

use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventKind, EventSink, Extent, Origin};
use crate::ids::{BlockId, DeviceId, StreamId, TextId, ThreadIndex};
use crate::ledger::{Ledger, LedgerSink};
use crate::policy::{AnyPolicy, Block, Policy, Request};

use reuse::Reuse;

/// Who causes an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cause {
    /// The place in the code.
    pub(crate) site: TextId,
    /// The thread.
    pub(crate) thread: ThreadIndex,
}

/// A policy, the device it runs on, and the ledger that both are recorded in.
pub(crate) struct Heap<D> {
    id: DeviceId,
    device: D,
    policy: AnyPolicy,
    ledger: Arc<Ledger>,
    /// Which streams may still use what was freed, under a policy that knows no streams.
    reuse: Option<Reuse>,
    /// Whether plain memory was handed out that a stream may still use.
    hands_out_used: bool,
}

impl<D: DeviceMemory> Heap<D> {
    pub(crate) fn new(id: DeviceId, device: D, policy: AnyPolicy, ledger: Arc<Ledger>) -> Self {
        Self {
            id,
            device,
            reuse: matches!(policy, AnyPolicy::Bfc(_)).then(Reuse::default),
            policy,
            ledger,
            hands_out_used: false,
        }
    }

    /// Serves a request of the code. Plain memory that a stream may still use is to be waited for
    /// before it is shown to the code: see [`take_used`](Self::take_used).
    #[inline]
    pub(crate) fn alloc(&mut self, request: Request, cause: Cause) -> Result<Block, Error> {
        let block = self.run(cause, |policy, device, events| {
            policy.alloc(device, events, request)
        })?;
        if self.reuse.is_some() {
            self.order_reuse(request, block);
        }
        Ok(block)
    }

    /// Whether the latest plain block may still be used by a stream. Asked once.
    pub(crate) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.hands_out_used)
    }

    /// Lets the stream of a request wait for the others that may still use its block.
    fn order_reuse(&mut self, request: Request, block: Block) {
        let Some(reuse) = &mut self.reuse else {
            return;
        };
        let extent = Extent {
            address: block.address,
            size: block.size,
            stream: request.stream,
        };
        for stream in reuse.handed_out(extent) {
            let Some(fence) = reuse.fence(stream) else {
                continue;
            };
            match request.origin {
                Origin::Plain => self.hands_out_used = true,
                Origin::StreamOrdered if stream == request.stream => {}
                Origin::StreamOrdered => self.device.wait_on(request.stream, fence),
            }
        }
    }

    /// Takes a block back, in the order of `stream`.
    #[inline]
    pub(crate) fn free(
        &mut self,
        block: BlockId,
        stream: StreamId,
        cause: Cause,
    ) -> Result<(), Error> {
        if let Some(reuse) = &mut self.reuse
            && let Some(extent) = self.policy.extent(block)
        {
            let fence = self.device.record(stream);
            if let Some(superseded) = reuse.freed(Extent { stream, ..extent }, fence) {
                self.device.forget(superseded);
            }
        }
        self.run(cause, |policy, device, events| {
            policy.free(device, events, block, stream)
        })
    }

    /// Takes a block back that no work uses any more, since the device was waited for.
    pub(crate) fn free_idle(
        &mut self,
        block: BlockId,
        owner: StreamId,
        cause: Cause,
    ) -> Result<(), Error> {
        self.run(cause, |policy, device, events| {
            policy.free_idle(device, events, block, owner)
        })
    }

    /// Gives back what nobody uses.
    pub(crate) fn trim(&mut self, cause: Cause) -> Result<(), Error> {
        self.run(cause, |policy, device, events| {
            events.record(EventKind::Trim);
            policy.trim(device, events)
        })
    }

    /// Runs `wait` on the device, which may change what the device holds, and records the changes.
    pub(crate) fn synchronize<R>(&mut self, cause: Cause, wait: impl FnOnce(&mut D) -> R) -> R {
        self.run(cause, |policy, device, events| {
            let waited = wait(device);
            policy.device_synchronized(device, events);
            waited
        })
    }

    /// Runs policy and device together, with what happens recorded as caused by `cause`.
    #[inline]
    pub(crate) fn run<R>(
        &mut self,
        cause: Cause,
        run: impl FnOnce(&mut AnyPolicy, &mut D, &mut LedgerSink<&Ledger>) -> R,
    ) -> R {
        let mut events = LedgerSink::new(&*self.ledger, self.id, cause.thread, cause.site);
        run(&mut self.policy, &mut self.device, &mut events)
    }

    /// Runs something on the device that may write its memory, and records what came of that, where
    /// memory comes at the first write.
    #[inline]
    pub(crate) fn write<R>(&mut self, run: impl FnOnce(&mut D) -> R) -> R {
        if self.policy.has_first_writes() {
            return self.synchronize(Cause::default(), run);
        }
        run(&mut self.device)
    }

    /// The policy.
    pub(crate) fn policy(&self) -> &AnyPolicy {
        &self.policy
    }

    /// The policy, to reset counters or to say that a stream uses a block.
    pub(crate) fn policy_mut(&mut self) -> &mut AnyPolicy {
        &mut self.policy
    }

    /// The device.
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// The device, for what does not change who holds memory: streams, copies.
    pub(crate) fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
}
