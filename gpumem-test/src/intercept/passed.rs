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

/// Physical memory of the virtual memory calls: it lives as long as a handle or a mapping does.
#[derive(Clone, Copy, Debug)]
struct Physical {
    piece: Piece,
    /// The handle by which it is listed. The driver may give it to another one while a mapping
    /// keeps this one.
    listed: u64,
    /// Handles and mappings.
    uses: u32,
}

/// A use of physical memory that is given back, should the driver refuse it.
pub(super) struct Use {
    id: u64,
    physical: Physical,
    /// Address and length of a mapping; none for a handle.
    mapping: Option<(u64, u64)>,
}

/// A pool that the program made.
#[derive(Clone, Copy, Debug)]
struct Pool {
    device: DeviceId,
    /// Whether it only lives on for the blocks that the program still holds.
    is_destroyed: bool,
}

#[derive(Default)]
struct Tables {
    /// By sort, and address or handle.
    pieces: FxHashMap<(DriverMemory, u64), Piece>,
    physical: FxHashMap<u64, Physical>,
    /// Physical memory by handle, and how many uses of that handle there are.
    handles: FxHashMap<u64, (u64, u32)>,
    /// What is mapped: by address, the length and the physical memory.
    mappings: FxHashMap<u64, (u64, u64)>,
    /// Physical memory made so far.
    made: u64,
    /// Memory by address that belongs to a context other than a primary one.
    of_contexts: FxHashMap<u64, u64>,
    /// Pools that the program made, and their blocks by address.
    pools: FxHashMap<u64, Pool>,
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
        let pool_made = Pool {
            device,
            is_destroyed: false,
        };
        self.lock().pools.insert(pool, pool_made);
    }

    /// The program destroyed a pool, whose memory stays as long as it holds blocks of it.
    pub(super) fn destroy_pool(&self, pool: u64) {
        let mut tables = self.lock();
        tables.current_pools.retain(|_, current| *current != pool);
        if let Some(pool) = tables.pools.get_mut(&pool) {
            pool.is_destroyed = true;
        }
    }

    /// Forgets a pool if it is destroyed and the program holds no block of it; its device.
    pub(super) fn forget_pool(&self, pool: u64) -> Option<DeviceId> {
        let mut tables = self.lock();
        let is_gone = tables.pools.get(&pool)?.is_destroyed
            && !tables.pool_blocks.values().any(|of| *of == pool);
        let gone = is_gone.then(|| tables.pools.remove(&pool)).flatten();
        gone.map(|pool| pool.device)
    }

    /// Keeps that memory belongs to a context other than a primary one.
    pub(super) fn add_to_context(&self, address: u64, context: u64) {
        self.lock().of_contexts.insert(address, context);
    }

    /// Forgets it: the memory is freed.
    pub(super) fn take_from_context(&self, address: u64) {
        self.lock().of_contexts.remove(&address);
    }

    /// Takes all memory of a context, which is going; by address.
    pub(super) fn take_context(&self, context: u64) -> Vec<u64> {
        let mut taken = Vec::new();
        self.lock().of_contexts.retain(|address, of| {
            let is_of_it = *of == context;
            if is_of_it {
                taken.push(*address);
            }
            !is_of_it
        });
        taken.sort_unstable();
        taken
    }

    /// The device of a pool that the program made and did not destroy.
    pub(super) fn pool_device(&self, pool: u64) -> Option<DeviceId> {
        let tables = self.lock();
        let pool = tables.pools.get(&pool).filter(|pool| !pool.is_destroyed);
        pool.map(|pool| pool.device)
    }

    /// All pools that the program made and did not destroy.
    pub(super) fn pools(&self) -> Vec<u64> {
        let tables = self.lock();
        let alive = (tables.pools.iter()).filter(|(_, pool)| !pool.is_destroyed);
        let mut pools: Vec<_> = alive.map(|(handle, _)| *handle).collect();
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

    /// The keys of all live pieces of a sort on a device.
    pub(super) fn keys(&self, memory: DriverMemory, device: DeviceId) -> Vec<u64> {
        let tables = self.lock();
        let mut keys: Vec<_> = (tables.pieces.iter())
            .filter(|((sort, _), piece)| *sort == memory && piece.device == device)
            .map(|((_, key), _)| *key)
            .collect();
        keys.sort_unstable();
        keys
    }
}

impl Door {
    /// Charges `size` bytes to the budget before the driver is asked for them. The simulated
    /// device counts everything that it gives by itself, but managed memory, which it gives when
    /// it is touched.
    pub(super) fn charge(&self, memory: DriverMemory, device: DeviceId, size: u64) -> bool {
        match self.backend {
            Backend::Real => self.heap(device).device_mut().charge(size).is_ok(),
            Backend::Simulated if self.charges_managed(memory) => {
                let mut heap = self.heap(device);
                let simulated = heap.device_mut().as_sim_mut();
                simulated.is_none_or(|device| device.charge(size).is_ok())
            }
            Backend::Simulated => true,
        }
    }

    /// Takes a charge back.
    pub(super) fn discharge(&self, memory: DriverMemory, device: DeviceId, size: u64) {
        if self.backend == Backend::Real {
            self.heap(device).device_mut().discharge(size);
        } else if self.charges_managed(memory)
            && let Some(device) = self.heap(device).device_mut().as_sim_mut()
        {
            device.discharge(size);
        }
    }

    fn charges_managed(&self, memory: DriverMemory) -> bool {
        memory == DriverMemory::Managed && self.session.budget().is_some()
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
            self.discharge(memory, piece.device, piece.size);
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
            self.discharge(memory, device, before - size);
        } else if !self.charge(memory, device, size - before) {
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
        let mut tables = self.passed.lock();
        tables.made += 1;
        let id = tables.made;
        let physical = Physical {
            piece,
            listed: handle,
            uses: 1,
        };
        tables.physical.insert(id, physical);
        tables.handles.insert(handle, (id, 1));
        drop(tables);
        self.record_taken(DriverMemory::VirtualMemory, handle, piece);
    }

    /// One more handle to what is mapped at `address`.
    pub(super) fn retained(&self, handle: u64, address: u64) {
        let tables = &mut *self.passed.lock();
        let mut all = tables.mappings.iter();
        let mapping = all
            .find(|(start, (size, _))| (**start..start.saturating_add(*size)).contains(&address));
        if let Some((_, (_, id))) = mapping
            && let Some(physical) = tables.physical.get_mut(id)
        {
            physical.uses += 1;
            tables.handles.entry(handle).or_insert((*id, 0)).1 += 1;
        }
    }

    /// Takes one handle before the driver gets it back.
    pub(super) fn released(&self, handle: u64) -> Option<Use> {
        let mut tables = self.passed.lock();
        let (id, count) = tables.handles.get_mut(&handle)?;
        let id = *id;
        *count -= 1;
        if *count == 0 {
            tables.handles.remove(&handle);
        }
        drop(tables);
        self.drop_use(id, None)
    }

    /// Physical memory was mapped.
    pub(super) fn mapped(&self, address: u64, size: u64, handle: u64) {
        let tables = &mut *self.passed.lock();
        if let Some((id, _)) = tables.handles.get(&handle)
            && let Some(physical) = tables.physical.get_mut(id)
        {
            physical.uses += 1;
            tables.mappings.insert(address, (size, *id));
        }
    }

    /// Takes everything that is mapped in a range, before the driver unmaps it.
    pub(super) fn unmapped(&self, address: u64, size: u64) -> Vec<Use> {
        let range = address..address.saturating_add(size);
        let mut gone = Vec::new();
        self.passed.lock().mappings.retain(|start, (size, id)| {
            let inside = range.contains(start);
            if inside {
                gone.push((*id, (*start, *size)));
            }
            !inside
        });
        gone.into_iter()
            .filter_map(|(id, mapping)| self.drop_use(id, Some(mapping)))
            .collect()
    }

    /// Puts a use back that the driver did not take; `handle`: the one of `released`.
    pub(super) fn still_used(&self, again: &Use, handle: u64) {
        let mut tables = self.passed.lock();
        match again.mapping {
            Some((address, size)) => {
                tables.mappings.insert(address, (size, again.id));
            }
            None => tables.handles.entry(handle).or_insert((again.id, 0)).1 += 1,
        }
        if let Some(physical) = tables.physical.get_mut(&again.id) {
            physical.uses += 1;
            return;
        }
        let physical = Physical {
            uses: 1,
            ..again.physical
        };
        tables.physical.insert(again.id, physical);
        drop(tables);
        let piece = physical.piece;
        if !self.charge(DriverMemory::VirtualMemory, piece.device, piece.size) {
            let mut heap = self.heap(piece.device);
            heap.device_mut().charge_past_budget(piece.size);
        }
        self.record_taken(DriverMemory::VirtualMemory, physical.listed, piece);
    }

    fn drop_use(&self, id: u64, mapping: Option<(u64, u64)>) -> Option<Use> {
        let mut tables = self.passed.lock();
        let physical = tables.physical.get_mut(&id)?;
        physical.uses -= 1;
        let physical = *physical;
        if physical.uses == 0 {
            tables.physical.remove(&id);
            drop(tables);
            let piece = physical.piece;
            self.record_returned(DriverMemory::VirtualMemory, physical.listed, piece);
            self.discharge(DriverMemory::VirtualMemory, piece.device, piece.size);
        }
        Some(Use {
            id,
            physical,
            mapping,
        })
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
