//! Random calls on a shadowed card, and on a simulated device beside it.

use gpumem_test::__private::CudaDevice;
use gpumem_test::{Address, DeviceMemory, PoolId, SimDevice, StreamId, StreamKind};

use super::{MIB, open};

/// Numbers that look random, the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A size below 2 to the power of `magnitude`, small ones as often as large ones.
    pub(super) fn size(&mut self, magnitude: u64) -> u64 {
        let magnitude = 9 + self.below(magnitude - 8);
        1 + self.below(1 << magnitude)
    }
}

/// What a walk does besides requests and frees of the pool.
#[derive(Clone, Copy)]
pub(super) struct Mix {
    pub(super) streams: usize,
    pub(super) events: bool,
    pub(super) plain: bool,
    pub(super) budget: Option<u64>,
    pub(super) threshold: u64,
}

impl Mix {
    pub(super) const ONE_STREAM: Self = Self {
        streams: 1,
        events: false,
        plain: false,
        budget: None,
        threshold: 0,
    };
}

/// A card and a simulated device that are asked the same.
pub(super) struct Walk {
    pub(super) card: CudaDevice,
    pub(super) alone: SimDevice,
    streams: Vec<(StreamId, StreamId)>,
    live: Vec<(Address, bool)>,
    free: u64,
    mix: Mix,
    pub(super) refused: u32,
    /// The distance of the card's pool to the model's.
    distance: Option<i128>,
    pub(super) elsewhere: u32,
    pub(super) given: u32,
    parted: bool,
}

impl Walk {
    pub(super) fn new(mix: Mix) -> Self {
        let mut card = open(true);
        let mut alone = SimDevice::new(card.card().clone());
        card.set_budget(mix.budget);
        alone.set_budget(mix.budget);
        card.set_release_threshold(mix.threshold).unwrap();
        (alone.set_release_threshold(PoolId::DEFAULT, mix.threshold)).unwrap();
        let kind = StreamKind::NonBlocking;
        let streams = (0..mix.streams)
            .map(|_| (card.create_stream(kind).unwrap(), alone.create_stream(kind)))
            .collect();
        // Events take memory of the card when there are many; the first ones are made here.
        let fence = card.record(StreamId::DEFAULT);
        card.wait(fence);
        let free = card.free_without_budget();
        Self {
            card,
            alone,
            streams,
            live: Vec::new(),
            free,
            mix,
            refused: 0,
            distance: None,
            elsewhere: 0,
            given: 0,
            parted: false,
        }
    }

    pub(super) fn steps(&mut self, seed: u64, count: u32) {
        let mut random = Random::new(seed);
        for step in 0..count {
            self.step(&mut random);
            if self.has_parted() {
                self.check_parted(step);
                self.parted = true;
                return;
            }
            self.check(step);
        }
    }

    /// Until every stream is idle, by asking, which settles nothing: whether a stream has finished
    /// decides who may reuse its memory, and the simulated one has.
    fn idle(&self) {
        for (stream, _) in &self.streams {
            while !self.card.query_stream(*stream).unwrap() {}
        }
    }

    fn request(&mut self, size: u64, ordered: bool, streams: (StreamId, StreamId)) {
        let (given, expected) = if ordered {
            let pool = PoolId::DEFAULT;
            let expected = self.alone.malloc_async(pool, size, streams.1);
            (self.card.malloc_async(pool, size, streams.0), expected)
        } else {
            (self.card.malloc(size), self.alone.malloc(size))
        };
        assert_eq!(given, expected, "{size} bytes, of the pool: {ordered}");
        let Ok(address) = given else {
            self.refused += 1;
            return;
        };
        self.live.push((address, ordered));
        if ordered {
            let real = i128::from(self.card.to_program(address)) - i128::from(address.0);
            self.given += 1;
            self.elsewhere += u32::from(*self.distance.get_or_insert(real) != real);
        }
    }

    fn step(&mut self, random: &mut Random) {
        let streams = self.streams[random.below(self.streams.len() as u64) as usize];
        match random.below(24) {
            0..8 => self.request(random.size(27), true, streams),
            8..10 if self.mix.plain => self.request(random.size(25), false, streams),
            10..18 if !self.live.is_empty() => {
                let index = random.below(self.live.len() as u64) as usize;
                let (address, ordered) = self.live.swap_remove(index);
                if ordered && (!self.mix.plain || random.below(20) > 0) {
                    self.card.free_async(address, streams.0).unwrap();
                    self.alone.free_async(address, streams.1).unwrap();
                } else {
                    self.card.free(address).unwrap();
                    self.alone.free(address).unwrap();
                }
            }
            18 => {
                self.card.synchronize_stream(streams.0).unwrap();
                self.alone.synchronize_stream(streams.1).unwrap();
            }
            19..21 if self.mix.events => {
                let other = self.streams[random.below(self.streams.len() as u64) as usize];
                let fences = (self.card.record(streams.0), self.alone.record(streams.1));
                self.card.stream_wait(other.0, fences.0).unwrap();
                self.alone.stream_wait(other.1, fences.1).unwrap();
                if random.below(2) == 0 {
                    self.card.wait(fences.0);
                    self.alone.wait(fences.1);
                } else {
                    while !self.card.query(fences.0) {}
                    assert!(self.alone.query(fences.1));
                }
            }
            21 if random.below(6) == 0 => {
                self.card.synchronize().unwrap();
                self.alone.synchronize();
            }
            22 if random.below(6) == 0 => {
                self.card.trim_pools();
                self.alone.trim_pools();
            }
            _ => {}
        }
        self.idle();
    }

    /// Whether a walk over several streams has come to where the driver and its model may part: the
    /// driver that was not asked has settled other blocks than one that refused, and they join
    /// otherwise (docs/real-device.md). It takes a refusal.
    fn has_parted(&self) -> bool {
        self.mix.streams > 1 && self.refused > 0 && !self.card.differences().is_empty()
    }

    /// The driver's figure holds then, and the budget.
    fn check_parted(&self, step: u32) {
        println!(
            "parted at step {step}, after {} refusals: {:?}",
            self.refused,
            self.card.differences()
        );
        let gone = super::gone(&self.card, self.free);
        assert_eq!(gone, self.card.used() as i64, "gone at step {step}");
        assert_eq!(self.card.budget_exceeded(), None);
    }

    fn check(&self, step: u32) {
        assert_eq!(self.card.differences(), [], "at step {step}");
        assert_eq!(self.card.used(), self.alone.used(), "at step {step}");
        let gone = super::gone(&self.card, self.free);
        assert_eq!(
            gone,
            self.card.used() as i64,
            "gone from the card at step {step}"
        );
        assert_eq!(self.card.budget_exceeded(), None);
    }

    /// Frees what is left; nothing may be.
    pub(super) fn end(mut self) {
        let stream = self.streams[0].0;
        for (address, ordered) in std::mem::take(&mut self.live) {
            if ordered {
                self.card.free_async(address, stream).unwrap();
            } else {
                self.card.free(address).unwrap();
            }
        }
        self.card.synchronize().unwrap();
        self.card.trim_pools();
        assert_eq!(
            (self.card.used(), super::gone(&self.card, self.free)),
            (0, 0)
        );
        assert_eq!(self.card.take_fault(), None);
        println!(
            "{} of the pool given, {} elsewhere than the model's, {} refused",
            self.given, self.elsewhere, self.refused
        );
        // Two that will part may lie apart some steps before their figures do.
        assert!(self.parted || self.elsewhere == 0);
    }
}

/// Budgets that random walks run into.
pub(super) const TIGHT: u64 = 160 * MIB;
