//! Common beliefs about GPU memory, and what the figures say of each.

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::report::{AllocationCourse, DeviceReport, ReportSource};
use super::text::{signed, size};
use crate::bytes::Bytes;

/// A common belief, and what the figures say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Belief {
    /// The belief, as people say it.
    pub belief: String,
    /// Whether it holds here.
    pub verdict: BeliefVerdict,
    /// What the verdict rests on.
    pub basis: BeliefBasis,
    /// The figures that decide, in one sentence.
    pub because: String,
}

/// Whether a belief holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BeliefVerdict {
    /// It does.
    Holds,
    /// It does not.
    Wrong,
    /// It does in part: the figures say how far.
    Partly,
    /// Nothing decides it.
    Unknown,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BeliefBasis {
    /// Measured on this card.
    Measured,
    /// Measured on the simulated device, which answers as its profile's card was measured to.
    SimulatedProfile,
    /// Not measured here: recorded on an H200 with driver 580.159.
    Recorded,
    /// Neither measured nor recorded.
    Nothing,
}

/// The variable that one of the beliefs is about.
const CACHE_DISABLE: &str = "CUDA_CACHE_DISABLE";

/// What the figures of a report say of each belief.
pub(super) fn judge(report: &DeviceReport) -> Vec<Belief> {
    let judge = Judge(report);
    let judged = [
        ("cudaMalloc is lazy", judge.malloc_is_lazy()),
        (
            "a small cudaMalloc costs its size",
            judge.small_costs_its_size(),
        ),
        (
            "freeing a stream-ordered block returns memory",
            judge.free_async_returns(),
        ),
        (
            "managed memory is committed at the call",
            judge.managed_is_eager(),
        ),
        ("CUDA_CACHE_DISABLE preallocates", judge.cache_disable()),
        (
            "cudaDeviceScheduleBlockingSync changes allocation",
            judge.blocking_sync(),
        ),
    ];
    let belief = |(belief, (verdict, basis, because)): (&str, Judged)| Belief {
        belief: belief.to_owned(),
        verdict,
        basis,
        because,
    };
    judged.into_iter().map(belief).collect()
}

type Judged = (BeliefVerdict, BeliefBasis, String);

struct Judge<'a>(&'a DeviceReport);

impl Judge<'_> {
    fn basis<T>(&self, fact: &Fact<T>) -> BeliefBasis {
        match (fact, self.0.source) {
            (Fact::Known(_), ReportSource::Measured) => BeliefBasis::Measured,
            (Fact::Known(_), ReportSource::SimulatedProfile) => BeliefBasis::SimulatedProfile,
            (Fact::Recorded(_), _) => BeliefBasis::Recorded,
            (Fact::Unknown(_), _) => BeliefBasis::Nothing,
        }
    }

    /// A verdict from a figure, or that there is none, and why.
    fn from<T>(
        &self,
        fact: &Fact<T>,
        verdict: impl FnOnce(&T) -> (BeliefVerdict, String),
    ) -> Judged {
        match fact {
            Fact::Known(value) | Fact::Recorded(value) => {
                let (verdict, because) = verdict(value);
                (verdict, self.basis(fact), because)
            }
            Fact::Unknown(why) => (
                BeliefVerdict::Unknown,
                BeliefBasis::Nothing,
                format!("it could not be measured: {why}"),
            ),
        }
    }

    fn malloc_is_lazy(&self) -> Judged {
        self.from(&self.0.plain, |plain| {
            let verdict = match commits(plain) {
                Commits::AtCall => BeliefVerdict::Wrong,
                Commits::AtFirstWrite => BeliefVerdict::Holds,
                Commits::Otherwise => BeliefVerdict::Partly,
            };
            (verdict, course("cuMemAlloc", plain))
        })
    }

    fn managed_is_eager(&self) -> Judged {
        self.from(&self.0.managed, |managed| {
            let verdict = match commits(managed) {
                Commits::AtCall => BeliefVerdict::Holds,
                Commits::AtFirstWrite => BeliefVerdict::Wrong,
                Commits::Otherwise => BeliefVerdict::Partly,
            };
            (verdict, course("cuMemAllocManaged", managed))
        })
    }

    fn small_costs_its_size(&self) -> Judged {
        self.from(&self.0.pages, |rule| {
            let verdict = if rule.blocks_per_page > 1 {
                BeliefVerdict::Wrong
            } else {
                BeliefVerdict::Holds
            };
            let because = match rule.blocks_per_page {
                1 => format!("one byte takes {}, and nobody shares it", size(rule.page)),
                blocks => format!(
                    "the first byte takes a page of {}, and {} more small allocations are then for \
                     free; pages are shared by requests up to {}",
                    size(rule.page),
                    blocks - 1,
                    Bytes::new(rule.largest_shared).exact()
                ),
            };
            (verdict, because)
        })
    }

    fn free_async_returns(&self) -> Judged {
        self.from(&self.0.stream_ordered, |ordered| {
            let taken = ordered.at_call + ordered.at_first_write;
            let verdict = match ordered.after_free {
                0 => BeliefVerdict::Holds,
                left if left >= taken => BeliefVerdict::Wrong,
                _ => BeliefVerdict::Partly,
            };
            let threshold = self.0.pool.value().map_or_else(String::new, |pool| {
                let threshold = size(pool.release_threshold);
                format!(" (the pool's release threshold is {threshold})")
            });
            let later = ordered.after_synchronize.map_or_else(String::new, |left| {
                format!(
                    "; after the next synchronisation {} are{threshold}",
                    signed(left)
                )
            });
            let because = format!(
                "of {} that cuMemAllocAsync took, {} are still gone after cuMemFreeAsync{later}",
                signed(taken),
                signed(ordered.after_free)
            );
            (verdict, because)
        })
    }

    fn cache_disable(&self) -> Judged {
        let mut others = self.0.environments.iter();
        let Some(other) = others.rfind(|other| other.setting.starts_with(CACHE_DISABLE)) else {
            return (
                BeliefVerdict::Wrong,
                BeliefBasis::Recorded,
                "not measured here, since it takes a fresh process: on an H200 with driver 580.159 \
                 the context took 552 402 944 bytes whether it was set or not; the variable is about \
                 the cache of compiled kernels"
                    .to_owned(),
            );
        };
        let (setting, context) = (&other.setting, self.0.profile.context_overhead);
        let (Some(plain), Some(there)) = (self.0.plain.known(), other.plain.known()) else {
            return (
                BeliefVerdict::Unknown,
                BeliefBasis::Nothing,
                format!("plain memory could not be measured with and without {setting}"),
            );
        };
        let is_same = (other.context, there.at_call, there.at_first_write)
            == (context, plain.at_call, plain.at_first_write);
        let because = format!(
            "with {setting} a context takes {} and {} are committed at the call of {}, without it {} \
             and {}",
            size(other.context),
            signed(there.at_call),
            size(plain.size),
            size(context),
            signed(plain.at_call)
        );
        let verdict = if is_same {
            BeliefVerdict::Wrong
        } else {
            BeliefVerdict::Holds
        };
        (verdict, self.basis(&self.0.plain), because)
    }

    fn blocking_sync(&self) -> Judged {
        let contexts = &self.0.contexts;
        let (Some(second), Some(blocking)) =
            (contexts.second.known(), contexts.blocking_sync.known())
        else {
            return (
                BeliefVerdict::Wrong,
                BeliefBasis::Recorded,
                "not measured here: on an H200 with driver 580.159 the flag changed how the host \
                 waits, and not when memory is committed"
                    .to_owned(),
            );
        };
        let said = |bytes: Option<i64>| bytes.map_or_else(|| "an unknown part".to_owned(), signed);
        let because = format!(
            "a context with the flag takes {} and commits {} at the call of {}, one without it {} \
             and {}",
            signed(blocking.bytes),
            said(blocking.at_call),
            size(blocking.size),
            signed(second.bytes),
            said(second.at_call)
        );
        let verdict = if second == blocking {
            BeliefVerdict::Wrong
        } else {
            BeliefVerdict::Holds
        };
        (verdict, self.basis(&contexts.second), because)
    }
}

enum Commits {
    AtCall,
    AtFirstWrite,
    Otherwise,
}

fn commits(allocation: &AllocationCourse) -> Commits {
    let size = allocation.size as i64;
    match (allocation.at_call, allocation.at_first_write) {
        (call, 0) if call >= size => Commits::AtCall,
        (0, write) if write >= size => Commits::AtFirstWrite,
        _ => Commits::Otherwise,
    }
}

/// An allocation in words.
fn course(call: &str, allocation: &AllocationCourse) -> String {
    format!(
        "{call} of {} commits {} at the call and {} at the first write",
        size(allocation.size),
        signed(allocation.at_call),
        signed(allocation.at_first_write)
    )
}
