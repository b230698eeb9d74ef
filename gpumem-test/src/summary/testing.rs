//! Recordings made by hand, for the tests of this room and of those that read summaries.

use std::collections::HashMap;

use crate::config::PolicySpec;
use crate::event::{DriverMemory, Event, EventKind, Extent, OomClass, Origin, SegmentKind};
use crate::ids::{Address, DeviceId, StreamId, TextId, ThreadIndex};
use crate::ledger::Recording;

use super::{About, Summary};

pub(crate) const MIB: u64 = 1 << 20;

/// A recording in the making. Addresses and sizes are bytes.
pub(crate) struct Script {
    about: About,
    events: Vec<Event>,
    texts: Vec<String>,
    site: TextId,
    thread: ThreadIndex,
    stream: StreamId,
    blocks: HashMap<u64, (Extent, u64)>,
    lost: u64,
}

impl Script {
    /// A script under `policy`, on the default device with no budget.
    pub(crate) fn new(policy: &str) -> Self {
        Self {
            about: About {
                test: "train::step_fits".to_owned(),
                policy: policy.parse::<PolicySpec>().unwrap(),
                device: "sim:h200".to_owned(),
                device_total: 150_109_880_320,
                ..About::default()
            },
            events: Vec::new(),
            texts: vec![String::new()],
            site: TextId::UNKNOWN,
            thread: ThreadIndex(0),
            stream: StreamId::DEFAULT,
            blocks: HashMap::new(),
            lost: 0,
        }
    }

    pub(crate) fn about(&mut self) -> &mut About {
        &mut self.about
    }

    fn text(&mut self, text: &str) -> TextId {
        let index = self.texts.iter().position(|known| known == text);
        TextId(index.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        }) as u32)
    }

    pub(crate) fn event(&mut self, kind: EventKind) -> &mut Self {
        self.events.push(Event {
            device: DeviceId(0),
            thread: self.thread,
            site: self.site,
            kind,
        });
        self
    }

    /// What follows is caused by this place.
    pub(crate) fn at(&mut self, site: &str) -> &mut Self {
        self.site = self.text(site);
        self
    }

    /// What follows is caused by this thread.
    pub(crate) fn thread(&mut self, thread: u32) -> &mut Self {
        self.thread = ThreadIndex(thread);
        self
    }

    /// What follows is on this stream.
    pub(crate) fn stream(&mut self, stream: u64) -> &mut Self {
        self.stream = StreamId(stream);
        self
    }

    pub(crate) fn lost(&mut self, events: u64) -> &mut Self {
        self.lost = events;
        self
    }

    pub(crate) fn extent(&self, address: u64, size: u64) -> Extent {
        Extent {
            address: Address(address),
            size,
            stream: self.stream,
        }
    }

    /// A block of `size` bytes, of which `requested` were asked for.
    pub(crate) fn alloc_rounded(&mut self, address: u64, size: u64, requested: u64) -> &mut Self {
        let extent = self.extent(address, size);
        self.blocks.insert(address, (extent, requested));
        self.event(EventKind::Alloc {
            extent,
            requested,
            origin: Origin::StreamOrdered,
        })
    }

    pub(crate) fn alloc(&mut self, address: u64, size: u64) -> &mut Self {
        self.alloc_rounded(address, size, size)
    }

    /// A free that stays pending.
    pub(crate) fn free_later(&mut self, address: u64) -> &mut Self {
        let (extent, requested) = self.blocks[&address];
        self.event(EventKind::FreeRequested { extent, requested })
    }

    pub(crate) fn complete(&mut self, address: u64, size: u64) -> &mut Self {
        let extent = self.extent(address, size);
        let requested = self.blocks.get(&address).map_or(0, |block| block.1);
        self.event(EventKind::FreeCompleted { extent, requested })
    }

    /// A free that completes at once.
    pub(crate) fn free(&mut self, address: u64) -> &mut Self {
        let (extent, requested) = self.blocks[&address];
        self.event(EventKind::FreeRequested { extent, requested })
            .event(EventKind::FreeCompleted { extent, requested })
    }

    pub(crate) fn segment(&mut self, kind: SegmentKind, address: u64, size: u64) -> &mut Self {
        let extent = self.extent(address, size);
        self.event(EventKind::SegmentAlloc { extent, kind })
    }

    pub(crate) fn release(&mut self, kind: SegmentKind, address: u64, size: u64) -> &mut Self {
        let extent = self.extent(address, size);
        self.event(EventKind::SegmentFree { extent, kind })
    }

    pub(crate) fn map(&mut self, address: u64, size: u64, page: u64) -> &mut Self {
        let extent = self.extent(address, size);
        self.event(EventKind::SegmentMap { extent, page })
    }

    pub(crate) fn unmap(&mut self, address: u64, size: u64, page: u64) -> &mut Self {
        let extent = self.extent(address, size);
        self.event(EventKind::SegmentUnmap { extent, page })
    }

    pub(crate) fn out_of_memory(&mut self, class: OomClass, size: u64) -> &mut Self {
        let stream = self.stream;
        self.event(EventKind::OutOfMemory {
            requested: size,
            rounded: size,
            stream,
            origin: Origin::StreamOrdered,
            class,
            device_free: 12 * MIB,
            largest_free: 3 * MIB,
            held_by_others: (class == OomClass::OutsideProcess).then_some(96 << 30),
        })
    }

    pub(crate) fn checkpoint(&mut self, name: &str) -> &mut Self {
        let name = self.text(name);
        self.event(EventKind::Checkpoint { name })
    }

    pub(crate) fn run_begin(&mut self, run: u32) -> &mut Self {
        self.event(EventKind::RunBegin { run })
    }

    pub(crate) fn run_end(&mut self, run: u32) -> &mut Self {
        self.event(EventKind::RunEnd { run })
    }

    pub(crate) fn thread_begin(&mut self, name: &str) -> &mut Self {
        let name = self.text(name);
        self.event(EventKind::ThreadBegin { name })
    }

    pub(crate) fn misuse(&mut self, message: &str) -> &mut Self {
        let message = self.text(message);
        self.event(EventKind::Misuse { message })
    }

    /// Memory passed to the driver; the budget is charged for that of the device.
    pub(crate) fn take(&mut self, memory: DriverMemory, address: u64, size: u64) -> &mut Self {
        self.event(EventKind::DriverTaken {
            memory,
            address: Address(address),
            size,
            charged: !memory.is_host(),
        })
    }

    pub(crate) fn give_back(&mut self, memory: DriverMemory, address: u64, size: u64) -> &mut Self {
        self.event(EventKind::DriverReturned {
            memory,
            address: Address(address),
            size,
            charged: !memory.is_host(),
        })
    }

    pub(crate) fn sample(&mut self, used: u64, process: Option<u64>) -> &mut Self {
        self.event(EventKind::DeviceSample {
            used: Some(used),
            process,
            process_peak: None,
        })
    }

    pub(crate) fn not_simulated(&mut self, name: &str) -> &mut Self {
        let name = self.text(name);
        self.event(EventKind::NotSimulated { name })
    }

    pub(crate) fn taken_on_trust(&mut self, what: &str) -> &mut Self {
        let what = self.text(what);
        self.event(EventKind::TakenOnTrust { what })
    }

    pub(crate) fn violation(&mut self, message: &str) -> &mut Self {
        let message = self.text(message);
        self.event(EventKind::DoorViolation { message })
    }

    pub(crate) fn recording(&self) -> Recording {
        let mut recording = Recording::new(self.events.clone(), self.texts.clone());
        recording.lost = self.lost;
        recording
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.recording(), &self.about)
    }
}
