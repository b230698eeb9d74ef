//! Memory that no policy serves: passed to the driver, listed, and charged to the budget.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{DriverMemory, EventKind};
use crate::ids::{Address, DeviceId};

use super::Backend;
use super::door::Door;

/// A piece of such memory. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) device: DeviceId,
    pub(super) size: u64,
}

/// Physical memory of the virtual memory calls: it lives as long as its handle or a mapping does.
#[derive(Clone, Copy, Debug)]
struct Physical {
    piece: Piece,
    handles: u32,
    mappings: u32,
}

#[derive(Default)]
struct Tables {
    /// By sort, and address or handle.
    pieces: FxHashMap<(DriverMemory, u64), Piece>,
    physical: FxHashMap<u64, Physical>,
    /// What is mapped: by address, the length and the physical memory.
    mappings: FxHashMap<u64, (u64, u64)>,
    /// Pools that the program made, and their blocks by address.
    pools: FxHashMap<u64, DeviceId>,
    pool_blocks: FxHashMap<u64, u64>,
    /// The current pool of a device, where it is not the default one.
    current_pools: FxHashMap<DeviceId, u64>,
    /// Addresses that belong to graphs.
    captured: FxHashSet<u64>,
    /// Whether any graph has memory of its own.
    has_graph_memory: bool,
}

/// All of it that lives.
#[derive(Default)]
pub(super) struct Passed {
    tables: Mutex<Tables>,
    /// Whether the program ever made a pool of its own the current one. PERF: it nearly never did,
    /// and each request asks.
    has_current_pools: AtomicBool,
}

impl Passed {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a live piece of that sort begins there.
    pub(super) fn has(&self, memory: DriverMemory, key: u64) -> bool {
        self.lock().pieces.contains_key(&(memory, key))
    }

    /// Bytes of the piece of that sort and key; 0 if there is none.
    pub(super) fn size(&self, memory: DriverMemory, key: u64) -> u64 {
        let tables = self.lock();
        tables
            .pieces
            .get(&(memory, key))
            .map_or(0, |piece| piece.size)
    }

    /// Keeps a pool that the program made.
    pub(super) fn add_pool(&self, pool: u64, device: DeviceId) {
        self.lock().pools.insert(pool, device);
    }

    /// Forgets a pool and all its blocks; the device it was on.
    pub(super) fn remove_pool(&self, pool: u64) -> Option<DeviceId> {
        let mut tables = self.lock();
        tables.pool_blocks.retain(|_, of| *of != pool);
        tables.current_pools.retain(|_, current| *current != pool);
        tables.pools.remove(&pool)
    }

    /// The device of a pool that the program made.
    pub(super) fn pool_device(&self, pool: u64) -> Option<DeviceId> {
        self.lock().pools.get(&pool).copied()
    }

    /// All pools that the program made.
    pub(super) fn pools(&self) -> Vec<u64> {
        let mut pools: Vec<_> = self.lock().pools.keys().copied().collect();
        pools.sort_unstable();
        pools
    }

    /// Makes a pool the current one of a device; `None` stands for the default pool.
    pub(super) fn set_current_pool(&self, device: DeviceId, pool: Option<u64>) {
        let mut tables = self.lock();
        self.has_current_pools.store(true, Ordering::Release);
        match pool {
            Some(pool) => tables.current_pools.insert(device, pool),
            None => tables.current_pools.remove(&device),
        };
    }

    /// The current pool of a device, where it is not the default one.
    pub(super) fn current_pool(&self, device: DeviceId) -> Option<u64> {
        if !self.has_current_pools.load(Ordering::Acquire) {
            return None;
        }
        self.lock().current_pools.get(&device).copied()
    }

    /// Keeps that a block is of a pool of the program.
    pub(super) fn add_pool_block(&self, address: u64, pool: u64) {
        self.lock().pool_blocks.insert(address, pool);
    }

    /// Forgets such a block; its pool.
    pub(super) fn take_pool_block(&self, address: u64) -> Option<u64> {
        self.lock().pool_blocks.remove(&address)
    }

    /// Keeps that graphs have memory of their own from here on.
    pub(super) fn set_has_graph_memory(&self) {
        self.lock().has_graph_memory = true;
    }

    /// Whether any graph has memory of its own.
    pub(super) fn has_graph_memory(&self) -> bool {
        self.lock().has_graph_memory
    }

    /// Keeps that an address belongs to a graph.
    pub(super) fn add_captured(&self, address: u64) {
        self.lock().captured.insert(address);
    }

    /// Whether an address belongs to a graph. It does as long as the graph lives.
    pub(super) fn is_captured(&self, address: u64) -> bool {
        self.lock().captured.contains(&address)
    }
}

impl Door {
    /// Charges `size` bytes to the budget before the driver is asked for them. The simulated
    /// device counts everything that it gives by itself.
    pub(super) fn charge(&self, device: DeviceId, size: u64) -> bool {
        self.backend == Backend::Simulated || self.heap(device).device_mut().charge(size).is_ok()
    }

    /// Takes a charge back.
    pub(super) fn discharge(&self, device: DeviceId, size: u64) {
        if self.backend == Backend::Real {
            self.heap(device).device_mut().discharge(size);
        }
    }

    /// Keeps and records memory that the driver gave.
    pub(super) fn taken(&self, memory: DriverMemory, key: u64, piece: Piece) {
        self.passed.lock().pieces.insert((memory, key), piece);
        self.record_taken(memory, key, piece);
    }

    /// Takes memory from the list before the driver gets it back; `None` if it is not in it.
    pub(super) fn returned(&self, memory: DriverMemory, key: u64) -> Option<Piece> {
        let piece = self.passed.lock().pieces.remove(&(memory, key))?;
        self.record_returned(memory, key, piece);
        if !memory.is_host() {
            self.discharge(piece.device, piece.size);
        }
        Some(piece)
    }

    /// Sets how much a source that grows and shrinks by itself holds: a pool of the program, the
    /// memory of graphs. The difference is recorded and, on a real device, charged. `false` if that
    /// got above the budget, as only a real driver's can.
    pub(super) fn resized(
        &self,
        memory: DriverMemory,
        key: u64,
        device: DeviceId,
        size: u64,
    ) -> bool {
        let mut tables = self.passed.lock();
        let piece = (tables.pieces.entry((memory, key))).or_insert(Piece { device, size: 0 });
        let before = std::mem::replace(&mut piece.size, size);
        drop(tables);
        if size == before {
            return true;
        }
        if before > 0 {
            self.record_returned(
                memory,
                key,
                Piece {
                    device,
                    size: before,
                },
            );
        }
        if size > 0 {
            self.record_taken(memory, key, Piece { device, size });
        }
        if size < before {
            self.discharge(device, before - size);
        } else if !self.charge(device, size - before) {
            (self.heap(device).device_mut()).charge_past_budget(size - before);
            return false;
        }
        true
    }

    /// Says that memory which nothing could refuse got above the budget.
    #[cold]
    pub(super) fn above_budget(&self, device: DeviceId) {
        let heap = self.heap(device);
        let (reserved, budget) = (heap.device().used(), heap.device().budget());
        drop(heap);
        if let Some(budget) = budget {
            let kind = EventKind::BudgetExceeded { reserved, budget };
            self.record(device, self.cause(), kind);
        }
    }

    /// Keeps physical memory that `cuMemCreate` made.
    pub(super) fn created(&self, handle: u64, piece: Piece) {
        let physical = Physical {
            piece,
            handles: 1,
            mappings: 0,
        };
        self.passed.lock().physical.insert(handle, physical);
        self.record_taken(DriverMemory::VirtualMemory, handle, piece);
    }

    /// One more handle to the same physical memory.
    pub(super) fn retained(&self, handle: u64) {
        if let Some(physical) = self.passed.lock().physical.get_mut(&handle) {
            physical.handles += 1;
        }
    }

    /// One handle less.
    pub(super) fn released(&self, handle: u64) {
        self.drop_use(handle, |physical| {
            physical.handles = physical.handles.saturating_sub(1);
        });
    }

    /// Physical memory was mapped.
    pub(super) fn mapped(&self, address: u64, size: u64, handle: u64) {
        let mut tables = self.passed.lock();
        if let Some(physical) = tables.physical.get_mut(&handle) {
            physical.mappings += 1;
            tables.mappings.insert(address, (size, handle));
        }
    }

    /// Everything that was mapped in a range is not any more.
    pub(super) fn unmapped(&self, address: u64, size: u64) {
        let range = address..address.saturating_add(size);
        let mut gone = Vec::new();
        self.passed.lock().mappings.retain(|start, (_, handle)| {
            let inside = range.contains(start);
            if inside {
                gone.push(*handle);
            }
            !inside
        });
        for handle in gone {
            self.drop_use(handle, |physical| physical.mappings -= 1);
        }
    }

    fn drop_use(&self, handle: u64, change: impl FnOnce(&mut Physical)) {
        let mut tables = self.passed.lock();
        let Some(physical) = tables.physical.get_mut(&handle) else {
            return;
        };
        change(physical);
        if physical.handles > 0 || physical.mappings > 0 {
            return;
        }
        let piece = physical.piece;
        tables.physical.remove(&handle);
        drop(tables);
        self.record_returned(DriverMemory::VirtualMemory, handle, piece);
        self.discharge(piece.device, piece.size);
    }

    fn record_taken(&self, memory: DriverMemory, key: u64, piece: Piece) {
        let kind = EventKind::DriverTaken {
            memory,
            address: Address(key),
            size: piece.size,
            charged: !memory.is_host(),
        };
        self.record(piece.device, self.cause(), kind);
    }

    fn record_returned(&self, memory: DriverMemory, key: u64, piece: Piece) {
        let kind = EventKind::DriverReturned {
            memory,
            address: Address(key),
            size: piece.size,
            charged: !memory.is_host(),
        };
        self.record(piece.device, self.cause_without_place(), kind);
    }
}
