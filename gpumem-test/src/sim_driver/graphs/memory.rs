//! Memory of graphs: addresses for as long as a graph has them, memory while it is needed.
//!
//! A node's memory has its address when the node is made. A launch backs what the graph allocates,
//! first with what other graphs left, and what a graph frees stays with the device until it is
//! trimmed. It counts against the budget as all memory of the program does.
//!
//! Source: a graph with a node of 64 MiB, driver 580.159 on an H200: 4 MiB of the device gone when
//! instantiated, 68 MiB when launched, 4 MiB when trimmed. Assumed: that the 4 MiB are once for a
//! device and stay, that nodes are backed in whole pages of 2 MiB, and that what counts as *used*
//! is what was allocated and not freed.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::abi::{DevicePtr, Ordinal, Status};
use crate::ids::Address;
use crate::sim_driver::contexts;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::objects::lock;
use crate::sim_driver::{host, opened, reach};

const PAGE: u64 = 2 << 20;

/// What the driver takes when the first graph with memory is instantiated.
const OVERHEAD: u64 = 4 << 20;

/// Memory that a node allocates.
#[derive(Debug)]
pub(in crate::sim_driver) struct Block {
    ordinal: usize,
    address: Address,
    bytes: u64,
}

#[derive(Debug)]
struct State {
    room: u64,
    backed: bool,
    /// While it is allocated: what keeps it, even when its graph is gone.
    live: Option<Arc<Block>>,
}

/// What graphs have on a device.
#[derive(Debug, Default)]
struct Device {
    has_overhead: bool,
    blocks: FxHashMap<u64, State>,
    /// Bytes that back nothing.
    spare: u64,
    reserved: u64,
    reserved_high: u64,
    used: u64,
    used_high: u64,
}

/// What graphs have on each device.
#[derive(Debug, Default)]
pub(in crate::sim_driver) struct GraphMemory(Mutex<FxHashMap<usize, Device>>);

/// Runs something on what graphs have on devices, under its lock.
fn with_devices<R>(run: impl FnOnce(&mut FxHashMap<usize, Device>) -> R) -> Result<R, Status> {
    Ok(run(&mut lock(&opened()?.state.graph_memory.0)))
}

/// Runs something on what graphs have on a device, under the lock.
fn with_device<R>(ordinal: usize, run: impl FnOnce(&mut Device) -> R) -> Result<R, Status> {
    with_devices(|devices| run(devices.entry(ordinal).or_default()))
}

impl Block {
    /// Memory for a node; it has an address and nothing behind it.
    pub(in crate::sim_driver) fn new(ordinal: usize, bytes: u64) -> Result<Arc<Self>, Status> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let room = bytes
            .checked_next_multiple_of(PAGE)
            .ok_or(Status::OUT_OF_MEMORY)?;
        let address = reach::with(ordinal, |device| device.take_static(bytes))??;
        let state = State {
            room,
            backed: false,
            live: None,
        };
        with_device(ordinal, |device| device.blocks.insert(address.0, state))?;
        Ok(Arc::new(Self {
            ordinal,
            address,
            bytes,
        }))
    }

    pub(super) fn address(&self) -> DevicePtr {
        self.address.0
    }

    pub(super) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Bytes that were asked for.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // What backs it stays until it is trimmed. A driver that is gone has nothing to give back.
        let _ = with_device(self.ordinal, |device| {
            let state = device.blocks.remove(&self.address.0);
            device.spare += state
                .filter(|state| state.backed)
                .map_or(0, |state| state.room);
        });
        let _ = reach::with(self.ordinal, |device| device.give_static(self.address));
    }
}

/// Takes what the driver needs for graphs with memory on a device, once.
pub(super) fn prepare(ordinal: usize) -> Answer {
    let has_some = with_device(ordinal, |device| {
        std::mem::replace(&mut device.has_overhead, true)
    })?;
    if !has_some && reach::with(ordinal, |device| device.take_outside(OVERHEAD))?.is_err() {
        with_device(ordinal, |device| device.has_overhead = false)?;
        return Err(Status::OUT_OF_MEMORY);
    }
    Ok(())
}

/// Backs memory of a graph, all of it or none.
pub(super) fn back(ordinal: usize, blocks: &[Arc<Block>]) -> Answer {
    let planned = with_device(ordinal, |device| device.plan(blocks))?;
    if planned.taken == 0 {
        return Ok(());
    }
    // The device is asked with nothing of ours locked.
    let charged = reach::with(ordinal, |device| device.charge(planned.taken))?;
    with_device(ordinal, |device| match charged {
        Ok(()) => {
            device.reserved += planned.taken;
            device.reserved_high = device.reserved_high.max(device.reserved);
        }
        Err(_) => device.undo(&planned),
    })?;
    Ok(charged?)
}

/// How memory is backed: with what there is, and with more.
struct Plan {
    /// Addresses of what was not backed before.
    fresh: Vec<u64>,
    needed: u64,
    /// Bytes to take from the device.
    taken: u64,
}

impl Device {
    /// Marks memory as backed.
    fn plan(&mut self, blocks: &[Arc<Block>]) -> Plan {
        let mut fresh = Vec::new();
        let mut needed = 0;
        for block in blocks {
            if let Some(state) = self.blocks.get_mut(&block.address.0)
                && !std::mem::replace(&mut state.backed, true)
            {
                fresh.push(block.address.0);
                needed += state.room;
            }
        }
        self.gather(needed, blocks);
        let taken = needed.saturating_sub(self.spare);
        self.spare -= needed - taken;
        Plan {
            fresh,
            needed,
            taken,
        }
    }

    /// Takes from other graphs what they freed and kept, as far as it is needed.
    fn gather(&mut self, needed: u64, blocks: &[Arc<Block>]) {
        let is_own = |address: u64| blocks.iter().any(|block| block.address.0 == address);
        let mut idle: Vec<u64> = self
            .blocks
            .iter()
            .filter(|(address, state)| state.backed && state.live.is_none() && !is_own(**address))
            .map(|(address, _)| *address)
            .collect();
        idle.sort_unstable();
        for address in idle {
            if self.spare >= needed {
                return;
            }
            if let Some(state) = self.blocks.get_mut(&address) {
                state.backed = false;
                self.spare += state.room;
            }
        }
    }

    fn undo(&mut self, plan: &Plan) {
        for address in &plan.fresh {
            if let Some(state) = self.blocks.get_mut(address) {
                state.backed = false;
            }
        }
        self.spare += plan.needed - plan.taken;
    }
}

/// Whether memory is allocated; none if it is no graph's.
pub(super) fn is_live(address: DevicePtr) -> Option<bool> {
    let found = with_devices(|devices| {
        let mut states = devices
            .values()
            .filter_map(|device| device.blocks.get(&address));
        states.next().map(|state| state.live.is_some())
    });
    found.ok().flatten()
}

/// Marks memory as allocated.
pub(super) fn allocate(block: &Arc<Block>) -> Answer {
    with_device(block.ordinal, |device| {
        if let Some(state) = device.blocks.get_mut(&block.address.0)
            && state.live.is_none()
        {
            state.live = Some(block.clone());
            device.used += state.room;
            device.used_high = device.used_high.max(device.used);
        }
    })
}

/// Frees memory of a graph, by a node or by a function; none if it is no graph's.
pub(in crate::sim_driver) fn free(address: DevicePtr) -> Option<Answer> {
    let freed = with_devices(|devices| {
        let mut devices = devices.values_mut();
        let device = devices.find(|device| device.blocks.contains_key(&address))?;
        let state = device.blocks.get_mut(&address)?;
        let block = state.live.take();
        device.used -= block.as_ref().map_or(0, |_| state.room);
        Some(block)
    });
    // With nothing locked, should it be the last of it.
    let block = freed.ok().flatten()?;
    Some(block.map(drop).ok_or(Status::INVALID_VALUE))
}

/// Gives back what no graph uses.
fn trim(ordinal: usize) -> Answer {
    let given = with_device(ordinal, |device| {
        for state in device.blocks.values_mut() {
            if state.backed && state.live.is_none() {
                state.backed = false;
                device.spare += state.room;
            }
        }
        device.reserved -= device.spare;
        std::mem::take(&mut device.spare)
    })?;
    reach::with(ordinal, |device| device.discharge(given))
}

// Numbers of `CUgraphMem_attribute`.
const USED: c_uint = 0;
const USED_HIGH: c_uint = 1;
const RESERVED: c_uint = 2;
const RESERVED_HIGH: c_uint = 3;

fn ordinal(device: c_int) -> Result<usize, Status> {
    contexts::ordinal(host()?, device)
}

driver_functions! {
    fn cuDeviceGraphMemTrim(device: Ordinal) {
        trim(ordinal(device)?)
    }

    fn cuDeviceGetGraphMemAttribute(device: Ordinal, attribute: c_uint, value: *mut u64) {
        let ordinal = ordinal(device)?;
        let found = with_device(ordinal, |device| match attribute {
            USED => Ok(device.used),
            USED_HIGH => Ok(device.used_high),
            RESERVED => Ok(device.reserved),
            RESERVED_HIGH => Ok(device.reserved_high),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(value, found?)
    }

    /// Only high values can be set, to 0, which stands for the present value.
    fn cuDeviceSetGraphMemAttribute(device: Ordinal, attribute: c_uint, value: *const u64) {
        let ordinal = ordinal(device)?;
        if super::read(value)? != 0 {
            return Err(Status::INVALID_VALUE);
        }
        with_device(ordinal, |device| {
            match attribute {
                USED_HIGH => device.used_high = device.used,
                RESERVED_HIGH => device.reserved_high = device.reserved,
                _ => return Err(Status::INVALID_VALUE),
            }
            Ok(())
        })?
    }
}
