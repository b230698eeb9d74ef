//! How long the policies `caching`, `bfc` and `driver` take per operation, with their statistics on.
//!
//! Each list of `ops/` is replayed warm: before the clock starts, and between rounds, blocks that
//! are still held are freed, as in the measurement of the original. The first table gives medians
//! in nanoseconds per operation; `pair` is one insert and one remove of a `BTreeMap` that holds
//! what the list holds at that point. `recorded` keeps the events in a `Vec`, `ledger` in a ledger;
//! `bfc` has taken its limit at once, `growing` in regions; `driver` is the policy over the driver's
//! stream-ordered pool as the simulated device has it, keeping its memory, `pool` that pool alone.
//! divan's own table of the same follows.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use divan::Bencher;
use divan::counter::ItemsCount;
use gpumem_test::{
    Address, BfcOptions, BfcPolicy, BlockId, CachingConfig, CachingPolicy, DeviceMemory,
    DeviceProfile, DriverPolicy, EventKind, EventSink, Ledger, LedgerSink, MemoryLimits, Policy,
    PoolId, Request, SimDevice, StreamId,
};

const LISTS: [&str; 6] = ["edge", "gpt", "kv", "large", "mixed", "small"];
/// Rounds before and during a measurement, as for the original.
const ROUNDS: usize = 30;

fn main() {
    // Cargo passes `--bench`; listing and filtering are divan's.
    if std::env::args().len() <= 2 {
        print_medians();
    }
    divan::main();
}

#[derive(Clone, Copy)]
enum Op {
    Alloc { id: usize, size: u64 },
    Free { id: usize },
}

/// The operations of a list, and one more than its largest id.
fn read(list: &str) -> (Vec<Op>, usize) {
    let path = format!("{}/benches/ops/{list}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut ids = 0;
    let ops = text
        .lines()
        .map(|line| {
            let mut words = line.split_ascii_whitespace();
            let mut next = || words.next().unwrap_or_else(|| panic!("{path}: {line:?}"));
            let is_alloc = next() == "a";
            let id = next().parse().expect("an id");
            ids = ids.max(id + 1);
            if is_alloc {
                Op::Alloc {
                    id,
                    size: next().parse().expect("a size"),
                }
            } else {
                Op::Free { id }
            }
        })
        .collect();
    (ops, ids)
}

fn caching_policy(config: &str) -> CachingPolicy {
    let (config, _) = CachingConfig::parse(config).expect("a configuration");
    CachingPolicy::new(config, MemoryLimits::device(DeviceProfile::h200().total))
}

fn bfc_policy(allow_growth: bool) -> BfcPolicy {
    BfcPolicy::new(BfcOptions {
        allow_growth,
        ..BfcOptions::new(128 << 30)
    })
}

/// A policy, warm after the rounds that it has seen.
struct Replay<P, S> {
    policy: P,
    device: SimDevice,
    sink: S,
    ops: Vec<Op>,
    held: Vec<BlockId>,
}

impl<P: Policy, S: Sink> Replay<P, S> {
    fn new(list: &str, policy: P, sink: S) -> Self {
        let (ops, ids) = read(list);
        let mut replay = Self {
            policy,
            device: card_with_pool(),
            sink,
            ops,
            held: vec![BlockId::NULL; ids],
        };
        for _ in 0..ROUNDS {
            replay.round();
            replay.free_all();
        }
        replay
    }

    /// What is measured.
    fn round(&mut self) {
        for index in 0..self.ops.len() {
            match self.ops[index] {
                Op::Alloc { id, size } => {
                    let request = Request::new(size, StreamId::DEFAULT);
                    let block = self.policy.alloc(&mut self.device, &mut self.sink, request);
                    self.held[id] = block.expect("memory").id;
                }
                Op::Free { id } => self.free(id),
            }
        }
    }

    fn free(&mut self, id: usize) {
        let block = std::mem::replace(&mut self.held[id], BlockId::NULL);
        self.policy
            .free(&mut self.device, &mut self.sink, block, StreamId::DEFAULT)
            .expect("a held block");
    }

    fn free_all(&mut self) {
        for id in 0..self.held.len() {
            self.free(id);
        }
        self.sink.rewind();
    }
}

/// A card whose default pool keeps what it has.
fn card_with_pool() -> SimDevice {
    let mut device = SimDevice::new(DeviceProfile::h200());
    device
        .set_release_threshold(PoolId::DEFAULT, u64::MAX)
        .expect("the default pool");
    device
}

/// The simulated device's stream-ordered pool, without a policy.
struct PoolReplay {
    device: SimDevice,
    ops: Vec<Op>,
    held: Vec<Address>,
}

impl PoolReplay {
    fn new(list: &str) -> Self {
        let (ops, ids) = read(list);
        let mut replay = Self {
            device: card_with_pool(),
            ops,
            held: vec![Address::NULL; ids],
        };
        for _ in 0..ROUNDS {
            replay.round();
            replay.free_all();
        }
        replay
    }

    fn round(&mut self) {
        for index in 0..self.ops.len() {
            match self.ops[index] {
                Op::Alloc { id, size } => {
                    let given = self
                        .device
                        .malloc_async(PoolId::DEFAULT, size, StreamId::DEFAULT);
                    self.held[id] = given.expect("memory");
                }
                Op::Free { id } => self.free(id),
            }
        }
    }

    fn free(&mut self, id: usize) {
        let address = std::mem::replace(&mut self.held[id], Address::NULL);
        if address != Address::NULL {
            self.device
                .free_async(address, StreamId::DEFAULT)
                .expect("a live allocation");
        }
    }

    fn free_all(&mut self) {
        for id in 0..self.held.len() {
            self.free(id);
        }
    }
}

/// A sink that a bench can use for ever.
trait Sink: EventSink {
    fn rewind(&mut self);
}

impl Sink for () {
    fn rewind(&mut self) {}
}

impl Sink for Vec<EventKind> {
    fn rewind(&mut self) {
        self.clear();
    }
}

/// Events go to a ledger, a new one for each round: its pages are touched for the first time, as
/// those of a test are.
struct Recorded {
    sink: LedgerSink<Box<Ledger>>,
    slots: u64,
}

impl Recorded {
    fn new(slots: u64) -> Self {
        let ledger = Box::new(Ledger::in_memory(slots).expect("memory"));
        let (device, thread, site) = Default::default();
        let sink = LedgerSink::new(ledger, device, thread, site);
        Self { sink, slots }
    }
}

impl EventSink for Recorded {
    #[inline]
    fn record(&mut self, kind: EventKind) {
        self.sink.record(kind);
    }
}

impl Sink for Recorded {
    fn rewind(&mut self) {
        *self = Self::new(self.slots);
    }
}

/// Slots that a round of any list fills, and freeing what it leaves.
const SLOTS: u64 = 1 << 16;

/// What the list does, done to a map.
struct MapReplay {
    ops: Vec<Op>,
    sizes: Vec<u64>,
    map: BTreeMap<(u64, u64), u64>,
}

impl MapReplay {
    fn new(list: &str) -> Self {
        let (ops, ids) = read(list);
        let mut replay = Self {
            ops,
            sizes: vec![0; ids],
            map: BTreeMap::new(),
        };
        for _ in 0..ROUNDS {
            replay.round();
            replay.map.clear();
        }
        replay
    }

    /// One insert or one remove per operation.
    fn round(&mut self) {
        for op in &self.ops {
            match *op {
                Op::Alloc { id, size } => {
                    self.sizes[id] = size;
                    self.map.insert((size, id as u64), size);
                }
                Op::Free { id } => {
                    black_box(self.map.remove(&(self.sizes[id], id as u64)));
                }
            }
        }
    }
}

/// The median and the least over rounds of nanoseconds per operation.
fn median<R>(
    state: &mut R,
    ops: usize,
    mut round: impl FnMut(&mut R),
    mut between: impl FnMut(&mut R),
) -> (f64, f64) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round(state);
            let time = start.elapsed().as_nanos() as f64 / ops as f64;
            between(state);
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], times[0])
}

fn print_medians() {
    println!("ns per operation: median (least) of {ROUNDS} rounds, {ROUNDS} more to warm up");
    println!(
        "{:<6} {:>6} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>8}",
        "list",
        "ops",
        "caching",
        "recorded",
        "ledger",
        "expandable",
        "bfc",
        "growing",
        "driver",
        "pool",
        "map pair",
        "per pair"
    );
    for list in LISTS {
        let mut plain = Replay::new(list, caching_policy(""), ());
        let ops = plain.ops.len();
        let caching = median(&mut plain, ops, Replay::round, Replay::free_all);
        let mut recorded = Replay::new(list, caching_policy(""), Vec::new());
        let recorded = median(&mut recorded, ops, Replay::round, Replay::free_all);
        let mut ledger = Replay::new(list, caching_policy(""), Recorded::new(SLOTS));
        let ledger = median(&mut ledger, ops, Replay::round, Replay::free_all);
        let mut expandable = Replay::new(list, caching_policy("expandable_segments:True"), ());
        let expandable = median(&mut expandable, ops, Replay::round, Replay::free_all);
        let mut fixed = Replay::new(list, bfc_policy(false), ());
        let fixed = median(&mut fixed, ops, Replay::round, Replay::free_all);
        let mut growing = Replay::new(list, bfc_policy(true), ());
        let growing = median(&mut growing, ops, Replay::round, Replay::free_all);
        let mut driver = Replay::new(list, DriverPolicy::new(), ());
        let driver = median(&mut driver, ops, Replay::round, Replay::free_all);
        let mut pool = PoolReplay::new(list);
        let pool = median(&mut pool, ops, PoolReplay::round, PoolReplay::free_all);
        let mut map = MapReplay::new(list);
        let clear = |replay: &mut MapReplay| replay.map.clear();
        let half = median(&mut map, ops, MapReplay::round, clear);
        let pair = (2.0 * half.0, 2.0 * half.1);
        print!("{list:<6} {ops:>6}");
        for (median, least) in [
            caching, recorded, ledger, expandable, fixed, growing, driver, pool, pair,
        ] {
            print!(" {median:>6.1} ({least:>5.1})");
        }
        println!(" {:>8.2}", caching.0 / pair.0);
    }
    println!();
}

/// The policy alone.
#[divan::bench(args = LISTS)]
fn caching(bencher: Bencher, list: &str) {
    bench(bencher, Replay::new(list, caching_policy(""), ()));
}

/// The policy with every event kept.
#[divan::bench(args = LISTS)]
fn caching_recorded(bencher: Bencher, list: &str) {
    bench(bencher, Replay::new(list, caching_policy(""), Vec::new()));
}

/// The policy with every event in a ledger.
#[divan::bench(args = LISTS)]
fn caching_ledger(bencher: Bencher, list: &str) {
    bench(
        bencher,
        Replay::new(list, caching_policy(""), Recorded::new(SLOTS)),
    );
}

/// The policy with expandable segments.
#[divan::bench(args = LISTS)]
fn caching_expandable(bencher: Bencher, list: &str) {
    bench(
        bencher,
        Replay::new(list, caching_policy("expandable_segments:True"), ()),
    );
}

/// bfc alone, its limit taken at once.
#[divan::bench(args = LISTS)]
fn bfc(bencher: Bencher, list: &str) {
    bench(bencher, Replay::new(list, bfc_policy(false), ()));
}

/// bfc alone, growing.
#[divan::bench(args = LISTS)]
fn bfc_growing(bencher: Bencher, list: &str) {
    bench(bencher, Replay::new(list, bfc_policy(true), ()));
}

/// The policy `driver` over the driver's pool.
#[divan::bench(args = LISTS)]
fn driver(bencher: Bencher, list: &str) {
    bench(bencher, Replay::new(list, DriverPolicy::new(), ()));
}

fn bench<P: Policy, S: Sink>(bencher: Bencher, mut replay: Replay<P, S>) {
    let ops = replay.ops.len();
    // The clock covers freeing what is left; it counts as operations.
    let left = ops
        - 2 * replay
            .ops
            .iter()
            .filter(|op| matches!(op, Op::Free { .. }))
            .count();
    bencher
        .counter(ItemsCount::new(ops + left))
        .bench_local(|| {
            replay.round();
            replay.free_all();
        });
}

/// One insert or one remove per operation: half a pair each.
#[divan::bench(args = LISTS)]
fn btree_map(bencher: Bencher, list: &str) {
    let mut replay = MapReplay::new(list);
    bencher
        .counter(ItemsCount::new(replay.ops.len()))
        .bench_local(|| {
            replay.round();
            replay.map.clear();
        });
}
