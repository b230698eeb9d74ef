//! Why a request could not be served: one rule for all policies.
//!
//! A policy that is about to report an out-of-memory says what it saw in a [`Shortage`];
//! [`Shortage::class`] is the verdict. No policy classifies by itself, so that the same situation
//! has the same name under each of them.

use crate::event::OomClass;

/// What a policy saw when a request failed. All figures are bytes.
///
/// The four kinds of free memory are disjoint: a free block counts in `free_here`, `pending` or
/// `free_elsewhere`, never in two of them, and none of them is part of a `headroom`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The request after rounding.
    pub(crate) need: u64,
    /// Free bytes that this request was allowed to use, in pieces.
    pub(crate) free_here: u64,
    /// The largest of those pieces.
    pub(crate) largest_here: u64,
    /// Free bytes that belong to another stream or pool.
    pub(crate) free_elsewhere: u64,
    /// Freed bytes that a stream may still use.
    pub(crate) pending: u64,
    /// Bytes that the device would still give, within the budget or the policy's limit.
    pub(crate) headroom: u64,
    /// Bytes that the device would still give if there were no budget and no limit.
    pub(crate) headroom_without_budget: u64,
    /// Bytes that the device would still give, within the budget and the policy's limit, if other
    /// processes held nothing.
    pub(crate) headroom_without_others: u64,
    /// Bytes of the device that other processes hold; 0 where that is not known.
    pub(crate) held_by_others: u64,
}

impl Shortage {
    /// Names the first cause, from the nearest remedy to the farthest:
    ///
    /// 1. **Fragmented**: the pieces at hand and the headroom are enough together; only no single
    ///    hole is. Comes first, since neither a larger budget nor waiting is what the code lacks.
    /// 2. **Frees pending**: with what is freed and not yet complete there would be enough, so
    ///    synchronising would have helped. Before 3, because such memory comes back by itself.
    /// 3. **Cached elsewhere**: with what other streams or pools keep there would be enough.
    /// 4. **Budget**: the device has room for the request beside all that is held.
    /// 5. **Outside this process**: within the budget the device would have room for the request if
    ///    other processes held nothing. Comes after all that the test itself can change (its code, its
    ///    streams, its budget), since what others hold it cannot; never the verdict where a budget
    ///    or a limit would have refused anyway, and never where it is not known what they hold.
    /// 6. **Exhausted**: none of these. Where both the budget and other processes would have to give
    ///    way, neither alone is the cause.
    pub(crate) fn class(&self) -> OomClass {
        let here = self
            .free_here
            .max(self.largest_here)
            .saturating_add(self.headroom);
        let settled = here.saturating_add(self.pending);
        let everywhere = settled.saturating_add(self.free_elsewhere);
        // A device can refuse with headroom to spare (an injected failure, no address space):
        // that is no fragmentation unless there are pieces at all.
        if here >= self.need && self.free_here > 0 {
            OomClass::Fragmented
        } else if settled >= self.need && self.pending > 0 {
            OomClass::FreesPending
        } else if everywhere >= self.need && self.free_elsewhere > 0 {
            OomClass::CachedElsewhere
        } else if self.headroom_without_budget >= self.need
            && self.headroom_without_budget > self.headroom
        {
            OomClass::Budget
        } else if self.held_by_others > 0
            && self.headroom_without_others >= self.need
            && self.headroom_without_others > self.headroom
        {
            OomClass::OutsideProcess
        } else {
            OomClass::Exhausted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shortage;
    use crate::event::OomClass;

    const SHORT: Shortage = Shortage {
        need: 100,
        free_here: 0,
        largest_here: 0,
        free_elsewhere: 0,
        pending: 0,
        headroom: 10,
        headroom_without_budget: 10,
        headroom_without_others: 10,
        held_by_others: 0,
    };

    /// Another process holds what is not left.
    const SHARED: Shortage = Shortage {
        headroom_without_others: 100,
        held_by_others: 90,
        ..SHORT
    };

    #[test]
    fn nothing_left_is_exhausted() {
        assert_eq!(SHORT.class(), OomClass::Exhausted);
        let larger_than_device = Shortage {
            need: u64::MAX,
            free_elsewhere: u64::MAX / 2,
            ..SHORT
        };
        assert_eq!(larger_than_device.class(), OomClass::Exhausted);
    }

    #[test]
    fn pieces_that_add_up_are_fragmented_even_under_a_budget() {
        let pieces = Shortage {
            free_here: 90,
            largest_here: 60,
            ..SHORT
        };
        assert_eq!(pieces.class(), OomClass::Fragmented);
        let budget = Shortage {
            headroom_without_budget: 1_000,
            ..pieces
        };
        assert_eq!(budget.class(), OomClass::Fragmented);
    }

    #[test]
    fn pending_frees_come_before_other_streams() {
        let pending = Shortage {
            free_here: 20,
            largest_here: 20,
            pending: 70,
            ..SHORT
        };
        assert_eq!(pending.class(), OomClass::FreesPending);
        let both = Shortage {
            free_elsewhere: 500,
            ..pending
        };
        assert_eq!(both.class(), OomClass::FreesPending);
        let elsewhere = Shortage {
            pending: 10,
            free_elsewhere: 80,
            ..SHORT
        };
        assert_eq!(elsewhere.class(), OomClass::CachedElsewhere);
    }

    #[test]
    fn room_beyond_the_budget_is_the_budget() {
        let budget = Shortage {
            headroom_without_budget: 100,
            ..SHORT
        };
        assert_eq!(budget.class(), OomClass::Budget);
        let too_large_anyway = Shortage {
            headroom_without_budget: 99,
            ..SHORT
        };
        assert_eq!(too_large_anyway.class(), OomClass::Exhausted);
    }

    #[test]
    fn room_that_other_processes_hold_is_outside_this_process() {
        assert_eq!(SHARED.class(), OomClass::OutsideProcess);
        let too_large_anyway = Shortage {
            need: 101,
            ..SHARED
        };
        assert_eq!(too_large_anyway.class(), OomClass::Exhausted);
        let nobody_is_known = Shortage {
            held_by_others: 0,
            ..SHARED
        };
        assert_eq!(nobody_is_known.class(), OomClass::Exhausted);
    }

    #[test]
    fn what_the_test_can_change_comes_before_what_others_hold() {
        for (shortage, class) in [
            (
                Shortage {
                    free_here: 90,
                    largest_here: 60,
                    ..SHARED
                },
                OomClass::Fragmented,
            ),
            (
                Shortage {
                    pending: 90,
                    ..SHARED
                },
                OomClass::FreesPending,
            ),
            (
                Shortage {
                    free_elsewhere: 90,
                    ..SHARED
                },
                OomClass::CachedElsewhere,
            ),
        ] {
            assert_eq!(shortage.class(), class);
        }
    }

    /// The budget has 50 left and the card 10: neither a larger budget nor an empty card would do
    /// alone.
    #[test]
    fn where_budget_and_others_both_stand_in_the_way_neither_is_blamed() {
        let both = Shortage {
            headroom_without_others: 50,
            ..SHARED
        };
        assert_eq!(both.class(), OomClass::Exhausted);
    }
}
