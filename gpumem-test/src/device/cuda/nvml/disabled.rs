//! The twin of `enabled.rs` in builds without the feature `cuda`: no witness.

use super::{CardUse, name_of, own_figure};
use crate::error::Error;

/// No NVML.
#[derive(Debug)]
pub enum Nvml {}

impl Nvml {
    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open(uuid: [u8; 16]) -> Result<Self, Error> {
        let name = name_of(uuid);
        Err(Error::device(format!(
            "this build of gpumem-test cannot ask NVML for {name}"
        ))
        .with_help("enable the feature `cuda`"))
    }

    /// What the card says of itself.
    pub fn card(&self) -> Option<CardUse> {
        match *self {}
    }

    /// Bytes of this process on the card.
    pub fn process(&self, held: u64) -> Option<u64> {
        own_figure(&[], 0, held).or(match *self {})
    }
}
