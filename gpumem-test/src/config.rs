//! The strings by which users name policies, devices and budgets.

mod neighbour;

use std::fmt;
use std::str::FromStr;

use gpumem_test_syntax::{one_of, parse_share, parse_size};

use crate::error::Error;

pub(crate) use neighbour::{HeldByNeighbour, NeighbourSpec, Takes};

/// The allocators that can serve a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyKind {
    /// `driver` (`cuda`, `native`): each call goes where the code sent it.
    #[default]
    Driver,
    /// `eager` (`direct`): always `cuMemAlloc`.
    Eager,
    /// `lazy`: an address at once, memory at the first write.
    Lazy,
    /// `async` (`stream-ordered`): always a stream-ordered pool of the driver.
    Async,
    /// `caching` (`pytorch`): PyTorch's caching allocator.
    Caching,
    /// `bfc`: the best-fit with coalescing allocator, as its options say.
    Bfc,
    /// `tensorflow`: `bfc` with TensorFlow's defaults.
    TensorFlow,
    /// `xla` (`jax`): `bfc` with XLA's defaults.
    Xla,
}

impl PolicyKind {
    /// Every kind, with its name and its aliases, in the order of the documentation.
    const NAMES: [(Self, &'static [&'static str]); 8] = [
        (Self::Driver, &["driver", "cuda", "native"]),
        (Self::Eager, &["eager", "direct"]),
        (Self::Lazy, &["lazy"]),
        (Self::Async, &["async", "stream-ordered"]),
        (Self::Caching, &["caching", "pytorch"]),
        (Self::Bfc, &["bfc"]),
        (Self::TensorFlow, &["tensorflow", "tf"]),
        (Self::Xla, &["xla", "jax"]),
    ];

    /// Names that a later version will know: their error says so.
    const LATER: [&'static str; 1] = ["guard"];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("driver", |(_, names)| names[0])
    }

    /// Whether the driver's own allocators serve it, so that blocks are theirs: pages of plain
    /// memory, chunks of a stream-ordered pool.
    pub(crate) fn is_of_driver(self) -> bool {
        matches!(self, Self::Driver | Self::Eager | Self::Async | Self::Lazy)
    }

    /// Whether it is the best-fit with coalescing allocator, under whichever name.
    pub(crate) fn is_bfc(self) -> bool {
        matches!(self, Self::Bfc | Self::TensorFlow | Self::Xla)
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
    /// `auto`: the first GPU if there is one, else `sim`.
    #[default]
    Auto,
    /// `cuda`, `cuda:1`: a GPU, as the driver counts them from 0.
    Cuda {
        /// Its number.
        ordinal: u16,
    },
    /// `sim`, `sim:rtx4090`, `sim:24GiB`, `sim:card.json`, `sim:h200*2`: simulated cards of one
    /// profile.
    Sim {
        /// The profile's name, a size, or the path of a file with a profile.
        profile: String,
        /// How many.
        count: u16,
    },
}

impl DeviceSpec {
    /// The forms that a device is written in.
    const FORMS: [&'static str; 7] = [
        "auto",
        "cuda",
        "cuda:NUMBER",
        "sim",
        "sim:PROFILE",
        "sim:SIZE",
        "sim:FILE.json",
    ];

    /// The most GPUs of one machine and the most simulated cards of one test.
    const MOST: u16 = 64;

    /// One simulated card of the default profile.
    pub(crate) fn simulated() -> Self {
        Self::Sim {
            profile: DEFAULT_PROFILE.to_owned(),
            count: 1,
        }
    }

    /// The same with `auto` decided, on a machine with `gpus()` GPUs, which is only asked then.
    pub(crate) fn resolved(&self, gpus: impl FnOnce() -> usize) -> Self {
        match self {
            Self::Auto if gpus() > 0 => Self::Cuda { ordinal: 0 },
            Self::Auto => Self::simulated(),
            known => known.clone(),
        }
    }

    /// The name of the card's profile, which the device room looks up. Of a GPU it is the default
    /// one, whose total the code is shown.
    pub(crate) fn profile_name(&self) -> &str {
        match self {
            Self::Auto | Self::Cuda { .. } => DEFAULT_PROFILE,
            Self::Sim { profile, .. } => profile,
        }
    }

    /// How many devices a test has.
    pub(crate) fn count(&self) -> u16 {
        match self {
            Self::Auto | Self::Cuda { .. } => 1,
            Self::Sim { count, .. } => *count,
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
            ("cuda", rest) => gpu(text, rest.unwrap_or("0")),
            ("sim", None) => Ok(Self::simulated()),
            ("sim", Some(rest)) => simulated(text, rest),
            _ => Err(Error::configuration(format!(
                "{} as in `cuda:0`, `sim:rtx4090`, `sim:24GiB` or `sim:h200*2`",
                one_of("device", "devices", text, &Self::FORMS)
            ))),
        }
    }
}

fn gpu(text: &str, number: &str) -> Result<DeviceSpec, Error> {
    let ordinal = number.trim().parse().ok();
    match ordinal.filter(|ordinal| *ordinal < DeviceSpec::MOST) {
        Some(ordinal) => Ok(DeviceSpec::Cuda { ordinal }),
        None => Err(Error::configuration(format!(
            "device `{text}`: `{number}` is not the number of a GPU, from 0 to {}",
            DeviceSpec::MOST - 1
        ))),
    }
}

fn simulated(text: &str, rest: &str) -> Result<DeviceSpec, Error> {
    let (profile, count) = rest.split_once('*').unwrap_or((rest, "1"));
    let count: u16 = count
        .trim()
        .parse()
        .ok()
        .filter(|count| (1..=DeviceSpec::MOST).contains(count))
        .ok_or_else(|| {
            Error::configuration(format!(
                "device `{text}`: `{count}` is not a number of devices from 1 to {}",
                DeviceSpec::MOST
            ))
        })?;
    Ok(DeviceSpec::Sim {
        profile: profile.trim().to_owned(),
        count,
    })
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cuda { ordinal } => write!(f, "cuda:{ordinal}"),
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

/// What a policy is told of the card before its first request. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Total bytes as the code sees them: the budget, if there is one.
    pub total: u64,
    /// Free bytes as the code sees them.
    pub free: u64,
    /// The hard cap on what the device gives.
    pub budget: Option<u64>,
    /// The major number of the card's compute capability: 9 of an H200.
    pub compute_major: u32,
    /// Bytes that count as free and that no program can have.
    pub unusable: u64,
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
            ("guard", "is not in this version"),
            ("driver:x", "has no options"),
        ] {
            let error = text.parse::<PolicySpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_device_is_named() {
        for (text, part) in [
            ("cuda:64", "`64` is not the number of a GPU, from 0 to 63"),
            ("cuda:x", "`x` is not the number of a GPU"),
            ("cuda:-1", "`-1` is not the number of a GPU"),
            ("simm", "did you mean `sim`?"),
            ("gpu", "`cuda:0`"),
            ("auto:1", "unknown device"),
            ("sim:h200*0", "not a number of devices"),
            ("sim:h200*two", "`two` is not a number of devices"),
        ] {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_device_is_said_again_as_it_is_written_in_full() {
        for (text, said) in [
            ("auto", "auto"),
            ("cuda", "cuda:0"),
            (" cuda:3 ", "cuda:3"),
            ("sim", "sim:h200"),
            ("sim:24GiB", "sim:24GiB"),
            ("sim: h200 * 2", "sim:h200*2"),
            ("sim:cards/Ours.json*2", "sim:cards/Ours.json*2"),
        ] {
            let device: DeviceSpec = text.parse().unwrap();
            assert_eq!(device.to_string(), said);
            assert_eq!(device.to_string().parse::<DeviceSpec>().unwrap(), device);
        }
        assert_eq!("sim:h200*2".parse::<DeviceSpec>().unwrap().count(), 2);
    }

    #[test]
    fn auto_takes_a_gpu_where_there_is_one_and_nothing_else_asks() {
        let auto = DeviceSpec::Auto;
        assert_eq!(auto.resolved(|| 2), DeviceSpec::Cuda { ordinal: 0 });
        assert_eq!(auto.resolved(|| 0).to_string(), "sim:h200");
        for text in ["cuda:1", "sim:t4"] {
            let device: DeviceSpec = text.parse().unwrap();
            assert_eq!(device.resolved(|| unreachable!("it is known")), device);
        }
    }

    #[test]
    fn a_budget_is_a_size_or_a_share() {
        assert_eq!("2GiB".parse::<Budget>().unwrap().on(1), 2 << 30);
        assert_eq!("50%".parse::<Budget>().unwrap().on(1_001), 500);
    }
}
