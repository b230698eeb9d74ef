//! Memory of graphs: addresses for as long as a graph has them, memory while it is needed.
//!
//! A node's memory has its address when the node is made: nodes of a graph lie side by side in
//! spans of whole chunks of 32 MiB. An upload or a launch backs the spans, first with what other
//! graphs left, and what a graph frees stays with the device until it is trimmed. It counts against
//! the budget as all memory of the program does.
//!
//! Source: graphs with 3 MiB, three times 1 KiB and 64 MiB, driver 580.159 on an H200
//! (`tests/traces/facts/h200_graphs.txt`, `h200_more.txt`): nothing is gone when instantiated, a
//! chunk when uploaded or launched, and *used* is what backs spans, free or not. An older figure of
//! 4 MiB more came from readings of the whole device beside other allocations. Assumed: which spans
//! a graph larger than a chunk has, and that graphs back theirs with each other's.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::abi::{DevicePtr, Ordinal, Status};
use crate::device::sim::SimDevice;
use crate::ids::Address;
use crate::sim_driver::contexts;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::objects::lock;
use crate::sim_driver::{host, opened, reach};

/// What spans are multiples of.
const CHUNK: u64 = SimDevice::POOL_CHUNK;

/// What lies side by side in a span is multiples of this. Source: pieces of 1 KiB, each next to
/// the other, and the unit of the driver's other allocators.
const UNIT: u64 = 512;

/// Addresses that nodes of one graph share.
#[derive(Debug)]
pub(super) struct Span {
    ordinal: usize,
    start: Address,
    bytes: u64,
    /// Bytes that nodes have, from the start on.
    taken: Mutex<u64>,
}

/// Memory that a node allocates.
#[derive(Debug)]
pub(in crate::sim_driver) struct Block {
    span: Arc<Span>,
    address: Address,
    bytes: u64,
}

#[derive(Debug)]
struct SpanState {
    bytes: u64,
    backed: bool,
    /// Blocks in it that are allocated.
    live: usize,
}

/// What graphs have on a device.
#[derive(Debug, Default)]
struct Device {
    spans: FxHashMap<u64, SpanState>,
    /// By address: while it is allocated, what keeps it, even when its graph is gone.
    blocks: FxHashMap<u64, Option<Arc<Block>>>,
    /// Bytes that back nothing.
    spare: u64,
    reserved: u64,
    reserved_high: u64,
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

impl Span {
    /// Addresses for so many bytes, with nothing behind them.
    pub(super) fn new(ordinal: usize, bytes: u64) -> Result<Arc<Self>, Status> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let bytes = bytes.checked_next_multiple_of(CHUNK);
        let bytes = bytes.ok_or(Status::OUT_OF_MEMORY)?;
        let start = reach::with(ordinal, |device| device.take_span(bytes))??;
        let state = SpanState {
            bytes,
            backed: false,
            live: 0,
        };
        with_device(ordinal, |device| device.spans.insert(start.0, state))?;
        Ok(Arc::new(Self {
            ordinal,
            start,
            bytes,
            taken: Mutex::new(0),
        }))
    }

    pub(super) fn ordinal(&self) -> usize {
        self.ordinal
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // What backs it stays until it is trimmed. A driver that is gone has nothing to give back.
        let _ = with_device(self.ordinal, |device| {
            let state = device.spans.remove(&self.start.0);
            let backed = state.filter(|state| state.backed);
            device.spare += backed.map_or(0, |state| state.bytes);
        });
        let _ = reach::with(self.ordinal, |device| device.give_span(self.start));
    }
}

impl Block {
    /// Memory for a node, behind what the span has; none if there is no room.
    pub(super) fn new(span: &Arc<Span>, bytes: u64) -> Result<Option<Arc<Self>>, Status> {
        let address = {
            let mut taken = lock(&span.taken);
            let length = bytes.checked_next_multiple_of(UNIT);
            let Some(length) = length.filter(|length| *length <= span.bytes - *taken) else {
                return Ok(None);
            };
            let address = span.start.offset(*taken);
            *taken += length;
            address
        };
        reach::with(span.ordinal, |device| device.place_static(address, bytes))?;
        with_device(span.ordinal, |device| device.blocks.insert(address.0, None))?;
        Ok(Some(Arc::new(Self {
            span: span.clone(),
            address,
            bytes,
        })))
    }

    pub(super) fn address(&self) -> DevicePtr {
        self.address.0
    }

    pub(super) fn ordinal(&self) -> usize {
        self.span.ordinal
    }

    pub(super) fn span(&self) -> &Arc<Span> {
        &self.span
    }

    /// Bytes that were asked for.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let ordinal = self.span.ordinal;
        let _ = with_device(ordinal, |device| device.blocks.remove(&self.address.0));
        let _ = reach::with(ordinal, |device| device.give_static(self.address));
    }
}

/// Backs spans of a device, all of them or none.
pub(super) fn back(ordinal: usize, spans: &[Arc<Span>]) -> Answer {
    let planned = with_device(ordinal, |device| device.plan(spans))?;
    if planned.taken == 0 {
        return Ok(());
    }
    // The device is asked with nothing of ours locked.
    let charged = reach::with(ordinal, |device| device.charge(planned.taken))?;
    with_device(ordinal, |device| match charged {
        Ok(()) => {
            device.reserved += planned.taken;
            device.reserved_high = device.reserved_high.max(device.reserved);
            device.used_high = device.used_high.max(device.reserved);
        }
        Err(_) => device.undo(&planned),
    })?;
    Ok(charged?)
}

/// How spans are backed: with what there is, and with more.
struct Plan {
    /// Addresses of what was not backed before.
    fresh: Vec<u64>,
    needed: u64,
    /// Bytes to take from the device.
    taken: u64,
}

impl Device {
    /// Marks spans as backed.
    fn plan(&mut self, spans: &[Arc<Span>]) -> Plan {
        let mut fresh = Vec::new();
        let mut needed = 0;
        for span in spans {
            if let Some(state) = self.spans.get_mut(&span.start.0)
                && !std::mem::replace(&mut state.backed, true)
            {
                fresh.push(span.start.0);
                needed += state.bytes;
            }
        }
        self.gather(needed, spans);
        let taken = needed.saturating_sub(self.spare);
        self.spare -= needed - taken;
        Plan {
            fresh,
            needed,
            taken,
        }
    }

    /// Takes from other graphs what they freed and kept, as far as it is needed.
    fn gather(&mut self, needed: u64, spans: &[Arc<Span>]) {
        let is_own = |start: u64| spans.iter().any(|span| span.start.0 == start);
        let mut idle: Vec<u64> = self
            .spans
            .iter()
            .filter(|(start, state)| state.backed && state.live == 0 && !is_own(**start))
            .map(|(start, _)| *start)
            .collect();
        idle.sort_unstable();
        for start in idle {
            if self.spare >= needed {
                return;
            }
            if let Some(state) = self.spans.get_mut(&start) {
                state.backed = false;
                self.spare += state.bytes;
            }
        }
    }

    fn undo(&mut self, plan: &Plan) {
        for start in &plan.fresh {
            if let Some(state) = self.spans.get_mut(start) {
                state.backed = false;
            }
        }
        self.spare += plan.needed - plan.taken;
    }
}

/// Whether memory is allocated; none if it is no graph's.
pub(super) fn is_live(address: DevicePtr) -> Option<bool> {
    let found = with_devices(|devices| {
        let mut blocks = devices
            .values()
            .filter_map(|device| device.blocks.get(&address));
        blocks.next().map(Option::is_some)
    });
    found.ok().flatten()
}

/// Marks memory as allocated.
pub(super) fn allocate(block: &Arc<Block>) -> Answer {
    with_device(block.ordinal(), |device| {
        if let Some(live) = device.blocks.get_mut(&block.address.0)
            && live.is_none()
        {
            *live = Some(block.clone());
            if let Some(span) = device.spans.get_mut(&block.span.start.0) {
                span.live += 1;
            }
        }
    })
}

/// Frees memory of a graph, by a node or by a function; none if it is no graph's.
pub(in crate::sim_driver) fn free(address: DevicePtr) -> Option<Answer> {
    let freed = with_devices(|devices| {
        let mut devices = devices.values_mut();
        let device = devices.find(|device| device.blocks.contains_key(&address))?;
        let block = device.blocks.get_mut(&address)?.take();
        if let Some(block) = &block
            && let Some(span) = device.spans.get_mut(&block.span.start.0)
        {
            span.live -= 1;
        }
        Some(block)
    });
    // With nothing locked, should it be the last of it.
    let block = freed.ok().flatten()?;
    Some(block.map(drop).ok_or(Status::INVALID_VALUE))
}

/// Gives back what no graph uses.
fn trim(ordinal: usize) -> Answer {
    let given = with_device(ordinal, |device| {
        for state in device.spans.values_mut() {
            if state.backed && state.live == 0 {
                state.backed = false;
                device.spare += state.bytes;
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
            USED | RESERVED => Ok(device.reserved),
            USED_HIGH => Ok(device.used_high),
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
                USED_HIGH => device.used_high = device.reserved,
                RESERVED_HIGH => device.reserved_high = device.reserved,
                _ => return Err(Status::INVALID_VALUE),
            }
            Ok(())
        })?
    }
}
