//! Where in the address space a device lies, where there are several or a driver stands over one.
//!
//! Addresses of two devices must differ, and none may be one of the process's own memory: a copy
//! tells host and device memory apart by the address alone.

use super::direct::PAGE;
use super::{DIRECT_BASE, FIRST_POOL_BASE, SimDevice};
use crate::ids::Address;

/// Pools lie below this: executables that are not at a fixed place are loaded from here on.
const END_OF_POOLS: u64 = 0x5000_0000_0000;

/// Where the first device's plain memory starts; other devices' lies below.
///
/// Lower than [`DIRECT_BASE`], which the operating system may give to host memory: that grows down
/// from the upper end of the address space and gets here after 2 TiB.
const FIRST_DIRECT_BASE: u64 = DIRECT_BASE - (0x2ff << 32);
const END_OF_DIRECT: u64 = 0x7000_0000_0000;

/// The part of the address space in which a device places pools and reserved ranges: half-open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) first_pool: u64,
    pub(super) end_of_pools: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            first_pool: FIRST_POOL_BASE,
            end_of_pools: END_OF_POOLS,
        }
    }
}

impl SimDevice {
    /// Places the device as number `ordinal` of `count` in one address space. A device that holds
    /// memory already stays where it is.
    pub fn set_window(&mut self, ordinal: usize, count: usize) {
        if self.live_allocations() > 0 || self.used() > 0 {
            return;
        }
        let (ordinal, count) = (ordinal as u64, (count as u64).max(1));
        let share = |bytes: u64| bytes / count / PAGE * PAGE;
        let pools = share(END_OF_POOLS - FIRST_POOL_BASE);
        self.window = Window {
            first_pool: FIRST_POOL_BASE + ordinal * pools,
            end_of_pools: FIRST_POOL_BASE + (ordinal + 1) * pools,
        };
        self.vmm.set_window(ordinal, count);
        if self.lazy.take().is_some() {
            self.lazily();
        }
        self.statics.set_window(ordinal, count);
        let direct = share(FIRST_DIRECT_BASE - END_OF_DIRECT);
        let base = Address(FIRST_DIRECT_BASE - ordinal * direct);
        self.set_direct_base(base)
            .expect("a device without memory can be placed");
    }
}

#[cfg(test)]
mod tests {
    use crate::device::DeviceMemory;
    use crate::device::sim::{DeviceProfile, SimDevice};
    use crate::ids::{PoolId, StreamId};

    #[test]
    fn eight_devices_have_no_address_in_common() {
        let mut taken = Vec::new();
        for ordinal in 0..8 {
            let mut device = SimDevice::new(DeviceProfile::h200());
            device.serve_lazily().unwrap();
            device.set_window(ordinal, 8);
            let plain = device.malloc(100 << 30).unwrap();
            taken.push((plain.0, plain.0 + (100 << 30)));
            let lazy = device.malloc_lazy(30 << 30).unwrap();
            taken.push((lazy.0, lazy.0 + (30 << 30)));
            let stream = StreamId::DEFAULT;
            let ordered = device
                .malloc_async(PoolId::DEFAULT, 1 << 30, stream)
                .unwrap();
            taken.push((ordered.0, ordered.0 + (1 << 30)));
            let range = device.reserve_range(64 << 30).unwrap();
            taken.push((range.0, range.0 + (64 << 30)));
        }
        taken.sort_unstable();
        assert!(
            taken.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "{taken:x?}"
        );
        assert!(taken.last().unwrap().1 < 0x7de0_0000_0000);
    }

    #[test]
    fn a_device_alone_has_its_pools_where_they_were_recorded() {
        let mut device = SimDevice::new(DeviceProfile::h200());
        device.set_window(0, 1);
        let stream = StreamId::DEFAULT;
        let first = device.malloc_async(PoolId::DEFAULT, 1, stream).unwrap();
        assert_eq!(first.0, 0x3_0200_0000);
    }
}
