//! Sets of values in a row.

use super::{Fill, When, perform};
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

fn set<const N: usize>(
    stream: OnStream,
    address: DevicePtr,
    value: [u8; N],
    count: usize,
    when: When,
) -> Answer {
    let fill = Fill::new(stream, address, value, count, (1, 0))?;
    perform(stream, Work::Fill(fill), when)
}

stream_functions! { null:
    fn cuMemsetD8_v2, cuMemsetD8_v2_ptds(address: DevicePtr, value: u8, count: usize) {
        set(resolve(0, null)?, address, value.to_ne_bytes(), count, When::Now)
    }

    fn cuMemsetD8Async, cuMemsetD8Async_ptsz(
        address: DevicePtr, value: u8, count: usize, stream: Handle,
    ) {
        set(resolve(stream, null)?, address, value.to_ne_bytes(), count, When::InOrder)
    }

    fn cuMemsetD16_v2, cuMemsetD16_v2_ptds(address: DevicePtr, value: u16, count: usize) {
        set(resolve(0, null)?, address, value.to_ne_bytes(), count, When::Now)
    }

    fn cuMemsetD16Async, cuMemsetD16Async_ptsz(
        address: DevicePtr, value: u16, count: usize, stream: Handle,
    ) {
        set(resolve(stream, null)?, address, value.to_ne_bytes(), count, When::InOrder)
    }

    fn cuMemsetD32_v2, cuMemsetD32_v2_ptds(address: DevicePtr, value: u32, count: usize) {
        set(resolve(0, null)?, address, value.to_ne_bytes(), count, When::Now)
    }

    fn cuMemsetD32Async, cuMemsetD32Async_ptsz(
        address: DevicePtr, value: u32, count: usize, stream: Handle,
    ) {
        set(resolve(stream, null)?, address, value.to_ne_bytes(), count, When::InOrder)
    }
}
