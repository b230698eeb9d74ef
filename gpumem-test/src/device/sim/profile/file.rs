//! Profiles in files: JSON that a person can read and change, and that `doctor` writes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{DeviceProfile, PAGE};
use crate::bytes::Bytes;
use crate::error::Error;

/// The end of a name that makes it a file's.
const ENDING: &str = ".json";

/// Where the keys are explained.
const HELP: &str = "`docs/device-report.md` explains the keys; `doctor` writes such a file";

/// What stands in a file: a profile, or the report of a device that contains one.
#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    profile: DeviceProfile,
}

impl DeviceProfile {
    /// The version of the file, and of the report that contains a profile. It grows when a key
    /// changes its meaning or goes away, not when one is added.
    pub(crate) const SCHEMA: u32 = 1;

    /// Whether a name is that of a file.
    pub(super) fn is_file(name: &str) -> bool {
        let start = name.len().saturating_sub(ENDING.len());
        name.get(start..)
            .is_some_and(|end| end.eq_ignore_ascii_case(ENDING))
    }

    /// Reads a profile from a JSON file: one that [`DeviceProfile::save`] wrote, or the report of a
    /// device. A relative path starts at the working directory, which cargo makes that of the
    /// test's package. The profile is named by the path, so that `sim:PATH` finds it again.
    ///
    /// # Errors
    /// If the file cannot be read, or is no profile of a card that can be simulated: which key is
    /// wrong, and how.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::io(format!("cannot read the device profile `{shown}`"), error)
                .with_help("a relative path starts at the folder of the package's Cargo.toml")
        })?;
        let wrong = |what: String| {
            Error::configuration(format!("device profile `{shown}`: {what}")).with_help(HELP)
        };
        let schema: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match &schema["schema"] {
            known if *known == Self::SCHEMA => {}
            serde_json::Value::Null => {
                return Err(wrong("`schema` is missing; it is 1".to_owned()));
            }
            other => {
                return Err(wrong(format!(
                    "`schema` is {other}, and this version of gpumem-test reads {}",
                    Self::SCHEMA
                )));
            }
        }
        let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let mut profile = file.profile;
        profile.check().map_err(wrong)?;
        profile.name = shown.to_string();
        Ok(profile)
    }

    /// Writes the profile to a JSON file, for [`DeviceProfile::load`] and `sim:PATH`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let file = File {
            schema: Self::SCHEMA,
            profile: self.clone(),
        };
        let mut text = serde_json::to_string_pretty(&file)
            .unwrap_or_else(|error| unreachable!("a profile has string keys only: {error}"));
        text.push('\n');
        let path = path.as_ref();
        std::fs::write(path, text).map_err(|error| {
            let shown = path.display();
            Error::io(format!("cannot write the device profile `{shown}`"), error)
        })
    }

    /// Whether there can be such a card.
    fn check(&self) -> Result<(), String> {
        if self.marketing_name.trim().is_empty() {
            return Err("`marketing_name` is empty".to_owned());
        }
        if !self.granularity.is_power_of_two() {
            return Err(format!(
                "`granularity` is {}, which is no power of two",
                self.granularity
            ));
        }
        let gone = self.context_overhead.checked_add(self.unusable_tail);
        let least = gone.and_then(|gone| gone.checked_add(PAGE.max(self.granularity)));
        let shown = |bytes: u64| Bytes::new(bytes).exact();
        for (key, total) in [("total", self.total), ("device_total", self.device_total)] {
            if least.is_none_or(|least| total < least) {
                return Err(format!(
                    "`{key}` is {}, which leaves no page beside a `context_overhead` of {} and an \
                     `unusable_tail` of {}",
                    shown(total),
                    shown(self.context_overhead),
                    shown(self.unusable_tail)
                ));
            }
        }
        // Addresses have 47 bits on the host, and a pool's range is twice the device.
        if self.total > 1 << 44 || self.device_total > 1 << 44 {
            return Err("`total` and `device_total` must be below 16 TiB".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceProfile;
    use std::path::PathBuf;

    /// A file of its own for each test, which goes with it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let file = format!("gpumem-profile-{name}-{}.json", std::process::id());
            Self(std::env::temp_dir().join(file))
        }

        fn holding(name: &str, text: &str) -> Self {
            let scratch = Self::new(name);
            std::fs::write(&scratch.0, text).unwrap();
            scratch
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    const CARD: &str = r#"{ "schema": 1, "profile": {
        "marketing_name": "a card of ours", "total": 8589934592, "device_total": 8589934592,
        "context_overhead": 104857600, "unusable_tail": 0, "granularity": 2097152,
        "compute_capability": [8, 6], "source": "measured" } }"#;

    #[test]
    fn a_saved_profile_is_loaded_again_and_named_by_its_file() {
        for name in DeviceProfile::names() {
            let file = Scratch::new(name);
            let saved = DeviceProfile::by_name(name).unwrap();
            saved.save(&file.0).unwrap();
            let path = file.0.display().to_string();
            let loaded = DeviceProfile::by_name(&path).unwrap();
            assert_eq!(loaded.device_name(), format!("sim:{path}"));
            assert_eq!(
                loaded,
                DeviceProfile {
                    name: path,
                    ..saved
                }
            );
        }
    }

    #[test]
    fn a_profile_can_be_written_by_hand() {
        let file = Scratch::holding("hand", CARD);
        let profile = DeviceProfile::load(&file.0).unwrap();
        assert_eq!(profile.usable(), (8 << 30) - (100 << 20));
        assert_eq!(profile.compute_capability, (8, 6));
    }

    #[test]
    fn what_is_no_profile_is_named_with_its_file() {
        let change = |from: &str, to: &str| {
            assert!(CARD.contains(from), "{from}");
            CARD.replacen(from, to, 1)
        };
        for (name, text, part) in [
            ("empty", String::new(), "EOF while parsing"),
            ("list", "[]".to_owned(), "`schema` is missing"),
            (
                "later",
                change("1,", "2,"),
                "`schema` is 2, and this version of gpumem-test reads 1",
            ),
            (
                "none",
                r#"{"schema": 1}"#.to_owned(),
                "missing field `profile`",
            ),
            (
                "text",
                change("8589934592", "\"8GiB\""),
                "invalid type: string \"8GiB\", expected u64",
            ),
            (
                "key",
                change("unusable_tail", "tail"),
                "missing field `unusable_tail`",
            ),
            (
                "source",
                change("measured", "guessed"),
                "unknown variant `guessed`, expected one of `measured`",
            ),
            (
                "odd",
                change("2097152", "3"),
                "`granularity` is 3, which is no power of two",
            ),
            (
                "small",
                change("8589934592", "1024"),
                "`total` is 1 024 B, which leaves no page beside",
            ),
            (
                "large",
                change("104857600", "18446744073709551615"),
                "`total` is 8 589 934 592 B, which leaves no page",
            ),
            (
                "huge",
                change("8589934592", "1152921504606846976"),
                "below 16 TiB",
            ),
            (
                "nameless",
                change("a card of ours", " "),
                "`marketing_name` is empty",
            ),
        ] {
            let file = Scratch::holding(name, &text);
            let error = DeviceProfile::load(&file.0).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(part), "{name}: {said}");
            assert!(
                said.contains(&file.0.display().to_string()),
                "{name}: {said}"
            );
            assert!(error.is_configuration() && error.help().is_some());
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_said_with_where_it_was_looked_for() {
        let error = DeviceProfile::by_name("cards/none.json").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the device profile `cards/none.json`"
        );
        assert!(error.help().unwrap().contains("Cargo.toml"));
    }
}
