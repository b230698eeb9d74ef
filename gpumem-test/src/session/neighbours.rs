//! Other processes on a card: what they take before the test's own context is made.
//!
//! On a simulated device they are memory that is gone from it; on a real one each is a process,
//! which the supervisor starts and which calls [`take`] on the card itself.

use crate::bytes::Bytes;
use crate::config::{HeldByNeighbour, NeighbourSpec, Takes};
use crate::device::any::AnyDevice;
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::device::{DeviceMemory, Refusal};
use crate::error::Error;
use crate::ids::StreamId;
use crate::policy::{AnyPolicy, Policy, Request};

/// The other processes on a test's card, in the order in which they come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Neighbours {
    /// What each takes.
    pub(crate) specs: Vec<NeighbourSpec>,
    /// What each holds of a real card, by its own word; of a simulated one it is worked out.
    pub(crate) held: Vec<HeldByNeighbour>,
}

impl Neighbours {
    /// Bytes that they hold of a card whose contexts take `context_overhead` each.
    pub(super) fn with_contexts(held: &[HeldByNeighbour], context_overhead: u64) -> u64 {
        held.iter().map(|held| held.bytes + context_overhead).sum()
    }
}

/// Takes what a neighbour takes, and returns its bytes: whole pages.
///
/// # Errors
/// If the device does not have them: it says who wanted how much.
pub(crate) fn take(spec: &NeighbourSpec, device: &mut AnyDevice) -> Result<u64, Error> {
    let info = device.memory_info();
    let refused = |wanted: Option<u64>| {
        let wanted = match wanted {
            Some(bytes) => Bytes::new(bytes).to_string(),
            None => "memory".to_owned(),
        };
        Error::configuration(format!(
            "the neighbour `{spec}` wants {wanted}, but {} of {} is free",
            Bytes::new(info.free),
            Bytes::new(info.total)
        ))
        .with_help("let the neighbours take less, or name a larger device")
    };
    match &spec.takes {
        Takes::Amount(amount) => {
            let bytes = amount.on(info.total);
            match device.malloc(bytes) {
                Ok(_) => {}
                Err(Refusal::OutOfMemory) => return Err(refused(Some(bytes))),
                Err(refusal) => return Err(refusal.into_error("cuMemAlloc")),
            }
        }
        Takes::All(policy) => {
            let mut policy = AnyPolicy::new(policy, &device.card())?;
            // Any request will do: the first one takes all that the policy takes by itself. The
            // block goes with the process, not with the policy.
            let request = Request::new(1, StreamId::DEFAULT);
            match policy.alloc(device, &mut (), request) {
                Ok(_) => {}
                Err(error) if error.is_out_of_memory() => return Err(refused(None)),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(device.used())
}

/// What the neighbours hold of a simulated card: each in a context of its own, beside those that
/// came before.
///
/// Source: that a process's context costs what the first one costs is assumed; it was measured for a
/// second context of one process (548 995 072 bytes of 552 402 944 on an H200).
///
/// # Errors
/// If one does not fit: who wanted how much, and who holds what.
pub(super) fn simulate(
    specs: &[NeighbourSpec],
    profile: &DeviceProfile,
) -> Result<Vec<HeldByNeighbour>, Error> {
    let mut all: Vec<HeldByNeighbour> = Vec::new();
    for spec in specs {
        let bytes = beside(&all, profile, &format!("the neighbour `{spec}`"))
            .and_then(|device| take(spec, &mut AnyDevice::Sim(Box::new(device))))
            .map_err(|error| with_holders(error, specs, &all))?;
        let before = all.last().map_or(0, |last| last.gone);
        all.push(HeldByNeighbour {
            bytes,
            gone: before + profile.context_overhead + bytes,
        });
    }
    Ok(all)
}

/// A simulated card with a context beside all that `held` says, for `whom`.
///
/// # Errors
/// If the context does not fit.
pub(super) fn beside(
    held: &[HeldByNeighbour],
    profile: &DeviceProfile,
    whom: &str,
) -> Result<SimDevice, Error> {
    let mut device = SimDevice::new(profile.clone());
    let gone = held.last().map_or(0, |last| last.gone);
    device.set_held_by_others(gone).map_err(|_| {
        Error::configuration(format!(
            "the context of {whom} wants {}, but {} of {} is free",
            Bytes::new(profile.context_overhead),
            Bytes::new(profile.total.saturating_sub(gone)),
            Bytes::new(profile.total)
        ))
        .with_help("let the neighbours take less, or name a larger device")
    })?;
    Ok(device)
}

/// Adds to an error who holds memory already.
pub(crate) fn with_holders(
    error: Error,
    specs: &[NeighbourSpec],
    held: &[HeldByNeighbour],
) -> Error {
    if held.is_empty() {
        return error;
    }
    let holders: Vec<_> = (specs.iter().zip(held))
        .map(|(spec, held)| format!("`{spec}` holds {}", Bytes::new(held.bytes)))
        .collect();
    let told = Error::configuration(format!("{error}; {}", holders.join(", ")));
    match error.help() {
        Some(help) => told.with_help(help),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::{Neighbours, simulate};
    use crate::config::{Budget, NeighbourSpec, PolicySpec};
    use crate::device::DeviceMemory;
    use crate::device::sim::DeviceProfile;
    use crate::session::devices;

    fn specs(texts: &[&str]) -> Vec<NeighbourSpec> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn each_neighbour_holds_its_bytes_and_a_context() {
        let card = DeviceProfile::h200();
        let held = simulate(&specs(&["10GiB", "30%", "1B"]), &card).unwrap();
        let share = (card.total as f64 * 0.3) as u64;
        let share = share.next_multiple_of(2 << 20);
        assert_eq!(held[0].bytes, 10 << 30);
        assert_eq!(held[1].bytes, share);
        assert_eq!(held[2].bytes, 2 << 20, "memory comes in pages");
        assert_eq!(held[0].gone, (10 << 30) + card.context_overhead);
        assert_eq!(
            held[2].gone,
            (10 << 30) + share + (2 << 20) + 3 * card.context_overhead
        );
    }

    /// TensorFlow leaves its reserve of what is free, XLA goes by the total, and a second one that
    /// finds too little backs off by tenths.
    #[test]
    fn a_policy_takes_what_it_takes_of_the_card() {
        let card = DeviceProfile::h200();
        let context = card.context_overhead;
        let pages = |bytes: u64| bytes.next_multiple_of(2 << 20);
        let held = |texts: &[&str]| simulate(&specs(texts), &card).unwrap();
        let free = card.total - context;
        assert_eq!(held(&["tensorflow"])[0].bytes, pages(free - (1_800 << 20)));
        let free = free - (10 << 30) - context;
        assert_eq!(
            held(&["10GiB", "tensorflow"])[1].bytes,
            pages(free - (1_800 << 20))
        );
        assert_eq!(
            held(&["xla"])[0].bytes,
            pages((card.total as f64 * 0.75) as u64)
        );
        let greedy = "tensorflow:per_process_gpu_memory_fraction=0.6";
        let both = held(&[greedy, greedy]);
        let whole = (card.total as f64 * 0.6) as u64;
        assert_eq!(both[0].bytes, pages(whole));
        let backed_off = both[1].bytes as f64 / whole as f64;
        assert!((backed_off - 0.9_f64.powi(5)).abs() < 1e-3, "{backed_off}");
    }

    #[test]
    fn neighbours_are_on_each_device_of_a_test() {
        let mut neighbours = Neighbours {
            specs: specs(&["10GiB"]),
            held: Vec::new(),
        };
        let spec = "sim:24GiB*2".parse().unwrap();
        let policy = PolicySpec::default();
        let budget = Some(Budget::Bytes(20 << 30));
        let devices = devices::open(&spec, true, &policy, budget, &mut neighbours).unwrap();
        assert_eq!(devices.len(), 2);
        for device in devices {
            let context = device.profile().context_overhead;
            assert_eq!(device.held_by_others(), Some((10 << 30) + context));
            assert_eq!(device.memory_info().total, 20 << 30);
            let left = device.profile().usable() - (10 << 30) - context;
            assert_eq!(device.memory_info().free, left);
        }
    }

    #[test]
    fn one_that_does_not_fit_says_what_it_wants_and_who_holds_what() {
        let card = DeviceProfile::by_name("24GiB").unwrap();
        let error = simulate(&specs(&["20GiB", "10GiB"]), &card).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("the neighbour `10GiB` wants 10.00 GiB, but 2.97 GiB of 24.00 GiB"),
            "{text}"
        );
        assert!(text.ends_with("; `20GiB` holds 20.00 GiB"), "{text}");
        assert!(error.help().is_some());
    }

    #[test]
    fn a_context_that_does_not_fit_is_told_apart() {
        let card = DeviceProfile::by_name("24GiB").unwrap();
        let error = simulate(&specs(&["23.4GiB", "1GiB"]), &card).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("the context of the neighbour `1GiB` wants 526.81 MiB"),
            "{text}"
        );
    }
}
