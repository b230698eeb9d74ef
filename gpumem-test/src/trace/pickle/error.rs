//! What is wrong with a pickle, and where. Offsets are bytes from its start.

use std::fmt;

use super::opcode::Reason;

/// What is wrong with a pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickleError {
    /// The input ends too early.
    Truncated { at: usize, wanted: u64, left: usize },
    /// An operation that is refused.
    Refused {
        at: usize,
        name: &'static str,
        reason: Reason,
    },
    /// A byte that is no operation.
    Unknown { at: usize, opcode: u8 },
    /// A protocol above 5.
    Protocol { at: usize, version: u8 },
    /// Operations that do not fit together, or a number that is none.
    Malformed { at: usize, what: &'static str },
}

impl PickleError {
    /// Whether the input ends too early.
    pub(crate) fn is_truncation(&self) -> bool {
        matches!(self, Self::Truncated { .. })
    }

    /// Whether the pickle wants something executed.
    pub(crate) fn is_hostile(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                reason: Reason::Executes,
                ..
            }
        )
    }
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { at, wanted, left } => write!(
                f,
                "truncated: at byte {at} it goes on for {wanted} bytes, but only {left} are left"
            ),
            Self::Refused {
                at,
                name,
                reason: Reason::Executes,
            } => write!(
                f,
                "{name} at byte {at} names or calls Python code, and a pickle never executes anything here"
            ),
            Self::Refused {
                at,
                name,
                reason: Reason::NotPlain,
            } => write!(f, "{name} at byte {at} makes a value that no snapshot has"),
            Self::Unknown { at, opcode } => {
                write!(f, "not a pickle: no operation {opcode:#04x} (byte {at})")
            }
            Self::Protocol { at, version } => {
                write!(
                    f,
                    "pickle protocol {version} (byte {at}) is not known, only 0 to 5"
                )
            }
            Self::Malformed { at, what } => write!(f, "malformed pickle: {what} (byte {at})"),
        }
    }
}

impl std::error::Error for PickleError {}
