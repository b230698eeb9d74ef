//! Other processes on the card, as a test names them.

use std::fmt;
use std::str::FromStr;

use gpumem_test_syntax::{Neighbour, parse_neighbour};
use serde::{Deserialize, Serialize};

use super::{Budget, PolicySpec};
use crate::error::Error;

/// Another process on the card: what it takes before the test begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeighbourSpec {
    /// As the test writes it.
    text: String,
    /// What it means.
    pub(crate) takes: Takes,
}

/// What another process takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Takes {
    /// So many bytes, or a share of the card's total.
    Amount(Budget),
    /// What a policy takes with its first request.
    All(PolicySpec),
}

/// What a neighbour holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldByNeighbour {
    /// What it took, beside its context.
    pub(crate) bytes: u64,
    /// What was gone from the card when it had taken it, whoever holds it: the contexts of this
    /// neighbour and of those before it, and what they took.
    pub(crate) gone: u64,
}

impl FromStr for NeighbourSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let takes = match parse_neighbour(text).map_err(Error::configuration)? {
            Neighbour::Bytes(bytes) => Takes::Amount(Budget::Bytes(bytes)),
            Neighbour::Share(ratio) => Takes::Amount(Budget::Share(ratio)),
            Neighbour::Policy(policy) => Takes::All(policy.parse()?),
        };
        Ok(Self {
            text: text.trim().to_owned(),
            takes,
        })
    }
}

impl fmt::Display for NeighbourSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use gpumem_test_syntax::{TAKES_ALL, TAKES_AS_ASKED};

    use super::{NeighbourSpec, Takes};
    use crate::config::{Budget, PolicyKind};

    fn read(text: &str) -> Result<NeighbourSpec, String> {
        text.parse()
            .map_err(|error: super::Error| error.to_string())
    }

    #[test]
    fn a_neighbour_keeps_its_text() {
        let neighbour = read(" 30% ").unwrap();
        assert_eq!(neighbour.to_string(), "30%");
        assert_eq!(neighbour.takes, Takes::Amount(Budget::Share(0.3)));
        let neighbour = read("tf:per_process_gpu_memory_fraction=0.45").unwrap();
        let Takes::All(policy) = neighbour.takes else {
            panic!("a policy takes all that it takes");
        };
        assert_eq!(policy.kind, PolicyKind::TensorFlow);
        assert_eq!(policy.options, "per_process_gpu_memory_fraction=0.45");
    }

    /// The grammar, which the attribute shares, has the names of this version's policies.
    #[test]
    fn every_name_of_a_policy_is_a_neighbour_or_takes_nothing_by_itself() {
        for (kind, names) in PolicyKind::NAMES {
            for name in names {
                assert_eq!(TAKES_ALL.contains(name), kind.is_bfc(), "{name}");
                assert_eq!(TAKES_AS_ASKED.contains(name), !kind.is_bfc(), "{name}");
            }
        }
    }
}
