//! Test the GPU memory that your code needs.
//!
//! A test annotated with [`#[gpu_mem_test]`](macro@gpu_mem_test) runs in a process of its own under
//! a chosen allocator and a hard budget. Afterwards its peaks, fragmentation and leaks are held
//! against bounds and against an insta snapshot that is reviewed like code. No GPU is needed: the
//! simulated device has the figures of a real one, to the byte.
//!
//! ```no_run
//! use gpumem_test::prelude::*;
//!
//! #[gpu_mem_test(budget = "2GiB", policy = "caching", max_allocated = "1.2GiB", snapshot)]
//! fn decoding_keeps_its_cache_small(gpu: &Gpu) -> TestResult {
//!     let mut cache = gpu.alloc::<f32>(1 << 20)?;
//!     gpu.checkpoint("prefill");
//!     for token in 1..=120 {
//!         cache = gpu.alloc((1 << 20) + (token << 10))?; // the old one lives until here
//!     }
//!     gpu.checkpoint("decode");
//!     drop(cache);
//!     Ok(())
//! }
//!
//! gpumem_test::main!(); // in Cargo.toml: [[test]] name = "…", harness = false
//! ```
//!
//! The code under test stays as it is (cudarc, burn, candle, a C library): on Linux with glibc every
//! call of the CUDA driver in the test's process goes through the policy and the budget, whether
//! the driver is there or simulated. Programs that are linked against libcuda need the feature
//! `direct`; without the feature `cuda` (on by default) every device is simulated.
//!
//! Where things are: the attribute's options are in [`gpu_mem_test`](macro@gpu_mem_test), the handle is [`Gpu`], the
//! allocators are [`CachingPolicy`] and [`DriverPolicy`] over any [`DeviceMemory`] ([`SimDevice`]),
//! and [`Replay`] runs a [`Trace`] (a PyTorch memory snapshot, or your own list) under any of them.
//!
//! Environment variables that the harness reads are listed in [`environment`].

// Where there is no door, nobody calls what only its hooks use.
#![cfg_attr(not(gpumem_door), allow(dead_code))]

// Vocabulary.
mod abi;
mod bytes;
mod config;
mod error;
mod event;
mod guard;
mod heap_map;
mod ids;
mod mutant;
mod rounding;

// Where memory comes from, where a request goes, what happened.
mod device;
mod ledger;
mod policy;
mod trace;

// What a device does with memory.
mod doctor;

// Where in unmodified code a call came from.
mod callsite;

// One policy on one device, recorded; a test's heaps; and the front doors to them.
mod gpu;
mod heap;
mod replay;
mod session;

// A driver for machines that have none.
#[allow(unsafe_code)] // C functions: what C passes is all there is.
#[cfg_attr(not(gpumem_door), allow(unused_imports))] // programs reach it by the door
mod sim_driver;

// How unmodified code reaches us.
#[allow(unsafe_code)] // Stands between C callers and C functions.
mod intercept;

// What came of it, and what it would have taken.
mod advice;
mod check;
mod report;
mod snapshot;
mod summary;

// Running tests.
mod harness;
mod macros;

pub mod prelude;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use bytes::Bytes;
pub use config::{Budget, Card, DeviceSpec, PolicyKind, PolicySpec};
pub use device::sim::{
    DeviceProfile, HostFunction, PageHandle, PoolFigures, ProfileSource, ReusePolicy, SimDevice,
    StreamKind,
};
pub use device::{BackingChange, DeviceMemory, MemoryInfo, PoolSettings, Refusal};
pub use doctor::{
    AllocationCourse, Belief, BeliefBasis, BeliefVerdict, ContextCosts, DeviceIdentity,
    DeviceReport, EnvironmentFacts, Fact, NvmlView, PageCost, PageRule, PoolRule, ReportSource,
    SecondContext, VirtualCourse, doctor,
};
pub use error::{Error, OutOfMemory};
pub use event::{DriverMemory, Event, EventKind, EventSink, Extent, OomClass, SegmentKind};
pub use gpu::{Buffer, Busy, Gpu, GpuBuilder, Stream};
pub use gpumem_test_macros::gpu_mem_test;
pub use harness::{TestResult, environment, exit_code};
pub use heap_map::{BlockState, HeapMap, SegmentState, Usage};
pub use ids::{Address, BlockId, DeviceId, Fence, PoolId, StreamId, TextId, ThreadIndex};
pub use ledger::{Ledger, LedgerSink, Recording, Slot};
pub use policy::{
    AnyPolicy, BfcAttributes, BfcConfig, BfcFramework, BfcOptions, BfcPolicy, BfcStats, Block,
    CachingConfig, CachingPolicy, DriverPolicy, MemoryLimits, Origin, Policy, PrivatePoolId,
    ROUNDUP_INTERVALS, Request, Stat, Statistics, StatsByPool, memory_summary,
};
pub use replay::{Replay, ReplayOom, ReplayOutcome};
pub use report::heap_svg;
pub use summary::{
    Counts, DeviceSummary, DeviceUsed, FailedRequest, Growth, Holder, Hole, HolePin, Leak, Level,
    Moment, Neighbour, Others, PassedMemory, Setting, ShadowDifference, Summary, Timeline, Window,
};
pub use trace::{
    Action, Annotation, Frame, FramesId, HeldBlock, RecordedSettings, SiteId, SnapshotBlock,
    SnapshotSegment, StartState, TorchSnapshot, Trace, TraceBlock, TraceBuilder, TraceEntry,
    TraceOp,
};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
