//! The cards that can be simulated.

mod file;

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::device::sim::direct::PAGE;
use crate::error::Error;

/// Context overhead in bytes, as `cuMemGetInfo` shows it.
///
/// Source: driver 580.159 on an H200; assumed for all other cards.
const CONTEXT_OVERHEAD: u64 = 552_402_944;

/// Bytes that no program can ever allocate. Source: as above.
const UNUSABLE_TAIL: u64 = 3_276_800;

/// Total memory of an H200 as `cuMemGetInfo` reports it: the management library's 150 754 820 096
/// less the 644 939 776 that it calls reserved. Source: as above.
const H200_TOTAL: u64 = 150_109_880_320;

/// A card: what of it matters to memory. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceProfile {
    /// The name that selects it (`h200`), the size that made it (`24GiB`), or its file.
    #[serde(default)]
    pub name: String,
    /// What the vendor calls it.
    pub marketing_name: String,
    /// Total memory as `cuMemGetInfo` reports it.
    pub total: u64,
    /// Total memory as `cuDeviceTotalMem` reports it.
    pub device_total: u64,
    /// Memory gone when the primary context has been made.
    pub context_overhead: u64,
    /// Memory that is reported as free and cannot be had.
    pub unusable_tail: u64,
    /// The smallest page of the virtual memory API.
    pub granularity: u64,
    /// Major and minor number of the compute capability.
    pub compute_capability: (u32, u32),
    /// Where the figures come from.
    pub source: ProfileSource,
}

/// Where the figures of a [`DeviceProfile`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProfileSource {
    /// Measured on such a card.
    Measured,
    /// The capacity is the vendor's; overhead and unusable tail are assumed to be an H200's.
    Vendor,
    /// The capacity was asked for; the rest is assumed to be an H200's.
    Requested,
}

/// Name, marketing name, GiB of memory on the vendor's data sheet, compute capability.
const CARDS: [(&str, &str, u64, (u32, u32)); 12] = [
    ("t4", "NVIDIA T4", 16, (7, 5)),
    ("l4", "NVIDIA L4", 24, (8, 9)),
    ("l40s", "NVIDIA L40S", 48, (8, 9)),
    ("a10", "NVIDIA A10", 24, (8, 6)),
    ("rtx3090", "NVIDIA GeForce RTX 3090", 24, (8, 6)),
    ("rtx4090", "NVIDIA GeForce RTX 4090", 24, (8, 9)),
    ("rtx5090", "NVIDIA GeForce RTX 5090", 32, (12, 0)),
    ("a100-40", "NVIDIA A100 40GB", 40, (8, 0)),
    ("a100-80", "NVIDIA A100 80GB", 80, (8, 0)),
    ("h100", "NVIDIA H100 80GB", 80, (9, 0)),
    ("h200", "NVIDIA H200", 141, (9, 0)),
    ("b200", "NVIDIA B200", 180, (10, 0)),
];

impl DeviceProfile {
    /// The card that stands for "a GPU": all its figures are measured.
    pub fn h200() -> Self {
        Self {
            name: "h200".to_owned(),
            marketing_name: "NVIDIA H200".to_owned(),
            total: H200_TOTAL,
            // Source: measured; the same as `cuMemGetInfo` says.
            device_total: H200_TOTAL,
            context_overhead: CONTEXT_OVERHEAD,
            unusable_tail: UNUSABLE_TAIL,
            granularity: PAGE,
            compute_capability: (9, 0),
            source: ProfileSource::Measured,
        }
    }

    /// The names of all cards, by age and size.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CARDS.iter().map(|(name, ..)| *name)
    }

    /// The profile of a card by its name (in any case), of a device of a size (`24GiB`), or in a
    /// file (`cards/ours.json`, see [`DeviceProfile::load`]).
    ///
    /// # Errors
    /// A configuration error that names what was asked for, the nearest card and all cards; or
    /// that the size leaves nothing beside the context; or what is wrong with the file.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        if Self::is_file(name.trim()) {
            return Self::load(name.trim());
        }
        let wanted = name.trim().to_ascii_lowercase();
        if wanted.starts_with(|c: char| c.is_ascii_digit()) {
            return Self::with_total(name.trim());
        }
        if wanted == "h200" {
            return Ok(Self::h200());
        }
        match CARDS.iter().find(|(card, ..)| *card == wanted) {
            Some((card, marketing_name, gib, capability)) => Ok(Self {
                name: (*card).to_owned(),
                marketing_name: (*marketing_name).to_owned(),
                total: gib << 30,
                device_total: gib << 30,
                compute_capability: *capability,
                source: ProfileSource::Vendor,
                ..Self::h200()
            }),
            None => {
                let cards: Vec<&str> = Self::names().collect();
                let message =
                    gpumem_test_syntax::one_of("simulated device", "devices", &wanted, &cards);
                Err(Error::configuration(message)
                    .with_help("a size stands for a device too, as in `sim:24GiB`, and so does a file with a profile, as in `sim:card.json`"))
            }
        }
    }

    fn with_total(text: &str) -> Result<Self, Error> {
        let total = gpumem_test_syntax::parse_size(text).map_err(Error::configuration)?;
        let least = CONTEXT_OVERHEAD + UNUSABLE_TAIL + PAGE;
        if total < least {
            let (asked, least) = (Bytes::new(total), Bytes::new(least));
            return Err(Error::configuration(format!(
                "a simulated device of {asked} has no room for a context and one page: it needs \
                 at least {least}"
            ))
            .with_help("to give a test little memory, set its `budget`"));
        }
        Ok(Self {
            name: text.split_whitespace().collect(),
            marketing_name: format!("simulated {}", Bytes::new(total)),
            total,
            device_total: total,
            source: ProfileSource::Requested,
            ..Self::h200()
        })
    }

    /// The known card that this is, by its name or by what the vendor calls it.
    pub(crate) fn known_card(&self) -> Option<&'static str> {
        let is_it = |(name, marketing_name, ..): &&(&str, &str, u64, (u32, u32))| {
            *name == self.name || *marketing_name == self.marketing_name
        };
        CARDS.iter().find(is_it).map(|(name, ..)| *name)
    }

    /// How a test and a report name the simulated card: `sim:h200`.
    pub fn device_name(&self) -> String {
        format!("sim:{}", self.name)
    }

    /// Free bytes right after the context was made, as `cuMemGetInfo` reports them.
    pub fn free_after_context(&self) -> u64 {
        self.total - self.context_overhead
    }

    /// The same profile with another amount free after the context was made, as when something
    /// else holds memory of the card.
    ///
    /// # Panics
    /// If `bytes` is more than the total.
    #[must_use]
    pub fn with_free_after_context(mut self, bytes: u64) -> Self {
        assert!(
            bytes <= self.total,
            "with_free_after_context: more than the device's total"
        );
        self.context_overhead = self.total - bytes;
        self
    }

    /// Bytes that a program can have.
    pub fn usable(&self) -> u64 {
        self.free_after_context().saturating_sub(self.unusable_tail)
    }
}

impl Default for DeviceProfile {
    fn default() -> Self {
        Self::h200()
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceProfile, ProfileSource};

    #[test]
    fn the_h200_has_the_measured_figures() {
        let profile = DeviceProfile::by_name("H200").unwrap();
        assert_eq!(profile.free_after_context(), 149_557_477_376);
        assert_eq!(profile.source, ProfileSource::Measured);
        assert_eq!(profile, DeviceProfile::default());
    }

    #[test]
    fn every_card_has_a_profile_that_says_what_is_assumed() {
        for name in DeviceProfile::names() {
            let profile = DeviceProfile::by_name(name).unwrap();
            assert_eq!(profile.name, name);
            assert!(profile.usable() > 15 << 30, "{name}");
            assert_eq!(profile.source == ProfileSource::Measured, name == "h200");
        }
    }

    #[test]
    fn a_size_is_a_profile() {
        let profile = DeviceProfile::by_name("24 GiB").unwrap();
        assert_eq!((profile.total, profile.name.as_str()), (24 << 30, "24GiB"));
        let error = DeviceProfile::by_name("512MiB").unwrap_err();
        assert!(error.is_configuration());
        assert_eq!(
            error.to_string(),
            "a simulated device of 512.00 MiB has no room for a context and one page: it needs at \
             least 531.94 MiB"
        );
    }

    #[test]
    fn an_unknown_card_finds_its_neighbour() {
        let error = DeviceProfile::by_name("rtx4080").unwrap_err().to_string();
        assert!(
            error.contains("unknown simulated device `rtx4080`, did you mean `rtx4090`?"),
            "{error}"
        );
        assert!(error.contains("a100-40, a100-80, h100"), "{error}");
        assert!(
            DeviceProfile::by_name("24Gb")
                .unwrap_err()
                .to_string()
                .contains("did you mean `GB`")
        );
    }
}
