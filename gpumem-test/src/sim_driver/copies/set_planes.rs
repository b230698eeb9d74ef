//! Sets of values in rectangles.

use super::{Fill, When, perform};
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

/// Rows: how far apart in bytes, how many values in each, how many.
#[derive(Clone, Copy)]
struct Rows {
    pitch: usize,
    width: usize,
    height: usize,
}

fn set<const N: usize>(
    stream: OnStream,
    address: DevicePtr,
    value: [u8; N],
    rows: Rows,
    when: When,
) -> Answer {
    let fill = Fill::new(
        stream,
        address,
        value,
        rows.width,
        (rows.height, rows.pitch),
    )?;
    perform(stream, Work::Fill(fill), when)
}

stream_functions! { null:
    fn cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds(
        address: DevicePtr, pitch: usize, value: u8, width: usize, height: usize,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(0, null)?, address, value.to_ne_bytes(), rows, When::Now)
    }

    fn cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz(
        address: DevicePtr, pitch: usize, value: u8, width: usize, height: usize, stream: Handle,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(stream, null)?, address, value.to_ne_bytes(), rows, When::InOrder)
    }

    fn cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds(
        address: DevicePtr, pitch: usize, value: u16, width: usize, height: usize,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(0, null)?, address, value.to_ne_bytes(), rows, When::Now)
    }

    fn cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz(
        address: DevicePtr, pitch: usize, value: u16, width: usize, height: usize, stream: Handle,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(stream, null)?, address, value.to_ne_bytes(), rows, When::InOrder)
    }

    fn cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds(
        address: DevicePtr, pitch: usize, value: u32, width: usize, height: usize,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(0, null)?, address, value.to_ne_bytes(), rows, When::Now)
    }

    fn cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz(
        address: DevicePtr, pitch: usize, value: u32, width: usize, height: usize, stream: Handle,
    ) {
        let rows = Rows { pitch, width, height };
        set(resolve(stream, null)?, address, value.to_ne_bytes(), rows, When::InOrder)
    }
}
