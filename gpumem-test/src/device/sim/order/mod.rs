//! Streams, events and what is known to come before what.
//!
//! Two separate questions, with separate answers. *Order*: which frees are known to come before a
//! stream's next work, whether the GPU has run or not ([`Seen`]). *Progress*: what the GPU has
//! finished. Everything finishes at once, except behind an [`Obstacle`]. Owns no memory: the
//! device asks [`Order::take_reached`] which host functions had their turn, and settles.
//!
//! Source: driver 580.159 on an H200, 148 recorded cases.

mod progress;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

pub use self::progress::HostFunction;
use self::progress::Obstacle;
use crate::ids::StreamId;

/// A stream, as an index: 0 is the legacy null stream. Used again after a stream was destroyed.
pub(super) type Slot = u32;

/// The legacy null stream.
pub(super) const NULL_SLOT: Slot = 0;

/// Handles of created streams start here, as far apart as the driver's objects are.
const FIRST_HANDLE: u64 = 0x5555_0000_0000;
const HANDLE_STEP: u64 = 0x1000;

/// Of every stream, the clock of its latest free that is known to come before something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(Vec<u64>);

impl Seen {
    /// The clock for one stream; 0 if none of its frees is known.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> u64 {
        self.0.get(slot as usize).copied().unwrap_or(0)
    }

    pub(super) fn raise(&mut self, slot: Slot, clock: u64) {
        let slot = slot as usize;
        if slot >= self.0.len() {
            self.0.resize(slot + 1, 0);
        }
        self.0[slot] = self.0[slot].max(clock);
    }

    pub(super) fn raise_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[derive(Clone, Debug)]
struct Stream {
    handle: StreamId,
    blocking: bool,
    held: bool,
    seen: Seen,
    obstacles: VecDeque<Obstacle>,
}

/// The mark that an event or a fence keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub(super) seen: Seen,
    pub(super) slot: Slot,
    pub(super) ticket: u64,
}

/// All streams of the device.
#[derive(Debug)]
pub(super) struct Order {
    streams: Vec<Option<Stream>>,
    slots: FxHashMap<StreamId, Slot>,
    latest: (StreamId, Slot),
    vacant: Vec<Slot>,
    /// Streams that the null stream is ordered with, itself left out.
    blocking: Vec<Slot>,
    made: u64,
    functions: u64,
    /// Grows with every free.
    clock: u64,
    /// Grows with every obstacle.
    ticket: u64,
    /// How many streams have obstacles, to leave [`Order::advance`] at once.
    obstructed: usize,
    reached: Vec<(HostFunction, Seen)>,
}

impl Order {
    pub(super) fn new() -> Self {
        let mut order = Self {
            streams: Vec::new(),
            slots: FxHashMap::default(),
            latest: (StreamId::DEFAULT, NULL_SLOT),
            vacant: Vec::new(),
            blocking: Vec::new(),
            made: 0,
            functions: 0,
            clock: 0,
            ticket: 0,
            obstructed: 0,
            reached: Vec::new(),
        };
        order.add(StreamId::DEFAULT, false);
        order
    }

    /// Makes a stream; a blocking one is ordered with the legacy null stream.
    pub(super) fn create(&mut self, blocking: bool) -> StreamId {
        loop {
            let handle = StreamId(FIRST_HANDLE + self.made * HANDLE_STEP);
            self.made += 1;
            if !self.slots.contains_key(&handle) {
                let slot = self.add(handle, blocking);
                if blocking {
                    self.blocking.push(slot);
                }
                return handle;
            }
        }
    }

    fn add(&mut self, handle: StreamId, blocking: bool) -> Slot {
        let stream = Stream {
            handle,
            blocking,
            held: false,
            seen: Seen::default(),
            obstacles: VecDeque::new(),
        };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.streams[slot as usize] = Some(stream);
                slot
            }
            None => {
                self.streams.push(Some(stream));
                Slot::try_from(self.streams.len() - 1).expect("below 2^32 streams")
            }
        };
        self.slots.insert(handle, slot);
        slot
    }

    /// The stream behind a handle, if it was made here (or used before).
    #[inline]
    pub(super) fn find(&self, handle: StreamId) -> Option<Slot> {
        if self.latest.0 == handle {
            return Some(self.latest.1);
        }
        self.slots.get(&handle).copied()
    }

    /// The stream behind a handle; a handle of somebody else becomes a non-blocking stream.
    #[inline]
    pub(super) fn slot(&mut self, handle: StreamId) -> Slot {
        if self.latest.0 == handle {
            return self.latest.1;
        }
        let slot = match self.slots.get(&handle) {
            Some(slot) => *slot,
            None => self.add(handle, false),
        };
        self.latest = (handle, slot);
        slot
    }

    /// Forgets a stream, all of whose work is finished. The null stream stays.
    pub(super) fn destroy(&mut self, slot: Slot) {
        debug_assert!(slot != NULL_SLOT && self.is_idle(slot));
        if let Some(stream) = self.streams[slot as usize].take() {
            self.slots.remove(&stream.handle);
            self.blocking.retain(|blocking| *blocking != slot);
            self.latest = (StreamId::DEFAULT, NULL_SLOT);
            self.vacant.push(slot);
        }
    }

    /// The streams that a synchronisation of `slot` covers: itself; for the null stream the
    /// blocking ones too.
    pub(super) fn covered_by(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let others: &[Slot] = if slot == NULL_SLOT {
            &self.blocking
        } else {
            &[]
        };
        std::iter::once(slot).chain(others.iter().copied())
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.streams.len() as Slot).filter(|slot| self.streams[*slot as usize].is_some())
    }

    /// What comes before the next work of a stream.
    #[inline]
    pub(super) fn seen(&self, slot: Slot) -> &Seen {
        &self.stream(slot).seen
    }

    /// The stamp of a new free.
    #[inline]
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The ticket of work that is issued now.
    #[inline]
    pub(super) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Orders new work on a stream as the legacy null stream demands: the null stream behind all
    /// blocking ones, a blocking one behind the null stream.
    #[inline]
    pub(super) fn order_work(&mut self, slot: Slot) {
        if slot == NULL_SLOT {
            for index in 0..self.blocking.len() {
                self.follow(NULL_SLOT, self.blocking[index]);
            }
        } else if self.stream(slot).blocking {
            self.follow(slot, NULL_SLOT);
        }
    }

    fn follow(&mut self, slot: Slot, before: Slot) {
        let mut seen = std::mem::take(&mut self.stream_mut(slot).seen);
        seen.raise_all(&self.stream(before).seen);
        seen.raise(before, self.clock);
        self.stream_mut(slot).seen = seen;
        self.wait_behind(slot, before, self.ticket);
    }

    /// Marks the present end of a stream. The mark is work of its own: on the null stream it is
    /// behind what was freed on the blocking ones.
    ///
    /// Source: 4 recorded cases with the null stream, a blocking one and events, driver 580.159.04
    /// on an H200.
    pub(super) fn mark(&mut self, slot: Slot, mark: &mut Mark) {
        self.order_work(slot);
        let stream = self.stream(slot);
        mark.seen.clear();
        mark.seen.raise_all(&stream.seen);
        mark.seen.raise(slot, self.clock);
        mark.slot = slot;
        mark.ticket = self.ticket;
        if !stream.obstacles.is_empty() {
            // Work issued from here on is behind the mark, which may be waited for alone.
            self.ticket += 1;
        }
    }

    /// Lets the next work of a stream wait for a mark.
    pub(super) fn wait_for(&mut self, slot: Slot, mark: &Mark) {
        self.stream_mut(slot).seen.raise_all(&mark.seen);
        if mark.slot != slot {
            self.wait_behind(slot, mark.slot, mark.ticket);
        }
    }

    #[inline]
    fn stream(&self, slot: Slot) -> &Stream {
        self.streams[slot as usize]
            .as_ref()
            .expect("slots in use have a stream")
    }

    fn stream_mut(&mut self, slot: Slot) -> &mut Stream {
        self.streams[slot as usize]
            .as_mut()
            .expect("slots in use have a stream")
    }
}
