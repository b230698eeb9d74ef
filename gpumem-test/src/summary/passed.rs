//! What happened on a device beside the policy's heap: memory that was passed to the driver, and
//! what the device says of itself.

use std::collections::BTreeMap;

use crate::bytes::Bytes;
use crate::event::{DriverMemory, Event, EventKind};

use super::heap::LiveBlock;
use super::{DeviceSummary, Level, PassedMemory, ShadowDifference};

/// Memory that was passed to the driver and not given back yet.
#[derive(Debug, Default)]
pub(super) struct Passed {
    live: BTreeMap<(DriverMemory, u64), (LiveBlock, bool)>,
    sums: BTreeMap<DriverMemory, Sum>,
    charged: u64,
}

/// What passed through of one kind.
#[derive(Debug, Default)]
struct Sum {
    calls: u64,
    bytes: u64,
    peak: u64,
    charged: bool,
}

impl Passed {
    /// Applies an event of the device; what it takes is of `run`.
    pub(super) fn apply(&mut self, event: &Event, run: Option<u32>) {
        match event.kind {
            EventKind::DriverTaken {
                memory,
                address,
                size,
                charged,
            } => {
                let key = (memory, address.0);
                // A recording that lost events may take what it never gave back.
                self.give_back(key);
                let block = LiveBlock {
                    size,
                    requested: size,
                    site: event.site,
                    thread: event.thread,
                    run,
                    checkpoints: 0,
                };
                self.live.insert(key, (block, charged));
                let sum = self.sums.entry(memory).or_default();
                sum.calls += 1;
                sum.bytes += size;
                sum.peak = sum.peak.max(sum.bytes);
                sum.charged |= charged;
                if charged {
                    self.charged += size;
                }
            }
            EventKind::DriverReturned {
                memory, address, ..
            } => self.give_back((memory, address.0)),
            _ => {}
        }
    }

    fn give_back(&mut self, key: (DriverMemory, u64)) {
        let Some((block, charged)) = self.live.remove(&key) else {
            return;
        };
        if let Some(sum) = self.sums.get_mut(&key.0) {
            sum.bytes -= block.size;
        }
        if charged {
            self.charged -= block.size;
        }
    }

    /// Memory that a test leaks if it keeps it. That of the host is no device's, and that of
    /// graphs stays with the driver when a graph is gone, until somebody trims it.
    pub(super) fn blocks_of_test(&self) -> impl Iterator<Item = &LiveBlock> {
        self.live
            .iter()
            .filter(|((memory, _), _)| !memory.is_host() && *memory != DriverMemory::Graph)
            .map(|(_, (block, _))| block)
            .filter(|block| block.run.is_some())
    }

    /// Bytes of the device that passed memory takes.
    fn on_device(&self) -> u64 {
        let of_device = self.sums.iter().filter(|(memory, _)| !memory.is_host());
        of_device.map(|(_, sum)| sum.bytes).sum()
    }

    fn list(&self, host: bool) -> Vec<PassedMemory> {
        let kinds = DriverMemory::ALL.into_iter();
        kinds
            .filter(|memory| memory.is_host() == host)
            .filter_map(|memory| {
                self.sums.get(&memory).map(|sum| PassedMemory {
                    memory,
                    calls: sum.calls,
                    bytes: Level {
                        peak: Bytes::new(sum.peak),
                        end: Bytes::new(sum.bytes),
                    },
                    charged: sum.charged,
                })
            })
            .collect()
    }
}

/// A figure that was sampled at times.
#[derive(Debug, Default)]
struct Sampled {
    first: Option<u64>,
    peak: u64,
    end: u64,
}

impl Sampled {
    fn note(&mut self, value: u64) {
        self.first.get_or_insert(value);
        self.peak = self.peak.max(value);
        self.end = value;
    }

    fn level(&self) -> Option<Level> {
        self.first.map(|_| Level {
            peak: Bytes::new(self.peak),
            end: Bytes::new(self.end),
        })
    }
}

/// All that is counted of a device beside its heap.
#[derive(Debug, Default)]
pub(super) struct Beside {
    passed: Passed,
    charged_peak: u64,
    budgeted: u64,
    budgeted_peak: u64,
    launches: Option<u64>,
    unknown_frees: u64,
    used: Sampled,
    process: Sampled,
    outside: Option<Level>,
    shadow_differences: u64,
    shadow: Option<ShadowDifference>,
}

impl Beside {
    /// Takes any event of the device, at which the policy held `reserved` bytes in `pages` bytes
    /// of pages.
    pub(super) fn note(&mut self, event: &Event, reserved: u64, pages: u64) {
        self.passed.apply(event, None);
        self.charged_peak = self.charged_peak.max(self.passed.charged);
        self.budgeted = reserved + self.passed.charged;
        self.budgeted_peak = self.budgeted_peak.max(self.budgeted);
        match event.kind {
            EventKind::Launches { count } => self.launches = Some(count),
            EventKind::UnknownFree { .. } => self.unknown_frees += 1,
            EventKind::DeviceSample {
                used,
                process,
                process_peak,
            } => {
                if let Some(used) = used {
                    self.sample(used, pages + self.passed.on_device());
                }
                // A peak without a present figure says nothing of the end.
                if let Some(process) = process {
                    self.process.note(process);
                    let peak = self.process.peak.max(process_peak.unwrap_or(0));
                    self.process.peak = peak;
                }
            }
            EventKind::ShadowDiffers { model, driver } => {
                self.shadow_differences += 1;
                let larger = |known: &ShadowDifference| {
                    known.model.get().abs_diff(known.driver.get()) >= model.abs_diff(driver)
                };
                if !self.shadow.as_ref().is_some_and(larger) {
                    self.shadow = Some(ShadowDifference {
                        model: Bytes::new(model),
                        driver: Bytes::new(driver),
                    });
                }
            }
            EventKind::BudgetExceeded { reserved, .. } => {
                self.budgeted_peak = self.budgeted_peak.max(reserved);
            }
            _ => {}
        }
    }

    /// What is gone since the first sample and is not `known` to us is outside the allocator.
    fn sample(&mut self, used: u64, known: u64) {
        let Some(first) = self.used.first else {
            return self.used.note(used);
        };
        self.used.note(used);
        let end = Bytes::new(used.saturating_sub(first).saturating_sub(known));
        let before = self.outside.map_or(Bytes::ZERO, |level| level.peak);
        self.outside = Some(Level {
            peak: end.max(before),
            end,
        });
    }

    /// Writes what was counted into the device's figures.
    pub(super) fn finish(self, summary: &mut DeviceSummary) {
        summary.passed = self.passed.list(false);
        summary.pinned = self.passed.list(true);
        summary.charged = Level {
            peak: Bytes::new(self.charged_peak),
            end: Bytes::new(self.passed.charged),
        };
        summary.budgeted = Level {
            peak: Bytes::new(self.budgeted_peak),
            end: Bytes::new(self.budgeted),
        };
        summary.launches = self.launches;
        summary.unknown_frees = self.unknown_frees;
        summary.sampled = self.used.level();
        summary.outside = self.outside;
        summary.process = self.process.level();
        summary.shadow_differences = self.shadow_differences;
        summary.shadow = self.shadow;
    }
}
