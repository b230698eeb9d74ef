//! Arrays: passed to the driver, charged for the bytes that they take.

use std::ffi::c_int;

use crate::abi::{Code, Handle};
use crate::event::DriverMemory;
use crate::intercept::door::Door;
use crate::intercept::passed::Piece;

use super::host::returned;
use super::{alloc, given, hooks, own};

/// `CUDA_ARRAY_DESCRIPTOR_v2`.
#[repr(C)]
struct Descriptor2 {
    width: usize,
    height: usize,
    format: c_int,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR_v2`.
#[repr(C)]
struct Descriptor3 {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    channels: u32,
    flags: u32,
}

/// What of a descriptor says how many bytes an array takes.
struct Shape {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    channels: u32,
}

hooks! {
    fn cuArrayCreate_v2(place: *mut Handle, descriptor: *const Descriptor2) |door, original| {
        // SAFETY: null, or the program's descriptor.
        let shape = unsafe { descriptor.as_ref() }.map(|of| Shape {
            width: of.width,
            height: of.height,
            depth: 0,
            format: of.format,
            channels: of.channels,
        });
        create(door, DriverMemory::Array, place, shape, 1, original)
    }

    fn cuArray3DCreate_v2(place: *mut Handle, descriptor: *const Descriptor3) |door, original| {
        create(door, DriverMemory::Array, place, shape_of(descriptor), 1, original)
    }

    fn cuMipmappedArrayCreate(
        place: *mut Handle,
        descriptor: *const Descriptor3,
        levels: u32,
    ) |door, original| {
        create(door, DriverMemory::MipmappedArray, place, shape_of(descriptor), levels, original)
    }

    fn cuArrayDestroy(array: Handle) |door, original| {
        returned(door, DriverMemory::Array, array, original)
    }

    fn cuMipmappedArrayDestroy(array: Handle) |door, original| {
        returned(door, DriverMemory::MipmappedArray, array, original)
    }
}

fn shape_of(descriptor: *const Descriptor3) -> Option<Shape> {
    // SAFETY: null, or the program's descriptor.
    unsafe { descriptor.as_ref() }.map(|of| Shape {
        width: of.width,
        height: of.height,
        depth: of.depth,
        format: of.format,
        channels: of.channels,
    })
}

fn create(
    door: &Door,
    memory: DriverMemory,
    place: *mut Handle,
    shape: Option<Shape>,
    levels: u32,
    original: impl Fn() -> Code,
) -> Code {
    let Some(size) = shape.and_then(|shape| bytes(&shape, levels)) else {
        return of_other_format(door, memory, place, original);
    };
    // SAFETY: it is called after the call succeeded.
    alloc::taken(door, memory, size, original, || unsafe { given(place) })
}

/// An array of a format whose size we do not know: it is charged for what is gone from the device
/// when it is there, so that the budget can only say afterwards that it was broken.
fn of_other_format(
    door: &Door,
    memory: DriverMemory,
    place: *mut Handle,
    original: impl Fn() -> Code,
) -> Code {
    let before = own(free_bytes).flatten();
    let code = original();
    if code == 0 {
        let _ = own(|| {
            let Ok(device) = door.device() else { return };
            let size = (before.zip(free_bytes()))
                .map_or(0, |(before, after)| before.saturating_sub(after));
            if !door.charge(memory, device, size) {
                door.heap(device).device_mut().charge_past_budget(size);
                door.above_budget(device);
            }
            // SAFETY: the call succeeded.
            door.taken(memory, unsafe { given(place) }, Piece { device, size });
        });
    }
    code
}

/// What the driver itself says is free.
fn free_bytes() -> Option<u64> {
    let (mut free, mut total) = (0_usize, 0_usize);
    // SAFETY: the signature is the driver's; the pointers are valid.
    let code = unsafe {
        original!(cuMemGetInfo_v2, fn(*mut usize, *mut usize) -> Code)(&mut free, &mut total)
    };
    (code == 0).then_some(free as u64)
}

/// Bytes that an array takes of the device: as plain memory of its size. Small ones share pages.
/// `None` for a format that is not of whole numbers of bytes, or that nobody knows.
///
/// Source: driver 580.159 on an H200: 2 MiB for 100 arrays of 16 × 16 floats and for one of
/// 512 × 512, 4 MiB for 1000 × 1000, 16 MiB for 2048 × 2048.
fn bytes(shape: &Shape, levels: u32) -> Option<u64> {
    // `CUarray_format`: unsigned and signed integers of 8, 16, 32 bits, half, float.
    let element: u64 = match shape.format {
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        0x03 | 0x0a | 0x20 => 4,
        _ => return None,
    };
    let element = element * u64::from(shape.channels);
    let mut sides = [shape.width, shape.height, shape.depth].map(|side| side.max(1) as u64);
    let mut total: u64 = 0;
    for _ in 0..levels.max(1) {
        let cells = sides
            .iter()
            .try_fold(1u64, |cells, side| cells.checked_mul(*side))?;
        total = total.checked_add(cells.checked_mul(element)?)?;
        sides = sides.map(|side| (side / 2).max(1));
    }
    let page = 2 << 20;
    total.checked_next_multiple_of(if total < page { 512 } else { page })
}

#[cfg(test)]
mod tests {
    use super::{Shape, bytes};

    #[test]
    fn a_large_array_takes_whole_pages_and_a_small_one_a_part() {
        let shape = |width, height, depth| Shape {
            width,
            height,
            depth,
            format: 0x20,
            channels: 4,
        };
        assert_eq!(bytes(&shape(1024, 1024, 0), 1), Some(16 << 20));
        assert_eq!(bytes(&shape(1, 0, 0), 1), Some(512));
        assert_eq!(bytes(&shape(512, 512, 0), 1), Some(4 << 20));
        assert_eq!(bytes(&shape(1024, 1024, 0), 2), Some(20 << 20));
        let odd = Shape {
            format: 0xb0,
            ..shape(1, 1, 1)
        };
        assert_eq!(bytes(&odd, 1), None);
    }
}
