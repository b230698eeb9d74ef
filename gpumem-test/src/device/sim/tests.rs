//! Claims about the whole device.

mod bytes;
mod examples;
mod plain;
mod random;
mod streams;

use super::{DeviceProfile, SimDevice, StreamKind};
use crate::device::DeviceMemory;
use crate::ids::{Address, PoolId, StreamId};

const MIB: u64 = 1 << 20;

/// A device, a pool on it, and sizes in MiB throughout.
struct Bench {
    device: SimDevice,
    pool: PoolId,
}

impl Bench {
    /// A fresh pool with a release threshold; [`u64::MAX`] keeps everything.
    fn new(threshold: u64) -> Self {
        let mut device = SimDevice::new(DeviceProfile::default());
        let pool = device.create_pool(None);
        device
            .set_release_threshold(pool, threshold)
            .expect("the pool exists");
        Self { device, pool }
    }

    fn stream(&mut self) -> StreamId {
        self.device.create_stream(StreamKind::NonBlocking)
    }

    fn take(&mut self, mib: u64, stream: StreamId) -> Address {
        self.device
            .malloc_async(self.pool, mib * MIB, stream)
            .expect("there is room")
    }

    fn free(&mut self, address: Address, stream: StreamId) {
        self.device
            .free_async(address, stream)
            .expect("a live allocation");
    }

    /// Where an address lies in the pool, in MiB.
    fn place(&self, address: Address) -> u64 {
        (address.0 - 0x3_0200_0000) / MIB
    }

    fn take_at(&mut self, mib: u64, stream: StreamId) -> u64 {
        let address = self.take(mib, stream);
        self.place(address)
    }

    fn at(&self, place: u64) -> Address {
        Address(0x3_0200_0000 + place * MIB)
    }

    fn reserved(&self) -> u64 {
        self.device.check();
        self.device
            .pool_figures(self.pool)
            .expect("the pool exists")
            .reserved
            / MIB
    }

    fn used(&self) -> u64 {
        self.device
            .pool_figures(self.pool)
            .expect("the pool exists")
            .used
            / MIB
    }
}
