//! The twin of `enabled.rs` in builds without the feature `cuda`: no witness.

use super::CardUse;
use crate::error::Error;

/// No NVML.
#[derive(Debug)]
pub enum Nvml {}

impl Nvml {
    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open(_uuid: [u8; 16]) -> Result<Self, Error> {
        Err(Error::device("this build of gpumem-test cannot ask NVML")
            .with_help("enable the feature `cuda`"))
    }

    /// The driver's version.
    pub fn driver_version(&self) -> Option<String> {
        match *self {}
    }

    /// What the card says of itself.
    pub fn card(&self) -> Option<CardUse> {
        match *self {}
    }

    /// Bytes of this process on the card.
    pub fn process(&self, _held: u64) -> Option<u64> {
        match *self {}
    }
}
