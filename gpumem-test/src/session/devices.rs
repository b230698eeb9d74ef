//! The devices of a session: made from what the test says.

use crate::bytes::Bytes;
use crate::config::{Budget, DeviceSpec, PolicyKind, PolicySpec};
use crate::device::any::AnyDevice;
use crate::device::cuda::CudaDevice;
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;

/// Opens the devices of a test, each under the budget.
///
/// Where the test does not name its device, a GPU shows itself as the default
/// card: libraries that size their pools from the total then behave alike everywhere.
///
/// # Errors
/// If a profile is unknown, a driver cannot be opened, or the budget is larger than the device.
pub(super) fn open(
    spec: &DeviceSpec,
    names_device: bool,
    policy: &PolicySpec,
    budget: Option<Budget>,
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
            if !names_device {
                device.show(profile);
            }
            let shown = device.profile().total;
            let budget = within(budget, shown.min(card), &spec.to_string())?;
            device.set_budget(budget);
            Ok(vec![AnyDevice::Cuda(Box::new(device))])
        }
        DeviceSpec::Auto | DeviceSpec::Sim { .. } => {
            let budget = within(budget, profile.total, &profile.device_name())?;
            let device = |_| {
                let mut device = SimDevice::new(profile.clone());
                device.set_budget(budget);
                AnyDevice::Sim(Box::new(device))
            };
            Ok((0..spec.count()).map(device).collect())
        }
    }
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
