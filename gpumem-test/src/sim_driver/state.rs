//! What the driver knows beside memory: contexts, streams, events, pools, host memory, arrays.
//!
//! One lock over plain tables. It is held for look-ups and changes of the tables only, never over
//! a call of a device, of the door or of the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::capture::Captures;
use super::contexts::Context;
use super::graphs::GraphMemory;
use super::handles::Table;
use super::memory::Memory;
use super::streams::{Event, HostFunctions, Stream, ThreadKey};
use crate::abi::{Handle, Status};
use crate::ids::PoolId;

/// All that the driver knows.
#[derive(Debug)]
pub(super) struct State {
    initialized: AtomicBool,
    tables: Mutex<Tables>,
    pub(super) host_functions: HostFunctions,
    pub(super) graph_memory: GraphMemory,
    pub(super) captures: Captures,
}

/// The driver's objects.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) devices: Vec<PerDevice>,
    pub(super) contexts: Table<Context>,
    /// Streams that were created, and the per-thread ones under handles that no program sees.
    pub(super) streams: Table<Stream>,
    /// The per-thread streams by thread and context.
    pub(super) thread_streams: FxHashMap<(ThreadKey, Handle), Handle>,
    pub(super) events: Table<Event>,
    pub(super) memory: Memory,
}

/// What the driver knows of a device beside its memory.
#[derive(Debug)]
pub(super) struct PerDevice {
    /// The primary context's handle; it keeps it when it is made again.
    pub(super) primary: Handle,
    /// How often the primary context was retained and not released.
    pub(super) retained: u32,
    /// The default pool's handle.
    pub(super) default_pool: Handle,
    /// The pool that allocations without one come from.
    pub(super) current_pool: Handle,
    /// Whether the driver took what it needs for managed memory.
    pub(super) has_managed: bool,
    /// Bytes of the variables of all modules.
    pub(super) variables: u64,
}

impl State {
    pub(super) fn new(devices: usize) -> Self {
        let mut contexts = Table::default();
        let mut memory = Memory::default();
        let devices = (0..devices)
            .map(|ordinal| {
                let default_pool = memory.add_pool(ordinal, PoolId::DEFAULT);
                PerDevice {
                    primary: contexts.add(Context::primary(ordinal)),
                    retained: 0,
                    default_pool,
                    current_pool: default_pool,
                    has_managed: false,
                    variables: 0,
                }
            })
            .collect();
        Self {
            initialized: AtomicBool::new(false),
            tables: Mutex::new(Tables {
                devices,
                contexts,
                streams: Table::default(),
                thread_streams: FxHashMap::default(),
                events: Table::default(),
                memory,
            }),
            host_functions: HostFunctions::default(),
            graph_memory: GraphMemory::default(),
            captures: Captures::default(),
        }
    }

    pub(super) fn initialize(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// # Errors
    /// `NOT_INITIALIZED` before `cuInit`.
    pub(super) fn initialized(&self) -> Result<(), Status> {
        if self.initialized.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(Status::NOT_INITIALIZED)
        }
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        // A panic while it was held is answered with UNKNOWN; the tables are whole between calls.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
