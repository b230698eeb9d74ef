//! A workload under other settings, on a fresh simulated device.

use crate::check::Bounds;
use crate::config::{Card, PolicySpec};
use crate::device::DeviceMemory;
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;
use crate::event::{Event, EventKind, EventSink, Origin};
use crate::ids::{BlockId, DeviceId, StreamId, TextId, ThreadIndex};
use crate::policy::{AnyPolicy, Policy, Request};
use crate::replay::{RecordedFences, TimedDevice};

use super::workload::{Operation, Step, Workload};

/// What a workload is replayed under.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: PolicySpec,
    /// The hard cap on what the device gives, in bytes.
    pub(super) budget: Option<u64>,
    /// Bytes that other processes hold of the card.
    pub(super) held_by_others: u64,
    /// The card.
    pub(super) profile: DeviceProfile,
}

/// Figures beyond which a replay need not go on: it fails already. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) allocated: u64,
    pub(super) reserved: u64,
    pub(super) device_allocations: u64,
    pub(super) out_of_memory: bool,
}

impl Stop {
    /// No figure is too high.
    pub(super) const NEVER: Self = Self {
        allocated: u64::MAX,
        reserved: u64::MAX,
        device_allocations: u64::MAX,
        out_of_memory: false,
    };

    /// Where a test with these bounds has failed.
    pub(super) fn at(bounds: &Bounds) -> Self {
        Self {
            allocated: bounds.max_allocated.unwrap_or(u64::MAX),
            reserved: bounds.max_reserved.unwrap_or(u64::MAX),
            device_allocations: bounds.max_device_allocations.unwrap_or(u64::MAX),
            out_of_memory: !bounds.allow_oom && !bounds.should_oom,
        }
    }
}

/// What came of a replay.
#[derive(Debug)]
pub(super) struct Replayed {
    /// What happened, of the first device.
    pub(super) events: Vec<Event>,
    /// Whether it ended early, since it fails.
    pub(super) stopped: bool,
    /// (reserved − allocated) ÷ reserved after the request that raised reserved to its peak, unless
    /// that request failed.
    pub(super) slack: f64,
}

/// The policy of `settings` on a device of theirs.
///
/// # Errors
/// The options do not parse, or this version has no such policy.
pub(super) fn policy(settings: &Settings) -> Result<(AnyPolicy, SimDevice), Error> {
    let mut device = SimDevice::new(settings.profile.clone());
    (device.set_held_by_others(settings.held_by_others))
        .map_err(|refusal| refusal.into_error("taking what other processes hold"))?;
    device.set_budget(settings.budget);
    let info = device.memory_info();
    let card = Card {
        total: info.total,
        free: info.free,
        budget: settings.budget,
        compute_major: settings.profile.compute_capability.0,
        unusable: settings.profile.unusable_tail,
    };
    let mut policy = AnyPolicy::new(&settings.policy, &card)?;
    policy.prepare(&mut device)?;
    Ok((policy, device))
}

/// Runs `workload` under `settings` until its end or until it fails by `stop`.
///
/// A request that failed when it was recorded is asked for again. If it is served now, nothing
/// tells how long the program would have held it: it is held up to the next free or trim, or up to
/// a request of the same size, which is the program's second attempt.
///
/// # Errors
/// The policy cannot be made, or refuses an operation for another reason than memory.
pub(super) fn run(
    workload: &Workload,
    settings: &Settings,
    stop: &Stop,
) -> Result<Replayed, Error> {
    let (mut policy, mut device) = policy(settings)?;
    let mut fences = RecordedFences::new(workload.blocks);
    let mut run = Run {
        policy: &mut policy,
        device: TimedDevice::new(&mut device, &mut fences),
        tape: Tape {
            // Most operations are one event or two.
            events: Vec::with_capacity(workload.operations.len() * 2),
            ..Tape::default()
        },
        slots: vec![None; workload.blocks],
        surplus: Vec::new(),
        refused: false,
        refused_charge: false,
        highest: 0,
        slack: 0.0,
    };
    let mut stopped = false;
    for operation in &workload.operations {
        run.step(operation)?;
        if run.fails(stop) {
            stopped = true;
            break;
        }
    }
    Ok(Replayed {
        events: run.tape.events,
        stopped,
        slack: run.slack,
    })
}

/// Keeps what happens, with who caused it.
#[derive(Default)]
struct Tape {
    site: TextId,
    thread: ThreadIndex,
    events: Vec<Event>,
}

impl EventSink for Tape {
    #[inline]
    fn record(&mut self, kind: EventKind) {
        self.events.push(Event {
            device: DeviceId::default(),
            thread: self.thread,
            site: self.site,
            kind,
        });
    }
}

struct Run<'a> {
    policy: &'a mut AnyPolicy,
    device: TimedDevice<'a, SimDevice>,
    tape: Tape,
    /// What each block of the workload is now, with its stream; none if it is not held.
    slots: Vec<Option<(BlockId, StreamId)>>,
    /// Blocks of requests that failed when they were recorded.
    surplus: Vec<(BlockId, Request)>,
    /// Whether a request was refused for want of memory.
    refused: bool,
    /// Whether memory that no policy serves was refused. The program's call would have failed, and
    /// what it did then is not known.
    refused_charge: bool,
    /// The reserved peak, and the slack there.
    highest: u64,
    slack: f64,
}

impl Run<'_> {
    fn fails(&self, stop: &Stop) -> bool {
        if self.refused_charge || (self.refused && stop.out_of_memory) {
            return true;
        }
        let statistics = self.policy.statistics();
        statistics.reserved_bytes.all.peak > stop.reserved
            || statistics.allocated_bytes.all.peak > stop.allocated
            || statistics.num_device_alloc > stop.device_allocations
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Error> {
        (self.tape.site, self.tape.thread) = (operation.site, operation.thread);
        match operation.step {
            Step::Alloc {
                block,
                request,
                failed,
                ..
            } => {
                if !self.surplus.is_empty() {
                    self.free_surplus(|held| held.size == request.size)?;
                }
                match self.policy.alloc(&mut self.device, &mut self.tape, request) {
                    Ok(given) => {
                        match failed {
                            true => self.surplus.push((given.id, request)),
                            false => self.slots[block] = Some((given.id, request.stream)),
                        }
                        self.note_slack();
                    }
                    Err(error) if error.is_out_of_memory() => self.refused = true,
                    Err(error) => return Err(error),
                }
            }
            Step::Free { block, idle } => {
                self.free_surplus(|_| true)?;
                // Its request may have failed here.
                if let Some((id, stream)) = self.slots[block].take() {
                    self.device.will_free(block);
                    self.free(id, stream, idle)?;
                }
            }
            Step::Wait { block, stream } => {
                if let Some((id, _)) = self.slots[block] {
                    self.device.will_wait(block, stream);
                    self.policy.record_stream(id, stream)?;
                }
            }
            Step::Complete { block } => self.device.complete(block),
            Step::Trim => {
                self.free_surplus(|_| true)?;
                self.policy.trim(&mut self.device, &mut self.tape)?;
            }
            Step::Synchronize => {
                self.device.device().synchronize();
                self.policy
                    .device_synchronized(&mut self.device, &mut self.tape);
            }
            Step::SynchronizeStream { stream } => {
                let device = self.device.device();
                if device.synchronize_stream(stream).is_err() {
                    device.synchronize();
                }
                self.policy
                    .device_synchronized(&mut self.device, &mut self.tape);
            }
            Step::TrimPools => {
                self.device.device().trim_pools();
                self.policy
                    .device_synchronized(&mut self.device, &mut self.tape);
            }
            Step::Charge { event, bytes } => match self.device.device().charge(bytes) {
                Ok(()) => self.tape.record(event),
                Err(_) => self.refused_charge = true,
            },
            Step::Discharge { event, bytes } => {
                let device = self.device.device();
                if bytes <= device.charged() {
                    device.discharge(bytes);
                    self.tape.record(event);
                }
            }
        }
        Ok(())
    }

    fn note_slack(&mut self) {
        let statistics = self.policy.statistics();
        let reserved = statistics.reserved_bytes.all.current;
        if reserved > self.highest {
            let allocated = statistics.allocated_bytes.all.current;
            self.highest = reserved;
            self.slack = reserved.saturating_sub(allocated) as f64 / reserved as f64;
        }
    }

    fn free(&mut self, id: BlockId, stream: StreamId, idle: bool) -> Result<(), Error> {
        let (device, tape) = (&mut self.device, &mut self.tape);
        match idle {
            true => self.policy.free_idle(device, tape, id, stream),
            false => self.policy.free(device, tape, id, stream),
        }
    }

    fn free_surplus(&mut self, ends: impl Fn(&Request) -> bool) -> Result<(), Error> {
        let (ended, kept): (Vec<_>, _) = std::mem::take(&mut self.surplus)
            .into_iter()
            .partition(|(_, request)| ends(request));
        self.surplus = kept;
        for (id, request) in ended {
            self.free(id, request.stream, request.origin == Origin::Plain)?;
        }
        Ok(())
    }
}
