//! NVML, the witness beside the driver: what the whole card says is in use, and by this process.
//!
//! A figure that cannot be known is `None`, never 0. NVML loads its own library and is asked on a
//! real device only. Sampling is not free (the list of processes took 14 µs on an H200), so peaks
//! are those of samples: see [`PeakSampler`].

#[cfg(any(feature = "cuda", test))]
mod identity;
mod sampler;

#[cfg(feature = "cuda")]
mod enabled;
#[cfg(feature = "cuda")]
use enabled as library;
#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(not(feature = "cuda"))]
use disabled as library;

pub use self::library::Nvml;
pub use self::sampler::PeakSampler;

/// What NVML says of a card, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CardUse {
    /// All memory, with what programs cannot have.
    pub total: u64,
    /// What programs and their contexts have.
    pub used: u64,
    /// What the driver keeps for itself; no part of `used`.
    pub reserved: u64,
    /// What nobody has.
    pub free: u64,
}
