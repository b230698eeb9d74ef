//! The real device: the driver itself, held to a budget.
//!
//! [`CudaDevice`] is a [`Card`] on the driver that `enabled.rs` reaches through cudarc. Without the
//! feature `cuda` its twin `disabled.rs` takes that place: same names, nothing to open. All that can
//! be thought without a GPU is in [`Card`], over the trait [`RawDriver`], and is tested over a
//! simulated card: budget arithmetic, the shadow of policy `driver` and its kin, the translation of addresses.
//! The room knows no policy. It is the only one that names cudarc and NVML.

mod account;
mod book;
mod card;
mod fences;
mod gate;
mod lazy;
mod memory;
mod notices;
mod nvml;
mod others;
mod pools;
mod raw;
mod streams;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(feature = "cuda")]
mod enabled;
#[cfg(feature = "cuda")]
use enabled as driver;
#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(not(feature = "cuda"))]
use disabled as driver;

pub use self::account::ShadowDifference;
pub use self::card::Card;
pub use self::driver::count;
pub(crate) use self::driver::{glance, open};
pub use self::nvml::{CardUse, Nvml, PeakSampler};
pub(crate) use self::raw::CardGlance;
pub use self::raw::{DriverError, RawDriver};

/// A real device, by its driver.
pub type CudaDevice = Card<driver::Driver>;
