//! Random calls on a card and on a simulated device: both say and hold the same at every step.

use super::{Card, FakeCard, MIB, changes, small_card};
use crate::device::DeviceMemory;
use crate::device::sim::{DeviceProfile, SimDevice, StreamKind};
use crate::ids::{Address, Fence, PoolId, StreamId};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn size(&mut self) -> u64 {
        let magnitude = 9 + self.below(19);
        1 + self.below(1 << magnitude)
    }
}

/// One of a pair of streams or fences: the card's and the simulated device's.
type Pair<T> = (T, T);

struct Both {
    card: Card<FakeCard>,
    alone: SimDevice,
    streams: Vec<Pair<StreamId>>,
    live: Vec<(Address, bool)>,
    refused: u32,
}

/// Whether the driver is expected to be where the shadow is after every call.
#[derive(Clone, Copy, PartialEq)]
enum Agreement {
    /// To the byte.
    Whole,
    /// Its figure counts, whatever the shadow expected.
    DriverWins,
}

impl Both {
    fn new(budget: Option<u64>, blocking: bool) -> Self {
        let (mut card, profile) = (small_card(true), DeviceProfile::by_name("4GiB").unwrap());
        let mut alone = SimDevice::new(profile);
        card.set_budget(budget);
        alone.set_budget(budget);
        card.watch_changes(true);
        alone.watch_changes(true);
        let mut streams = Vec::new();
        for _ in 0..3 {
            let stream = card.create_stream(StreamKind::NonBlocking).unwrap();
            streams.push((stream, alone.create_stream(StreamKind::NonBlocking)));
        }
        if blocking {
            let stream = card.create_stream(StreamKind::Blocking).unwrap();
            streams.push((stream, alone.create_stream(StreamKind::Blocking)));
            streams.push((StreamId::DEFAULT, StreamId::DEFAULT));
        }
        let live = Vec::new();
        Self {
            card,
            alone,
            streams,
            live,
            refused: 0,
        }
    }

    fn step(&mut self, random: &mut Random) {
        let (on_card, on_alone) = self.streams[random.below(self.streams.len() as u64) as usize];
        match random.below(24) {
            0..8 => {
                let size = random.size();
                let pool = PoolId::DEFAULT;
                let given = self.card.malloc_async(pool, size, on_card);
                assert_eq!(given, self.alone.malloc_async(pool, size, on_alone));
                self.refused += u32::from(given.is_err());
                self.live.extend(given.map(|address| (address, true)));
            }
            8..10 => {
                let size = random.size();
                let given = self.card.malloc(size);
                assert_eq!(given, self.alone.malloc(size));
                self.live.extend(given.map(|address| (address, false)));
            }
            10..18 if !self.live.is_empty() => {
                let index = random.below(self.live.len() as u64) as usize;
                let (address, ordered) = self.live.swap_remove(index);
                if ordered && random.below(20) > 0 {
                    self.card.free_async(address, on_card).unwrap();
                    self.alone.free_async(address, on_alone).unwrap();
                } else {
                    self.card.free(address).unwrap();
                    self.alone.free(address).unwrap();
                }
            }
            18 => {
                self.card.synchronize_stream(on_card).unwrap();
                self.alone.synchronize_stream(on_alone).unwrap();
            }
            19 => {
                let fences: Pair<Fence> = (self.card.record(on_card), self.alone.record(on_alone));
                let other = random.below(self.streams.len() as u64) as usize;
                let (other_card, other_alone) = self.streams[other];
                self.card.stream_wait(other_card, fences.0).unwrap();
                self.alone.stream_wait(other_alone, fences.1).unwrap();
                if random.below(2) == 0 {
                    self.card.wait(fences.0);
                    self.alone.wait(fences.1);
                } else {
                    assert_eq!(self.card.query(fences.0), self.alone.query(fences.1));
                }
            }
            20 if random.below(4) == 0 => {
                self.card.synchronize().unwrap();
                self.alone.synchronize();
            }
            21 if random.below(4) == 0 => {
                self.card.trim_pools();
                self.alone.trim_pools();
            }
            _ => {}
        }
        assert_eq!(changes(&mut self.card), changes(&mut self.alone));
        assert_eq!(self.card.used(), self.alone.used());
    }

    /// A step of the card alone.
    fn step_card(&mut self, random: &mut Random) {
        let (stream, _) = self.streams[random.below(self.streams.len() as u64) as usize];
        match random.below(10) {
            0..5 => {
                let ordered = random.below(4) > 0;
                let given = if ordered {
                    (self.card).malloc_async(PoolId::DEFAULT, random.size(), stream)
                } else {
                    self.card.malloc(random.size())
                };
                self.refused += u32::from(given.is_err());
                self.live.extend(given.map(|address| (address, ordered)));
            }
            5..9 if !self.live.is_empty() => {
                let index = random.below(self.live.len() as u64) as usize;
                let (address, ordered) = self.live.swap_remove(index);
                let freed = if ordered {
                    self.card.free_async(address, stream)
                } else {
                    self.card.free(address)
                };
                freed.unwrap();
            }
            _ => self.card.synchronize_stream(stream).unwrap(),
        }
    }

    /// Every live address leads to the card and back.
    fn check(&self, agreement: Agreement) {
        for (address, _) in &self.live {
            let real = self.card.to_program(*address);
            assert_eq!(self.card.from_program(real), Some(*address));
        }
        let held = self.card.raw.look(|device| {
            device.check();
            device.used()
        });
        assert_eq!(held, self.card.used());
        if agreement == Agreement::Whole {
            assert_eq!(self.card.differences(), []);
            assert_eq!(self.card.budget_exceeded(), None);
        }
    }
}

#[test]
fn card_and_simulated_device_agree_without_a_budget() {
    for seed in 0..8 {
        let (mut both, mut random) = (Both::new(None, seed % 2 == 1), Random(seed));
        for _ in 0..1_500 {
            both.step(&mut random);
        }
        both.check(Agreement::Whole);
        assert_eq!(both.refused, 0);
    }
}

#[test]
fn card_and_simulated_device_agree_under_a_budget_that_refuses() {
    for seed in 100..112 {
        let budget = 64 * MIB + 32 * MIB * (seed % 3);
        let (mut both, mut random) = (Both::new(Some(budget), false), Random(seed));
        for _ in 0..1_500 {
            both.step(&mut random);
        }
        both.check(Agreement::Whole);
        assert!(both.refused > 20, "only {} refusals", both.refused);
    }
}

/// After a refusal the model has chunks behind the part of the request that fitted, which the driver
/// was never asked for: with a threshold that keeps chunks, the two can go apart.
#[test]
fn with_a_threshold_the_drivers_figure_counts_and_what_is_above_the_budget_is_told() {
    let (budget, mut refused, mut differences) = (160 * MIB, 0, 0);
    for seed in 200..212 {
        let (mut both, mut random) = (Both::new(Some(budget), false), Random(seed));
        let threshold = [u64::MAX, 64 * MIB, 40 * MIB][seed as usize % 3];
        both.card.set_release_threshold(threshold).unwrap();
        let mut highest = 0;
        for _ in 0..1_500 {
            both.step_card(&mut random);
            let held = both.card.raw.look(|device| device.used());
            assert_eq!(held, both.card.used());
            highest = highest.max(held);
        }
        both.check(Agreement::DriverWins);
        let above = Some(highest).filter(|highest| *highest > budget);
        assert_eq!(both.card.budget_exceeded(), above);
        refused += both.refused;
        differences += both.card.differences_seen();
    }
    assert!(
        refused > 20 && differences > 0,
        "{refused} refusals, {differences} differences"
    );
}
