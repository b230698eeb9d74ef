//! Copies and fills of every form, on the bytes of devices, arrays and the host.
//!
//! A form is made into one shape: rows of bytes at a distance, in layers at a distance, from one
//! place to another. What the driver refuses is refused when the shape is made; when it is done is
//! the stream's business.

mod arrays;
mod batch;
mod fill;
mod linear;
mod peer;
mod place;
mod planes;
mod set_planes;
mod sets;
mod shape;

pub(super) use self::fill::Fill;
use self::place::{Base, Expected, at};
pub(super) use self::planes::{Copy3d, describe, shape};
pub(super) use self::shape::Copy;
use super::contexts::current;
use super::export::Answer;
use super::streams::{OnStream, Work, issue, issue_at_once};
use super::{Function, opened};
use crate::abi::DevicePtr;

/// Whether the caller of a function waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Now,
    InOrder,
}

fn perform(stream: OnStream, work: Work, when: When) -> Answer {
    match when {
        When::Now => issue_at_once(stream, &work),
        When::InOrder => issue(stream, work),
    }
}

/// Reads a few bytes that a device reaches.
pub(super) fn read_bytes(address: DevicePtr, into: &mut [u8]) -> Answer {
    let host = current()?.host;
    let length = into.len() as u64;
    let base = at(host, address, Expected::Device, length)?;
    base.read(host, 0, into)
}

/// Writes a few bytes that a device reaches; on any thread.
pub(super) fn write_bytes(address: DevicePtr, bytes: &[u8]) -> Answer {
    let host = opened()?;
    let base: Base = at(host, address, Expected::Device, bytes.len() as u64)?;
    base.write(host, 0, bytes)
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    [
        linear::lookup_on_streams,
        planes::lookup_on_streams,
        peer::lookup_on_streams,
        arrays::lookup_on_streams,
        batch::lookup_on_streams,
        sets::lookup_on_streams,
        set_planes::lookup_on_streams,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}
