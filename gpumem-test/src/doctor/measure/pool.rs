//! In which pieces the default stream-ordered pool grows.

use crate::doctor::fact::Unclear;
use crate::doctor::report::PoolRule;
use crate::doctor::subject::{Outcome, Subject};

/// Finds the pool's chunk by one byte, and checks it by some chunks more.
pub(super) fn rule<S: Subject>(subject: &mut S) -> Result<PoolRule, Unclear> {
    let release_threshold = subject.release_threshold()?;
    subject.trim()?;
    let before = subject.pool_reserved()?;
    let mut held = Vec::new();
    let grown = grow(subject, &mut held, before);
    for address in held {
        subject.free_async(address)?;
    }
    subject.synchronize()?;
    subject.trim()?;
    let (chunk, more) = grown?;
    if chunk == 0 {
        return Err(Unclear(format!(
            "the pool is in use: it holds {before} bytes, and one more byte did not make it grow"
        )));
    }
    if more == 0 || more % chunk != 0 {
        return Err(Unclear(format!(
            "the pool grew by {chunk} bytes for one byte, and by {more} for {} bytes",
            3 * chunk
        )));
    }
    Ok(PoolRule {
        chunk,
        release_threshold,
    })
}

/// What the pool takes for one byte, and for three times that.
fn grow<S: Subject>(subject: &mut S, held: &mut Vec<u64>, before: u64) -> Outcome<(u64, u64)> {
    held.push(subject.malloc_async(1)?);
    let one = subject.pool_reserved()?;
    let chunk = one.saturating_sub(before);
    held.push(subject.malloc_async((3 * chunk).max(1))?);
    Ok((chunk, subject.pool_reserved()?.saturating_sub(one)))
}
