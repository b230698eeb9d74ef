//! Copies of rectangles and boxes.

use std::ffi::{c_int, c_void};

use super::place::{Base, Expected, at, in_array};
use super::shape::{Extent, Side};
use super::{Copy, When, perform};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::Host;
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

const HOST: c_int = 1;
const DEVICE: c_int = 2;
const ARRAY: c_int = 3;
const UNIFIED: c_int = 4;

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side2d {
    x: usize,
    y: usize,
    kind: c_int,
    host: *mut c_void,
    device: DevicePtr,
    array: Handle,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_int,
    /// A pointer of the program.
    host: u64,
    device: DevicePtr,
    array: Handle,
    /// A context in the peers' form, reserved in the other.
    pub(super) context: Handle,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct Copy3d {
    pub(super) from: Side3d,
    pub(super) to: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

impl From<Side2d> for Side3d {
    fn from(side: Side2d) -> Self {
        Self {
            x: side.x,
            y: side.y,
            z: 0,
            level: 0,
            kind: side.kind,
            host: side.host as u64,
            device: side.device,
            array: side.array,
            context: 0,
            pitch: side.pitch,
            height: 0,
        }
    }
}

impl From<Copy2d> for Copy3d {
    fn from(copy: Copy2d) -> Self {
        Self {
            from: copy.from.into(),
            to: copy.to.into(),
            width: copy.width,
            height: copy.height,
            depth: 1,
        }
    }
}

/// Where the box begins on a side, and how far its rows and layers are apart.
fn side(host: &Host, side: &Side3d, extent: Extent) -> Result<Side, Status> {
    if side.level != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let (x, y, z) = (side.x as u64, side.y as u64, side.z as u64);
    if side.kind == ARRAY {
        let (base, pitch, rows, layers) = in_array(host, side.array)?;
        let within = |first: u64, count: u64, all: u64| {
            first.checked_add(count).is_some_and(|end| end <= all)
        };
        let inside = within(x, extent.width, pitch)
            && within(y, extent.rows, rows)
            && within(z, extent.layers, layers);
        if !inside {
            return Err(Status::INVALID_VALUE);
        }
        let layer = pitch * rows;
        let base = base.offset(z * layer + y * pitch + x);
        return Ok(Side { base, pitch, layer });
    }
    let (address, expected) = match side.kind {
        HOST => (side.host, Expected::Host),
        DEVICE => (side.device, Expected::Device),
        UNIFIED => (side.device, Expected::Either),
        _ => return Err(Status::INVALID_VALUE),
    };
    let end = x.checked_add(extent.width).ok_or(Status::INVALID_VALUE)?;
    let pitch = if side.pitch == 0 {
        end
    } else {
        side.pitch as u64
    };
    let rows = match side.height as u64 {
        0 => y.checked_add(extent.rows).ok_or(Status::INVALID_VALUE)?,
        height => height,
    };
    let too_narrow = pitch < end && (extent.rows > 1 || extent.layers > 1);
    let too_low = extent.layers > 1 && rows < y + extent.rows;
    if too_narrow || too_low {
        return Err(Status::INVALID_VALUE);
    }
    let start = || {
        let layer = pitch.checked_mul(rows)?;
        let skipped = z.checked_mul(layer)?.checked_add(y.checked_mul(pitch)?)?;
        Some((layer, address.checked_add(skipped)?.checked_add(x)?))
    };
    let (layer, first) = start().ok_or(Status::INVALID_VALUE)?;
    if address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let base = at(host, first, expected, extent.span(pitch, layer)?)?;
    Ok(Side { base, pitch, layer })
}

/// The copy that a description means; none of nothing.
pub(in crate::sim_driver) fn shape(
    host: &Host,
    ordinal: usize,
    copy: &Copy3d,
) -> Result<Option<Copy>, Status> {
    let extent = Extent {
        width: copy.width as u64,
        rows: copy.height as u64,
        layers: copy.depth as u64,
    };
    if extent.is_empty() {
        return Ok(None);
    }
    Ok(Some(Copy {
        from: side(host, &copy.from, extent)?,
        to: side(host, &copy.to, extent)?,
        extent,
        ordinal,
    }))
}

/// The description of a copy whose sides are memory in a row.
pub(in crate::sim_driver) fn describe(copy: &Copy) -> Copy3d {
    let side = |side: Side| {
        let (kind, host, device) = match side.base {
            Base::Host(address) => (HOST, address, 0),
            Base::Device(_, address) => (DEVICE, 0, address.0),
        };
        Side3d {
            x: 0,
            y: 0,
            z: 0,
            level: 0,
            kind,
            host,
            device,
            array: 0,
            context: 0,
            pitch: side.pitch as usize,
            height: side.layer.checked_div(side.pitch).unwrap_or(0) as usize,
        }
    };
    Copy3d {
        from: side(copy.from),
        to: side(copy.to),
        width: copy.extent.width as usize,
        height: copy.extent.rows as usize,
        depth: copy.extent.layers as usize,
    }
}

pub(super) fn copy(stream: OnStream, copy: &Copy3d, when: When) -> Answer {
    match shape(stream.host, stream.ordinal, copy)? {
        Some(copy) => perform(stream, Work::Copy(copy), when),
        None => Ok(()),
    }
}

/// # Safety
/// `flat` is null or valid for a read.
unsafe fn copy_2d(stream: OnStream, flat: *const Copy2d, when: When) -> Answer {
    if flat.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    copy(stream, &unsafe { flat.read_unaligned() }.into(), when)
}

/// # Safety
/// `solid` is null or valid for a read.
unsafe fn copy_3d(stream: OnStream, solid: *const Copy3d, when: When) -> Answer {
    if solid.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: as above.
    copy(stream, &unsafe { solid.read_unaligned() }, when)
}

stream_functions! { null:
    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(copy: *const Copy2d) {
        copy_2d(resolve(0, null)?, copy, When::Now)
    }

    fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds(copy: *const Copy2d) {
        copy_2d(resolve(0, null)?, copy, When::Now)
    }

    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(copy: *const Copy2d, stream: Handle) {
        copy_2d(resolve(stream, null)?, copy, When::InOrder)
    }

    fn cuMemcpy3D_v2, cuMemcpy3D_v2_ptds(copy: *const Copy3d) {
        copy_3d(resolve(0, null)?, copy, When::Now)
    }

    fn cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz(copy: *const Copy3d, stream: Handle) {
        copy_3d(resolve(stream, null)?, copy, When::InOrder)
    }
}
