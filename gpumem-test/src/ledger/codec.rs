//! The ledger's format: a header and slots of eight little words.
//!
//! | word of the header | meaning |
//! |---|---|
//! | 0 | magic |
//! | 1 | version |
//! | 2 | slots that fit |
//! | 3 | slots claimed |
//! | 4 | events lost because the ledger was full |
//!
//! Word 0 of a slot is kind, sub-kind, device and thread (8, 8, 16, 32 bits); word 1 the site and
//! an extra number (32, 32 bits); words 2 to 7 are the kind's own. A slot whose word 0 is 0 was
//! claimed and not written (the process died in between) and is passed over. A text is a slot with
//! its id and length, and slots with its bytes. Frames of a call site are a slot with their id and
//! number, whose words 2 to 7 are the first six, and slots with the others: module and offset (20,
//! 44 bits).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::event::{DriverMemory, Event, EventKind, Extent, OomClass, Origin, SegmentKind};
use crate::ids::{Address, DeviceId, StreamId, TextId, ThreadIndex};

use super::recording::Recording;

pub(super) const HEADER_WORDS: usize = 8;
pub(super) const SLOT_WORDS: usize = 8;
pub(super) const NEXT: usize = 3;
pub(super) const LOST: usize = 4;
const MAGIC: u64 = u64::from_le_bytes(*b"GPUMEMLG");
const VERSION: u64 = 3;

const TEXT: u8 = 1;
const ALLOC: u8 = 2;
const FREE_REQUESTED: u8 = 3;
const FREE_COMPLETED: u8 = 4;
const SEGMENT_ALLOC: u8 = 5;
const SEGMENT_FREE: u8 = 6;
const SEGMENT_MAP: u8 = 7;
const SEGMENT_UNMAP: u8 = 8;
const RETRY: u8 = 9;
const OUT_OF_MEMORY: u8 = 10;
const CHECKPOINT: u8 = 11;
const RUN_BEGIN: u8 = 12;
const RUN_END: u8 = 13;
const THREAD_BEGIN: u8 = 14;
const THREAD_END: u8 = 15;
const MISUSE: u8 = 16;
const DRIVER_TAKEN: u8 = 17;
const DRIVER_RETURNED: u8 = 18;
const NOT_SIMULATED: u8 = 19;
const LAUNCHES: u8 = 20;
const UNKNOWN_FREE: u8 = 21;
const DOOR_VIOLATION: u8 = 22;
const DEVICE_SAMPLE: u8 = 23;
const SHADOW_DIFFERS: u8 = 24;
const BUDGET_EXCEEDED: u8 = 25;
const FRAMES: u8 = 26;
const TAKEN_ON_TRUST: u8 = 27;
const COMMITTED: u8 = 30;
const TRIM: u8 = 31;

/// The bit of an out-of-memory's sub-kind that says whether it is known what others held, so that 0
/// is a figure too. Those below are its class.
const KNOWS_OTHERS: u8 = 7;

/// Frames in the first slot of a call site.
const FIRST_FRAMES: usize = SLOT_WORDS - 2;
/// Bits of a frame's offset in its module.
const OFFSET_BITS: u32 = 44;

const SEGMENT_KINDS: [SegmentKind; 6] = [
    SegmentKind::Small,
    SegmentKind::Large,
    SegmentKind::SharedPage,
    SegmentKind::OwnPages,
    SegmentKind::Region,
    SegmentKind::KeptRegion,
];
/// In the order of the enum, whose numbers the file holds.
const DRIVER_MEMORIES: [DriverMemory; 11] = [
    DriverMemory::Managed,
    DriverMemory::PinnedHost,
    DriverMemory::RegisteredHost,
    DriverMemory::Array,
    DriverMemory::MipmappedArray,
    DriverMemory::ExplicitPool,
    DriverMemory::VirtualMemory,
    DriverMemory::Ipc,
    DriverMemory::External,
    DriverMemory::Graph,
    DriverMemory::OtherContext,
];
const ORIGINS: [Origin; 2] = [Origin::StreamOrdered, Origin::Plain];
const OOM_CLASSES: [OomClass; 6] = [
    OomClass::Exhausted,
    OomClass::Fragmented,
    OomClass::Budget,
    OomClass::CachedElsewhere,
    OomClass::FreesPending,
    OomClass::OutsideProcess,
];

pub(super) fn write_header(words: &[AtomicU64], slots: u64) {
    for (word, value) in words.iter().zip([MAGIC, VERSION, slots, 0, 0]) {
        word.store(value, Ordering::Relaxed);
    }
}

/// The slots that fit, if `words` are a ledger of this version.
pub(super) fn check_header(words: &[AtomicU64], path: &Path) -> Result<u64, Error> {
    let word = |index: usize| {
        words
            .get(index)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    };
    let name = path.display();
    if word(0) != MAGIC {
        return Err(Error::recording(format!("{name} is not a ledger")));
    }
    if word(1) != VERSION {
        return Err(Error::recording(format!(
            "{name} is a ledger of version {}, this is version {VERSION}",
            word(1)
        )));
    }
    let room = words.len().saturating_sub(HEADER_WORDS) / SLOT_WORDS;
    if word(2) > room as u64 {
        return Err(Error::recording(format!(
            "{name} is cut short: it says {} slots and has room for {room}",
            word(2)
        )));
    }
    Ok(word(2))
}

/// Sub-kind of a free that completed when it was requested: two events in one slot.
const COMPLETED: u64 = 1 << 8;

/// Word 0 of a free, marked as complete.
#[inline]
pub(super) fn completed(word: u64) -> u64 {
    word | COMPLETED
}

#[inline]
pub(super) fn encode(event: Event) -> [u64; SLOT_WORDS] {
    let mut words = [0; SLOT_WORDS];
    let mut sub = 0;
    let mut extra = 0;
    let kind = match event.kind {
        EventKind::Alloc {
            extent,
            requested,
            origin,
        } => {
            put_extent(&mut words, extent, requested);
            sub = origin as u8;
            ALLOC
        }
        EventKind::FreeRequested { extent, requested } => {
            put_extent(&mut words, extent, requested);
            FREE_REQUESTED
        }
        EventKind::FreeCompleted { extent, requested } => {
            put_extent(&mut words, extent, requested);
            FREE_COMPLETED
        }
        EventKind::SegmentAlloc { extent, kind } => {
            put_extent(&mut words, extent, 0);
            sub = kind as u8;
            SEGMENT_ALLOC
        }
        EventKind::SegmentFree { extent, kind } => {
            put_extent(&mut words, extent, 0);
            sub = kind as u8;
            SEGMENT_FREE
        }
        EventKind::SegmentMap { extent, page } => {
            put_extent(&mut words, extent, page);
            SEGMENT_MAP
        }
        EventKind::SegmentUnmap { extent, page } => {
            put_extent(&mut words, extent, page);
            SEGMENT_UNMAP
        }
        EventKind::Committed { extent } => {
            put_extent(&mut words, extent, 0);
            COMMITTED
        }
        EventKind::Retry { size } => {
            words[2] = size;
            RETRY
        }
        EventKind::OutOfMemory {
            requested,
            rounded,
            stream,
            origin,
            class,
            device_free,
            largest_free,
            held_by_others,
        } => {
            words[2..7].copy_from_slice(&[requested, rounded, stream.0, device_free, largest_free]);
            words[7] = held_by_others.unwrap_or_default();
            sub = class as u8 | u8::from(held_by_others.is_some()) << KNOWS_OTHERS;
            extra = origin as u32;
            OUT_OF_MEMORY
        }
        EventKind::Checkpoint { name } => {
            extra = name.0;
            CHECKPOINT
        }
        EventKind::RunBegin { run } => {
            extra = run;
            RUN_BEGIN
        }
        EventKind::RunEnd { run } => {
            extra = run;
            RUN_END
        }
        EventKind::ThreadBegin { name } => {
            extra = name.0;
            THREAD_BEGIN
        }
        EventKind::ThreadEnd => THREAD_END,
        EventKind::Trim => TRIM,
        EventKind::Misuse { message } => {
            extra = message.0;
            MISUSE
        }
        EventKind::DriverTaken {
            memory,
            address,
            size,
            charged,
        } => {
            words[2..5].copy_from_slice(&[address.0, size, u64::from(charged)]);
            sub = memory as u8;
            DRIVER_TAKEN
        }
        EventKind::DriverReturned {
            memory,
            address,
            size,
            charged,
        } => {
            words[2..5].copy_from_slice(&[address.0, size, u64::from(charged)]);
            sub = memory as u8;
            DRIVER_RETURNED
        }
        EventKind::NotSimulated { name } => {
            extra = name.0;
            NOT_SIMULATED
        }
        EventKind::TakenOnTrust { what } => {
            extra = what.0;
            TAKEN_ON_TRUST
        }
        EventKind::Launches { count } => {
            words[2] = count;
            LAUNCHES
        }
        EventKind::UnknownFree { address } => {
            words[2] = address.0;
            UNKNOWN_FREE
        }
        EventKind::DoorViolation { message } => {
            extra = message.0;
            DOOR_VIOLATION
        }
        EventKind::DeviceSample {
            used,
            process,
            process_peak,
        } => {
            let figures = [used, process, process_peak];
            for (index, figure) in figures.into_iter().enumerate() {
                // A bit says that the figure is known, so that 0 is a figure too.
                sub |= u8::from(figure.is_some()) << index;
                words[2 + index] = figure.unwrap_or_default();
            }
            DEVICE_SAMPLE
        }
        EventKind::ShadowDiffers { model, driver } => {
            words[2..4].copy_from_slice(&[model, driver]);
            SHADOW_DIFFERS
        }
        EventKind::BudgetExceeded { reserved, budget } => {
            words[2..4].copy_from_slice(&[reserved, budget]);
            BUDGET_EXCEEDED
        }
    };
    words[0] = u64::from(kind)
        | u64::from(sub) << 8
        | u64::from(event.device.0) << 16
        | u64::from(event.thread.0) << 32;
    words[1] = u64::from(event.site.0) | u64::from(extra) << 32;
    words
}

#[inline]
fn put_extent(words: &mut [u64; SLOT_WORDS], extent: Extent, fourth: u64) {
    words[2] = extent.address.0;
    words[3] = extent.size;
    words[4] = extent.stream.0;
    words[5] = fourth;
}

pub(super) fn write_text(cells: &[AtomicU64], id: TextId, text: &str) {
    let mut bytes = text.as_bytes().chunks(8);
    for cell in &cells[SLOT_WORDS..] {
        let mut word = [0; 8];
        if let Some(chunk) = bytes.next() {
            word[..chunk.len()].copy_from_slice(chunk);
        }
        cell.store(u64::from_le_bytes(word), Ordering::Relaxed);
    }
    cells[2].store(text.len() as u64, Ordering::Relaxed);
    cells[1].store(u64::from(id.0) << 32, Ordering::Relaxed);
    cells[0].store(u64::from(TEXT), Ordering::Release);
}

/// The slots that `count` frames take.
pub(super) fn slots_of_frames(count: usize) -> u64 {
    1 + count.saturating_sub(FIRST_FRAMES).div_ceil(SLOT_WORDS) as u64
}

/// Writes what [`slots_of_frames`] made room for. A frame that does not fit in 64 bits is unknown.
pub(super) fn write_frames(cells: &[AtomicU64], id: TextId, frames: &[(TextId, u64)]) {
    for (cell, (module, offset)) in cells[2..].iter().zip(frames) {
        let fits = u64::from(module.0) >> (64 - OFFSET_BITS) == 0 && offset >> OFFSET_BITS == 0;
        let word = match fits {
            true => u64::from(module.0) << OFFSET_BITS | offset,
            false => 0,
        };
        cell.store(word, Ordering::Relaxed);
    }
    cells[1].store(u64::from(id.0) << 32, Ordering::Relaxed);
    let head = u64::from(FRAMES) | (frames.len() as u64) << 8;
    cells[0].store(head, Ordering::Release);
}

pub(super) fn decode(words: &[AtomicU64], slots: u64) -> Recording {
    let claimed = words[NEXT].load(Ordering::Acquire).min(slots) as usize;
    let mut recording = Recording::empty(words[LOST].load(Ordering::Relaxed));
    let mut index = 0;
    while index < claimed {
        let start = HEADER_WORDS + index * SLOT_WORDS;
        let slot: [u64; SLOT_WORDS] =
            std::array::from_fn(|word| words[start + word].load(Ordering::Acquire));
        index += 1;
        if slot[0] as u8 == TEXT {
            let length = slot[2] as usize;
            let taken = length.div_ceil(SLOT_WORDS * 8);
            let first = start + SLOT_WORDS;
            // A length that reaches beyond what was claimed was not written by us.
            if index + taken > claimed {
                break;
            }
            let bytes: Vec<u8> = words[first..first + taken * SLOT_WORDS]
                .iter()
                .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
                .take(length)
                .collect();
            let id = TextId((slot[1] >> 32) as u32);
            // Ids count from 1, a text takes a slot or more: a higher one was not written by us,
            // and room for all below it could be more than there is.
            if id.0 as usize <= claimed {
                recording.put_text(id, &bytes);
            }
            index += taken;
        } else if slot[0] as u8 == FRAMES {
            let count = (slot[0] >> 8) as u8 as usize;
            let taken = slots_of_frames(count) as usize - 1;
            if index + taken > claimed {
                break;
            }
            let id = TextId((slot[1] >> 32) as u32);
            if id.0 as usize <= claimed {
                let frames = words[start + 2..start + 2 + count].iter().map(|word| {
                    let word = word.load(Ordering::Relaxed);
                    let module = TextId((word >> OFFSET_BITS) as u32);
                    (module, word & ((1 << OFFSET_BITS) - 1))
                });
                recording.put_frames(id, frames.collect());
            }
            index += taken;
        } else if let Some(event) = decode_event(slot) {
            recording.events.push(event);
            if let EventKind::FreeRequested { extent, requested } = event.kind
                && slot[0] & COMPLETED != 0
            {
                let kind = EventKind::FreeCompleted { extent, requested };
                recording.events.push(Event { kind, ..event });
            }
        }
    }
    recording
}

fn decode_event(slot: [u64; SLOT_WORDS]) -> Option<Event> {
    let sub = (slot[0] >> 8) as u8 as usize;
    let extra = (slot[1] >> 32) as u32;
    let extent = Extent {
        address: Address(slot[2]),
        size: slot[3],
        stream: StreamId(slot[4]),
    };
    let requested = slot[5];
    let page = slot[5];
    let kind = match slot[0] as u8 {
        ALLOC => EventKind::Alloc {
            extent,
            requested,
            origin: *ORIGINS.get(sub)?,
        },
        FREE_REQUESTED => EventKind::FreeRequested { extent, requested },
        FREE_COMPLETED => EventKind::FreeCompleted { extent, requested },
        SEGMENT_ALLOC => EventKind::SegmentAlloc {
            extent,
            kind: *SEGMENT_KINDS.get(sub)?,
        },
        SEGMENT_FREE => EventKind::SegmentFree {
            extent,
            kind: *SEGMENT_KINDS.get(sub)?,
        },
        SEGMENT_MAP => EventKind::SegmentMap { extent, page },
        SEGMENT_UNMAP => EventKind::SegmentUnmap { extent, page },
        COMMITTED => EventKind::Committed { extent },
        RETRY => EventKind::Retry { size: slot[2] },
        OUT_OF_MEMORY => EventKind::OutOfMemory {
            requested: slot[2],
            rounded: slot[3],
            stream: StreamId(slot[4]),
            origin: *ORIGINS.get(extra as usize)?,
            class: *OOM_CLASSES.get(sub & ((1 << KNOWS_OTHERS) - 1))?,
            device_free: slot[5],
            largest_free: slot[6],
            held_by_others: (sub >> KNOWS_OTHERS == 1).then_some(slot[7]),
        },
        CHECKPOINT => EventKind::Checkpoint {
            name: TextId(extra),
        },
        RUN_BEGIN => EventKind::RunBegin { run: extra },
        RUN_END => EventKind::RunEnd { run: extra },
        THREAD_BEGIN => EventKind::ThreadBegin {
            name: TextId(extra),
        },
        THREAD_END => EventKind::ThreadEnd,
        TRIM => EventKind::Trim,
        MISUSE => EventKind::Misuse {
            message: TextId(extra),
        },
        DRIVER_TAKEN => EventKind::DriverTaken {
            memory: *DRIVER_MEMORIES.get(sub)?,
            address: Address(slot[2]),
            size: slot[3],
            charged: slot[4] != 0,
        },
        DRIVER_RETURNED => EventKind::DriverReturned {
            memory: *DRIVER_MEMORIES.get(sub)?,
            address: Address(slot[2]),
            size: slot[3],
            charged: slot[4] != 0,
        },
        NOT_SIMULATED => EventKind::NotSimulated {
            name: TextId(extra),
        },
        TAKEN_ON_TRUST => EventKind::TakenOnTrust {
            what: TextId(extra),
        },
        LAUNCHES => EventKind::Launches { count: slot[2] },
        UNKNOWN_FREE => EventKind::UnknownFree {
            address: Address(slot[2]),
        },
        DOOR_VIOLATION => EventKind::DoorViolation {
            message: TextId(extra),
        },
        DEVICE_SAMPLE => {
            let figure = |index: usize| (sub >> index & 1 == 1).then_some(slot[2 + index]);
            EventKind::DeviceSample {
                used: figure(0),
                process: figure(1),
                process_peak: figure(2),
            }
        }
        SHADOW_DIFFERS => EventKind::ShadowDiffers {
            model: slot[2],
            driver: slot[3],
        },
        BUDGET_EXCEEDED => EventKind::BudgetExceeded {
            reserved: slot[2],
            budget: slot[3],
        },
        _ => return None,
    };
    Some(Event {
        device: DeviceId((slot[0] >> 16) as u16),
        thread: ThreadIndex((slot[0] >> 32) as u32),
        site: TextId(slot[1] as u32),
        kind,
    })
}
