//! Real snapshot files, damaged: each is an error that says so, or still a snapshot; never a panic.

use std::io::Read;
use std::path::{Path, PathBuf};

use gpumem_test::{CachingConfig, CachingPolicy, MemoryLimits, Replay, TorchSnapshot, Trace};

use crate::scripted_device::ScriptedDevice;

fn real(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("traces/caching/real")
        .join(file)
}

fn expanded(file: &str) -> Vec<u8> {
    let file = std::fs::File::open(real(file)).expect("a recording");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("a gzip stream");
    bytes
}

#[test]
fn truncated_snapshots_say_so() {
    let packed = std::fs::read(real("default/gpt.pickle.gz")).expect("a recording");
    for share in 1..16 {
        let part = &packed[..packed.len() * share / 16];
        let error = TorchSnapshot::from_bytes("gpt", part).expect_err("truncated");
        assert!(error.is_recording());
        let text = error.to_string();
        assert!(
            text.contains("the gzip stream is truncated after"),
            "{text}"
        );
    }
    let whole = expanded("default/leak.pickle.gz");
    for length in (1..whole.len()).step_by(13) {
        let error = TorchSnapshot::from_bytes("leak", &whole[..length]).expect_err("truncated");
        assert!(error.to_string().contains("truncated: at byte"), "{error}");
    }
}

#[test]
fn flipped_bits_of_a_snapshot_never_panic() {
    let whole = expanded("default/streams.pickle.gz");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut read, mut rewound) = (0, 0);
    for _ in 0..2_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 3 {
            let at = (next() % bytes.len() as u64) as usize;
            bytes[at] ^= 1 << (next() % 8);
        }
        let Ok(snapshot) = TorchSnapshot::from_bytes("flipped", &bytes) else {
            continue;
        };
        read += 1;
        if let Ok(trace) = snapshot.trace(None) {
            rewound += 1;
            replay(&trace);
        }
    }
    assert!(
        rewound > 0 && rewound < read,
        "{rewound} rewound of {read} read"
    );
}

/// What the figures of a damaged trace ask for is refused or served, as those of any other.
fn replay(trace: &Trace) {
    let device = || ScriptedDevice::new(80 << 30, Vec::new(), None, Vec::new());
    let limits = MemoryLimits::device(80 << 30).with_budget(80 << 30);
    let start = trace.start();
    if let Ok((mut policy, ids)) =
        CachingPolicy::restore(CachingConfig::default(), limits, &start.heap)
    {
        let held = start.held.iter().map(|held| held.address).zip(ids);
        let _ = Replay::onto(trace, held).run(&mut policy, &mut device(), &mut ());
    }
    let mut policy = CachingPolicy::new(CachingConfig::default(), limits);
    let outcome = Replay::new(trace).run(&mut policy, &mut device(), &mut ());
    assert!(outcome.is_ok_and(|outcome| outcome.requests == trace.requests()));
}
