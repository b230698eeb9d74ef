//! The ledger and its format.

use std::panic::Location;

use super::{Ledger, LedgerSink, Sites};
use crate::event::{
    DriverMemory, Event, EventKind, EventSink, Extent, OomClass, Origin, SegmentKind,
};
use crate::ids::{Address, DeviceId, StreamId, TextId, ThreadIndex};

fn kinds() -> Vec<EventKind> {
    let extent = Extent {
        address: Address(1 << 40),
        size: 512,
        stream: StreamId(u64::MAX),
    };
    let mut kinds = vec![
        EventKind::Alloc {
            extent,
            requested: 500,
            origin: Origin::Plain,
        },
        EventKind::FreeRequested {
            extent,
            requested: 500,
        },
        EventKind::FreeCompleted {
            extent,
            requested: 500,
        },
        EventKind::SegmentAlloc {
            extent,
            kind: SegmentKind::Small,
        },
        EventKind::SegmentFree {
            extent,
            kind: SegmentKind::OwnPages,
        },
        EventKind::SegmentMap {
            extent,
            page: 2 << 20,
        },
        EventKind::Committed { extent },
        EventKind::SegmentUnmap {
            extent,
            page: 2 << 20,
        },
        EventKind::Retry { size: 9 },
        EventKind::OutOfMemory {
            requested: 1,
            rounded: 2,
            stream: StreamId(3),
            origin: Origin::Plain,
            class: OomClass::FreesPending,
            device_free: 4,
            largest_free: 5,
            held_by_others: Some(0),
        },
        EventKind::OutOfMemory {
            requested: 1,
            rounded: 2,
            stream: StreamId(3),
            origin: Origin::StreamOrdered,
            class: OomClass::OutsideProcess,
            device_free: 4,
            largest_free: 5,
            held_by_others: None,
        },
        EventKind::Checkpoint { name: TextId(7) },
        EventKind::RunBegin { run: 1 },
        EventKind::RunEnd { run: 1 },
        EventKind::ThreadBegin { name: TextId(8) },
        EventKind::ThreadEnd,
        EventKind::Trim,
        EventKind::Misuse { message: TextId(9) },
        EventKind::NotSimulated { name: TextId(10) },
        EventKind::TakenOnTrust { what: TextId(12) },
        EventKind::Launches { count: u64::MAX },
        EventKind::UnknownFree {
            address: Address(11),
        },
        EventKind::DoorViolation {
            message: TextId(12),
        },
        EventKind::DeviceSample {
            used: Some(0),
            process: None,
            process_peak: Some(13),
        },
        EventKind::DeviceSample {
            used: None,
            process: Some(14),
            process_peak: None,
        },
        EventKind::ShadowDiffers {
            model: 15,
            driver: 16,
        },
        EventKind::BudgetExceeded {
            reserved: 17,
            budget: 18,
        },
    ];
    for (index, memory) in DriverMemory::ALL.into_iter().enumerate() {
        let (address, size) = (Address(1 << 41), 19);
        let charged = index % 2 == 0;
        kinds.push(EventKind::DriverTaken {
            memory,
            address,
            size,
            charged,
        });
        kinds.push(EventKind::DriverReturned {
            memory,
            address,
            size,
            charged: !charged,
        });
    }
    kinds
}

fn event(kind: EventKind) -> Event {
    Event {
        device: DeviceId(3),
        thread: ThreadIndex(70_000),
        site: TextId(5),
        kind,
    }
}

#[test]
fn every_kind_survives_the_round_trip() {
    let ledger = Ledger::in_memory(64).unwrap();
    for kind in kinds() {
        ledger.append(event(kind));
    }
    let expected: Vec<_> = kinds().into_iter().map(event).collect();
    assert_eq!(ledger.read().events, expected);
}

#[test]
fn texts_of_any_length_are_kept_once() {
    let ledger = Ledger::in_memory(64).unwrap();
    let long = "é".repeat(100);
    let ids = [ledger.intern("a"), ledger.intern(&long), ledger.intern("a")];
    ledger.append(event(EventKind::ThreadEnd));
    let recording = ledger.read();
    assert_eq!(ids[0], ids[2]);
    assert_eq!(recording.text(ids[0]), "a");
    assert_eq!(recording.text(ids[1]), long);
    assert_eq!(recording.text(TextId::UNKNOWN), "");
    assert_eq!(recording.events.len(), 1);
}

#[test]
fn a_full_ledger_counts_what_it_lost() {
    let ledger = Ledger::in_memory(2).unwrap();
    for _ in 0..5 {
        ledger.append(event(EventKind::ThreadEnd));
    }
    let recording = ledger.read();
    assert_eq!((recording.events.len(), recording.lost), (2, 3));
}

#[test]
fn another_opening_of_the_file_sees_everything() {
    let folder = std::env::temp_dir().join(format!("gpumem-ledger-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.ledger");
    let ours = Ledger::create(&path, 16).unwrap();
    let theirs = Ledger::open(&path).unwrap();
    theirs.append(event(EventKind::ThreadEnd));
    assert_eq!(ours.read().events.len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_is_no_ledger_is_refused_by_name() {
    let folder = std::env::temp_dir().join(format!("gpumem-no-ledger-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("b.ledger");
    std::fs::write(&path, [7; 256]).unwrap();
    let error = Ledger::open(&path).err().unwrap().to_string();
    assert!(error.contains("b.ledger is not a ledger"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn threads_append_side_by_side_without_loss() {
    let ledger = Ledger::in_memory(8_000).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    ledger.append(event(EventKind::ThreadEnd)).unwrap();
                }
            });
        }
    });
    assert_eq!(ledger.read().events.len(), 8_000);
}

#[test]
fn a_site_is_named_by_file_and_line() {
    let ledger = Ledger::in_memory(16).unwrap();
    let place = Location::caller();
    let id = Sites::default().id(&ledger, place);
    assert!(place.file().ends_with("tests.rs"));
    assert_eq!(
        ledger.read().text(id),
        format!("{}:{}", place.file(), place.line())
    );
}

#[test]
fn a_text_that_a_wild_write_numbered_takes_no_room() {
    let ledger = Ledger::in_memory(8).unwrap();
    ledger.intern("kept");
    let cells = ledger.claim(2).unwrap();
    super::codec::write_text(cells.1, TextId(u32::MAX), "wild");
    let recording = ledger.read();
    assert_eq!(recording.text(TextId(1)), "kept");
    assert_eq!(recording.text(TextId(u32::MAX)), "");
}

#[test]
fn a_free_that_completes_at_once_takes_one_slot_and_reads_as_two_events() {
    let extent = |address| Extent {
        address: Address(address),
        size: 512,
        stream: StreamId(0),
    };
    let requested = |address| EventKind::FreeRequested {
        extent: extent(address),
        requested: 500,
    };
    let completed = |address| EventKind::FreeCompleted {
        extent: extent(address),
        requested: 500,
    };
    let kinds = [
        requested(1),
        completed(1),
        requested(2),
        requested(3),
        completed(2),
        completed(3),
    ];
    let ledger = Ledger::in_memory(5).unwrap();
    let who = (DeviceId(1), ThreadIndex(2), TextId(3));
    let mut sink = LedgerSink::new(&ledger, who.0, who.1, who.2);
    for kind in kinds {
        sink.record(kind);
    }
    let recording = ledger.read();
    assert_eq!(recording.lost, 0, "six events fit in five slots");
    let read: Vec<_> = recording.events.iter().map(|event| event.kind).collect();
    assert_eq!(read, kinds, "in the order in which they came");
    assert!(
        recording
            .events
            .iter()
            .all(|event| (event.device, event.thread, event.site) == who)
    );
}

#[test]
fn frames_of_any_number_are_kept_and_the_innermost_come_first() {
    let ledger = Ledger::in_memory(100).unwrap();
    let module = ledger.intern("libx.so");
    let frames = |count: u64| -> Vec<_> { (0..count).map(|n| (module, n << 30 | 5)).collect() };
    let counts = [1, 6, 7, 14, 15, 37, 38, 39];
    let ids = counts.map(|count| ledger.intern_frames(&frames(count)));
    let name = ledger.intern("after");
    ledger.append(event(EventKind::ThreadEnd));
    let recording = ledger.read();
    for (count, id) in counts.into_iter().zip(ids) {
        let kept = frames(count.min(super::MAX_FRAMES as u64));
        assert_eq!(recording.frames(id), kept, "{count}");
    }
    assert_eq!(recording.framed().collect::<Vec<_>>(), ids);
    assert_eq!(recording.text(name), "after");
    assert_eq!(recording.events.len(), 1);
}

#[test]
fn sites_of_one_name_become_one_site() {
    let ledger = Ledger::in_memory(64).unwrap();
    let module = ledger.intern("libx.so");
    let known = ledger.intern("src/a.rs:1");
    let sites = [1, 2, 3].map(|offset| ledger.intern_frames(&[(module, offset)]));
    for site in sites {
        let kind = EventKind::ThreadEnd;
        ledger.append(Event {
            site,
            ..event(kind)
        });
    }
    let mut recording = ledger.read();
    let names = ["src/a.rs:1", "src/b.rs:2", "src/b.rs:2"];
    let named = sites.into_iter().zip(names.map(str::to_owned)).collect();
    recording.name_sites(named);
    let read: Vec<_> = recording.events.iter().map(|event| event.site).collect();
    assert_eq!(read, [known, sites[1], sites[1]]);
    assert_eq!(recording.text(sites[1]), "src/b.rs:2");
}
