//! A simulated device that stands for the card behind the driver.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::device::cuda::gate::Gate;
use crate::device::cuda::raw::{CardFacts, CardMemory, DriverError, RawDriver};
use crate::device::sim::{DeviceProfile, HostFunction, SimDevice, StreamKind};
use crate::device::{DeviceMemory, Refusal};
use crate::ids::{Address, Fence, PoolId, StreamId};

/// The card's addresses lie so far from the simulated ones: nobody can take one for the other.
const SHIFT: u64 = 0x1000_0000_0000_0000;

/// The handle of the default pool; those of others lie above it.
pub(super) const DEFAULT_POOL: u64 = 0xd000;

/// A card that is simulated.
#[derive(Debug)]
pub(crate) struct FakeCard {
    facts: CardFacts,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    device: SimDevice,
    pages: Vec<crate::device::sim::PageHandle>,
    gates: Vec<(Arc<Gate>, HostFunction)>,
    /// After how many calls of a function it fails, and with what code.
    failures: HashMap<&'static str, (u32, u32)>,
    /// At how many more calls of a function another process takes memory.
    disturbances: HashMap<&'static str, u32>,
    /// Bytes that the driver says its default pool holds, more than it does.
    hidden: u64,
}

/// What a context beside the primary one takes. Source: as above, `sim_driver/contexts/create.rs`.
const SECOND_CONTEXT: u64 = 548_995_072;

/// What the driver keeps from the first write to managed memory on. Source: as in
/// `sim_driver/memory/managed.rs`.
const KEPT_FOR_MANAGED: u64 = 64 << 20;

type Outcome<T> = Result<T, DriverError>;

impl FakeCard {
    pub(crate) fn new(profile: DeviceProfile) -> Self {
        let facts = CardFacts {
            ordinal: 0,
            name: "a simulated card".to_owned(),
            uuid: [7; 16],
            granularity: profile.granularity,
            compute_capability: profile.compute_capability,
            default_pool: DEFAULT_POOL,
        };
        let state = State {
            device: SimDevice::new(profile),
            pages: Vec::new(),
            gates: Vec::new(),
            failures: HashMap::new(),
            disturbances: HashMap::new(),
            hidden: 0,
        };
        Self {
            facts,
            state: RefCell::new(state),
        }
    }

    /// Lets a call fail with a code, after it succeeded so many times.
    pub(crate) fn fail(&self, call: &'static str, after: u32, code: u32) {
        self.state.borrow_mut().failures.insert(call, (after, code));
    }

    /// Lets the default pool hold more than it does.
    pub(crate) fn hide(&self, bytes: u64) {
        self.state.borrow_mut().hidden = bytes;
    }

    /// Lets another process take 2 MiB at each of the next so many calls of a function.
    pub(crate) fn disturb(&self, call: &'static str, times: u32) {
        self.state.borrow_mut().disturbances.insert(call, times);
    }

    /// Looks at the card itself.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut SimDevice) -> T) -> T {
        look(&mut self.state.borrow_mut().device)
    }

    fn run<T>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut State) -> Result<T, Refusal>,
    ) -> Outcome<T> {
        let mut state = self.state.borrow_mut();
        if let Some((after, code)) = state.failures.get_mut(call) {
            if *after == 0 {
                let code = *code;
                state.failures.remove(call);
                return Err(DriverError { call, code });
            }
            *after -= 1;
        }
        let State {
            device,
            gates,
            disturbances,
            ..
        } = &mut *state;
        if let Some(times @ 1..) = disturbances.get_mut(call) {
            *times -= 1;
            device.take_outside(2 << 20).unwrap();
        }
        gates.retain(|(gate, function)| {
            if gate.is_open() {
                device.finish_host_function(*function);
            }
            !gate.is_open()
        });
        run(&mut state).map_err(|refusal| DriverError {
            call,
            code: refusal.code(),
        })
    }

    /// A call that waits for what is behind the gates.
    fn wait<T>(
        &self,
        call: &'static str,
        run: impl FnOnce(&mut SimDevice) -> Result<T, Refusal>,
    ) -> Outcome<T> {
        self.run(call, |state| {
            assert!(state.gates.is_empty(), "{call} would wait for ever");
            run(&mut state.device)
        })
    }

    fn pool_of(handle: u64) -> PoolId {
        PoolId(u32::try_from(handle - DEFAULT_POOL).unwrap())
    }
}

fn real(address: Address) -> u64 {
    address.0 + SHIFT
}

fn simulated(address: u64) -> Address {
    Address(address.checked_sub(SHIFT).expect("an address of the card"))
}

impl RawDriver for FakeCard {
    type Scope = ();

    fn enter(&self) -> Outcome<()> {
        self.run("enter", |_| Ok(()))
    }

    fn facts(&self) -> &CardFacts {
        &self.facts
    }

    fn memory(&self) -> Outcome<CardMemory> {
        self.run("cuMemGetInfo", |state| {
            let info = state.device.memory_info();
            Ok(CardMemory {
                free: info.free,
                total: info.total,
            })
        })
    }

    fn malloc(&self, size: u64) -> Outcome<u64> {
        self.run("cuMemAlloc", |state| state.device.malloc(size).map(real))
    }

    fn device_total(&self) -> Outcome<u64> {
        self.run("cuDeviceTotalMem", |state| {
            Ok(state.device.profile().device_total)
        })
    }

    fn malloc_managed(&self, size: u64) -> Outcome<u64> {
        self.run("cuMemAllocManaged", |state| {
            state.device.malloc_lazy(size).map(real)
        })
    }

    fn free(&self, address: u64) -> Outcome<()> {
        self.wait("cuMemFree", |device| device.free(simulated(address)))
    }

    fn reserve_range(&self, size: u64) -> Outcome<u64> {
        self.run("cuMemAddressReserve", |state| {
            state.device.reserve_range(size).map(real)
        })
    }

    fn release_range(&self, address: u64, size: u64) -> Outcome<()> {
        self.run("cuMemAddressFree", |state| {
            state.device.release_range(simulated(address), size);
            Ok(())
        })
    }

    fn create_pages(&self, size: u64) -> Outcome<u64> {
        self.run("cuMemCreate", |state| {
            let pages = state.device.create_pages(size)?;
            state.pages.push(pages);
            Ok(state.pages.len() as u64 - 1)
        })
    }

    fn release_pages(&self, pages: u64) -> Outcome<()> {
        self.run("cuMemRelease", |state| {
            state.device.release_pages(state.pages[pages as usize])
        })
    }

    fn map(&self, address: u64, _size: u64, pages: u64) -> Outcome<()> {
        self.run("cuMemMap", |state| {
            let pages = state.pages[pages as usize];
            state.device.map_pages(simulated(address), pages)
        })
    }

    fn allow_access(&self, _address: u64, _size: u64) -> Outcome<()> {
        self.run("cuMemSetAccess", |_| Ok(()))
    }

    fn unmap(&self, address: u64, size: u64) -> Outcome<()> {
        self.wait("cuMemUnmap", |device| {
            device.unmap_pages(simulated(address), size)
        })
    }

    fn malloc_async(&self, pool: u64, size: u64, stream: u64) -> Outcome<u64> {
        self.run("cuMemAllocAsync", |state| {
            let pool = Self::pool_of(pool);
            (state.device.malloc_async(pool, size, StreamId(stream))).map(real)
        })
    }

    fn free_async(&self, address: u64, stream: u64) -> Outcome<()> {
        self.run("cuMemFreeAsync", |state| {
            (state.device).free_async(simulated(address), StreamId(stream))
        })
    }

    fn create_pool(&self, max_size: u64) -> Outcome<u64> {
        self.run("cuMemPoolCreate", |state| {
            let pool = state.device.create_pool(Some(max_size));
            Ok(DEFAULT_POOL + u64::from(pool.0))
        })
    }

    fn pool_reserved(&self, pool: u64) -> Outcome<u64> {
        self.run("cuMemPoolGetAttribute", |state| {
            let reserved = state.device.pool_figures(Self::pool_of(pool))?.reserved;
            let hidden = if pool == DEFAULT_POOL {
                state.hidden
            } else {
                0
            };
            Ok(reserved + hidden)
        })
    }

    fn pool_threshold(&self, pool: u64) -> Outcome<u64> {
        self.run("cuMemPoolGetAttribute", |state| {
            state.device.release_threshold(Self::pool_of(pool))
        })
    }

    fn set_pool_threshold(&self, pool: u64, bytes: u64) -> Outcome<()> {
        self.run("cuMemPoolSetAttribute", |state| {
            (state.device).set_release_threshold(Self::pool_of(pool), bytes)
        })
    }

    fn trim_pool(&self, pool: u64, keep: u64) -> Outcome<()> {
        self.run("cuMemPoolTrimTo", |state| {
            state.device.trim_pool(Self::pool_of(pool), keep)
        })
    }

    fn create_stream(&self, blocking: bool) -> Outcome<u64> {
        self.run("cuStreamCreate", |state| {
            let kind = if blocking {
                StreamKind::Blocking
            } else {
                StreamKind::NonBlocking
            };
            Ok(state.device.create_stream(kind).0)
        })
    }

    fn destroy_stream(&self, stream: u64) -> Outcome<()> {
        self.wait("cuStreamDestroy", |device| {
            device.destroy_stream(StreamId(stream))
        })
    }

    fn synchronize_stream(&self, stream: u64) -> Outcome<()> {
        self.wait("cuStreamSynchronize", |device| {
            device.synchronize_stream(StreamId(stream))
        })
    }

    fn query_stream(&self, stream: u64) -> Outcome<bool> {
        self.run("cuStreamQuery", |state| {
            state.device.query_stream(StreamId(stream))
        })
    }

    fn synchronize(&self) -> Outcome<()> {
        self.wait("cuCtxSynchronize", |device| {
            device.synchronize();
            Ok(())
        })
    }

    fn launch_gate(&self, stream: u64, gate: Arc<Gate>) -> Outcome<()> {
        self.run("cuLaunchHostFunc", |state| {
            let function = state.device.launch_host_function(StreamId(stream));
            state.gates.push((gate, function));
            Ok(())
        })
    }

    fn create_event(&self) -> Outcome<u64> {
        self.run("cuEventCreate", |state| Ok(state.device.create_fence().0))
    }

    fn destroy_event(&self, event: u64) -> Outcome<()> {
        self.run("cuEventDestroy", |state| {
            state.device.destroy_fence(Fence(event))
        })
    }

    fn record_event(&self, event: u64, stream: u64) -> Outcome<()> {
        self.run("cuEventRecord", |state| {
            state.device.record_fence(Fence(event), StreamId(stream))
        })
    }

    fn query_event(&self, event: u64) -> Outcome<bool> {
        self.run("cuEventQuery", |state| {
            state.device.query_fence(Fence(event))
        })
    }

    fn synchronize_event(&self, event: u64) -> Outcome<()> {
        self.wait("cuEventSynchronize", |device| {
            device.synchronize_fence(Fence(event))
        })
    }

    fn stream_wait(&self, stream: u64, event: u64) -> Outcome<()> {
        self.run("cuStreamWaitEvent", |state| {
            state.device.stream_wait(StreamId(stream), Fence(event))
        })
    }

    fn create_context(&self, _flags: u32) -> Outcome<u64> {
        self.run("cuCtxCreate", |state| {
            state.device.take_outside(SECOND_CONTEXT)?;
            Ok(0xc0)
        })
    }

    fn destroy_context(&self, context: u64) -> Outcome<()> {
        self.run("cuCtxDestroy", |state| {
            assert_eq!(context, 0xc0);
            state.device.give_outside(SECOND_CONTEXT);
            Ok(())
        })
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Outcome<()> {
        self.wait("cuMemcpyHtoD", |device| {
            device.write(simulated(address), bytes)
        })
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Outcome<()> {
        self.wait("cuMemcpyDtoH", |device| {
            device.read(simulated(address), into)
        })
    }

    fn fill(&self, address: u64, length: u64, pattern: &[u8]) -> Outcome<()> {
        self.wait("cuMemsetD8", |device| {
            let before = device.committed();
            device.fill_pattern(simulated(address), length, pattern)?;
            if before == 0 && device.committed() > 0 && device.outside() == 0 {
                device.take_outside(KEPT_FOR_MANAGED)?;
            }
            Ok(())
        })
    }

    fn copy(&self, from: u64, to: u64, length: u64) -> Outcome<()> {
        self.wait("cuMemcpyDtoD", |device| {
            device.copy(simulated(from), simulated(to), length)
        })
    }
}
