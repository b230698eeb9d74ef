//! Mipmapped arrays: levels, each half of the one before, in one piece of memory.

use std::ffi::{c_int, c_uint};

use super::array_pages::{give_back, take};
use super::arrays::{Array, Descriptor, Layout, Requirements};
use crate::abi::{Handle, Status};
use crate::ids::Address;
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::{Host, host};

const LAYERED: c_uint = 1;

/// A mipmapped array.
#[derive(Debug)]
pub(super) struct Mipmap {
    context: Handle,
    ordinal: usize,
    start: Address,
    bytes: u64,
    /// The arrays of its levels, the largest first.
    levels: Vec<Handle>,
}

/// A level of an array.
fn halved(descriptor: Descriptor, level: u32) -> Descriptor {
    let half = |extent: usize| {
        if extent == 0 {
            0
        } else {
            (extent >> level).max(1)
        }
    };
    let layered = descriptor.flags & LAYERED != 0;
    Descriptor {
        width: half(descriptor.width),
        height: half(descriptor.height),
        depth: if layered {
            descriptor.depth
        } else {
            half(descriptor.depth)
        },
        ..descriptor
    }
}

fn create(descriptor: Descriptor, count: c_uint) -> Result<Handle, Status> {
    let current = current()?;
    descriptor.extent()?;
    descriptor.require_memory()?;
    // As many as there are until the largest side is 1.
    let largest = descriptor
        .width
        .max(descriptor.height)
        .max(descriptor.depth);
    let count = count.clamp(1, largest.ilog2() + 1);
    let levels: Vec<Descriptor> = (0..count).map(|level| halved(descriptor, level)).collect();
    let mut bytes = 0_u64;
    let mut offsets = Vec::new();
    for level in &levels {
        offsets.push(bytes);
        bytes = bytes
            .checked_add(level.bytes()?)
            .ok_or(Status::OUT_OF_MEMORY)?;
    }
    let start = take(current, bytes)?;
    let memory = &mut current.host.state.tables().memory;
    let mut handles = Vec::new();
    for (level, offset) in levels.into_iter().zip(offsets) {
        let (row_bytes, rows, layers) = level.extent()?;
        let layout = Layout {
            ordinal: current.ordinal,
            start: start.offset(offset),
            row_bytes,
            rows,
            layers,
        };
        handles.push(
            memory
                .arrays
                .add(Array::level(current.context, layout, level)),
        );
    }
    Ok(memory.mipmaps.add(Mipmap {
        context: current.context,
        ordinal: current.ordinal,
        start,
        bytes,
        levels: handles,
    }))
}

fn destroy(handle: Handle) -> Answer {
    let host = host()?;
    let gone = {
        let memory = &mut host.state.tables().memory;
        let gone = memory.mipmaps.remove(handle)?;
        for level in &gone.levels {
            memory.arrays.remove(*level)?;
        }
        gone
    };
    give_back(host, gone.ordinal, gone.start, gone.bytes);
    Ok(())
}

/// Gives back the mipmapped arrays of a context, whose levels are gone.
pub(super) fn clear(host: &Host, context: Handle) {
    let gone = {
        let mipmaps = &mut host.state.tables().memory.mipmaps;
        mipmaps.take_where(|mipmap| mipmap.context == context)
    };
    for (_, mipmap) in gone {
        give_back(host, mipmap.ordinal, mipmap.start, mipmap.bytes);
    }
}

driver_functions! {
    fn cuMipmappedArrayCreate(
        mipmap: *mut Handle, descriptor: *const Descriptor, levels: c_uint,
    ) {
        if mipmap.is_null() || descriptor.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        put(mipmap, create(descriptor.read_unaligned(), levels)?)
    }

    fn cuMipmappedArrayGetLevel(array: *mut Handle, mipmap: Handle, level: c_uint) {
        let host = current()?.host;
        let tables = host.state.tables();
        let levels = &tables.memory.mipmaps.get(mipmap)?.levels;
        put(array, *levels.get(level as usize).ok_or(Status::INVALID_VALUE)?)
    }

    fn cuMipmappedArrayDestroy(mipmap: Handle) {
        destroy(mipmap)
    }

    fn cuMipmappedArrayGetMemoryRequirements(
        requirements: *mut Requirements, mipmap: Handle, device: c_int,
    ) {
        let host = current()?.host;
        host.state.tables().memory.mipmaps.get(mipmap)?;
        Err(Status::INVALID_VALUE) // as of arrays
    }
}
