//! The written forms that the attribute and the run time of gpumem-test share.
//!
//! One grammar each for sizes (`"2GiB"`), shares (`"80%"`), durations (`"60s"`) and neighbours, so
//! that a string means the same in an attribute, in `GPUMEM_BUDGET` and in a file. Errors are sentences
//! without a place: the caller adds what was being read.

mod duration;
mod neighbour;
mod share;
mod size;
mod suggest;

pub use duration::{DURATION_UNITS, parse_duration};
pub use neighbour::{Neighbour, TAKES_ALL, TAKES_AS_ASKED, parse_neighbour, takes_nothing};
pub use share::parse_share;
pub use size::{SIZE_UNITS, parse_size};
pub use suggest::{did_you_mean, one_of};
