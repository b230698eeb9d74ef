//! The pages that arrays lie in.
//!
//! An array of a page or more has pages of its own, smaller ones share pages among themselves.
//! Source: arrays from 4 bytes to 256 MiB, and 100 of 1 KiB that took one page (driver 580.159 on
//! an H200, `tests/traces/facts/`). Assumed: pieces of 512 bytes, as of other memory, and that no
//! page is shared with plain memory.

use std::collections::BTreeMap;

use crate::abi::Status;
use crate::device::{DeviceMemory, Refusal};
use crate::ids::{Address, StreamId};
use crate::sim_driver::Host;
use crate::sim_driver::contexts::Current;

const PAGE: u64 = 2 << 20;
const UNIT: u64 = 512;

/// A page that small arrays share.
#[derive(Debug)]
struct Shared {
    ordinal: usize,
    start: Address,
    /// Bytes of each array by its place in the page.
    pieces: BTreeMap<u64, u64>,
}

/// The shared pages of all devices.
#[derive(Debug, Default)]
pub(super) struct ArrayPages(Vec<Shared>);

impl Shared {
    /// Takes the first gap that is long enough.
    fn take(&mut self, length: u64) -> Option<Address> {
        let mut place = 0;
        for (&offset, &taken) in &self.pieces {
            if offset - place >= length {
                break;
            }
            place = offset + taken;
        }
        if PAGE - place < length {
            return None;
        }
        self.pieces.insert(place, length);
        Some(self.start.offset(place))
    }
}

impl ArrayPages {
    fn take(&mut self, ordinal: usize, length: u64) -> Option<Address> {
        let mut own = self.0.iter_mut().filter(|page| page.ordinal == ordinal);
        own.find_map(|page| page.take(length))
    }

    /// Gives a piece back: the page, if nothing is left in it.
    fn give_back(&mut self, start: Address) -> Option<Address> {
        let holds = |page: &Shared| start.0.wrapping_sub(page.start.0) < PAGE;
        let index = self.0.iter().position(holds)?;
        let page = &mut self.0[index];
        page.pieces.remove(&(start.0 - page.start.0));
        let is_empty = page.pieces.is_empty();
        is_empty.then(|| self.0.swap_remove(index).start)
    }
}

fn map(current: Current, bytes: u64) -> Result<Address, Status> {
    Ok(current.device(|device| {
        let start = device.reserve_range(bytes)?;
        device
            .map(start, bytes, PAGE)
            .inspect_err(|_| device.release_range(start, bytes))?;
        Ok::<_, Refusal>(start)
    })?)
}

fn unmap(host: &Host, ordinal: usize, start: Address, bytes: u64) {
    host.device(ordinal, |device| {
        // The null stream is idle: whoever destroys an array has waited for its use.
        device.unmap(start, bytes, PAGE, StreamId::DEFAULT);
        device.release_range(start, bytes);
    });
}

/// Takes room for so many bytes of an array.
pub(super) fn take(current: Current, bytes: u64) -> Result<Address, Status> {
    if bytes >= PAGE {
        let bytes = bytes.checked_next_multiple_of(PAGE);
        return map(current, bytes.ok_or(Status::OUT_OF_MEMORY)?);
    }
    let length = bytes.max(1).next_multiple_of(UNIT);
    let shared = {
        let pages = &mut current.host.state.tables().memory.array_pages;
        pages.take(current.ordinal, length)
    };
    if let Some(start) = shared {
        return Ok(start);
    }
    let start = map(current, PAGE)?;
    let pages = &mut current.host.state.tables().memory.array_pages;
    pages.0.push(Shared {
        ordinal: current.ordinal,
        start,
        pieces: BTreeMap::from([(0, length)]),
    });
    Ok(start)
}

/// Gives back what [`take`] took.
pub(super) fn give_back(host: &Host, ordinal: usize, start: Address, bytes: u64) {
    if bytes >= PAGE {
        unmap(host, ordinal, start, bytes.next_multiple_of(PAGE));
        return;
    }
    let empty = host.state.tables().memory.array_pages.give_back(start);
    if let Some(page) = empty {
        unmap(host, ordinal, page, PAGE);
    }
}
