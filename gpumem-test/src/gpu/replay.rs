//! A recorded trace played on the session.

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::heap::{Cause, Heap};
use crate::ids::{BlockId, StreamId, TextId};
use crate::policy::{Block, Policy, Request};
use crate::replay::{Replay, ReplayOutcome, ReplayTarget};
use crate::session::{Session, SessionDevice};
use crate::trace::{SiteId, Trace, TraceBlock};

use super::Gpu;

impl Gpu {
    /// Plays `trace` on this session: its requests go to the test's policy, under its budget, and
    /// into its figures, with the places in the recorded code as call sites.
    ///
    /// A request that fails for want of memory is noted in the outcome, and the trace goes on
    /// without it. What the trace still holds at its end is freed then, so that it is no leak of
    /// the test. Recorded streams are taken as they are; memory recorded for another stream waits
    /// for the simulated fence, not for the moment that the recording saw.
    ///
    /// # Errors
    /// If the session has ended; if the trace has a capture and the policy no private pools.
    ///
    /// ```
    /// use gpumem_test::{Gpu, Trace};
    ///
    /// let mut trace = Trace::builder("two tensors");
    /// let first = trace.alloc(3 << 20);
    /// trace.alloc(1 << 10);
    /// trace.free(first);
    ///
    /// let gpu = Gpu::builder().policy("caching").open()?;
    /// let outcome = gpu.replay(&trace.finish())?;
    /// assert_eq!(outcome.requests, 2);
    /// assert_eq!(gpu.max_memory_reserved().to_string(), "22.00 MiB");
    /// # Ok::<(), gpumem_test::Error>(())
    /// ```
    pub fn replay(&self, trace: &Trace) -> Result<ReplayOutcome, Error> {
        let mut heap = self.session.heap("replay a trace")?;
        let cause = self.session.cause_unknown();
        let mut player = Player {
            session: &self.session,
            heap: &mut heap,
            cause,
            sites: FxHashMap::default(),
            trace,
            live: FxHashMap::default(),
        };
        let outcome = Replay::new(trace).run_on(&mut player);
        let freed = player.free_rest();
        let mut outcome = outcome?;
        freed?;
        outcome.statistics = heap.policy().statistics().clone();
        Ok(outcome)
    }
}

/// Takes the operations of a trace for a session.
struct Player<'a> {
    session: &'a Session,
    heap: &'a mut Heap<SessionDevice>,
    cause: Cause,
    /// The ledger's names of the trace's sites, once they were met.
    sites: FxHashMap<usize, TextId>,
    trace: &'a Trace,
    /// What the trace holds, to free it at the end.
    live: FxHashMap<BlockId, StreamId>,
}

impl Player<'_> {
    fn free_rest(&mut self) -> Result<(), Error> {
        let mut rest: Vec<_> = self.live.drain().collect();
        rest.sort_unstable();
        for (id, stream) in rest {
            self.heap.free(id, stream, self.cause)?;
        }
        Ok(())
    }
}

impl ReplayTarget for Player<'_> {
    fn at(&mut self, site: SiteId) {
        let (session, trace) = (self.session, self.trace);
        self.cause.site = *self.sites.entry(site.index()).or_insert_with(|| {
            trace
                .site(site)
                .map_or(TextId::UNKNOWN, |text| session.intern(text))
        });
    }

    fn alloc(&mut self, request: Request) -> Result<Block, Error> {
        let block = self.heap.alloc(request, self.cause)?;
        self.live.insert(block.id, request.stream);
        Ok(block)
    }

    fn free(&mut self, _: TraceBlock, id: BlockId, stream: StreamId) -> Result<(), Error> {
        self.live.remove(&id);
        self.heap.free(id, stream, self.cause)
    }

    fn record_stream(&mut self, _: TraceBlock, id: BlockId, stream: StreamId) -> Result<(), Error> {
        self.heap.policy_mut().record_stream(id, stream)
    }

    fn trim(&mut self) -> Result<(), Error> {
        self.heap.trim(self.cause)
    }

    fn begin_capture(&mut self, pool: (u64, u64), stream: StreamId) -> Result<(), Error> {
        self.heap.policy_mut().begin_capture(pool, stream)
    }

    fn end_capture(&mut self, pool: (u64, u64)) -> Result<(), Error> {
        self.heap.policy_mut().end_capture(pool)
    }
}
