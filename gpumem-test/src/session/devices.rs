//! The devices of a session: made from what the test says.

use crate::bytes::Bytes;
use crate::config::{Budget, DeviceSpec, HeldByNeighbour, PolicyKind, PolicySpec};
use crate::device::any::AnyDevice;
use crate::device::cuda::CudaDevice;
use crate::device::sim::DeviceProfile;
use crate::error::Error;

use super::Neighbours;
use super::neighbours;

/// Opens the devices of a test, each under the budget and beside the neighbours.
///
/// Where the test does not name its device, a GPU shows itself as the default
/// card: libraries that size their pools from the total then behave alike everywhere.
///
/// # Errors
/// If a profile is unknown, a driver cannot be opened, the budget is larger than the device, or a
/// neighbour does not fit.
pub(super) fn open(
    spec: &DeviceSpec,
    names_device: bool,
    policy: &PolicySpec,
    budget: Option<Budget>,
    neighbours: &mut Neighbours,
) -> Result<Vec<AnyDevice>, Error> {
    let profile = DeviceProfile::by_name(spec.profile_name())?;
    match spec {
        DeviceSpec::Cuda { ordinal } => {
            let has_shadow = policy.kind.is_of_driver();
            let mut device = CudaDevice::open(u32::from(*ordinal), None, has_shadow)?;
            if policy.kind != PolicyKind::Driver {
                // The program knows nothing of the policy's calls.
                device.relax_captures();
            }
            let card = device.profile().total;
            let shown = (!names_device).then_some(profile);
            let mut device = shared(device, shown, &neighbours.held);
            let shown = device.profile().total;
            let budget = within(budget, shown.min(card), &spec.to_string())?;
            device.set_budget(budget);
            Ok(vec![AnyDevice::Cuda(Box::new(device))])
        }
        DeviceSpec::Auto | DeviceSpec::Sim { .. } => {
            let budget = within(budget, profile.total, &profile.device_name())?;
            neighbours.held = neighbours::simulate(&neighbours.specs, &profile)?;
            let device = |_| {
                let mut device = neighbours::beside(&neighbours.held, &profile, "this test")
                    .map_err(|error| {
                        neighbours::with_holders(error, &neighbours.specs, &neighbours.held)
                    })?;
                device.set_budget(budget);
                Ok(AnyDevice::Sim(Box::new(device)))
            };
            (0..spec.count()).map(device).collect()
        }
    }
}

/// Opens the first device for a neighbour of a test, as that test sees it and without its budget,
/// beside the neighbours that hold `before`.
///
/// # Errors
/// As for a test's own.
pub(crate) fn open_beside(
    spec: &DeviceSpec,
    names_device: bool,
    before: &[HeldByNeighbour],
) -> Result<AnyDevice, Error> {
    let profile = DeviceProfile::by_name(spec.profile_name())?;
    match spec {
        DeviceSpec::Cuda { ordinal } => {
            // A neighbour has the card's own addresses, whatever its policy: nobody follows it.
            let device = CudaDevice::open(u32::from(*ordinal), None, false)?;
            let shown = (!names_device).then_some(profile);
            Ok(AnyDevice::Cuda(Box::new(shared(device, shown, before))))
        }
        DeviceSpec::Auto | DeviceSpec::Sim { .. } => {
            let device = neighbours::beside(before, &profile, "a neighbour")?;
            Ok(AnyDevice::Sim(Box::new(device)))
        }
    }
}

/// A card that shows itself as `shown`, if that is another, beside the neighbours that hold `before`.
fn shared(
    mut device: CudaDevice,
    shown: Option<DeviceProfile>,
    before: &[HeldByNeighbour],
) -> CudaDevice {
    if let Some(shown) = shown {
        device.show(shown);
    }
    if let Some(last) = before.last() {
        let overhead = device.profile().context_overhead;
        let shown = Neighbours::with_contexts(before, overhead);
        device.set_held_by_others(last.gone, shown);
    }
    device
}

/// The bytes of the budget on a device with `total` bytes.
fn within(budget: Option<Budget>, total: u64, name: &str) -> Result<Option<u64>, Error> {
    let Some(budget) = budget.map(|budget| budget.on(total)) else {
        return Ok(None);
    };
    if budget <= total {
        return Ok(Some(budget));
    }
    let (budget, total) = (Bytes::new(budget), Bytes::new(total));
    Err(Error::configuration(format!(
        "the budget of {budget} exceeds the {total} of {name} by {}",
        budget - total
    ))
    .with_help("lower the budget, or name a larger device as in `device = \"sim:b200\"`"))
}
