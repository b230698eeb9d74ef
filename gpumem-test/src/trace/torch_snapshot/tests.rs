//! Snapshots, well-formed and not.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::{Action, TorchSnapshot};
use crate::error::Error;
use crate::heap_map::Usage;
use crate::trace::sample::{BASE, Plain, read, segment, small, snapshot};

fn error_of(bytes: &[u8]) -> Error {
    TorchSnapshot::from_bytes("mem.pickle", bytes).expect_err("an error")
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a_snapshot_is_read_with_its_blocks_entries_and_stacks() {
    let snapshot = read(&small());
    let segment = &snapshot.segments[0];
    assert_eq!(
        (segment.address.0, segment.total_size),
        (BASE as u64, 2 << 20)
    );
    assert!(segment.small && !segment.expandable && segment.pool == (0, 0));
    assert_eq!(segment.blocks[0].usage, Usage::Allocated);
    assert_eq!(
        (segment.blocks[0].size, segment.blocks[0].requested_size),
        (1024, 700)
    );
    assert_eq!(segment.blocks[1].usage, Usage::Free);
    let entries = &snapshot.device_traces[0];
    assert_eq!(entries[1].action, Action::Alloc);
    assert_eq!(
        (entries[1].address, entries[1].size, entries[1].time_us),
        (BASE as u64, 700, 5)
    );
    assert_eq!(snapshot.frames(entries[1].frames).count(), 2);
    assert_eq!(
        snapshot.site(entries[1].frames).as_deref(),
        Some("model.py:1")
    );
    assert_eq!(
        snapshot.site(segment.blocks[0].frames).as_deref(),
        Some("model.py:2")
    );
}

#[test]
fn a_compressed_snapshot_reads_the_same() {
    let plain = small().pickled();
    let from = |bytes: &[u8]| TorchSnapshot::from_bytes("x", bytes).expect("a snapshot");
    let (plain, packed) = (from(&plain), from(&compressed(&plain)));
    assert_eq!(plain.segments, packed.segments);
    assert_eq!(plain.device_traces, packed.device_traces);
    assert_eq!(plain.settings, packed.settings);
}

#[test]
fn what_older_snapshots_lack_has_a_default() {
    let bare = snapshot(
        vec![segment(BASE, "large", &[(20 << 20, 5, "inactive")])],
        Vec::new(),
    );
    let Plain::Dict(entries) = bare else {
        unreachable!("a dict")
    };
    let kept = entries
        .into_iter()
        .filter(|(key, _)| !matches!(*key, "allocator_settings" | "external_annotations"));
    let mut bare = Plain::Dict(kept.collect());
    let Plain::Dict(segment) = bare.at("segments.0") else {
        unreachable!("a dict")
    };
    segment.retain(|(key, _)| !matches!(*key, "device" | "segment_pool_id" | "is_expandable"));
    let read = read(&bare);
    assert_eq!(read.settings.max_split_size, None);
    assert_eq!(
        (read.segments[0].device, read.segments[0].pool),
        (0, (0, 0))
    );
}

#[test]
fn mistakes_are_named_with_the_keys_that_lead_to_them() {
    use Plain::{Int, List, Text};
    for (path, value, message) in [
        ("segments", Int(3), "segments: expected a list, found int"),
        (
            "segments.0",
            List(vec![]),
            "segments[0]: expected a dict, found list",
        ),
        (
            "segments.0.segment_type",
            Text("big"),
            "segments[0].segment_type: expected small or large, found \"big\"",
        ),
        (
            "segments.0.blocks.1.size",
            Text("9"),
            "segments[0].blocks[1].size: expected an integer, found str",
        ),
        (
            "segments.0.blocks.1.size",
            Int(5),
            "segments[0].blocks: end at 0x700000000405, the segment at 0x700000200000",
        ),
        (
            "segments.0.blocks.1.size",
            Int(i64::MAX),
            "segments[0].blocks[1]: has 9223372036854775807 bytes, which do not fit its segment",
        ),
        (
            "segments.0.blocks.1.address",
            Int(BASE),
            "segments[0].blocks[1]: begins at 0x700000000000, where the part before it ends at 0x700000000400",
        ),
        (
            "segments.0.blocks.0.state",
            Text("lost"),
            "segments[0].blocks[0].state: unknown state \"lost\"",
        ),
        (
            "segments.0.address",
            Int(-1),
            "segments[0].address: expected a number of at least 0, found -1",
        ),
        (
            "segments.0.segment_pool_id",
            List(vec![Int(1)]),
            "segments[0].segment_pool_id: expected two numbers, found list",
        ),
        (
            "device_traces.0.1.action",
            Text("think"),
            "device_traces[0][1].action: unknown action \"think\"",
        ),
        (
            "device_traces.0.2.frames",
            Int(1),
            "device_traces[0][2].frames: expected a list, found int",
        ),
        (
            "device_traces.0.2.frames.1.line",
            Text(""),
            "device_traces[0][2].frames[1].line: expected an integer, found str",
        ),
        (
            "allocator_settings.max_split_size",
            Text(""),
            "allocator_settings.max_split_size: expected an integer, found str",
        ),
        (
            "allocator_settings.roundup_power2_divisions.2",
            Int(3),
            "allocator_settings.roundup_power2_divisions.2: expected a power of two or 0, found 3",
        ),
    ] {
        let mut wrong = small();
        *wrong.at(path) = value;
        let error = error_of(&wrong.pickled());
        assert!(error.is_recording());
        assert_eq!(
            error.to_string(),
            format!("cannot read snapshot mem.pickle: {message}")
        );
        assert!(
            error
                .help()
                .is_some_and(|help| help.contains("_dump_snapshot"))
        );
    }
}

#[test]
fn missing_keys_are_named() {
    for (path, key) in [
        ("segments.0", "total_size"),
        ("segments.0.blocks.0", "state"),
        ("device_traces.0.0", "action"),
        ("device_traces.0.0", "addr"),
        ("device_traces.0.0.frames.0", "filename"),
    ] {
        let mut wrong = small();
        let Plain::Dict(entries) = wrong.at(path) else {
            panic!("{path} is a dict")
        };
        entries.retain(|(found, _)| *found != key);
        let message = error_of(&wrong.pickled()).to_string();
        assert!(message.ends_with(&format!(".{key}: missing")), "{message}");
    }
}

#[test]
fn segments_that_overlap_are_refused() {
    let block = [(2 << 20, 1, "inactive")];
    let both = vec![
        segment(BASE, "small", &block),
        segment(BASE + 512, "small", &block),
    ];
    assert_eq!(
        error_of(&snapshot(both, Vec::new()).pickled()).to_string(),
        "cannot read snapshot mem.pickle: segments: the segments at 0x700000000000 and 0x700000000200 overlap"
    );
}

#[test]
fn what_is_no_snapshot_is_recognised() {
    let packed = compressed(&small().pickled());
    let mut damaged = packed.clone();
    let end = damaged.len() - 6;
    damaged[end] ^= 0xff;
    for (bytes, message, help) in [
        (&b""[..], "it is empty", "_dump_snapshot"),
        (
            b"PK\x03\x04rest",
            "it is a zip archive, as `torch.save` writes them",
            "_dump_snapshot",
        ),
        (
            b"{\"segments\": []}",
            "not a pickle: no operation 0x7b (byte 0)",
            "_dump_snapshot",
        ),
        (
            b"\x80\x04]\x94.",
            "it is a pickle of a list, not of a snapshot",
            "_dump_snapshot",
        ),
        (b"\x80\x04}\x94.", "segments: missing", "_dump_snapshot"),
        (
            b"cos\nsystem\n(S'true'\ntR.",
            "GLOBAL at byte 0 names or calls Python code, and a pickle never executes anything here",
            "plain data only",
        ),
        (
            &packed[..packed.len() / 2],
            "the gzip stream is truncated after",
            "copy the file again",
        ),
        (
            &damaged,
            "the gzip stream is damaged after",
            "copy the file again",
        ),
    ] {
        let error = error_of(bytes);
        let text = error.to_string();
        assert!(error.is_recording());
        assert!(
            text.starts_with(&format!("cannot read snapshot mem.pickle: {message}")),
            "{text}"
        );
        assert!(
            error.help().is_some_and(|text| text.contains(help)),
            "{error:?}"
        );
    }
    let missing = TorchSnapshot::open("no/such/file.pickle").expect_err("no file");
    assert!(missing.is_io());
    assert_eq!(
        missing.to_string(),
        "cannot read snapshot no/such/file.pickle"
    );
    assert!(
        missing
            .help()
            .is_some_and(|help| help.contains("CARGO_MANIFEST_DIR"))
    );
}

#[test]
fn every_truncation_is_called_truncated() {
    let whole = small().pickled();
    for length in 1..whole.len() {
        let error = error_of(&whole[..length]);
        assert!(
            error.to_string().contains(": truncated: at byte "),
            "cut at {length}: {error}"
        );
        assert_eq!(error.help(), Some("copy the file again, or record it anew"));
    }
}

#[test]
fn parts_repeated_by_reference_are_bounded() {
    // A list of sixty thousand references to one segment of three blocks: each is two bytes long.
    let mut bytes = b"\x80\x04}(\x8c\x08segments](".to_vec();
    segment(BASE, "small", &[(512, 1, "inactive"); 3]).write_to(&mut bytes);
    bytes.extend(*b"\x94");
    bytes.extend(b"h\x00".repeat(60_000));
    bytes.extend(*b"e\x8c\x0ddevice_traces]u.");
    let message = error_of(&bytes).to_string();
    assert!(message.contains("repeats the same parts"), "{message}");
}

#[test]
fn flipped_bytes_never_panic() {
    let whole = small().pickled();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut read, mut rewound) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 3 {
            let at = (next() % bytes.len() as u64) as usize;
            bytes[at] ^= 1 << (next() % 8);
        }
        if let Ok(snapshot) = TorchSnapshot::from_bytes("flipped", &bytes) {
            read += 1;
            rewound += usize::from(snapshot.trace(None).is_ok());
        }
    }
    assert!(
        rewound > 0 && rewound < read && read < 20_000,
        "{rewound} of {read}"
    );
}

#[test]
fn the_site_is_the_innermost_frame_of_the_program() {
    let mut native = small();
    *native.at("device_traces.0.1.frames.1.filename") = Plain::Text("/src/kernel.cpp");
    let read = read(&native);
    let site = read.site(read.device_traces[0][1].frames);
    assert_eq!(
        site.as_deref(),
        Some("/lib/site-packages/torch/nn/functional.py:7")
    );
}
