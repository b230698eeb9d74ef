//! What a test asked for, read from its ledger: the operations without where they went.
//!
//! A ledger records what the policy did. Synchronisations are no events of their own: they show by
//! what they gave back outside of any request. One that gave nothing back is not known.

use rustc_hash::FxHashMap;

use crate::config::PolicyKind;
use crate::event::{Event, EventKind, Origin};
use crate::ids::{DeviceId, StreamId, TextId, ThreadIndex};
use crate::policy::Request;

use super::late_frees::LateFrees;

/// What one device was asked for, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    pub(super) operations: Vec<Operation>,
    /// How many blocks are named.
    pub(super) blocks: usize,
}

/// Names a block: its number, from 0, in the order of the requests.
pub(super) type BlockNumber = usize;

/// One operation, and who caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) site: TextId,
    pub(super) thread: ThreadIndex,
    pub(super) step: Step,
}

/// What was asked for. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A request.
    Alloc {
        block: BlockNumber,
        request: Request,
        /// What it took, or would have taken, after rounding.
        rounded: u64,
        /// Whether it failed when it was recorded, so that nothing later names the block.
        failed: bool,
    },
    /// A free on the stream of the request.
    Free {
        block: BlockNumber,
        /// Whether the program waited for the whole device (`cuMemFree`).
        idle: bool,
    },
    /// After its free the block waits for this stream too, a stand-in for one that the ledger
    /// does not name.
    Wait {
        block: BlockNumber,
        stream: StreamId,
    },
    /// What a freed block waited for is done.
    Complete { block: BlockNumber },
    /// Unused memory was given back at the program's wish.
    Trim,
    /// The program waited for the device.
    Synchronize,
    /// It waited for one stream.
    SynchronizeStream { stream: StreamId },
    /// The driver's pools gave back what nobody used, at a wait or at the program's wish. That is
    /// no trim, which would do more to another policy than to the driver's.
    TrimPools,
    /// Memory that no policy serves was taken from the driver, at the budget's charge.
    Charge { event: EventKind, bytes: u64 },
    /// Such memory was given back.
    Discharge { event: EventKind, bytes: u64 },
}

impl Workload {
    /// What `events` say that `device` was asked for; the policy that served it was of `kind`.
    pub(super) fn of(events: &[Event], device: DeviceId, kind: PolicyKind) -> Self {
        let events: Vec<Event> = events
            .iter()
            .filter(|event| event.device == device || is_of_all(&event.kind))
            .copied()
            .collect();
        let mut reader = Reader {
            late: LateFrees::of(&events, kind),
            events: &events,
            kind,
            held: FxHashMap::default(),
            freed: FxHashMap::default(),
            charged: 0,
            workload: Self::default(),
        };
        let mut index = 0;
        while index < events.len() {
            index = reader.read(index);
        }
        reader.workload
    }
}

/// Whether an event concerns every device.
fn is_of_all(kind: &EventKind) -> bool {
    matches!(kind, EventKind::RunEnd { .. })
}

struct Reader<'a> {
    events: &'a [Event],
    kind: PolicyKind,
    late: LateFrees,
    /// The blocks held, by address.
    held: FxHashMap<u64, (BlockNumber, Origin)>,
    /// The blocks freed and not complete, by address.
    freed: FxHashMap<u64, BlockNumber>,
    charged: u64,
    workload: Workload,
}

impl Reader<'_> {
    /// Reads what begins with event `index`, and returns the index of what comes next.
    fn read(&mut self, index: usize) -> usize {
        let event = self.events[index];
        match event.kind {
            EventKind::Alloc {
                extent,
                requested,
                origin,
            } => {
                let request = Request {
                    size: requested,
                    stream: extent.stream,
                    origin,
                };
                let block = self.request(&event, request, extent.size, false);
                self.held.insert(extent.address.0, (block, origin));
            }
            EventKind::OutOfMemory {
                requested,
                rounded,
                stream,
                origin,
                ..
            } => {
                let request = Request {
                    size: requested,
                    stream,
                    origin,
                };
                self.request(&event, request, rounded, true);
            }
            EventKind::FreeRequested { extent, .. } => {
                let address = extent.address.0;
                let Some((block, origin)) = self.held.remove(&address) else {
                    return index + 1;
                };
                if let Some(stream) = self.late.stand_in(index) {
                    self.freed.insert(address, block);
                    self.push(&event, Step::Wait { block, stream });
                }
                // The driver's own pool completes at once only what `cuMemFree` freed. Where places
                // are not known, what a request reuses seems to be complete by the same call.
                let by_request = || self.kind.is_of_driver() && self.gives_back_to_ask(index + 1);
                let completed = is_complete_at_once(self.events, index) && !by_request();
                let idle = origin == Origin::Plain || (self.kind.is_of_driver() && completed);
                self.push(&event, Step::Free { block, idle });
                return index + 1 + usize::from(completed);
            }
            EventKind::FreeCompleted { extent, .. } if !self.kind.is_of_driver() => {
                if let Some(block) = self.freed.remove(&extent.address.0) {
                    self.push(&event, Step::Complete { block });
                }
            }
            EventKind::FreeCompleted { .. }
            | EventKind::SegmentFree { .. }
            | EventKind::SegmentUnmap { .. } => return self.given_back(index),
            EventKind::RunEnd { .. } => self.push(&event, Step::Synchronize),
            EventKind::Trim => return self.trim(index),
            kind @ EventKind::DriverTaken {
                size,
                charged: true,
                ..
            } => {
                self.charged = self.charged.saturating_add(size);
                let charge = Step::Charge {
                    event: kind,
                    bytes: size,
                };
                self.push(&event, charge);
            }
            kind @ EventKind::DriverReturned {
                size,
                charged: true,
                ..
            } if size <= self.charged => {
                self.charged -= size;
                let discharge = Step::Discharge {
                    event: kind,
                    bytes: size,
                };
                self.push(&event, discharge);
            }
            _ => {}
        }
        index + 1
    }

    /// A trim, event `index`, with all that it gave back. What a policy waits for at a trim is done
    /// then, in a replay too.
    fn trim(&mut self, index: usize) -> usize {
        let events = self.events;
        let trim = events[index];
        // A trim of the driver's pools settles nothing: what is complete next was waited for. Where
        // places are not known, that seems to be of the same call.
        let settles = !self.kind.is_of_driver();
        let is_of_it = |event: &&Event| {
            (event.site, event.thread) == (trim.site, trim.thread)
                && gives_back(&event.kind)
                && (settles || !matches!(event.kind, EventKind::FreeCompleted { .. }))
        };
        let mut end = index + 1;
        for event in events[end..].iter().take_while(is_of_it) {
            if let EventKind::FreeCompleted { extent, .. } = event.kind
                && let Some(block) = self.freed.remove(&extent.address.0)
            {
                self.push(event, Step::Complete { block });
            }
            end += 1;
        }
        self.push(&trim, Step::Trim);
        end
    }

    /// Memory that was given back from event `index` on: by the request that it comes before, by
    /// the free that it comes after, or because the program wished or waited for it.
    fn given_back(&mut self, index: usize) -> usize {
        let first = self.events[index];
        let end = self.end_of_giving_back(index);
        let before = index.checked_sub(1).map(|before| &self.events[before]);
        let by_free =
            before.is_some_and(|before| is_by_the_same(before, &first) && is_of_free(&before.kind));
        if self.gives_back_to_ask(index) || (by_free && !keeps_what_is_freed(self.kind)) {
            return end;
        }
        if !self.kind.is_of_driver() {
            self.push(&first, Step::Trim);
            return end;
        }
        let mut waited: Vec<StreamId> = Vec::new();
        for event in &self.events[index..end] {
            if let EventKind::FreeCompleted { extent, .. } = event.kind
                && !waited.contains(&extent.stream)
            {
                waited.push(extent.stream);
            }
        }
        match waited.is_empty() {
            true => self.push(&first, Step::TrimPools),
            false => waited
                .into_iter()
                .for_each(|stream| self.push(&first, Step::SynchronizeStream { stream })),
        }
        end
    }

    /// Whether a request of the same call follows what is given back from event `index` on.
    fn gives_back_to_ask(&self, index: usize) -> bool {
        let (first, next) = (&self.events[index], self.end_of_giving_back(index));
        let next = self.events.get(next);
        next.is_some_and(|next| is_by_the_same(next, first) && is_of_request(&next.kind))
    }

    /// The end of what one call gives back from event `index` on, which is part of it.
    fn end_of_giving_back(&self, index: usize) -> usize {
        let first = &self.events[index];
        let rest = self.events[index..].iter();
        let of_call =
            rest.take_while(|event| is_by_the_same(event, first) && gives_back(&event.kind));
        index + of_call.count().max(1)
    }

    fn request(
        &mut self,
        event: &Event,
        request: Request,
        rounded: u64,
        failed: bool,
    ) -> BlockNumber {
        let block = self.workload.blocks;
        self.workload.blocks += 1;
        let step = Step::Alloc {
            block,
            request,
            rounded,
            failed,
        };
        self.push(event, step);
        block
    }

    fn push(&mut self, event: &Event, step: Step) {
        self.workload.operations.push(Operation {
            site: event.site,
            thread: event.thread,
            step,
        });
    }
}

/// Whether the free that event `index` requests is complete by the next event, and by the same
/// call: what a later request completes may follow directly too.
pub(super) fn is_complete_at_once(events: &[Event], index: usize) -> bool {
    let [free, next, ..] = &events[index..] else {
        return false;
    };
    match (free.kind, next.kind) {
        (
            EventKind::FreeRequested { extent, .. },
            EventKind::FreeCompleted {
                extent: completed, ..
            },
        ) => {
            (extent.address, extent.size) == (completed.address, completed.size)
                && is_by_the_same(free, next)
        }
        _ => false,
    }
}

/// Whether one call may have caused both.
fn is_by_the_same(one: &Event, other: &Event) -> bool {
    (one.site, one.thread) == (other.site, other.thread)
}

fn gives_back(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::FreeCompleted { .. }
            | EventKind::SegmentFree { .. }
            | EventKind::SegmentUnmap { .. }
    )
}

fn is_of_request(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Alloc { .. }
            | EventKind::OutOfMemory { .. }
            | EventKind::Retry { .. }
            | EventKind::SegmentAlloc { .. }
            | EventKind::SegmentMap { .. }
    )
}

fn is_of_free(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::FreeRequested { .. } | EventKind::FreeCompleted { .. }
    )
}

/// Whether a policy gives nothing back at a free; the driver's gives whole pages back.
fn keeps_what_is_freed(kind: PolicyKind) -> bool {
    kind == PolicyKind::Caching || kind.is_bfc()
}
