//! What the measuring code asks of a card, and the two that answer.

use crate::device::cuda::{DriverError, Nvml, RawDriver};
use crate::device::sim::{PageHandle, SimDevice};
use crate::device::{DeviceMemory, Refusal};
use crate::ids::{Address, PoolId, StreamId};

pub(super) type Outcome<T> = Result<T, DriverError>;

/// The null stream, on which all stream-ordered calls are made: a stream of our own takes memory.
const STREAM: u64 = 0;

/// A card in the state that its driver leaves it in. Addresses and handles are the driver's.
pub(super) trait Subject {
    /// What the card has free, in bytes (`cuMemGetInfo`).
    fn free_bytes(&self) -> Outcome<u64>;
    /// What this process has of the card, its contexts included, in bytes, where NVML is certain.
    fn process_bytes(&self) -> Option<u64>;
    /// The smallest page of the virtual memory API, in bytes.
    fn granularity(&self) -> u64;

    /// `cuMemAlloc`.
    fn malloc(&mut self, size: u64) -> Outcome<u64>;
    /// `cuMemAllocManaged`.
    fn malloc_managed(&mut self, size: u64) -> Outcome<u64>;
    /// `cuMemFree` of either.
    fn free(&mut self, address: u64) -> Outcome<()>;
    /// Sets all bytes, and waits for it without a call that lets pools release memory.
    fn write(&mut self, address: u64, size: u64) -> Outcome<()>;

    /// `cuMemAllocFromPoolAsync` from the default pool.
    fn malloc_async(&mut self, size: u64) -> Outcome<u64>;
    /// `cuMemFreeAsync`.
    fn free_async(&mut self, address: u64) -> Outcome<()>;
    /// `cuStreamSynchronize`.
    fn synchronize(&mut self) -> Outcome<()>;
    /// `cuMemPoolTrimTo` 0 of the default pool.
    fn trim(&mut self) -> Outcome<()>;
    /// What the default pool holds, in bytes.
    fn pool_reserved(&self) -> Outcome<u64>;
    /// What a synchronisation leaves the default pool, in bytes.
    fn release_threshold(&self) -> Outcome<u64>;

    /// `cuMemAddressReserve`.
    fn reserve_range(&mut self, size: u64) -> Outcome<u64>;
    /// `cuMemAddressFree`.
    fn release_range(&mut self, address: u64, size: u64) -> Outcome<()>;
    /// `cuMemCreate`: the handle.
    fn create_pages(&mut self, size: u64) -> Outcome<u64>;
    /// `cuMemMap` and `cuMemSetAccess`.
    fn map(&mut self, address: u64, size: u64, pages: u64) -> Outcome<()>;
    /// `cuMemUnmap`.
    fn unmap(&mut self, address: u64, size: u64) -> Outcome<()>;
    /// `cuMemRelease`.
    fn release_pages(&mut self, pages: u64) -> Outcome<()>;

    /// `cuCtxCreate` with these flags; current until it is destroyed.
    fn create_context(&mut self, flags: u32) -> Outcome<u64>;
    /// `cuCtxDestroy`.
    fn destroy_context(&mut self, context: u64) -> Outcome<()>;
}

/// A card of this machine, with a scope of its driver in hand.
pub(super) struct OnCard<'a, R> {
    raw: &'a R,
    nvml: Option<&'a Nvml>,
    pool: u64,
}

impl<'a, R: RawDriver> OnCard<'a, R> {
    pub(super) fn new(raw: &'a R, nvml: Option<&'a Nvml>) -> Self {
        let pool = raw.facts().default_pool;
        Self { raw, nvml, pool }
    }
}

impl<R: RawDriver> Subject for OnCard<'_, R> {
    fn free_bytes(&self) -> Outcome<u64> {
        Ok(self.raw.memory()?.free)
    }

    fn process_bytes(&self) -> Option<u64> {
        self.nvml?.process(0)
    }

    fn granularity(&self) -> u64 {
        self.raw.facts().granularity
    }

    fn malloc(&mut self, size: u64) -> Outcome<u64> {
        self.raw.malloc(size)
    }

    fn malloc_managed(&mut self, size: u64) -> Outcome<u64> {
        self.raw.malloc_managed(size)
    }

    fn free(&mut self, address: u64) -> Outcome<()> {
        self.raw.free(address)
    }

    fn write(&mut self, address: u64, size: u64) -> Outcome<()> {
        self.raw.fill(address, size, &[0xa5])
    }

    fn malloc_async(&mut self, size: u64) -> Outcome<u64> {
        self.raw.malloc_async(self.pool, size, STREAM)
    }

    fn free_async(&mut self, address: u64) -> Outcome<()> {
        self.raw.free_async(address, STREAM)
    }

    fn synchronize(&mut self) -> Outcome<()> {
        self.raw.synchronize_stream(STREAM)
    }

    fn trim(&mut self) -> Outcome<()> {
        self.raw.trim_pool(self.pool, 0)
    }

    fn pool_reserved(&self) -> Outcome<u64> {
        self.raw.pool_reserved(self.pool)
    }

    fn release_threshold(&self) -> Outcome<u64> {
        self.raw.pool_threshold(self.pool)
    }

    fn reserve_range(&mut self, size: u64) -> Outcome<u64> {
        self.raw.reserve_range(size)
    }

    fn release_range(&mut self, address: u64, size: u64) -> Outcome<()> {
        self.raw.release_range(address, size)
    }

    fn create_pages(&mut self, size: u64) -> Outcome<u64> {
        self.raw.create_pages(size)
    }

    fn map(&mut self, address: u64, size: u64, pages: u64) -> Outcome<()> {
        self.raw.map(address, size, pages)?;
        let allowed = self.raw.allow_access(address, size);
        if allowed.is_err() {
            self.raw.unmap(address, size)?;
        }
        allowed
    }

    fn unmap(&mut self, address: u64, size: u64) -> Outcome<()> {
        self.raw.unmap(address, size)
    }

    fn release_pages(&mut self, pages: u64) -> Outcome<()> {
        self.raw.release_pages(pages)
    }

    fn create_context(&mut self, flags: u32) -> Outcome<u64> {
        self.raw.create_context(flags)
    }

    fn destroy_context(&mut self, context: u64) -> Outcome<()> {
        self.raw.destroy_context(context)
    }
}

/// A simulated card. It has plain, pooled and virtual memory; managed memory and further contexts
/// are the simulated driver's.
pub(super) struct Simulated {
    device: SimDevice,
    pages: Vec<PageHandle>,
}

impl Simulated {
    pub(super) fn new(device: SimDevice) -> Self {
        let pages = Vec::new();
        Self { device, pages }
    }

    fn page(&self, pages: u64) -> Outcome<PageHandle> {
        let page = self.pages.get(pages as usize).copied();
        page.ok_or_else(|| refused("cuMemRelease", Refusal::InvalidValue))
    }
}

fn refused(call: &'static str, refusal: Refusal) -> DriverError {
    let code = refusal.code();
    DriverError { call, code }
}

fn absent<T>(call: &'static str) -> Outcome<T> {
    Err(refused(call, Refusal::NotSupported))
}

impl Subject for Simulated {
    fn free_bytes(&self) -> Outcome<u64> {
        Ok(self.device.memory_info().free)
    }

    fn process_bytes(&self) -> Option<u64> {
        None
    }

    fn granularity(&self) -> u64 {
        self.device.granularity()
    }

    fn malloc(&mut self, size: u64) -> Outcome<u64> {
        let given = self.device.malloc(size);
        given.map_or_else(|why| Err(refused("cuMemAlloc", why)), |at| Ok(at.0))
    }

    fn malloc_managed(&mut self, _size: u64) -> Outcome<u64> {
        absent("cuMemAllocManaged")
    }

    fn free(&mut self, address: u64) -> Outcome<()> {
        let freed = DeviceMemory::free(&mut self.device, Address(address));
        freed.map_err(|why| refused("cuMemFree", why))
    }

    fn write(&mut self, address: u64, size: u64) -> Outcome<()> {
        let written = self.device.fill(Address(address), size, 0xa5);
        written.map_err(|why| refused("cuMemsetD8", why))
    }

    fn malloc_async(&mut self, size: u64) -> Outcome<u64> {
        let stream = StreamId(STREAM);
        let given = self.device.malloc_async(PoolId::DEFAULT, size, stream);
        given.map_or_else(|why| Err(refused("cuMemAllocAsync", why)), |at| Ok(at.0))
    }

    fn free_async(&mut self, address: u64) -> Outcome<()> {
        let freed = (self.device).free_async(Address(address), StreamId(STREAM));
        freed.map_err(|why| refused("cuMemFreeAsync", why))
    }

    fn synchronize(&mut self) -> Outcome<()> {
        let done = self.device.synchronize_stream(StreamId(STREAM));
        done.map_err(|why| refused("cuStreamSynchronize", why))
    }

    fn trim(&mut self) -> Outcome<()> {
        let trimmed = self.device.trim_pool(PoolId::DEFAULT, 0);
        trimmed.map_err(|why| refused("cuMemPoolTrimTo", why))
    }

    fn pool_reserved(&self) -> Outcome<u64> {
        let figures = self.device.pool_figures(PoolId::DEFAULT);
        figures.map_or_else(
            |why| Err(refused("cuMemPoolGetAttribute", why)),
            |figures| Ok(figures.reserved),
        )
    }

    fn release_threshold(&self) -> Outcome<u64> {
        let threshold = self.device.release_threshold(PoolId::DEFAULT);
        threshold.map_err(|why| refused("cuMemPoolGetAttribute", why))
    }

    fn reserve_range(&mut self, size: u64) -> Outcome<u64> {
        let reserved = self.device.reserve_range(size);
        reserved.map_or_else(
            |why| Err(refused("cuMemAddressReserve", why)),
            |at| Ok(at.0),
        )
    }

    fn release_range(&mut self, address: u64, size: u64) -> Outcome<()> {
        let released = self.device.free_range(Address(address), size);
        released.map_err(|why| refused("cuMemAddressFree", why))
    }

    fn create_pages(&mut self, size: u64) -> Outcome<u64> {
        let pages = self.device.create_pages(size);
        self.pages
            .push(pages.map_err(|why| refused("cuMemCreate", why))?);
        Ok(self.pages.len() as u64 - 1)
    }

    fn map(&mut self, address: u64, _size: u64, pages: u64) -> Outcome<()> {
        let pages = self.page(pages)?;
        let mapped = self.device.map_pages(Address(address), pages);
        mapped.map_err(|why| refused("cuMemMap", why))
    }

    fn unmap(&mut self, address: u64, size: u64) -> Outcome<()> {
        let unmapped = self.device.unmap_pages(Address(address), size);
        unmapped.map_err(|why| refused("cuMemUnmap", why))
    }

    fn release_pages(&mut self, pages: u64) -> Outcome<()> {
        let pages = self.page(pages)?;
        let released = self.device.release_pages(pages);
        released.map_err(|why| refused("cuMemRelease", why))
    }

    fn create_context(&mut self, _flags: u32) -> Outcome<u64> {
        absent("cuCtxCreate")
    }

    fn destroy_context(&mut self, _context: u64) -> Outcome<()> {
        absent("cuCtxDestroy")
    }
}
