//! Memory: what takes it, gives it back and answers for it.
//!
//! Device memory is the device's own; here is what the driver knows about it beside: which context
//! an allocation belongs to, pools, pages and mappings by handle, host memory that devices reach,
//! arrays.

mod array_pages;
mod arrays;
mod attributes;
mod formats;
mod host;
mod host_functions;
mod info;
mod ipc;
mod managed;
mod managed_functions;
mod mipmaps;
mod ordered;
mod pages;
mod plain;
mod pool_access;
mod pool_attributes;
mod pools;
mod ranges;

use rustc_hash::FxHashMap;

use self::array_pages::ArrayPages;
use self::arrays::Array;
pub(super) use self::arrays::layout_of;
use self::host::HostRanges;
pub(super) use self::host::is_host;
pub(crate) use self::info::{MemoryAt, MemoryKind, memory_at};
pub(super) use self::managed::touch;
use self::mipmaps::Mipmap;
use self::pages::Mapped;
use self::pools::PoolObject;
use super::handles::Table;
use super::{Function, Host};
use crate::abi::Handle;
use crate::ids::PoolId;

/// What the driver knows of memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pools: Table<PoolObject>,
    /// Pools that are destroyed and of which somebody had memory, with their devices.
    ending_pools: Vec<(usize, PoolId)>,
    /// The contexts of device allocations that these functions made, by address.
    owners: FxHashMap<u64, Handle>,
    host: HostRanges,
    pages: Table<pages::Pages>,
    mapped: Mapped,
    arrays: Table<Array>,
    array_pages: ArrayPages,
    mipmaps: Table<Mipmap>,
}

impl Memory {
    /// Gives a pool of a device a handle.
    pub(super) fn add_pool(&mut self, ordinal: usize, pool: PoolId) -> Handle {
        self.pools.add(PoolObject::new(ordinal, pool))
    }
}

/// Gives back what a context's functions took: device allocations, host memory, arrays. Pools and
/// pages belong to devices and stay.
pub(super) fn clear(host: &Host, context: Handle) {
    plain::clear(host, context);
    pools::end(host);
    host::clear(host, context);
    arrays::clear(host, context);
    mipmaps::clear(host, context);
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    [
        plain::lookup,
        ordered::lookup_on_streams,
        info::lookup,
        attributes::lookup,
        pools::lookup,
        pool_attributes::lookup,
        pool_access::lookup,
        host_functions::lookup,
        managed_functions::lookup,
        managed_functions::lookup_on_streams,
        ranges::lookup,
        pages::lookup,
        arrays::lookup,
        mipmaps::lookup,
        ipc::lookup,
        ipc::lookup_on_streams,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}
