//! The measuring code: small sequences of calls, with a look at what the card has free after each.

mod allocation;
mod pages;
mod pool;

use super::fact::{Fact, Unclear};
use super::report::{AllocationCourse, PageRule, PoolRule, SecondContext, VirtualCourse};
use super::subject::{Outcome, Subject};
use crate::bytes::Bytes;
use crate::error::Error;

use self::allocation::Kind;

/// The most that is held at once, in bytes: a second context and what is allocated in it.
pub(super) const MOST: u64 = 1 << 30;

/// What is allocated to see when it is committed, in bytes, where there is room.
const PROBE: u64 = 256 << 20;

/// The least of it: a chunk of a pool.
const SMALLEST_PROBE: u64 = 32 << 20;

/// What is allocated in a second context, in bytes.
const CONTEXT_PROBE: u64 = 64 << 20;

/// `CU_CTX_SCHED_BLOCKING_SYNC`, the driver's word for `cudaDeviceScheduleBlockingSync`.
const BLOCKING_SYNC: u32 = 4;

/// How often it is measured where somebody else uses the card meanwhile.
const ATTEMPTS: u32 = 3;

/// All that is measured over a subject.
pub(super) struct Measured {
    pub(super) granularity: u64,
    pub(super) plain: Fact<AllocationCourse>,
    pub(super) stream_ordered: Fact<AllocationCourse>,
    pub(super) managed: Fact<AllocationCourse>,
    pub(super) virtual_memory: Fact<VirtualCourse>,
    pub(super) pages: Fact<PageRule>,
    pub(super) pool: Fact<PoolRule>,
    pub(super) second: Fact<SecondContext>,
    pub(super) blocking_sync: Fact<SecondContext>,
    pub(super) kept_for_managed: Fact<i64>,
    pub(super) notes: Vec<String>,
}

/// Measures everything, and gives everything back.
///
/// # Errors
/// If the card does not answer, or has too little free.
pub(super) fn all<S: Subject>(subject: &mut S) -> Result<Measured, Error> {
    let cannot = |error| Error::device("cannot measure the device").caused_by(error);
    let size = probe(subject.free_bytes().map_err(cannot)?)?;
    warm_up(subject).map_err(cannot)?;
    let mut attempt = 1;
    let mut measured = loop {
        let before = subject.free_bytes().map_err(cannot)?;
        let mut measured = unmanaged(subject, size);
        let left = gone(subject, before).map_err(cannot)?;
        if left == 0 {
            break measured;
        }
        if attempt == ATTEMPTS {
            measured.notes.push(format!(
                "{left} bytes more of the card are in use than before, in each of {ATTEMPTS} \
                 attempts: something else used it meanwhile, and the figures may be blurred by that"
            ));
            break measured;
        }
        attempt += 1;
    };
    // Last, since the driver keeps something of the first use: only the second shows the rule.
    let before = subject.free_bytes().map_err(cannot)?;
    let first = allocation::look(subject, Kind::Managed, size);
    let kept = gone(subject, before).map_err(cannot)?;
    let second = match &first {
        Ok(_) => allocation::look(subject, Kind::Managed, size),
        Err(why) => Err(why.clone()),
    };
    measured.kept_for_managed = Fact::from_outcome(first.map(|_| kept));
    measured.managed = Fact::from_outcome(second);
    Ok(measured)
}

/// What leaves the card as it was.
fn unmanaged<S: Subject>(subject: &mut S, size: u64) -> Measured {
    let not_yet = || "not measured".to_owned();
    Measured {
        granularity: subject.granularity(),
        plain: Fact::from_outcome(allocation::look(subject, Kind::Plain, size)),
        stream_ordered: Fact::from_outcome(allocation::look(subject, Kind::StreamOrdered, size)),
        virtual_memory: Fact::from_outcome(allocation::virtual_memory(subject, size)),
        pages: Fact::from_outcome(pages::rule(subject)),
        pool: Fact::from_outcome(pool::rule(subject)),
        second: Fact::from_outcome(second_context(subject, 0)),
        blocking_sync: Fact::from_outcome(second_context(subject, BLOCKING_SYNC)),
        managed: Fact::Unknown(not_yet()),
        kept_for_managed: Fact::Unknown(not_yet()),
        notes: Vec::new(),
    }
}

impl Measured {
    /// Fills in what was recorded on an H200 where a simulated device has nothing of the kind.
    ///
    /// Source: driver 580.159 on an H200; managed memory of 64 MiB, taken to be alike for others.
    pub(super) fn with_recordings(mut self) -> Self {
        let size = self.plain.known().map_or(PROBE, |plain| plain.size);
        self.managed = Fact::Recorded(AllocationCourse {
            size,
            at_call: 0,
            at_first_write: size as i64,
            after_free: 0,
            after_synchronize: None,
            seen_by_nvml: Some(0),
        });
        self.kept_for_managed = Fact::Recorded(64 << 20);
        self.second = Fact::Recorded(SecondContext {
            bytes: 548_995_072,
            size: CONTEXT_PROBE,
            at_call: None,
        });
        self.blocking_sync = Fact::Unknown("a simulated device has one kind of context".to_owned());
        self
    }
}

/// What the card has less free than `before`.
fn gone<S: Subject>(subject: &S, before: u64) -> Outcome<i64> {
    Ok(before as i64 - subject.free_bytes()? as i64)
}

/// How much can be allocated without being in anybody's way: a power of two.
fn probe(free: u64) -> Result<u64, Error> {
    let quarter = free / 4;
    if quarter < SMALLEST_PROBE {
        return Err(Error::device(format!(
            "only {} of the device is free, which is too little to measure with: it takes {}",
            Bytes::new(free),
            Bytes::new(4 * SMALLEST_PROBE)
        ))
        .with_help("end other programs that use the device"));
    }
    let power = 1 << quarter.ilog2();
    Ok(PROBE.min(power))
}

/// Writes once, since the driver loads what sets memory when it is first asked to.
fn warm_up<S: Subject>(subject: &mut S) -> Outcome<()> {
    let size = subject.granularity();
    let address = subject.malloc(size)?;
    let written = subject.write(address, size);
    subject.free(address)?;
    written
}

/// What a second context costs, and what an allocation in it commits. It is not written to there: the
/// primary context's events are no use in it.
fn second_context<S: Subject>(subject: &mut S, flags: u32) -> Result<SecondContext, Unclear> {
    let before = subject.free_bytes()?;
    if before < 2 * MOST {
        return Err(Unclear(format!(
            "only {} is free, and a second context may take half of it",
            Bytes::new(before)
        )));
    }
    let context = subject.create_context(flags)?;
    let looked = in_context(subject, before);
    subject.destroy_context(context)?;
    Ok(looked?)
}

fn in_context<S: Subject>(subject: &mut S, before: u64) -> Outcome<SecondContext> {
    let bytes = gone(subject, before)?;
    let free = subject.free_bytes()?;
    let address = subject.malloc(CONTEXT_PROBE)?;
    let at_call = gone(subject, free);
    subject.free(address)?;
    Ok(SecondContext {
        bytes,
        size: CONTEXT_PROBE,
        at_call: Some(at_call?),
    })
}
