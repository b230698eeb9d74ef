//! Capture and naming, on this test program's own stack.

use super::{CallSites, Stack, name, name_by_module, system};
use crate::event::{Event, EventKind};
use crate::ids::{DeviceId, TextId, ThreadIndex};
use crate::ledger::{Ledger, MAX_FRAMES};

/// What the unwinder says of the same stack, from the caller of `walk` on.
fn unwound() -> Vec<usize> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip() as usize);
        true
    });
    addresses.retain(|address| *address != 0);
    addresses
}

fn walked() -> Vec<usize> {
    let mut stack = Stack::new();
    system::walk(&mut stack);
    stack.addresses().to_vec()
}

/// A stack of frames of different sizes.
#[inline(never)]
fn deep(depth: usize, bottom: &mut dyn FnMut()) {
    let room = [depth; 9];
    match depth {
        0 => bottom(),
        depth if depth % 2 == 0 => deep(depth - 1, bottom),
        depth => wide(depth - 1, bottom),
    }
    std::hint::black_box(room);
}

#[inline(never)]
fn wide(depth: usize, bottom: &mut dyn FnMut()) {
    let room = [depth; 100];
    match depth {
        0 => bottom(),
        depth => deep(depth - 1, bottom),
    }
    std::hint::black_box(room);
}

#[test]
fn a_walk_finds_what_the_unwinder_finds_the_first_time_and_later() {
    for depth in [0, 1, 2, 7, 20, 60, 7, 60, 0] {
        for time in 0..3 {
            deep(depth, &mut || {
                let (walked, unwound) = (walked(), unwound());
                // The innermost frames differ: one is the walk's caller, one the unwinder's.
                let from = walked.len().min(2);
                let rest = &walked[from..];
                assert!(!rest.is_empty());
                let start = unwound.iter().position(|address| *address == rest[0]);
                let start = start.unwrap_or_else(|| panic!("depth {depth}, time {time}"));
                let same = &unwound[start..unwound.len().min(start + rest.len())];
                assert_eq!(rest, same, "depth {depth}, time {time}");
            });
        }
    }
}

#[test]
fn a_stack_is_walked_to_its_end_or_to_the_most_frames() {
    let thread = std::thread::spawn(|| (0..3).map(|_| walked().len()).max());
    assert!(thread.join().unwrap().unwrap() < MAX_FRAMES);
    deep(60, &mut || assert_eq!(walked().len(), MAX_FRAMES));
}

#[test]
fn threads_walk_side_by_side() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for depth in 0..200 {
                    deep(depth % 40, &mut || {
                        let (first, second) = (walked(), walked());
                        // Behind `walked` and the two places where it is called.
                        assert_eq!(first[2..], second[2..]);
                    });
                }
            });
        }
    });
}

fn event(site: TextId) -> Event {
    Event {
        device: DeviceId(0),
        thread: ThreadIndex(0),
        site,
        kind: EventKind::ThreadEnd,
    }
}

#[test]
fn a_place_has_one_id_and_another_place_another() {
    let ledger = Ledger::in_memory(1_000).unwrap();
    let sites = CallSites::new(true);
    let mut ids = Vec::new();
    // Not unrolled, which would make three places of one.
    for _ in 0..std::hint::black_box(3) {
        deep(3, &mut || ids.push(sites.capture(&ledger)));
    }
    deep(4, &mut || ids.push(sites.capture(&ledger)));
    assert!(ids[0] != TextId::UNKNOWN && ids[0] == ids[1] && ids[1] == ids[2]);
    assert_ne!(ids[0], ids[3]);
}

#[test]
fn nothing_is_captured_when_sites_are_off() {
    let ledger = Ledger::in_memory(10).unwrap();
    let sites = CallSites::new(false);
    assert_eq!(sites.capture(&ledger), TextId::UNKNOWN);
    assert_eq!(ledger.read().framed().count(), 0);
}

#[test]
fn a_site_is_named_by_a_file_and_a_line() {
    let ledger = Ledger::in_memory(1_000).unwrap();
    let sites = CallSites::new(true);
    deep(2, &mut || {
        ledger.append(event(sites.capture(&ledger)));
    });
    let mut recording = ledger.read();
    name(&mut recording, None);
    let text = recording.text(recording.events[0].site).to_owned();
    // All frames of this stack are ours or std's, so that std's is what can be said.
    let (file, line) = text.rsplit_once(':').unwrap();
    assert!(
        file.ends_with(".rs") && line.parse::<u32>().is_ok(),
        "{text}"
    );
    assert!(
        !file.contains("callsite"),
        "our own frames are folded: {text}"
    );
}

/// Two lines of the user that reach the driver by the same call of another crate.
#[test]
fn labels_keep_sites_apart_until_they_are_named() {
    let ledger = Ledger::in_memory(1_000).unwrap();
    let module = ledger.intern("libx.so");
    for caller in [7, 8] {
        let site = ledger.intern_frames(&[(module, 5), (module, caller)]);
        ledger.append(event(site));
    }
    let mut recording = ledger.read();
    name_by_module(&mut recording);
    let sites = |recording: &crate::ledger::Recording| {
        let sites = recording.events.iter().map(|event| event.site);
        sites.collect::<std::collections::HashSet<_>>().len()
    };
    assert_eq!(sites(&recording), 2);
    name(&mut recording, None);
    assert_eq!(sites(&recording), 1, "nothing more is known of either");
}

const ELSEWHERE: &str = "GPUMEM_CALLSITE_TEST_LEDGER";

/// The other process of the test below; alone it does nothing.
#[test]
fn records_for_another_process() {
    let Some(path) = std::env::var_os(ELSEWHERE) else {
        return;
    };
    let ledger = Ledger::open(path.as_ref()).unwrap();
    let sites = CallSites::new(true);
    deep(2, &mut || {
        ledger.append(event(sites.capture(&ledger)));
    });
    // A crash loses nothing.
    std::process::abort();
}

/// The loader puts a program elsewhere each time that it starts.
#[test]
fn frames_of_a_process_that_crashed_are_named_in_another() {
    let folder = std::env::temp_dir().join(format!("gpumem-callsite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.ledger");
    let ledger = Ledger::create(&path, 1_000).unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["callsite::tests::records_for_another_process", "--exact"])
        .env(ELSEWHERE, &path)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    let recording = ledger.read();
    std::fs::remove_dir_all(&folder).unwrap();
    let mut functions = Vec::new();
    for frame in recording.frames(recording.events[0].site) {
        let module = recording.text(frame.0);
        system::resolve(module, frame.1, &mut |symbol| {
            functions.extend(symbol.function);
        });
    }
    let named = |part: &str| functions.iter().any(|name| name.contains(part));
    assert!(named("records_for_another_process"), "{functions:?}");
    assert!(named("deep") && named("wide"), "{functions:?}");
}

#[test]
fn without_names_a_site_is_a_module_and_an_offset() {
    let ledger = Ledger::in_memory(1_000).unwrap();
    let sites = CallSites::new(true);
    ledger.append(event(sites.capture(&ledger)));
    let mut recording = ledger.read();
    name_by_module(&mut recording);
    let text = recording.text(recording.events[0].site);
    let (_, offset) = text.split_once("+0x").unwrap();
    assert!(u64::from_str_radix(offset, 16).is_ok(), "{text}");
}

/// The least of many times, in nanoseconds a call.
fn nanoseconds(mut call: impl FnMut()) -> u128 {
    let round = || {
        let start = std::time::Instant::now();
        (0..200).for_each(|_| call());
        start.elapsed().as_nanos() / 200
    };
    std::iter::repeat_with(round).take(50).min().unwrap()
}

/// `cargo test --release -p gpumem-test --lib a_capture_costs -- --nocapture` prints the figures.
#[test]
fn a_capture_costs_a_fraction_of_unwinding() {
    let ledger = Ledger::in_memory(1_000).unwrap();
    let sites = CallSites::new(true);
    deep(40, &mut || {
        let captured = nanoseconds(|| {
            std::hint::black_box(sites.capture(&ledger));
        });
        let unwound = nanoseconds(|| {
            let mut count = 0;
            backtrace::trace(|frame| {
                std::hint::black_box(frame.ip());
                count += 1;
                count < MAX_FRAMES
            });
        });
        println!("{MAX_FRAMES} frames: captured in {captured} ns, unwound in {unwound} ns");
        assert!(captured < unwound, "{captured} ns, {unwound} ns");
        if !cfg!(debug_assertions) {
            assert!(captured < 1_000, "{captured} ns");
        }
    });
}
