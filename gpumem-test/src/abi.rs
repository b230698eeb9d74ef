//! The few C types and numbers of the driver that hooks, the simulated driver and the real device
//! share.
//!
//! Source: the CUDA driver API, version 13.0; names and layouts are the interface that programs
//! are compiled against.

use std::ffi::c_int;

/// What a driver call returns (`CUresult`).
pub(crate) type Code = c_int;

/// A device address as C passes it (`CUdeviceptr`).
pub(crate) type DevicePtr = u64;

/// A handle of the driver as C passes it: contexts, streams, events, modules, pools, graphs.
pub(crate) type Handle = u64;

/// `CUdevice`: the device's ordinal.
pub(crate) type Ordinal = c_int;

/// The legacy null stream by its name, the other being 0 (`CU_STREAM_LEGACY`).
pub(crate) const STREAM_LEGACY: Handle = 1;

/// The calling thread's own null stream (`CU_STREAM_PER_THREAD`).
pub(crate) const STREAM_PER_THREAD: Handle = 2;

/// The numbers of `CUresult` that we return or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) Code);

impl Status {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const DEINITIALIZED: Self = Self(4);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const UNSUPPORTED_LIMIT: Self = Self(215);
    pub(crate) const UNSUPPORTED_EXEC_AFFINITY: Self = Self(224);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    pub(crate) const CONTEXT_IS_DESTROYED: Self = Self(709);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub(crate) const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub(crate) const NOT_PERMITTED: Self = Self(800);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const STREAM_CAPTURE_INVALIDATED: Self = Self(901);
    pub(crate) const STREAM_CAPTURE_MERGE: Self = Self(902);
    pub(crate) const STREAM_CAPTURE_UNMATCHED: Self = Self(903);
    pub(crate) const STREAM_CAPTURE_UNJOINED: Self = Self(904);
    pub(crate) const STREAM_CAPTURE_ISOLATION: Self = Self(905);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self = Self(906);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: Self = Self(908);
    pub(crate) const GRAPH_EXEC_UPDATE_FAILURE: Self = Self(910);
    pub(crate) const UNKNOWN: Self = Self(999);
}
