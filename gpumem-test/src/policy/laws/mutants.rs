//! Each seeded mistake must break a law.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::config::PolicySpec;
use crate::mutant::{Mutant, with};

use super::{SUBJECTS, hold};

/// Whether some subject breaks a law, by an error or by an assertion inside. A mistake of one
/// policy is looked for under that policy: under the others nothing can notice it.
fn is_caught(mutant: Mutant) -> bool {
    let of_bfc = format!("{mutant:?}").starts_with("Bfc");
    let concerned = SUBJECTS.into_iter().filter(|subject| {
        let spec: PolicySpec = subject.policy.parse().unwrap();
        !of_bfc || spec.kind.is_bfc()
    });
    concerned.into_iter().any(|subject| {
        // Nobody reads the sequence that fails.
        let run = || with(mutant, || hold(subject, 24, 0));
        !matches!(catch_unwind(AssertUnwindSafe(run)), Ok(Ok(())))
    })
}

macro_rules! caught {
    ($($name:ident => $mutant:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                assert!(is_caught(Mutant::$mutant), "no law noticed {:?}", Mutant::$mutant);
            }
        )*
    };
}

caught! {
    a_split_that_overlaps_is_caught => SplitOverlaps,
    a_split_that_loses_its_rest_is_caught => SplitLosesRest,
    a_free_that_joins_one_side_is_caught => JoinForgetsNext,
    a_free_that_forgets_allocated_is_caught => FreeForgetsAllocated,
    a_free_that_forgets_requested_is_caught => FreeForgetsRequested,
    a_free_that_forgets_streams_is_caught => FreeForgetsStreams,
    a_search_that_is_not_best_fit_is_caught => SearchIsNotBestFit,
    a_release_that_forgets_reserved_is_caught => ReleaseForgetsReserved,
    a_limit_that_is_ignored_is_caught => LimitIsIgnored,
    a_trim_that_forgets_the_small_pool_is_caught => TrimForgetsSmall,
    an_unmap_that_takes_too_much_is_caught => UnmapTakesTooMuch,
    a_bfc_that_splits_always_is_caught => BfcSplitsAlways,
    a_bfc_that_takes_the_last_of_equal_chunks_is_caught => BfcTakesLastOfEqual,
    a_bfc_that_doubles_twice_is_caught => BfcDoublesTwice,
    a_bfc_that_undoes_growth_is_caught => BfcUndoesGrowth,
    a_bfc_that_backs_off_in_double_precision_is_caught => BfcBacksOffInDouble,
    a_bfc_that_joins_regions_is_caught => BfcJoinsRegions,
    a_bfc_that_joins_one_side_is_caught => BfcForgetsNext,
    a_bfc_that_ignores_its_limit_is_caught => BfcIgnoresLimit,
    a_bfc_release_that_forgets_reserved_is_caught => BfcReleaseForgetsReserved,
    a_driver_that_forgets_requested_is_caught => DriverForgetsRequested,
    a_plain_request_of_the_pool_that_does_not_wait_is_caught => PlainRequestForgetsToWait,
    an_address_that_is_not_backed_by_what_is_free_is_caught => LazyPromisesTooMuch,
    a_write_that_gives_no_memory_is_caught => LazyForgetsWrites,
    a_page_that_is_kept_is_caught => PageIsKept,
    a_free_list_that_forgets_to_join_is_caught => FreeListForgetsToJoin,
    a_pool_that_reuses_busy_memory_is_caught => PoolReusesBusy,
    a_synchronisation_that_settles_nothing_is_caught => SyncSettlesNothing,
    a_budget_that_is_ignored_is_caught => BudgetIsIgnored,
}
