//! When memory is committed: at its call, at its first write, and until when.

use super::gone;
use crate::doctor::fact::Unclear;
use crate::doctor::report::{AllocationCourse, VirtualCourse};
use crate::doctor::subject::{Outcome, Subject};

/// A sort of memory that one call takes and one gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Managed,
    StreamOrdered,
}

impl Kind {
    fn take<S: Subject>(self, subject: &mut S, size: u64) -> Outcome<u64> {
        match self {
            Self::Plain => subject.malloc(size),
            Self::Managed => subject.malloc_managed(size),
            Self::StreamOrdered => subject.malloc_async(size),
        }
    }

    fn give<S: Subject>(self, subject: &mut S, address: u64) -> Outcome<()> {
        match self {
            Self::Plain | Self::Managed => subject.free(address),
            Self::StreamOrdered => subject.free_async(address),
        }
    }
}

/// Follows one allocation from its call to its end.
pub(super) fn look<S: Subject>(
    subject: &mut S,
    kind: Kind,
    size: u64,
) -> Result<AllocationCourse, Unclear> {
    if kind == Kind::StreamOrdered {
        // What the pool has to spare would be used first.
        subject.trim()?;
    }
    let (free, process) = (subject.free_bytes()?, subject.process_bytes());
    let address = kind.take(subject, size)?;
    let lived = live(subject, address, size, free);
    let process_after = subject.process_bytes();
    kind.give(subject, address)?;
    let (at_call, at_first_write) = lived?;
    let after_free = gone(subject, free)?;
    let mut after_synchronize = None;
    if kind == Kind::StreamOrdered {
        subject.synchronize()?;
        after_synchronize = Some(gone(subject, free)?);
        subject.trim()?;
    }
    Ok(AllocationCourse {
        size,
        at_call,
        at_first_write,
        after_free,
        after_synchronize,
        seen_by_nvml: grown(process, process_after),
    })
}

/// What the call committed, and the first write beyond that.
fn live<S: Subject>(subject: &mut S, address: u64, size: u64, free: u64) -> Outcome<(i64, i64)> {
    let at_call = gone(subject, free)?;
    subject.write(address, size)?;
    Ok((at_call, gone(subject, free)? - at_call))
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<i64> {
    Some(after? as i64 - before? as i64)
}

/// Follows pages of the virtual memory API from reservation to release.
pub(super) fn virtual_memory<S: Subject>(
    subject: &mut S,
    size: u64,
) -> Result<VirtualCourse, Unclear> {
    let (free, process) = (subject.free_bytes()?, subject.process_bytes());
    let range = subject.reserve_range(size)?;
    let backed = back(subject, range, size, free);
    subject.release_range(range, size)?;
    let (at_reserve, [created, mapped, written], process_after) = backed?;
    Ok(VirtualCourse {
        size,
        at_reserve,
        at_create: created - at_reserve,
        at_map: mapped - created,
        at_first_write: written - mapped,
        after_release: gone(subject, free)?,
        seen_by_nvml: grown(process, process_after),
    })
}

type Backed = (i64, [i64; 3], Option<u64>);

/// What is gone after the reservation, and when pages were created, mapped and written.
fn back<S: Subject>(subject: &mut S, range: u64, size: u64, free: u64) -> Outcome<Backed> {
    let at_reserve = gone(subject, free)?;
    let pages = subject.create_pages(size)?;
    let mapped = map(subject, range, size, pages, free);
    let process = subject.process_bytes();
    if mapped.is_ok() {
        subject.unmap(range, size)?;
    }
    subject.release_pages(pages)?;
    Ok((at_reserve, mapped?, process))
}

/// What is gone when pages are created, mapped and written. An error leaves nothing mapped.
fn map<S: Subject>(
    subject: &mut S,
    range: u64,
    size: u64,
    pages: u64,
    free: u64,
) -> Outcome<[i64; 3]> {
    let created = gone(subject, free)?;
    subject.map(range, size, pages)?;
    let looked = gone(subject, free).and_then(|mapped| {
        subject.write(range, size)?;
        Ok([created, mapped, gone(subject, free)?])
    });
    if looked.is_err() {
        subject.unmap(range, size)?;
    }
    looked
}
