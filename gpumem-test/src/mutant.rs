//! Seeded mistakes, which prove that the laws of the policies catch mistakes.
//!
//! Only in this crate's own tests: elsewhere `mutant!` is the constant `false`.

/// Whether a seeded mistake is switched on.
#[cfg(not(test))]
macro_rules! mutant {
    ($name:ident) => {
        false
    };
}

/// Whether a seeded mistake is switched on.
#[cfg(test)]
macro_rules! mutant {
    ($name:ident) => {
        crate::mutant::is_on(crate::mutant::Mutant::$name)
    };
}

pub(crate) use mutant;

#[cfg(test)]
pub(crate) use switch::{Mutant, is_on, with};

#[cfg(test)]
mod switch {
    use std::cell::Cell;

    /// A seeded mistake.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Mutant {
        /// caching: the rest of a split begins 512 bytes early.
        SplitOverlaps,
        /// caching: the rest of a split is in no free list.
        SplitLosesRest,
        /// caching: a freed block does not join the one behind it.
        JoinForgetsNext,
        /// caching: a free leaves `allocated_bytes` as it is.
        FreeForgetsAllocated,
        /// caching: a free leaves `requested_bytes` as it is.
        FreeForgetsRequested,
        /// caching: a block used by another stream is free at once.
        FreeForgetsStreams,
        /// caching: the search passes over blocks that fit exactly.
        SearchIsNotBestFit,
        /// caching: segments given back still count as reserved.
        ReleaseForgetsReserved,
        /// caching: the limit is not looked at.
        LimitIsIgnored,
        /// caching: `empty_cache` leaves the small pool.
        TrimForgetsSmall,
        /// caching: an unmap takes the page that a live block reaches into.
        UnmapTakesTooMuch,
        /// bfc: a chunk is split whatever that saves.
        BfcSplitsAlways,
        /// bfc: of chunks of one size the last is taken.
        BfcTakesLastOfEqual,
        /// bfc: a region that the request pushed up is doubled once more.
        BfcDoublesTwice,
        /// bfc: a refused extension takes its doublings back.
        BfcUndoesGrowth,
        /// bfc: backing off computes in double precision.
        BfcBacksOffInDouble,
        /// bfc: adjacent regions become one.
        BfcJoinsRegions,
        /// bfc: a freed chunk does not join the one behind it.
        BfcForgetsNext,
        /// bfc: the limit is not looked at.
        BfcIgnoresLimit,
        /// bfc: regions given back still count as reserved.
        BfcReleaseForgetsReserved,
        /// driver: an allocation is not counted in `requested_bytes`.
        DriverForgetsRequested,
        /// async: a plain request does not wait for work that may still use its memory.
        PlainRequestForgetsToWait,
        /// lazy: addresses are given beyond what is free.
        LazyPromisesTooMuch,
        /// lazy: a write gives no memory to its pages.
        LazyForgetsWrites,
        /// device: a shared page that is wholly free is kept.
        PageIsKept,
        /// device: freed plain memory does not join its neighbours.
        FreeListForgetsToJoin,
        /// device: a pool reuses what a busy stream may still use.
        PoolReusesBusy,
        /// device: a synchronisation settles nothing.
        SyncSettlesNothing,
        /// device: the budget is not looked at.
        BudgetIsIgnored,
    }

    thread_local! {
        static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is_on(mutant: Mutant) -> bool {
        ON.get() == Some(mutant)
    }

    /// Runs with a mistake switched on.
    pub(crate) fn with<R>(mutant: Mutant, run: impl FnOnce() -> R) -> R {
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                ON.set(None);
            }
        }
        ON.set(Some(mutant));
        let _off = Off;
        run()
    }
}
