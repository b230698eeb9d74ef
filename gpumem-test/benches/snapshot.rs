//! How long the largest recorded snapshot takes to load, and to load and replay.
//!
//! `cargo bench --bench snapshot` prints both, and what 60 000 events would take: the promise is
//! below 150 ms. `GPUMEM_ORACLE_DIR` names other recordings, as for the conformance tests.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpumem_test::{
    CachingConfig, CachingPolicy, DeviceProfile, MemoryLimits, Replay, SimDevice, TorchSnapshot,
};

/// The events that the promise is about, and the time that it allows them.
const EVENTS: usize = 60_000;
const PROMISED: Duration = Duration::from_millis(150);

fn main() {
    let path = largest();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let events = load_and_replay(&path);
    let best = (0..20)
        .map(|_| {
            let begin = Instant::now();
            load_and_replay(&path);
            begin.elapsed()
        })
        .min()
        .unwrap_or_default();
    let scaled = best * EVENTS as u32 / events as u32;
    println!(
        "{file}: {events} events load and replay in {:.2} ms; {EVENTS} would take {:.2} ms",
        best.as_secs_f64() * 1e3,
        scaled.as_secs_f64() * 1e3
    );
    assert!(
        scaled < PROMISED,
        "{EVENTS} events take {scaled:?}, more than the promised {PROMISED:?}"
    );
    divan::main();
}

/// The largest recording of the workspace.
fn largest() -> PathBuf {
    let folder = match std::env::var_os("GPUMEM_ORACLE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces"),
    }
    .join("caching/real/default");
    let files = std::fs::read_dir(folder).expect("recordings");
    files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
        .expect("a recorded snapshot")
}

/// Reads a snapshot, rewinds it and replays it from its start; returns how many events it has.
fn load_and_replay(path: &Path) -> usize {
    let snapshot = TorchSnapshot::open(path).expect("a snapshot");
    let trace = snapshot.trace(None).expect("a trace");
    let limits = MemoryLimits::device(141 << 30);
    let (mut policy, ids) =
        CachingPolicy::restore(CachingConfig::default(), limits, &trace.start().heap)
            .expect("a heap");
    let held = trace.start().held.iter().map(|held| held.address).zip(ids);
    let outcome = Replay::onto(&trace, held)
        .run(
            &mut policy,
            &mut SimDevice::new(DeviceProfile::h200()),
            &mut (),
        )
        .expect("a replay");
    assert!(outcome.fits());
    snapshot.device_traces.iter().map(Vec::len).sum()
}

#[divan::bench]
fn load(bencher: divan::Bencher) {
    let path = largest();
    bencher.bench(|| TorchSnapshot::open(&path).expect("a snapshot"));
}

#[divan::bench]
fn load_rewind_and_replay(bencher: divan::Bencher) {
    let path = largest();
    bencher.bench(|| load_and_replay(&path));
}
