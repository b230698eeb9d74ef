//! How much memory a device has.

use crate::abi::{Ordinal, Status};
use crate::device::DeviceMemory;
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::put;
use crate::sim_driver::host;

driver_functions! {
    /// Under a budget: the budget, as of a card of that size.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let total = host.device(ordinal, |device| match device.budget() {
            Some(_) => device.memory_info().total,
            None => device.profile().device_total,
        });
        put(bytes, usize::try_from(total).map_err(|_| Status::INVALID_VALUE)?)
    }
}
