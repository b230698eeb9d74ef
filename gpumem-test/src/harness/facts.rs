//! What the harness asks of devices and policies before a test runs.

use crate::config::{DeviceSpec, NeighbourSpec, PolicySpec, Takes};
use crate::device::sim::DeviceProfile;
use crate::error::Error;
use crate::policy;

/// A device that a test may run on. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Its name in reports, `sim:h200`.
    pub(super) name: String,
    /// All of its memory; of a GPU it is known when the session is open.
    pub(super) total: Option<u64>,
    /// What of it is gone before the first request; likewise.
    pub(super) context_overhead: Option<u64>,
}

/// The device that `spec` names, `auto` taken for a simulated one.
///
/// # Errors
/// If there is no such profile.
pub(super) fn device(spec: &DeviceSpec) -> Result<Device, Error> {
    let profile = DeviceProfile::by_name(spec.profile_name())?;
    let name = match spec {
        DeviceSpec::Sim { count: 1, .. } | DeviceSpec::Auto => profile.device_name(),
        DeviceSpec::Sim { count, .. } => format!("{}*{count}", profile.device_name()),
        DeviceSpec::Cuda { .. } => {
            return Ok(Device {
                name: spec.to_string(),
                total: None,
                context_overhead: None,
            });
        }
    };
    Ok(Device {
        name,
        total: Some(profile.total),
        context_overhead: Some(profile.context_overhead),
    })
}

/// Why unmodified code is not seen on this platform; none where it is.
pub(super) fn no_door() -> Option<&'static str> {
    let has_door = cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ));
    (!has_door).then_some("it takes Linux with glibc, on x86-64 or aarch64")
}

/// The other process that `text` names; the warnings of its policy's own parser come back.
///
/// # Errors
/// If it cannot be read, or takes nothing by itself.
pub(super) fn neighbour(text: &str) -> Result<(NeighbourSpec, Vec<String>), Error> {
    let neighbour: NeighbourSpec = text.parse()?;
    let warnings = match &neighbour.takes {
        Takes::Amount(_) => Vec::new(),
        Takes::All(policy) => {
            // The test's own policies have the same options.
            let warnings =
                policy::check(policy).map_err(|error| of_neighbour(&neighbour, &error))?;
            if !policy::takes_at_once(policy)? {
                let sentence = gpumem_test_syntax::takes_nothing(&policy.to_string());
                return Err(Error::configuration(format!("neighbour {sentence}")));
            }
            warnings
        }
    };
    Ok((neighbour, warnings))
}

fn of_neighbour(neighbour: &NeighbourSpec, error: &Error) -> Error {
    let named = Error::configuration(format!("neighbour `{neighbour}`: {error}"));
    match error.help() {
        Some(help) => named.with_help(help),
        None => named,
    }
}

/// Whether the options of a policy can be used; the warnings of its own parser come back.
///
/// # Errors
/// If they cannot.
pub(super) fn check_policy(spec: &PolicySpec) -> Result<Vec<String>, Error> {
    policy::check(spec)
}
