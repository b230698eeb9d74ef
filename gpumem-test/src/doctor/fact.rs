//! A figure, and how far it is known.

use serde::{Deserialize, Serialize};

/// A figure, and how far it is known. Unknown is never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// Measured on this device; on a simulated one, by the same code.
    Known(T),
    /// Not measured here: what was recorded on an H200 with driver 580.159.
    Recorded(T),
    /// Not known, and why.
    Unknown(String),
}

/// Why a figure is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unclear(pub(super) String);

impl<E: std::error::Error> From<E> for Unclear {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl<T> Fact<T> {
    /// The figure, measured or recorded.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known(value) | Self::Recorded(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// The figure, if it was measured on this device.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Recorded(_) | Self::Unknown(_) => None,
        }
    }

    pub(super) fn from_outcome(outcome: Result<T, impl Into<Unclear>>) -> Self {
        match outcome {
            Ok(value) => Self::Known(value),
            Err(why) => Self::Unknown(why.into().0),
        }
    }
}
