//! What the environment says: the one place that reads `GPUMEM_*`.

use std::ffi::OsString;
use std::str::FromStr;

use gpumem_test_syntax::did_you_mean;

use crate::config::{Budget, DeviceSpec, PolicySpec};
use crate::error::Error;
use crate::ledger::DEFAULT_CAPACITY;

use super::environment;
use super::facts;
use super::messages;
use super::protocol;

/// What the names of all variables begin with.
const PREFIX: &str = "GPUMEM_";

/// The most that `GPUMEM_LEDGER_EVENTS` may say: a sparse file of 256 GiB.
const MOST_EVENTS: u64 = 1 << 32;

/// The settings of this run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Set by [`environment::DEVICE`]: the device of every test.
    pub(crate) device: Option<DeviceSpec>,
    /// Set by [`environment::POLICY`]: the policy of every test.
    pub(crate) policy: Option<PolicySpec>,
    /// Set by [`environment::BUDGET`]: the budget of every test.
    pub(crate) budget: Option<Budget>,
    /// Set by [`environment::LEDGER_EVENTS`]: how many events the ledger of a test holds.
    pub(crate) ledger_events: u64,
    /// Set by [`environment::SITES`]: what becomes of the places of driver calls.
    pub(crate) sites: SitesSetting,
    /// Set by [`environment::UNSUPPORTED`]: whether what is not simulated fails a test.
    pub(crate) unsupported_fails: bool,
    /// Set by [`environment::SKIP`]: whether a skip may pass where there are only pass and fail.
    pub(crate) skip_passes: bool,
    /// Whether cargo-nextest runs this process, which it says in `NEXTEST`.
    pub(crate) under_nextest: bool,
    /// What is odd in the values and yet no mistake, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// What becomes of the places of driver calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SitesSetting {
    /// None are kept.
    Off,
    /// They are named if the test fails.
    #[default]
    Failure,
    /// They are named.
    Always,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: None,
            policy: None,
            budget: None,
            ledger_events: DEFAULT_CAPACITY,
            sites: SitesSetting::default(),
            unsupported_fails: false,
            skip_passes: false,
            under_nextest: false,
            warnings: Vec::new(),
        }
    }
}

impl Settings {
    /// The variables that mean something.
    const KNOWN: [&'static str; 7] = [
        environment::DEVICE,
        environment::POLICY,
        environment::BUDGET,
        environment::LEDGER_EVENTS,
        environment::SITES,
        environment::UNSUPPORTED,
        environment::SKIP,
    ];

    /// Reads the environment of this process.
    ///
    /// # Errors
    /// One for each variable that cannot be used.
    pub(crate) fn from_env() -> Result<Self, Vec<Error>> {
        Self::from_variables(std::env::vars_os().collect())
    }

    fn from_variables(mut variables: Vec<(OsString, OsString)>) -> Result<Self, Vec<Error>> {
        variables.sort();
        let mut errors = Vec::new();
        let mut settings = Self::default();
        for (name, value) in variables {
            if name == "NEXTEST" {
                settings.under_nextest = value == "1";
                continue;
            }
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let Some(value) = value.to_str() else {
                errors.push(messages::not_utf8(name));
                continue;
            };
            if value.trim().is_empty() {
                continue;
            }
            if let Err(error) = settings.set(name, value) {
                errors.push(error);
            }
        }
        if errors.is_empty() {
            Ok(settings)
        } else {
            Err(errors)
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            environment::DEVICE => self.device = Some(device(name, value)?),
            environment::POLICY => self.policy = Some(self.policy(name, value)?),
            environment::BUDGET => self.budget = Some(budget(name, value)?),
            environment::LEDGER_EVENTS => self.ledger_events = events(name, value)?,
            environment::SITES => {
                let words = [
                    ("off", SitesSetting::Off),
                    ("failure", SitesSetting::Failure),
                    ("always", SitesSetting::Always),
                ];
                self.sites = choice(name, value, &words)?;
            }
            environment::UNSUPPORTED => {
                let words = [("list", false), ("error", true)];
                self.unsupported_fails = choice(name, value, &words)?;
            }
            environment::SKIP => {
                let words = [("fail", false), ("pass", true)];
                self.skip_passes = choice(name, value, &words)?;
            }
            // A misspelt variable would leave a bound unset and a test passing.
            _ if !protocol::is_ours(name) => {
                // Without the prefix, which all have in common and would make all alike.
                let tail = |name: &'static str| &name[PREFIX.len()..];
                let known = Self::KNOWN.into_iter().map(tail);
                if let Some(meant) = did_you_mean(&name[PREFIX.len()..], known) {
                    let meant = format!("{PREFIX}{meant}");
                    return Err(messages::unknown_variable(name, &meant, &Self::KNOWN));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checked here and not for each test, of which each would say the same.
    fn policy(&mut self, name: &str, value: &str) -> Result<PolicySpec, Error> {
        let policy = parse(name, value)?;
        let warnings =
            facts::check_policy(&policy).map_err(|error| messages::of_variable(name, &error))?;
        let warnings = warnings
            .iter()
            .map(|text| messages::warning_of_variable(name, text));
        self.warnings.extend(warnings);
        Ok(policy)
    }
}

fn parse<T: FromStr<Err = Error>>(name: &str, value: &str) -> Result<T, Error> {
    (value.parse()).map_err(|error| messages::of_variable(name, &error))
}

/// Checked here and not for each test, as the policy is.
fn device(name: &str, value: &str) -> Result<DeviceSpec, Error> {
    let device = parse(name, value)?;
    facts::device(&device).map_err(|error| messages::of_variable(name, &error))?;
    Ok(device)
}

/// One of a few words.
fn choice<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, Error> {
    let found = words.iter().find(|(word, _)| *word == value.trim());
    found.map(|(_, meant)| *meant).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        messages::not_a_choice(name, value, &words)
    })
}

fn budget(name: &str, value: &str) -> Result<Budget, Error> {
    match parse(name, value)? {
        Budget::Bytes(0) | Budget::Share(0.0) => Err(messages::budget_of_nothing(name, value)),
        budget => Ok(budget),
    }
}

fn events(name: &str, value: &str) -> Result<u64, Error> {
    let digits = value.trim().replace('_', "");
    match digits.parse::<u64>() {
        Ok(events) if (1..=MOST_EVENTS).contains(&events) => Ok(events),
        _ => Err(messages::not_a_number_of_events(name, value, MOST_EVENTS)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Settings, SitesSetting};
    use crate::config::{Budget, DeviceSpec, PolicyKind};

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Settings::from_variables(variables).map_err(|errors| {
            let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            texts.join("\n")
        })
    }

    #[test]
    fn each_variable_sets_its_field() {
        let settings = read(&[
            ("GPUMEM_DEVICE", "auto"),
            ("GPUMEM_POLICY", "pytorch:max_split_size_mb:64"),
            ("GPUMEM_BUDGET", "50%"),
            ("GPUMEM_LEDGER_EVENTS", "1_000"),
            ("GPUMEM_SITES", "always"),
            ("GPUMEM_UNSUPPORTED", "error"),
            ("GPUMEM_SKIP", "pass"),
            ("NEXTEST", "1"),
            ("PATH", "x"),
        ])
        .unwrap();
        assert_eq!(settings.device, Some(DeviceSpec::Auto));
        let policy = settings.policy.unwrap();
        assert_eq!(policy.kind, PolicyKind::Caching);
        assert_eq!(policy.options, "max_split_size_mb:64");
        assert_eq!(settings.budget, Some(Budget::Share(0.5)));
        assert_eq!(settings.ledger_events, 1_000);
        assert_eq!(settings.sites, SitesSetting::Always);
        assert!(settings.unsupported_fails && settings.skip_passes && settings.under_nextest);
    }

    #[test]
    fn an_empty_variable_is_not_set() {
        assert_eq!(read(&[("GPUMEM_POLICY", " ")]), Ok(Settings::default()));
    }

    #[test]
    fn all_wrong_variables_are_named_at_once() {
        let text = read(&[
            ("GPUMEM_DEVICE", "simm"),
            ("GPUMEM_POLICY", "cachng"),
            ("GPUMEM_BUDGET", "2"),
            ("GPUMEM_LEDGER_EVENTS", "0"),
            ("GPUMEM_POLCY", "caching"),
            ("GPUMEM_SITES", "on"),
            ("GPUMEM_UNSUPPORTED", "fail"),
            ("GPUMEM_SKIP", "never"),
        ])
        .unwrap_err();
        for part in [
            "GPUMEM_DEVICE: unknown device",
            "GPUMEM_POLICY: unknown policy `cachng`",
            "GPUMEM_BUDGET:",
            "GPUMEM_LEDGER_EVENTS: `0` is not a number of events",
            "GPUMEM_SITES: `on` is none of off, failure, always",
            "GPUMEM_UNSUPPORTED: `fail` is none of list, error",
            "GPUMEM_SKIP: `never` is none of fail, pass",
            "`GPUMEM_POLCY`, did you mean `GPUMEM_POLICY`?",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_options_of_a_policy_are_read_once_for_all_tests() {
        let text = read(&[("GPUMEM_POLICY", "caching:no_such_option:1")]).unwrap_err();
        assert!(text.starts_with("GPUMEM_POLICY: "), "{text}");
        assert!(text.contains("no_such_option"), "{text}");
    }

    #[test]
    fn a_device_is_looked_up_once_for_all_tests() {
        for (device, part) in [("sim:99", "the size `99`"), ("sim:rtx4091", "`rtx4091`")] {
            let text = read(&[("GPUMEM_DEVICE", device)]).unwrap_err();
            assert!(text.starts_with("GPUMEM_DEVICE: "), "{text}");
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_budget_of_nothing_is_refused() {
        for budget in ["0B", "0%"] {
            let text = read(&[("GPUMEM_BUDGET", budget)]).unwrap_err();
            assert!(text.starts_with("GPUMEM_BUDGET: "), "{text}");
            assert!(text.contains(budget), "{text}");
        }
    }

    #[test]
    fn variables_of_others_are_left_alone() {
        let settings = read(&[("GPUMEM_ORACLE_DIR", "somewhere")]);
        assert_eq!(settings, Ok(Settings::default()));
    }
}
