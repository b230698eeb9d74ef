//! Names of things that are numbers: devices, streams, addresses, sites, threads.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device of the session, counted from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DeviceId(pub u16);

/// A stream: the raw handle, as the driver and PyTorch's recordings give it.
///
/// Free lists order by the handle as an unsigned number, so it is part of the behaviour.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The legacy null stream.
    pub const DEFAULT: Self = Self(0);

    /// Marks a thread's own null stream: the driver has one handle for those of all threads. No
    /// handle is so large, since handles are addresses of the process.
    const PER_THREAD: u64 = 1 << 63;

    /// The null stream of a thread (`CU_STREAM_PER_THREAD` on that thread).
    pub(crate) const fn per_thread(thread: ThreadIndex) -> Self {
        Self(Self::PER_THREAD | thread.0 as u64)
    }

    // What speaks to a real driver needs it.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    /// The handle by which the driver knows it; a thread's own null stream on that thread only.
    pub(crate) const fn driver_handle(self) -> u64 {
        if self.0 & Self::PER_THREAD != 0 {
            2
        } else {
            self.0
        }
    }
}

/// An address in device memory. Never dereferenced.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Address(pub u64);

impl Address {
    /// The null address, which zero-sized requests get.
    pub const NULL: Self = Self(0);

    /// The address `bytes` further on.
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A block that a policy handed out: a slot and the slot's generation, so that a stale id is
/// recognised after the slot was used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u64);

impl BlockId {
    /// The block that a zero-sized request gets; freeing it does nothing.
    pub const NULL: Self = Self(u64::MAX);

    /// The block in slot `slot`, which is in its `generation`-th use.
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    /// The slot.
    pub const fn slot(self) -> u32 {
        self.0 as u32
    }

    /// The slot's generation.
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A stream-ordered pool of the device; 0 is the device's default pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

impl PoolId {
    /// The device's default pool.
    pub const DEFAULT: Self = Self(0);
}

/// A point in a stream, after which what came before it is complete (CUDA calls it an event).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A text of the ledger: the place of a call, the name of a checkpoint or thread.
///
/// 0 stands for "unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(pub u32);

impl TextId {
    /// No text.
    pub const UNKNOWN: Self = Self(0);
}

/// A thread of the test, in the order in which threads first made an event, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(pub u32);
