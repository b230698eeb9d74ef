//! The two passes over the events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::bytes::Bytes;
use crate::config::PolicyKind;
use crate::event::{BFC_RETRY_WAIT_MS, Event, EventKind};
use crate::ids::{DeviceId, TextId};
use crate::ledger::Recording;

use super::driver_time::DriverTime;
use super::heap::Heap;
use super::leak::{self, Threads};
use super::passed::{Beside, Passed};
use super::peaks::{Peaks, Tracker};
use super::timeline::Course;
use super::timing::Timing;
use super::{About, DeviceSummary, FailedRequest, Leak, Moment, Neighbour, Setting, Summary};

pub(super) fn fold(recording: &Recording, about: &About) -> Summary {
    let events = &recording.events[..end_of_test(&recording.events)];
    let mut ids = vec![DeviceId::default()];
    ids.extend(
        events
            .iter()
            .filter(|event| {
                let passed = matches!(event.kind, EventKind::DriverTaken { .. });
                passed || !is_mark(&event.kind)
            })
            .map(|event| event.device),
    );
    ids.sort_unstable();
    ids.dedup();
    let checkpoints = checkpoint_names(recording, events);
    let devices = ids
        .into_iter()
        .map(|device| {
            let view = View {
                recording,
                events,
                device,
                kind: about.policy.kind,
                is_simulated: about.device.starts_with("sim"),
                context_overhead: about.context_overhead,
                checkpoints: &checkpoints,
            };
            let course = view.count();
            view.look(course)
        })
        .collect();
    Summary {
        test: about.test.clone(),
        policy: about.policy.to_string(),
        settings: about
            .settings
            .iter()
            .map(|(name, value)| Setting {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
        device: about.device.clone(),
        device_named: about.device_named,
        device_total: Bytes::new(about.device_total),
        budget: about.budget.map(Bytes::new),
        neighbours: (about.neighbours.iter())
            .map(|(takes, bytes)| Neighbour {
                takes: takes.clone(),
                bytes: bytes.map(Bytes::new),
            })
            .collect(),
        events: events.len() as u64,
        lost: recording.lost,
        runs: events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::RunEnd { .. }))
            .count() as u32,
        misuse: misuse(recording),
        violations: violations(recording),
        not_simulated: not_simulated(recording),
        taken_on_trust: taken_on_trust(recording),
        devices,
    }
}

/// How many events belong to the test: all up to the last end of a run, unless a later run was cut
/// short.
fn end_of_test(events: &[Event]) -> usize {
    let last = events.iter().rposition(|event| {
        matches!(
            event.kind,
            EventKind::RunBegin { .. } | EventKind::RunEnd { .. }
        )
    });
    match last {
        Some(index) if matches!(events[index].kind, EventKind::RunEnd { .. }) => index + 1,
        _ => events.len(),
    }
}

/// Misuse is told even when it came after the test, as by a buffer that outlived it.
fn misuse(recording: &Recording) -> Vec<String> {
    recording
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Misuse { message } => Some((event.site, message)),
            _ => None,
        })
        .map(|(site, message)| {
            let message = recording.text(message);
            match recording.text(site) {
                "" => message.to_owned(),
                site => format!("{message} ({site})"),
            }
        })
        .collect()
}

/// Told even when it came after the test, as misuse is.
fn violations(recording: &Recording) -> Vec<String> {
    let messages = recording
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::DoorViolation { message } => Some(message),
            _ => None,
        });
    let mut violations: Vec<String> = Vec::new();
    for message in messages {
        let message = recording.text(message);
        // A hook that panics once may panic a thousand times.
        if !violations.iter().any(|known| known == message) {
            violations.push(message.to_owned());
        }
    }
    violations
}

fn not_simulated(recording: &Recording) -> Vec<String> {
    texts(recording, |kind| match kind {
        EventKind::NotSimulated { name } => Some(name),
        _ => None,
    })
}

fn taken_on_trust(recording: &Recording) -> Vec<String> {
    texts(recording, |kind| match kind {
        EventKind::TakenOnTrust { what } => Some(what),
        _ => None,
    })
}

/// The texts that some events have, each once, sorted.
fn texts(recording: &Recording, of: impl Fn(EventKind) -> Option<TextId>) -> Vec<String> {
    let ids = recording.events.iter().filter_map(|event| of(event.kind));
    let texts: BTreeSet<&str> = ids.map(|id| recording.text(id)).collect();
    texts.into_iter().map(str::to_owned).collect()
}

/// The name of each checkpoint by the index of its event; the second `x` is `x#2`.
fn checkpoint_names(recording: &Recording, events: &[Event]) -> BTreeMap<usize, Rc<str>> {
    let mut seen: HashMap<TextId, u32> = HashMap::new();
    let mut names = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if let EventKind::Checkpoint { name } = event.kind {
            let times = seen.entry(name).or_default();
            *times += 1;
            let text = recording.text(name);
            names.insert(
                index,
                match *times {
                    1 => Rc::from(text),
                    times => Rc::from(format!("{text}#{times}")),
                },
            );
        }
    }
    names
}

/// One device's share of the events.
struct View<'a> {
    recording: &'a Recording,
    events: &'a [Event],
    device: DeviceId,
    kind: PolicyKind,
    is_simulated: bool,
    context_overhead: u64,
    checkpoints: &'a BTreeMap<usize, Rc<str>>,
}

/// What the first pass found: the counters, and the events after which the second looks closely.
struct Counted {
    summary: DeviceSummary,
    allocated_peak: Option<usize>,
    reserved_peak: Option<usize>,
}

impl View<'_> {
    fn heap(&self) -> Heap {
        Heap::of_device(self.kind, self.is_simulated)
    }

    /// The first pass: counters and peaks, after every event.
    fn count(&self) -> Counted {
        let mut heap = self.heap();
        let mut course = Course::new(self.events.len());
        let mut total = Tracker::default();
        let mut window = Tracker::default();
        let mut windows = Vec::new();
        let mut peaks = Peaks::default();
        let mut timing = Timing::default();
        let mut driver_time = DriverTime::new(self.kind);
        let mut beside = Beside::default();
        for (index, event) in self.events.iter().enumerate() {
            if let Some(name) = self.checkpoints.get(&index) {
                let next = Tracker::begin(&heap);
                let done = std::mem::replace(&mut window, next);
                windows.push(done.close(Some(name), &heap));
            } else if is_mark(&event.kind) {
                // Marks change no counter.
            } else if event.device == self.device {
                timing.before(event, &heap);
                driver_time.note(event);
                heap.apply(event);
                let levels = heap.levels();
                total.note(levels);
                window.note(levels);
                peaks.note(index, &event.kind, levels);
            }
            if event.device == self.device {
                let levels = heap.levels();
                beside.note(event, levels.reserved, levels.pages);
            }
            course.note(index, heap.levels());
        }
        windows.push(window.close(None, &heap));
        let device_used = total.device_used(self.context_overhead, &heap);
        let committed = total.committed(&heap);
        let whole = total.close(None, &heap);
        let mut summary = DeviceSummary {
            device: self.device,
            requested: whole.requested,
            allocated: whole.allocated,
            active: whole.active,
            reserved: whole.reserved,
            device_used,
            committed,
            counts: whole.counts,
            retry_wait_modelled_ms: heap.waits * BFC_RETRY_WAIT_MS,
            driver_time_ns: driver_time.nanoseconds(),
            windows,
            timeline: course.finish(),
            timing: timing.figures(),
            ..DeviceSummary::default()
        };
        beside.finish(&mut summary);
        if self.kind == PolicyKind::Lazy && !self.is_simulated {
            // What of the policy's pages is gone from the device nobody knows.
            summary.outside = None;
        }
        Counted {
            summary,
            allocated_peak: peaks.allocated_at,
            reserved_peak: peaks.reserved_at,
        }
    }

    /// The second pass: the peaks, the failed requests and the ends of runs.
    fn look(&self, counted: Counted) -> DeviceSummary {
        let mut summary = counted.summary;
        let mut heap = self.heap();
        let mut passed = Passed::default();
        let mut after: Option<&Rc<str>> = None;
        let mut left_by_run = Vec::new();
        // Code that asks again and again in vain leaves the heap as it is: one survey will do.
        let mut last_look: Option<Moment> = None;
        for (index, event) in self.events.iter().enumerate() {
            match event.kind {
                EventKind::Checkpoint { .. } => {
                    after = self.checkpoints.get(&index);
                    heap.pass_checkpoint();
                }
                EventKind::RunBegin { run } => heap.begin_run(run),
                EventKind::RunEnd { .. } => {
                    left_by_run.push(leak::bytes_of_test(&heap, &passed));
                }
                _ if is_mark(&event.kind) && event.device == self.device => {
                    passed.apply(event, heap.run());
                }
                _ if is_mark(&event.kind) => {}
                _ if event.device == self.device => {
                    heap.apply(event);
                    if let EventKind::OutOfMemory {
                        requested,
                        rounded,
                        class,
                        device_free,
                        largest_free,
                        held_by_others,
                        ..
                    } = event.kind
                    {
                        let mut at = last_look
                            .take()
                            .unwrap_or_else(|| self.moment(&heap, index, after));
                        at.event = index as u64 + 1;
                        at.after = after.map(|name| name.to_string());
                        last_look = Some(at.clone());
                        summary.out_of_memories.push(FailedRequest {
                            class,
                            site: self.recording.text(event.site).to_owned(),
                            requested: Bytes::new(requested),
                            rounded: Bytes::new(rounded),
                            device_free: Bytes::new(device_free),
                            largest_free: Bytes::new(largest_free),
                            held_by_others: held_by_others.map(Bytes::new),
                            at,
                        });
                    } else if !matches!(event.kind, EventKind::Retry { .. }) {
                        last_look = None;
                    }
                }
                _ => {}
            }
            if counted.allocated_peak == Some(index) {
                summary.at_allocated_peak = self.moment(&heap, index, after);
            }
            if counted.reserved_peak == Some(index) {
                summary.at_reserved_peak = self.moment(&heap, index, after);
            }
        }
        // The events end with the end of a run, unless the last one was cut short.
        if matches!(
            self.events.last().map(|event| event.kind),
            Some(EventKind::RunEnd { .. })
        ) {
            self.leaks(&heap, &passed, &left_by_run, &mut summary);
        }
        summary
    }

    /// What is left in `heap` and of what was passed; `left_by_run` has the bytes that were left after each run.
    fn leaks(
        &self,
        heap: &Heap,
        passed: &Passed,
        left_by_run: &[u64],
        summary: &mut DeviceSummary,
    ) {
        let threads = Threads::alive(self.recording, self.events.len());
        let all = leak::blocks_of_test(heap, passed);
        summary.leaked = Some(Leak::of(all, self.recording, &threads));
        if let [.., before, last] = left_by_run {
            let blocks = leak::blocks_of_test(heap, passed).filter(|block| block.run == heap.run());
            summary.leaked_by_last_run = Some(Leak {
                // A run may put a new block in the place of an old one and so add nothing.
                bytes: Bytes::new(last.saturating_sub(*before)),
                ..Leak::of(blocks, self.recording, &threads)
            });
        }
    }

    fn moment(&self, heap: &Heap, index: usize, after: Option<&Rc<str>>) -> Moment {
        Moment::of(heap, self.recording, self.checkpoints, index + 1, after)
    }
}

/// Whether an event says nothing of the heap's memory.
fn is_mark(kind: &EventKind) -> bool {
    match kind {
        EventKind::Alloc { .. }
        | EventKind::FreeRequested { .. }
        | EventKind::FreeCompleted { .. }
        | EventKind::SegmentAlloc { .. }
        | EventKind::SegmentFree { .. }
        | EventKind::SegmentMap { .. }
        | EventKind::SegmentUnmap { .. }
        | EventKind::Committed { .. }
        | EventKind::Retry { .. }
        | EventKind::OutOfMemory { .. } => false,
        EventKind::Checkpoint { .. }
        | EventKind::RunBegin { .. }
        | EventKind::RunEnd { .. }
        | EventKind::ThreadBegin { .. }
        | EventKind::ThreadEnd
        | EventKind::Trim
        | EventKind::Misuse { .. }
        | EventKind::DriverTaken { .. }
        | EventKind::DriverReturned { .. }
        | EventKind::NotSimulated { .. }
        | EventKind::TakenOnTrust { .. }
        | EventKind::Launches { .. }
        | EventKind::UnknownFree { .. }
        | EventKind::DoorViolation { .. }
        | EventKind::DeviceSample { .. }
        | EventKind::ShadowDiffers { .. }
        | EventKind::BudgetExceeded { .. } => true,
    }
}
