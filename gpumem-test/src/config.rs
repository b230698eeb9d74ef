//! The strings by which users name policies, devices and budgets.

use std::fmt;
use std::str::FromStr;

use gpumem_test_syntax::{one_of, parse_share, parse_size};

use crate::error::Error;

/// The allocators that can serve a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyKind {
    /// `driver` (`cuda`, `native`): each call goes where the code sent it.
    #[default]
    Driver,
    /// `caching` (`pytorch`): PyTorch's caching allocator.
    Caching,
}

impl PolicyKind {
    /// Every kind, with its name and its aliases, in the order of the documentation.
    const NAMES: [(Self, &'static [&'static str]); 2] = [
        (Self::Driver, &["driver", "cuda", "native"]),
        (Self::Caching, &["caching", "pytorch"]),
    ];

    /// Names that a later version will know: their error says so.
    const LATER: [&'static str; 9] = [
        "eager",
        "direct",
        "lazy",
        "async",
        "stream-ordered",
        "bfc",
        "tensorflow",
        "xla",
        "guard",
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("driver", |(_, names)| names[0])
    }

    fn by_name(name: &str) -> Result<Self, Error> {
        let known = Self::NAMES.iter().find(|(_, names)| names.contains(&name));
        if let Some((kind, _)) = known {
            return Ok(*kind);
        }
        let names: Vec<_> = Self::NAMES
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        if Self::LATER.contains(&name) {
            return Err(Error::configuration(format!(
                "policy `{name}` is not in this version (policies: {})",
                names.join(", ")
            )));
        }
        Err(Error::configuration(one_of(
            "policy", "policies", name, &names,
        )))
    }
}

/// A policy as a test names it: a kind and its options, unread.
///
/// `caching:max_split_size_mb:128` is the kind, a colon, and the very string of
/// `PYTORCH_CUDA_ALLOC_CONF`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicySpec {
    /// The kind.
    pub kind: PolicyKind,
    /// What stands behind the first colon; empty for none.
    pub options: String,
}

impl PolicySpec {
    /// The part of a test's name that tells it from others of the same kind: kind and options in
    /// characters that a file name can carry, `caching-expandable_segments=True`.
    pub fn slug(&self) -> String {
        if self.options.is_empty() {
            return self.kind.name().to_owned();
        }
        let mut slug = format!("{}-", self.kind.name());
        for character in self.options.chars().filter(|c| !c.is_whitespace()) {
            match character {
                ':' => slug.push('='),
                ',' => slug.push('+'),
                c if c.is_ascii_alphanumeric() || "_-.=".contains(c) => slug.push(c),
                _ => slug.push('_'),
            }
        }
        slug
    }
}

impl FromStr for PolicySpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let kind = PolicyKind::by_name(name.trim())?;
        if kind == PolicyKind::Driver && !options.trim().is_empty() {
            return Err(Error::configuration(format!(
                "policy `driver` has no options, but `{text}` gives it `{options}`"
            )));
        }
        Ok(Self {
            kind,
            options: options.trim().to_owned(),
        })
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.options.is_empty() {
            Ok(())
        } else {
            write!(f, ":{}", self.options)
        }
    }
}

/// The default profile of a simulated device.
pub(crate) const DEFAULT_PROFILE: &str = "h200";

/// A device as a test names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceSpec {
    /// `auto`: a GPU if this version can use one and there is one, else `sim`.
    #[default]
    Auto,
    /// `sim`, `sim:rtx4090`, `sim:24GiB`: simulated cards of one profile. `sim:h200*2` is read and
    /// refused: this version runs a test on one device.
    Sim {
        /// The profile's name, or a size.
        profile: String,
        /// How many.
        count: u16,
    },
}

impl DeviceSpec {
    /// The name of the card's profile, which the device room looks up.
    pub(crate) fn profile_name(&self) -> &str {
        match self {
            Self::Auto => DEFAULT_PROFILE,
            Self::Sim { profile, .. } => profile,
        }
    }
}

impl FromStr for DeviceSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let trimmed = text.trim();
        let (name, rest) = trimmed
            .split_once(':')
            .map_or((trimmed, None), |(n, r)| (n, Some(r)));
        match (name, rest) {
            ("auto", None) => Ok(Self::Auto),
            ("sim", None) => Ok(Self::Sim {
                profile: DEFAULT_PROFILE.to_owned(),
                count: 1,
            }),
            ("sim", Some(rest)) => simulated(text, rest),
            ("cuda", _) => Err(Error::configuration(format!(
                "device `{text}`: this version has no real devices yet (devices: auto, sim, sim:PROFILE, sim:SIZE)"
            ))),
            _ => Err(Error::configuration(format!(
                "{} as in `sim:rtx4090` or `sim:24GiB`",
                one_of(
                    "device",
                    "devices",
                    text,
                    &["auto", "sim", "sim:PROFILE", "sim:SIZE"]
                )
            ))),
        }
    }
}

fn simulated(text: &str, rest: &str) -> Result<DeviceSpec, Error> {
    let (profile, count) = rest.split_once('*').unwrap_or((rest, "1"));
    let count: u16 = count
        .trim()
        .parse()
        .ok()
        .filter(|count| (1..=64).contains(count))
        .ok_or_else(|| {
            Error::configuration(format!(
                "device `{text}`: `{count}` is not a number of devices from 1 to 64"
            ))
        })?;
    let profile = profile.trim();
    if count > 1 {
        return Err(Error::configuration(format!(
            "device `{text}`: this version runs a test on one device; write `sim:{profile}`"
        )));
    }
    Ok(DeviceSpec::Sim {
        profile: profile.to_owned(),
        count,
    })
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Sim { profile, count: 1 } => write!(f, "sim:{profile}"),
            Self::Sim { profile, count } => write!(f, "sim:{profile}*{count}"),
        }
    }
}

/// A hard cap on reserved bytes: so many, or a share of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Budget {
    /// Bytes.
    Bytes(u64),
    /// A ratio of the device's total, between 0 and 1.
    Share(f64),
}

impl Budget {
    /// The bytes on a device of `total` bytes.
    pub fn on(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(ratio) => (total as f64 * ratio) as u64,
        }
    }
}

impl FromStr for Budget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = if text.trim().ends_with('%') {
            parse_share(text).map(Self::Share)
        } else {
            parse_size(text).map(Self::Bytes)
        };
        parsed.map_err(Error::configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, DeviceSpec, PolicySpec};

    #[test]
    fn a_policy_is_a_kind_and_its_options() {
        let spec: PolicySpec = "pytorch:expandable_segments:True,max_split_size_mb:64"
            .parse()
            .unwrap();
        assert_eq!(
            spec.to_string(),
            "caching:expandable_segments:True,max_split_size_mb:64"
        );
        assert_eq!(
            spec.slug(),
            "caching-expandable_segments=True+max_split_size_mb=64"
        );
    }

    #[test]
    fn what_is_no_policy_is_named() {
        for (text, part) in [
            ("cachng", "did you mean `caching`?"),
            ("bfc", "is not in this version"),
            ("driver:x", "has no options"),
        ] {
            let error = text.parse::<PolicySpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_device_is_named() {
        for (text, part) in [
            ("cuda:0", "no real devices yet"),
            ("simm", "did you mean `sim`?"),
            ("sim:h200*0", "not a number of devices"),
            ("sim:h200*2", "on one device"),
        ] {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_budget_is_a_size_or_a_share() {
        assert_eq!("2GiB".parse::<Budget>().unwrap().on(1), 2 << 30);
        assert_eq!("50%".parse::<Budget>().unwrap().on(1_001), 500);
    }
}
