//! Arrays: memory that only copies, textures and surfaces reach.
//!
//! An array lies in pages of its device (`array_pages.rs`), mapped where no program is told; its
//! elements lie there row after row.

use std::ffi::{c_int, c_uint};

use super::array_pages::{give_back, take};
use super::formats::element_bytes;
use crate::abi::{Handle, Status};
use crate::ids::Address;
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::unsupported::refuse;
use crate::sim_driver::{Host, host};

const LAYERED: c_uint = 1;
const CUBEMAP: c_uint = 4;
/// Layered, surface, cube map, gather, depth, colour attachment.
const FLAGS: c_uint = 0x3f;
const SPARSE: c_uint = 0x40;
const DEFERRED: c_uint = 0x80;

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
    pub(super) format: c_int,
    pub(super) channels: c_uint,
    pub(super) flags: c_uint,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FlatDescriptor {
    width: usize,
    height: usize,
    format: c_int,
    channels: c_uint,
}

/// `CUDA_ARRAY_MEMORY_REQUIREMENTS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Requirements {
    pub(super) bytes: usize,
    pub(super) alignment: usize,
    pub(super) reserved: [c_uint; 4],
}

/// Where an array's elements are.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct Layout {
    pub(in crate::sim_driver) ordinal: usize,
    pub(in crate::sim_driver) start: Address,
    pub(in crate::sim_driver) row_bytes: u64,
    pub(in crate::sim_driver) rows: u64,
    pub(in crate::sim_driver) layers: u64,
}

/// An array.
#[derive(Debug)]
pub(super) struct Array {
    context: Handle,
    pub(super) layout: Layout,
    descriptor: Descriptor,
    /// Whether it is a level of a mipmapped array, which holds its memory.
    is_level: bool,
}

impl Array {
    pub(super) fn level(context: Handle, layout: Layout, descriptor: Descriptor) -> Self {
        Self {
            context,
            layout,
            descriptor,
            is_level: true,
        }
    }
}

impl Descriptor {
    /// Bytes of a row, rows of a layer, layers.
    pub(super) fn extent(&self) -> Result<(u64, u64, u64), Status> {
        let element = element_bytes(self.format, self.channels)?;
        let flat = self.height == 0 && self.depth > 0 && self.flags & LAYERED == 0;
        let cube = self.flags & CUBEMAP != 0 && !self.depth.is_multiple_of(6);
        let unknown = self.flags & !(FLAGS | SPARSE | DEFERRED) != 0;
        if self.width == 0 || flat || cube || unknown {
            return Err(Status::INVALID_VALUE);
        }
        let row = (self.width as u64).checked_mul(element);
        let (rows, layers) = (self.height.max(1) as u64, self.depth.max(1) as u64);
        Ok((row.ok_or(Status::INVALID_VALUE)?, rows, layers))
    }

    pub(super) fn bytes(&self) -> Result<u64, Status> {
        let (row, rows, layers) = self.extent()?;
        let bytes = row
            .checked_mul(rows)
            .and_then(|bytes| bytes.checked_mul(layers));
        bytes.ok_or(Status::OUT_OF_MEMORY)
    }

    /// # Errors
    /// `NOT_SUPPORTED` for arrays whose memory is mapped later.
    pub(super) fn require_memory(&self) -> Answer {
        if self.flags & (SPARSE | DEFERRED) != 0 {
            return refuse("arrays whose memory is mapped later");
        }
        Ok(())
    }
}

fn create(descriptor: Descriptor) -> Result<Handle, Status> {
    let current = current()?;
    let (row_bytes, rows, layers) = descriptor.extent()?;
    descriptor.require_memory()?;
    let array = Array {
        context: current.context,
        layout: Layout {
            ordinal: current.ordinal,
            start: take(current, descriptor.bytes()?)?,
            row_bytes,
            rows,
            layers,
        },
        descriptor,
        is_level: false,
    };
    Ok(current.host.state.tables().memory.arrays.add(array))
}

fn destroy(handle: Handle) -> Answer {
    let host = host()?;
    let gone = {
        let arrays = &mut host.state.tables().memory.arrays;
        if arrays.get(handle)?.is_level {
            return Err(Status::INVALID_HANDLE);
        }
        arrays.remove(handle)?
    };
    give_back(
        host,
        gone.layout.ordinal,
        gone.layout.start,
        gone.descriptor.bytes()?,
    );
    Ok(())
}

/// Gives back the arrays of a context.
pub(super) fn clear(host: &Host, context: Handle) {
    let gone = {
        let arrays = &mut host.state.tables().memory.arrays;
        arrays.take_where(|array| array.context == context)
    };
    for (_, array) in gone {
        if let (false, Ok(bytes)) = (array.is_level, array.descriptor.bytes()) {
            give_back(host, array.layout.ordinal, array.layout.start, bytes);
        }
    }
}

/// Where an array's elements are, by its handle.
pub(in crate::sim_driver) fn layout_of(host: &Host, array: Handle) -> Result<Layout, Status> {
    let tables = host.state.tables();
    let found = tables.memory.arrays.get(array);
    Ok(found.map_err(|_| Status::INVALID_VALUE)?.layout)
}

fn descriptor_of(array: Handle) -> Result<Descriptor, Status> {
    let host = current()?.host;
    let tables = host.state.tables();
    Ok(tables.memory.arrays.get(array)?.descriptor)
}

driver_functions! {
    fn cuArrayCreate_v2(array: *mut Handle, descriptor: *const FlatDescriptor) {
        if array.is_null() || descriptor.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let flat = descriptor.read_unaligned();
        let descriptor = Descriptor {
            width: flat.width,
            height: flat.height,
            depth: 0,
            format: flat.format,
            channels: flat.channels,
            flags: 0,
        };
        put(array, create(descriptor)?)
    }

    fn cuArray3DCreate_v2(array: *mut Handle, descriptor: *const Descriptor) {
        if array.is_null() || descriptor.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        put(array, create(descriptor.read_unaligned())?)
    }

    fn cuArrayDestroy(array: Handle) {
        destroy(array)
    }

    fn cuArrayGetDescriptor_v2(descriptor: *mut FlatDescriptor, array: Handle) {
        let found = descriptor_of(array)?;
        put(
            descriptor,
            FlatDescriptor {
                width: found.width,
                height: found.height,
                format: found.format,
                channels: found.channels,
            },
        )
    }

    fn cuArray3DGetDescriptor_v2(descriptor: *mut Descriptor, array: Handle) {
        put(descriptor, descriptor_of(array)?)
    }

    fn cuArrayGetMemoryRequirements(
        requirements: *mut Requirements, array: Handle, device: c_int,
    ) {
        descriptor_of(array)?;
        // Only of arrays whose memory is mapped later. Source: driver 580.159.
        Err(Status::INVALID_VALUE)
    }
}
