//! The twin of `enabled.rs` in builds without the feature `cuda`: no driver can be opened.

use std::sync::Arc;

use super::gate::Gate;
use super::raw::{CardFacts, CardGlance, CardMemory, DriverError, RawDriver};
use crate::error::Error;

/// No driver.
#[derive(Debug)]
pub enum Driver {}

/// How many cards this machine has, for a program that can use none.
///
/// # Errors
/// Always.
pub fn count() -> Result<usize, Error> {
    Err(absent())
}

/// What a card is, for a program that can use none.
///
/// # Errors
/// Always.
pub(crate) fn glance(_ordinal: u32) -> Result<CardGlance, Error> {
    Err(absent())
}

/// Opens nothing.
///
/// # Errors
/// Always.
pub(crate) fn open(ordinal: u32) -> Result<Driver, Error> {
    Driver::open(ordinal, false)
}

fn absent() -> Error {
    Error::device("this build of gpumem-test has no real devices")
        .with_help("enable the feature `cuda`, or run with `GPUMEM_DEVICE=sim cargo test`")
}

impl Driver {
    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    pub(super) fn open(_ordinal: u32, _relaxed: bool) -> Result<Self, Error> {
        Err(absent())
    }

    /// There is none.
    pub(super) fn relax_captures(&mut self) {
        match *self {}
    }
}

type Outcome<T> = Result<T, DriverError>;

impl RawDriver for Driver {
    type Scope = ();

    fn enter(&self) -> Outcome<()> {
        match *self {}
    }
    fn facts(&self) -> &CardFacts {
        match *self {}
    }
    fn memory(&self) -> Outcome<CardMemory> {
        match *self {}
    }
    fn device_total(&self) -> Outcome<u64> {
        match *self {}
    }
    fn malloc_managed(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn pool_threshold(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn create_context(&self, _: u32) -> Outcome<u64> {
        match *self {}
    }
    fn destroy_context(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn malloc(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn free(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn reserve_range(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn release_range(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn create_pages(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn release_pages(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn map(&self, _: u64, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn allow_access(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn unmap(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn malloc_async(&self, _: u64, _: u64, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn free_async(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn create_pool(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn pool_reserved(&self, _: u64) -> Outcome<u64> {
        match *self {}
    }
    fn set_pool_threshold(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn trim_pool(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn create_stream(&self, _: bool) -> Outcome<u64> {
        match *self {}
    }
    fn destroy_stream(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn synchronize_stream(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn query_stream(&self, _: u64) -> Outcome<bool> {
        match *self {}
    }
    fn synchronize(&self) -> Outcome<()> {
        match *self {}
    }
    fn launch_gate(&self, _: u64, _: Arc<Gate>) -> Outcome<()> {
        match *self {}
    }
    fn create_event(&self) -> Outcome<u64> {
        match *self {}
    }
    fn destroy_event(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn record_event(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn query_event(&self, _: u64) -> Outcome<bool> {
        match *self {}
    }
    fn synchronize_event(&self, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn stream_wait(&self, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
    fn write(&self, _: u64, _: &[u8]) -> Outcome<()> {
        match *self {}
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Outcome<()> {
        match *self {}
    }
    fn fill(&self, _: u64, _: u64, _: &[u8]) -> Outcome<()> {
        match *self {}
    }
    fn copy(&self, _: u64, _: u64, _: u64) -> Outcome<()> {
        match *self {}
    }
}
