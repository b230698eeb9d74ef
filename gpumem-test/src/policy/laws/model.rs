//! The obvious model: what is held, what waits, and what everything must add up to.

use std::collections::BTreeSet;

use crate::config::{Card, PolicyKind, PolicySpec};
use crate::device::DeviceMemory;
use crate::device::sim::{DeviceProfile, SimDevice, StreamKind};
use crate::event::EventKind;
use crate::heap_map::{HeapMap, Usage};
use crate::ids::{BlockId, Fence, StreamId};
use crate::policy::bfc::tests::obvious::{ObviousBfc, map_of};
use crate::policy::{AnyPolicy, Block, Origin, Policy, Request};

use super::Subject;
use super::operation::Operation;

/// A block that the program holds.
#[derive(Clone, Debug)]
struct Held {
    block: Block,
    requested: u64,
    stream: StreamId,
    /// Other streams that use it.
    users: Vec<StreamId>,
}

/// Freed memory that a busy stream may still use.
#[derive(Clone, Debug)]
struct Waiting {
    start: u64,
    end: u64,
    /// The stream that owned it, which may have it again at once.
    owner: StreamId,
    streams: Vec<StreamId>,
    /// The ends of their work, as of the free.
    fences: Vec<Fence>,
}

pub(super) struct Model {
    subject: Subject,
    policy: AnyPolicy,
    device: SimDevice,
    streams: Vec<StreamId>,
    busy: Vec<StreamId>,
    held: Vec<Held>,
    freed: Vec<BlockId>,
    waiting: Vec<Waiting>,
    events: Vec<EventKind>,
    /// Pages of blocks that were written to, where that gives them memory.
    written: BTreeSet<u64>,
    /// The same by the events.
    told: BTreeSet<u64>,
    totals: Totals,
    spec: PolicySpec,
    /// The highest that the policy's own limit allows, with a page of slack where pages are mapped.
    limit: Option<u64>,
    /// Under bfc: the same once more, on a device of its own.
    obvious: Option<(ObviousBfc, SimDevice)>,
}

/// What the events add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    allocated: u64,
    reserved: u64,
    peak_allocated: u64,
    peak_reserved: u64,
}

/// A page of plain memory, in bytes.
const PAGE: u64 = 2 << 20;

impl Totals {
    fn take(&mut self, event: EventKind) {
        match event {
            EventKind::Alloc { extent, .. } => self.allocated += extent.size,
            EventKind::FreeRequested { extent, .. } => self.allocated -= extent.size,
            EventKind::SegmentAlloc { extent, .. } | EventKind::SegmentMap { extent, .. } => {
                self.reserved += extent.size;
            }
            EventKind::SegmentFree { extent, .. } | EventKind::SegmentUnmap { extent, .. } => {
                self.reserved -= extent.size;
            }
            _ => {}
        }
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }
}

impl Model {
    pub(super) fn new(subject: Subject) -> Self {
        let spec: PolicySpec = subject.policy.parse().unwrap();
        let mut device = SimDevice::new(DeviceProfile::by_name(subject.device).unwrap());
        device.set_budget(subject.budget);
        let info = device.memory_info();
        let total = info.total;
        let card = Card {
            total,
            free: info.free,
            budget: subject.budget,
            compute_major: device.profile().compute_capability.0,
            unusable: device.profile().unusable_tail,
        };
        let policy = AnyPolicy::new(&spec, &card).unwrap();
        let obvious = match &policy {
            AnyPolicy::Bfc(policy) => {
                let mut twin = SimDevice::new(DeviceProfile::by_name(subject.device).unwrap());
                twin.set_budget(subject.budget);
                Some((ObviousBfc::new(policy.options()), twin))
            }
            _ => None,
        };
        let mut streams = vec![StreamId::DEFAULT];
        streams.extend((0..2).map(|_| device.create_stream(StreamKind::NonBlocking)));
        Self {
            policy,
            obvious,
            limit: limit(&spec, total),
            subject,
            device,
            streams,
            busy: Vec::new(),
            held: Vec::new(),
            freed: Vec::new(),
            waiting: Vec::new(),
            events: Vec::new(),
            written: BTreeSet::new(),
            told: BTreeSet::new(),
            totals: Totals::default(),
            spec,
        }
    }

    pub(super) fn step(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::Alloc {
                size,
                stream,
                plain,
            } => self.alloc(size, stream, plain),
            Operation::Free { block } if !self.held.is_empty() => {
                let index = block % self.held.len();
                self.free(index)
            }
            Operation::RecordStream { block, stream } if !self.held.is_empty() => {
                let index = block % self.held.len();
                let stream = self.streams[stream % self.streams.len()];
                let held = &mut self.held[index];
                held.users.push(stream);
                self.policy
                    .record_stream(held.block.id, stream)
                    .map_err(|error| format!("record_stream of a held block failed: {error}"))
            }
            Operation::FreeAgain { block } if !self.freed.is_empty() => {
                let id = self.freed[block % self.freed.len()];
                let again =
                    self.policy
                        .free(&mut self.device, &mut self.events, id, StreamId::DEFAULT);
                match again {
                    Err(error) if error.is_misuse() => Ok(()),
                    other => Err(format!("a second free ended in {other:?}")),
                }
            }
            Operation::Hold { stream } => {
                let stream = self.streams[stream % self.streams.len()];
                if !self.busy.contains(&stream) {
                    self.device.hold(stream);
                    self.busy.push(stream);
                }
                Ok(())
            }
            Operation::Release { stream } => {
                let stream = self.streams[stream % self.streams.len()];
                self.let_go(stream);
                Ok(())
            }
            Operation::Synchronize { stream } => {
                let stream = self.streams[stream % self.streams.len()];
                self.let_go(stream);
                self.device
                    .synchronize_stream(stream)
                    .map_err(|refusal| format!("{refusal:?}"))?;
                self.policy
                    .device_synchronized(&mut self.device, &mut self.events);
                Ok(())
            }
            Operation::Trim => {
                // `empty_cache` waits for every outstanding fence.
                if self.spec.kind == PolicyKind::Caching {
                    self.waiting.clear();
                }
                self.policy
                    .trim(&mut self.device, &mut self.events)
                    .map_err(|error| format!("a trim failed: {error}"))
            }
            Operation::Write { block, from, parts } if !self.held.is_empty() => {
                let held = self.held[block % self.held.len()].clone();
                self.write(&held, from, parts)
            }
            _ => Ok(()),
        }
    }

    /// Fills a part of a block. Under `lazy` its pages have memory from then on.
    fn write(&mut self, held: &Held, from: u64, parts: u64) -> Result<(), String> {
        let part = held.requested.div_ceil(16);
        let from = (from * part).min(held.requested);
        let length = (parts * part).min(held.requested - from);
        let start = held.block.address.offset(from);
        self.device
            .fill(start, length, 1)
            .map_err(|refusal| format!("a fill of a held block failed: {refusal:?}"))?;
        if self.spec.kind == PolicyKind::Lazy && length > 0 {
            let pages = start.0 / PAGE..(start.0 + length).div_ceil(PAGE);
            self.written.extend(pages);
        }
        Ok(())
    }

    fn alloc(&mut self, size: u64, stream: usize, plain: bool) -> Result<(), String> {
        let stream = if plain {
            StreamId::DEFAULT
        } else {
            self.streams[stream % 3]
        };
        let origin = if plain {
            Origin::Plain
        } else {
            Origin::StreamOrdered
        };
        let before = self.policy.heap_map();
        let retries = self.policy.statistics().num_alloc_retries;
        let request = Request {
            size,
            stream,
            origin,
        };
        let served = self
            .policy
            .alloc(&mut self.device, &mut self.events, request);
        if let Some((obvious, twin)) = self.obvious.as_mut().filter(|_| size > 0) {
            let expected = obvious.alloc(twin, size, 64);
            let got = (served.as_ref().ok()).map(|block| (block.address.0, block.size));
            if got != expected {
                return Err(format!(
                    "the obvious model gets {expected:x?}, not {got:x?}"
                ));
            }
        }
        let block = match served {
            Ok(block) if block == Block::NULL => {
                return if size == 0 {
                    Ok(())
                } else {
                    Err("null for a real size".to_owned())
                };
            }
            Ok(block) => block,
            Err(error) if error.is_out_of_memory() => return self.refused(&before),
            // `cuMemAlloc` refuses size 0.
            Err(_) if size == 0 && plain => return Ok(()),
            Err(error) => return Err(format!("neither memory nor out of memory: {error}")),
        };
        if block.size < size {
            return Err(format!("{} bytes for a request of {size}", block.size));
        }
        if self.policy.statistics().num_alloc_retries > retries {
            // A retry waited for every fence.
            self.waiting.clear();
        }
        let (start, end) = (block.address.0, block.address.0 + block.size);
        for held in &self.held {
            let other = held.block.address.0;
            if start < other + held.block.size && other < end {
                return Err(format!("{block:?} overlaps {:?}", held.block));
            }
        }
        let Self {
            waiting, device, ..
        } = self;
        waiting.retain(|waiting| !waiting.fences.iter().all(|fence| device.query(*fence)));
        for waiting in &self.waiting {
            // A plain block may be used anywhere at once: of a pool only what is finished will do.
            let anywhere = plain && self.spec.kind == PolicyKind::Async;
            let own = is_ordered(self.spec.kind) && waiting.owner == stream && !anywhere;
            if start < waiting.end && waiting.start < end && !own {
                return Err(format!(
                    "{block:?} is memory that {:?} may still use",
                    waiting.streams
                ));
            }
        }
        self.is_best_fit(&before, &block, request)?;
        self.held.push(Held {
            block,
            requested: size,
            stream,
            users: Vec::new(),
        });
        Ok(())
    }

    /// What a refusal leaves: everything held is where it was.
    fn refused(&mut self, before: &HeapMap) -> Result<(), String> {
        let allocated = |map: &HeapMap| -> Vec<(u64, u64)> {
            let blocks = map.segments.iter().flat_map(|segment| &segment.blocks);
            blocks
                .filter(|block| block.usage == Usage::Allocated)
                .map(|block| (block.address.0, block.size))
                .collect()
        };
        let after = self.policy.heap_map();
        if allocated(before) != allocated(&after) {
            return Err("a refused request moved what was held".to_owned());
        }
        self.waiting.clear();
        Ok(())
    }

    /// Under plain caching: the smallest free block that is large enough, the lowest of those.
    fn is_best_fit(&self, before: &HeapMap, got: &Block, request: Request) -> Result<(), String> {
        let blocks = || before.segments.iter().flat_map(|segment| &segment.blocks);
        // A request completes frees before it searches: then `before` is not what it searched.
        let settles = blocks().any(|block| block.usage == Usage::PendingFree);
        if self.subject.policy != "caching" || settles {
            return Ok(());
        }
        let rounded = request.size.max(1).next_multiple_of(512);
        let small = rounded <= 1 << 20;
        let best = before
            .segments
            .iter()
            .filter(|segment| segment.small == small && segment.stream == request.stream)
            .flat_map(|segment| &segment.blocks)
            .filter(|block| block.usage == Usage::Free && block.size >= rounded)
            .map(|block| (block.size, block.address.0))
            .min();
        match best {
            Some((_, address)) if address != got.address.0 => Err(format!(
                "best fit is at {address:#x}, not at {}",
                got.address
            )),
            _ => Ok(()),
        }
    }

    fn free(&mut self, index: usize) -> Result<(), String> {
        let held = self.held.swap_remove(index);
        self.freed.push(held.block.id);
        let start = held.block.address.0;
        // Under `driver` a free is ordered by its own stream only; uses by others are the
        // program's business, as with the real driver. Under `eager` and `lazy` it waits for everything.
        // Under `caching` the owner may reuse its own memory at once, and others that were
        // recorded are waited for. bfc knows no streams.
        if let Some((obvious, _)) = &mut self.obvious {
            obvious.free(start);
        }
        let streams = match self.spec.kind {
            kind if is_ordered(kind) => vec![held.stream],
            PolicyKind::Eager | PolicyKind::Lazy => Vec::new(),
            kind if kind.is_bfc() => Vec::new(),
            _ => held
                .users
                .iter()
                .copied()
                .filter(|user| *user != held.stream)
                .collect(),
        };
        let streams: Vec<_> = streams
            .into_iter()
            .filter(|user| self.busy.contains(user))
            .collect();
        if !streams.is_empty() {
            let fences = (streams.iter())
                .map(|stream| self.device.record(*stream))
                .collect();
            self.waiting.push(Waiting {
                start,
                end: start + held.block.size,
                owner: held.stream,
                streams,
                fences,
            });
        }
        self.policy
            .free(
                &mut self.device,
                &mut self.events,
                held.block.id,
                held.stream,
            )
            .map_err(|error| format!("a free of a held block failed: {error}"))
    }

    fn let_go(&mut self, stream: StreamId) {
        self.device.release(stream);
        self.busy.retain(|busy| *busy != stream);
        for waiting in &mut self.waiting {
            waiting.streams.retain(|busy| *busy != stream);
        }
        self.waiting.retain(|waiting| !waiting.streams.is_empty());
    }

    /// Everything that must hold between two operations.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.check_written()?;
        for event in self.events.drain(..) {
            self.totals.take(event);
        }
        self.device.check();
        match &self.policy {
            AnyPolicy::Caching(policy) => policy.check()?,
            AnyPolicy::Bfc(policy) => policy.check()?,
            _ => {}
        }
        let stats = self.policy.statistics();
        let (allocated, active, reserved) = (
            stats.allocated_bytes.all.current,
            stats.active_bytes.all.current,
            stats.reserved_bytes.all.current,
        );
        if !(reserved >= active && active >= allocated) {
            return Err(format!(
                "reserved {reserved}, active {active}, allocated {allocated}"
            ));
        }
        let totals = Totals {
            allocated,
            reserved,
            peak_allocated: stats.allocated_bytes.all.peak,
            peak_reserved: stats.reserved_bytes.all.peak,
        };
        if totals != self.totals {
            return Err(format!("counters say {totals:?}, events {:?}", self.totals));
        }
        let held: u64 = self.held.iter().map(|held| held.block.size).sum();
        let requested: u64 = self.held.iter().map(|held| held.requested).sum();
        if held != allocated || requested > stats.requested_bytes.all.current {
            return Err(format!(
                "held {held} of {requested} asked for, counters say {allocated} of {}",
                stats.requested_bytes.all.current
            ));
        }
        // Of bfc a region can end within a page.
        let given = match &self.obvious {
            Some((_, twin)) => twin.used(),
            None => reserved,
        };
        if self.device.used() != given {
            return Err(format!(
                "reserved {reserved}, the device gave {} instead of {given}",
                self.device.used()
            ));
        }
        for cap in [self.subject.budget, self.limit].into_iter().flatten() {
            if reserved > cap {
                return Err(format!("reserved {reserved} of at most {cap}"));
            }
        }
        let map = self.policy.heap_map();
        if let Some((obvious, _)) = &self.obvious
            && map_of(&map) != obvious.map()
        {
            return Err(format!(
                "the obvious model has {:x?}, not {:x?}",
                obvious.map(),
                map_of(&map)
            ));
        }
        self.check_map(&map)
    }

    /// What has memory by a first write: every page that was written and is still there, and what
    /// the events add up to.
    fn check_written(&mut self) -> Result<(), String> {
        if self.spec.kind != PolicyKind::Lazy {
            return Ok(());
        }
        self.policy
            .device_synchronized(&mut self.device, &mut self.events);
        for event in &self.events {
            match event {
                EventKind::Committed { extent } => {
                    let pages = extent.address.0 / PAGE..(extent.address.0 + extent.size) / PAGE;
                    self.told.extend(pages);
                }
                EventKind::SegmentFree { extent, .. } => {
                    let pages = extent.address.0 / PAGE..(extent.address.0 + extent.size) / PAGE;
                    for page in pages {
                        self.told.remove(&page);
                        self.written.remove(&page);
                    }
                }
                _ => {}
            }
        }
        let bytes = self.written.len() as u64 * PAGE;
        if self.told != self.written || self.device.committed() != bytes {
            return Err(format!(
                "{bytes} were written, {} are told, {} have memory",
                self.told.len() as u64 * PAGE,
                self.device.committed()
            ));
        }
        if self.device.free_without_budget() < self.device.promised() {
            return Err("addresses were given beyond what is free".to_owned());
        }
        Ok(())
    }

    /// Segments and blocks: no overlap, no gap, and every block that is held is there.
    fn check_map(&self, map: &HeapMap) -> Result<(), String> {
        let mut end = 0;
        let mut allocated = Vec::new();
        let mut total = 0;
        for segment in &map.segments {
            if segment.address.0 < end {
                return Err(format!("segments overlap at {}", segment.address));
            }
            end = segment.address.0 + segment.size;
            total += segment.size;
            let mut at = segment.address.0;
            for block in &segment.blocks {
                if block.address.0 != at || block.size == 0 {
                    return Err(format!("a hole or an empty block at {at:#x}"));
                }
                at += block.size;
                if block.usage == Usage::Allocated {
                    allocated.push((block.address.0, block.size));
                }
            }
            if at != end {
                return Err(format!(
                    "the blocks of {} end at {at:#x}, not {end:#x}",
                    segment.address
                ));
            }
        }
        let reserved = self.policy.statistics().reserved_bytes.all.current;
        if total != reserved {
            return Err(format!("segments of {total}, reserved {reserved}"));
        }
        let mut held: Vec<_> = self
            .held
            .iter()
            .map(|held| (held.block.address.0, held.block.size))
            .collect();
        held.sort_unstable();
        if held != allocated {
            return Err(format!("held {held:x?}, the map has {allocated:x?}"));
        }
        Ok(())
    }

    /// Frees everything, waits, trims: nothing is left.
    pub(super) fn finish(mut self) -> Result<(), String> {
        while !self.held.is_empty() {
            self.free(0)?;
            self.check()?;
        }
        for stream in self.streams.clone() {
            self.let_go(stream);
        }
        self.device.synchronize();
        self.policy
            .device_synchronized(&mut self.device, &mut self.events);
        self.policy
            .trim(&mut self.device, &mut self.events)
            .map_err(|error| format!("the last trim failed: {error}"))?;
        self.check()?;
        let stats = self.policy.statistics();
        let (mut reserved, mut used) = (stats.reserved_bytes.all.current, self.device.used());
        if self.obvious.is_some() {
            // The pool keeps its regions, each of them one free chunk.
            let map = self.policy.heap_map();
            if let Some(segment) = map.segments.iter().find(|region| region.blocks.len() > 1) {
                return Err(format!("everything is free, and {segment:x?} is in pieces"));
            }
            (reserved, used) = (0, 0);
        }
        let left = [
            reserved,
            stats.active_bytes.all.current,
            stats.requested_bytes.all.current,
            stats.allocation.all.current,
            used,
        ];
        if left != [0; 5] {
            return Err(format!(
                "after everything was freed and trimmed {left:?} is left"
            ));
        }
        Ok(())
    }
}

/// Whether blocks are freed in the order of a stream, which may have them again at once.
fn is_ordered(kind: PolicyKind) -> bool {
    matches!(kind, PolicyKind::Driver | PolicyKind::Async)
}

/// The limit that the policy sets itself, by its fraction or the maximum of its pool.
fn limit(spec: &PolicySpec, total: u64) -> Option<u64> {
    if let Some((_, most)) = spec.options.split_once("max_size=") {
        return Some(gpumem_test_syntax::parse_size(most).unwrap() / (32 << 20) * (32 << 20));
    }
    let (_, fraction) = spec.options.split_once("per_process_memory_fraction:")?;
    Some((total as f64 * fraction.parse::<f64>().unwrap()) as u64)
}
