//! Front door 2: a trace run against any policy and device.
//!
//! [`Replay`] owns the order of operations and which blocks are held. Where blocks go is the
//! policy's business: a trace recorded under one policy, budget or device runs under any other.

mod fences;
mod outcome;
mod target;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;
use crate::ids::{Address, BlockId, StreamId};
use crate::policy::{Policy, Request};
use crate::trace::{HeldBlock, SiteId, Trace, TraceBlock, TraceOp};

pub(crate) use fences::{RecordedFences, TimedDevice};
pub use outcome::{ReplayOom, ReplayOutcome};
use target::Direct;
pub(crate) use target::ReplayTarget;

/// Runs a [`Trace`] against a policy and a device.
///
/// Memory in use when the trace begins is asked for first, unless the policy was restored with it
/// ([`onto`](Self::onto)).
#[derive(Clone, Debug)]
pub struct Replay<'t> {
    trace: &'t Trace,
    /// The blocks that the policy has already, by where they are.
    restored: Option<FxHashMap<Address, BlockId>>,
}

impl<'t> Replay<'t> {
    /// A replay of `trace` on a policy that holds nothing of it.
    pub fn new(trace: &'t Trace) -> Self {
        Self {
            trace,
            restored: None,
        }
    }

    /// A replay of `trace` on a policy that holds what was in use at its start already: `held`
    /// says where each block is and how the policy names it.
    ///
    /// Blocks that were freed and waited for a stream ([`HeldBlock::pending`]) must be held too:
    /// they are freed before the first operation. Then peaks are set to the present values and
    /// what adds up to 0, so that the statistics are those of the trace alone.
    pub fn onto(trace: &'t Trace, held: impl IntoIterator<Item = (Address, BlockId)>) -> Self {
        Self {
            trace,
            restored: Some(held.into_iter().collect()),
        }
    }

    /// Runs it. A request that fails for want of memory is noted, and what concerns its block
    /// later is passed over.
    ///
    /// Blocks that waited for a stream when they were recorded are done when they were then; what
    /// waits still when the trace ends is left waiting.
    ///
    /// # Errors
    /// The policy or the device refuses an operation for another reason than memory; or a block in
    /// use at the start is none of those that the policy was restored with.
    pub fn run<P: Policy, D: DeviceMemory, S: EventSink>(
        &self,
        policy: &mut P,
        device: &mut D,
        events: &mut S,
    ) -> Result<ReplayOutcome, Error> {
        let mut fences = RecordedFences::new(self.trace.blocks());
        let mut device = TimedDevice::new(device, &mut fences);
        if self.restored.is_some() {
            let mut quiet = Direct::new(policy, &mut device, ());
            self.free_pending(&mut quiet)?;
            let statistics = policy.statistics_mut();
            statistics.reset_peak();
            statistics.reset_accumulated();
        }
        let mut target = Direct::new(policy, &mut device, events);
        let mut outcome = self.run_on(&mut target)?;
        outcome.statistics = policy.statistics().clone();
        Ok(outcome)
    }

    /// Runs it on anything that takes its operations. The outcome has no statistics.
    pub(crate) fn run_on<T: ReplayTarget>(&self, target: &mut T) -> Result<ReplayOutcome, Error> {
        let mut run = Run {
            trace: self.trace,
            slots: vec![Slot::Unknown; self.trace.blocks()],
            outcome: ReplayOutcome::default(),
        };
        match &self.restored {
            Some(known) => {
                for held in &self.trace.start().held {
                    let id = self.restored_id(known, held)?;
                    run.slots[held.block.index()] = match held.pending {
                        true => Slot::Gone,
                        false => Slot::Held(id, held.stream),
                    };
                }
            }
            None => run.set_up(target)?,
        }
        for (index, operation) in self.trace.operations().iter().enumerate() {
            run.step(target, index, *operation)
                .map_err(|error| self.at(index, error))?;
        }
        Ok(run.outcome)
    }

    fn free_pending<T: ReplayTarget>(&self, target: &mut T) -> Result<(), Error> {
        let Some(known) = &self.restored else {
            return Ok(());
        };
        let start = self.trace.start().held.iter();
        let mut pending: Vec<&HeldBlock> = start.filter(|held| held.pending).collect();
        if !pending.is_empty() {
            // On each stream what is freed first is done first.
            let mut completed = vec![usize::MAX; self.trace.blocks()];
            for (index, operation) in self.trace.operations().iter().enumerate() {
                if let TraceOp::Complete { block } = operation {
                    completed[block.index()] = index;
                }
            }
            pending.sort_by_key(|held| completed[held.block.index()]);
        }
        for held in pending {
            let id = self.restored_id(known, held)?;
            wait_and_free(target, held, id)?;
        }
        Ok(())
    }

    fn restored_id(
        &self,
        known: &FxHashMap<Address, BlockId>,
        held: &HeldBlock,
    ) -> Result<BlockId, Error> {
        known.get(&held.address).copied().ok_or_else(|| {
            Error::misuse(format!(
                "cannot replay {}: the block in use at {} when it begins was not restored",
                self.trace.name(),
                held.address
            ))
            .with_help("restore the policy from `trace.start().heap`")
        })
    }

    fn at(&self, index: usize, error: Error) -> Error {
        Error::device(format!(
            "cannot replay {}: operation {index} of {} failed",
            self.trace.name(),
            self.trace.operations().len()
        ))
        .caused_by(error)
    }
}

fn wait_and_free<T: ReplayTarget>(
    target: &mut T,
    held: &HeldBlock,
    id: BlockId,
) -> Result<(), Error> {
    target.record_stream(held.block, id, held.waits_for)?;
    target.free(held.block, id, held.stream)
}

/// A replay under way.
struct Run<'t> {
    trace: &'t Trace,
    slots: Vec<Slot>,
    outcome: ReplayOutcome,
}

/// What has become of a block of the trace.
#[derive(Clone, Copy)]
enum Slot {
    /// It was not asked for yet.
    Unknown,
    /// The policy gave it, and it belongs to this stream.
    Held(BlockId, StreamId),
    /// Its request failed.
    Failed,
    /// It was freed.
    Gone,
}

impl Run<'_> {
    /// Asks for what was in use when the trace begins.
    fn set_up<T: ReplayTarget>(&mut self, target: &mut T) -> Result<(), Error> {
        for held in &self.trace.start().held {
            target.at(held.site);
            let request = Request::new(held.requested, held.stream);
            self.request(target, None, held.block, request, held.site)?;
            if let (true, Slot::Held(id, _)) = (held.pending, self.slots[held.block.index()]) {
                wait_and_free(target, held, id)?;
                self.slots[held.block.index()] = Slot::Gone;
            }
        }
        Ok(())
    }

    fn step<T: ReplayTarget>(
        &mut self,
        target: &mut T,
        index: usize,
        operation: TraceOp,
    ) -> Result<(), Error> {
        match operation {
            TraceOp::Alloc {
                block,
                size,
                stream,
                site,
            } => {
                target.at(site);
                self.outcome.requests += 1;
                let request = Request::new(size, stream);
                self.request(target, Some(index), block, request, site)
            }
            TraceOp::Free { block, site } => {
                target.at(site);
                match self.slots[block.index()] {
                    Slot::Held(id, stream) => {
                        self.slots[block.index()] = Slot::Gone;
                        self.outcome.frees += 1;
                        target.free(block, id, stream)
                    }
                    _ => {
                        self.outcome.skipped_frees += 1;
                        Ok(())
                    }
                }
            }
            TraceOp::RecordStream { block, stream } => match self.slots[block.index()] {
                Slot::Held(id, _) => target.record_stream(block, id, stream),
                _ => Ok(()),
            },
            TraceOp::Complete { block } => {
                target.complete(block);
                Ok(())
            }
            TraceOp::Trim => {
                self.outcome.trims += 1;
                target.trim()
            }
            TraceOp::BeginCapture { pool, stream } => target.begin_capture(pool, stream),
            TraceOp::EndCapture { pool } => target.end_capture(pool),
        }
    }

    fn request<T: ReplayTarget>(
        &mut self,
        target: &mut T,
        operation: Option<usize>,
        block: TraceBlock,
        request: Request,
        site: SiteId,
    ) -> Result<(), Error> {
        self.slots[block.index()] = match target.alloc(request) {
            Ok(given) => Slot::Held(given.id, request.stream),
            Err(error) => {
                let Some(facts) = error.as_out_of_memory() else {
                    return Err(error);
                };
                self.outcome.out_of_memory.push(ReplayOom {
                    operation,
                    block,
                    site,
                    facts: facts.clone(),
                    message: error.to_string(),
                });
                Slot::Failed
            }
        };
        Ok(())
    }
}
