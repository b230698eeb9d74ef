//! A card of this machine: what is asked before it is measured, and beside it.

use crate::bytes::Bytes;
use crate::device::cuda::{self, CardGlance, CardUse, DriverError, Nvml, RawDriver};
use crate::device::sim::{DeviceProfile, ProfileSource};
use crate::error::Error;

use super::fact::Fact;
use super::measure;
use super::report::{About, DeviceIdentity, DeviceReport, NvmlView, ReportSource};
use super::subject::OnCard;

/// What a process with a context holds of a card at least, in bytes: what NVML calls used below that
/// is the driver's own. Assumed; a context took 552 402 944 on an H200.
const LEAST_CONTEXT: u64 = 64 << 20;

/// Measures a card.
pub(super) fn examine(ordinal: u32) -> Result<DeviceReport, Error> {
    let glance = cuda::glance(ordinal)?;
    // Asked before this process has a context there, to know what its context takes.
    let nvml = Nvml::open(glance.uuid);
    let before = nvml.as_ref().ok().and_then(Nvml::card);
    let raw = cuda::open(ordinal)?;
    on_card(&raw, &glance, nvml.as_ref(), before)
}

/// Measures a card by its opened driver. `before`: what NVML said when this process was not there.
pub(super) fn on_card<R: RawDriver>(
    raw: &R,
    glance: &CardGlance,
    nvml: Result<&Nvml, &Error>,
    before: Option<CardUse>,
) -> Result<DeviceReport, Error> {
    let facts = raw.facts();
    let device = format!("cuda:{}", facts.ordinal);
    let cannot =
        |error: DriverError| Error::device(format!("cannot use {device}")).caused_by(error);
    let _scope = raw.enter().map_err(cannot)?;
    let memory = raw.memory().map_err(cannot)?;
    let device_total = raw.device_total().map_err(cannot)?;
    let after = nvml.ok().and_then(Nvml::card);
    let process = nvml.ok().and_then(|nvml| nvml.process(0));
    let measured = measure::all(&mut OnCard::new(raw, nvml.ok()))?;

    let gone = memory.total.saturating_sub(memory.free);
    let others = others(glance, before);
    let assumed = DeviceProfile::h200().unusable_tail;
    let about = About {
        source: ReportSource::Measured,
        identity: DeviceIdentity {
            device: device.clone(),
            name: facts.name.clone(),
            compute_capability: facts.compute_capability,
            cuda_version: Some(glance.cuda_version),
            driver_version: nvml.ok().and_then(Nvml::driver_version),
        },
        profile: DeviceProfile {
            name: device.clone(),
            marketing_name: facts.name.clone(),
            total: memory.total,
            device_total,
            context_overhead: gone.saturating_sub(others.unwrap_or(0)),
            unusable_tail: assumed,
            granularity: facts.granularity,
            compute_capability: facts.compute_capability,
            source: ProfileSource::Measured,
        },
        // To know it, the card would have to be filled.
        unusable_tail: Fact::Recorded(assumed),
        context: Fact::Known(gone),
        context_by_nvml: context_by_nvml(glance, nvml, before.zip(after)),
        process: match (nvml, process) {
            (_, Some(bytes)) => Fact::Known(bytes),
            (Ok(_), None) => Fact::Unknown(
                "NVML does not say for certain which of the processes this one is".to_owned(),
            ),
            (Err(error), None) => Fact::Unknown(in_words(error)),
        },
        nvml: view(nvml, before, process),
        notes: notes(glance, others),
    };
    Ok(DeviceReport::new(about, measured))
}

/// What other processes hold, where that can be told.
fn others(glance: &CardGlance, before: Option<CardUse>) -> Option<u64> {
    let used = before?.used;
    match (glance.has_context, used < LEAST_CONTEXT) {
        (true, _) => None,
        (false, true) => Some(0),
        (false, false) => Some(used),
    }
}

fn notes(glance: &CardGlance, others: Option<u64>) -> Vec<String> {
    let note = match others {
        Some(0) => return Vec::new(),
        Some(others) => format!(
            "other processes hold {} of the card; it is taken off the profile's context overhead",
            Bytes::new(others)
        ),
        None if glance.has_context => "this process had a context on the card before: the \
             profile's context overhead has all that it held, and what others hold"
            .to_owned(),
        None => {
            "nobody says what other processes hold of the card: the profile's context overhead \
             has that too"
                .to_owned()
        }
    };
    vec![note]
}

/// An error in one sentence with its cause.
fn in_words(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn context_by_nvml(
    glance: &CardGlance,
    nvml: Result<&Nvml, &Error>,
    use_before_after: Option<(CardUse, CardUse)>,
) -> Fact<u64> {
    if glance.has_context {
        return Fact::Unknown("this process had a context on the card before".to_owned());
    }
    let taken = use_before_after.and_then(|(before, after)| after.used.checked_sub(before.used));
    match (taken, nvml) {
        (Some(bytes), _) => Fact::Known(bytes),
        (None, Err(error)) => Fact::Unknown(in_words(error)),
        (None, Ok(_)) => Fact::Unknown(
            "NVML does not say what the card holds, or somebody else gave memory back meanwhile"
                .to_owned(),
        ),
    }
}

fn view(
    nvml: Result<&Nvml, &Error>,
    before: Option<CardUse>,
    process: Option<u64>,
) -> Fact<NvmlView> {
    match (nvml, before) {
        (Err(error), _) => Fact::Unknown(in_words(error)),
        (Ok(_), None) => Fact::Unknown("NVML does not say what the card holds".to_owned()),
        (Ok(_), Some(card)) => Fact::Known(NvmlView {
            total: card.total,
            reserved: card.reserved,
            used_before: card.used,
            sees_process: process.is_some(),
        }),
    }
}
