//! What happens to memory: the one type that policies emit, the ledger keeps and summaries fold.

use crate::ids::{Address, DeviceId, StreamId, TextId, ThreadIndex};

/// How long bfc waits for another thread to free something before a request fails, in milliseconds.
///
/// Source: XLA of August 2026, `BFCAllocator::AllocateRaw`.
pub(crate) const BFC_RETRY_WAIT_MS: u64 = 10_000;

/// One entry of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The device concerned.
    pub device: DeviceId,
    /// The thread that caused it.
    pub thread: ThreadIndex,
    /// The place in the code that caused it.
    pub site: TextId,
    /// What happened.
    pub kind: EventKind,
}

/// A range of device memory on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte.
    pub address: Address,
    /// Its length in bytes.
    pub size: u64,
    /// The stream that owns it.
    pub stream: StreamId,
}

/// What an [`Event`] says. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A block was handed out. `extent.size` is the block, `requested` what the code asked for.
    Alloc {
        /// The block.
        extent: Extent,
        /// Bytes asked for.
        requested: u64,
        /// The call that asked.
        origin: Origin,
    },
    /// The code freed a block; from here on it is not allocated.
    FreeRequested {
        /// The block.
        extent: Extent,
        /// Bytes asked for when it was handed out.
        requested: u64,
    },
    /// No stream uses the block any more; from here on it is not active.
    FreeCompleted {
        /// The block. Under `driver`, a piece of a pool that returned to its common list.
        extent: Extent,
        /// Bytes asked for when it was handed out.
        requested: u64,
    },
    /// The policy took a segment from the device.
    SegmentAlloc {
        /// The segment.
        extent: Extent,
        /// What sort of segment it is.
        kind: SegmentKind,
    },
    /// The policy gave a segment back.
    SegmentFree {
        /// The segment.
        extent: Extent,
        /// What sort of segment it was.
        kind: SegmentKind,
    },
    /// Pages of a reserved address range were backed with memory.
    SegmentMap {
        /// The pages.
        extent: Extent,
        /// Bytes of one page.
        page: u64,
    },
    /// Pages of a reserved address range gave their memory back.
    SegmentUnmap {
        /// The pages.
        extent: Extent,
        /// Bytes of one page.
        page: u64,
    },
    /// Pages of a segment of plain memory got memory, at the first write that can have touched them.
    /// They lose it with their segment. Only under `lazy`, and only on a simulated device.
    Committed {
        /// The pages.
        extent: Extent,
    },
    /// A second attempt to get a segment, after everything cached was released. Under bfc, one for
    /// each pass after the first: between the second and the third the original waits
    /// 10 s.
    Retry {
        /// Bytes of the segment wanted.
        size: u64,
    },
    /// A request failed and the code was told.
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// The same after rounding.
        rounded: u64,
        /// The stream of the request.
        stream: StreamId,
        /// The call that asked.
        origin: Origin,
        /// Why.
        class: OomClass,
        /// Bytes that the device said were free.
        device_free: u64,
        /// The largest block that could have been had without asking the device.
        largest_free: u64,
        /// Bytes that other processes held of the device, where that is known.
        held_by_others: Option<u64>,
    },
    /// The code wants what is not in use to be given back to the device; what is, follows. Under
    /// other settings more of it may be.
    Trim,
    /// A named point in the code.
    Checkpoint {
        /// Its name.
        name: TextId,
    },
    /// The body of the test begins (again).
    RunBegin {
        /// Which run, from 0.
        run: u32,
    },
    /// The body of the test has returned and its streams are synchronised.
    RunEnd {
        /// Which run, from 0.
        run: u32,
    },
    /// A thread made its first event.
    ThreadBegin {
        /// Its name.
        name: TextId,
    },
    /// A thread that had made events ended.
    ThreadEnd,
    /// The code used the handle wrongly where no error could be returned (in a destructor).
    Misuse {
        /// What was wrong.
        message: TextId,
    },
    /// Memory that no policy served was taken from the driver: the call was passed through.
    DriverTaken {
        /// What sort of memory.
        memory: DriverMemory,
        /// Its first byte; of memory without an address (an array, a physical handle) the handle.
        address: Address,
        /// Its length in bytes.
        size: u64,
        /// Whether the budget was charged for it.
        charged: bool,
    },
    /// Such memory was given back.
    DriverReturned {
        /// What sort of memory.
        memory: DriverMemory,
        /// As it was when taken.
        address: Address,
        /// As it was when taken, in bytes.
        size: u64,
        /// As it was when taken.
        charged: bool,
    },
    /// A function was asked for or called that the simulated driver does not have. Recorded once
    /// for each function, though a reader must not rely on it.
    NotSimulated {
        /// The function's name, as `cuTexRefCreate`.
        name: TextId,
    },
    /// The simulated driver took something on trust that a real one knows, such as a kernel's name
    /// in a program that it cannot read. Recorded as functions are that it does not have.
    TakenOnTrust {
        /// What, in words.
        what: TextId,
    },
    /// How many kernels were launched on the device so far, graphs' launches counted as one.
    /// Recorded at checkpoints and when a run ends; the last one holds.
    Launches {
        /// Launches since the session began.
        count: u64,
    },
    /// A free of an address that we never saw was passed to the driver.
    UnknownFree {
        /// The address.
        address: Address,
    },
    /// Something happened that the door cannot vouch for: a panic in a hook, a fork, a library
    /// that was opened past it. It fails the test.
    DoorViolation {
        /// What, in a sentence that names what to do.
        message: TextId,
    },
    /// What the device itself says, at a checkpoint or when a run ends. Nothing unknown is 0.
    DeviceSample {
        /// Bytes in use on the whole device.
        used: Option<u64>,
        /// Bytes in use by this process, as NVML counts them.
        process: Option<u64>,
        /// The highest value of `process` so far, where the device keeps it.
        process_peak: Option<u64>,
    },
    /// The model that decides what the budget refuses, and the driver's own figure, part. The
    /// driver's figure wins.
    ShadowDiffers {
        /// Reserved bytes by the model.
        model: u64,
        /// Reserved bytes by the driver.
        driver: u64,
    },
    /// Reserved bytes got above the budget before anything could refuse.
    BudgetExceeded {
        /// Reserved bytes, charged memory included.
        reserved: u64,
        /// The budget in bytes.
        budget: u64,
    },
}

/// Memory of the driver that no policy serves: it is passed through, and listed by these names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DriverMemory {
    /// `cuMemAllocManaged`.
    Managed,
    /// Host memory that the driver pinned: `cuMemAllocHost`, `cuMemHostAlloc`.
    PinnedHost,
    /// Host memory of the program that was pinned: `cuMemHostRegister`.
    RegisteredHost,
    /// `cuArrayCreate`, `cuArray3DCreate`.
    Array,
    /// `cuMipmappedArrayCreate`.
    MipmappedArray,
    /// A stream-ordered pool that the program made: `cuMemPoolCreate`.
    ExplicitPool,
    /// Physical memory of the virtual memory calls: `cuMemCreate`.
    VirtualMemory,
    /// Memory of another process: `cuIpcOpenMemHandle`.
    Ipc,
    /// Memory of another interface: `cuImportExternalMemory`.
    External,
    /// Memory nodes of graphs and allocations inside captures.
    Graph,
    /// Plain and stream-ordered memory of a context other than the primary one.
    OtherContext,
}

impl DriverMemory {
    /// Every kind, in the order of reports and snapshots.
    pub(crate) const ALL: [Self; 11] = [
        Self::Managed,
        Self::Array,
        Self::MipmappedArray,
        Self::ExplicitPool,
        Self::VirtualMemory,
        Self::Graph,
        Self::OtherContext,
        Self::Ipc,
        Self::External,
        Self::PinnedHost,
        Self::RegisteredHost,
    ];

    /// What it is called in reports and in snapshots.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::PinnedHost => "pinned host",
            Self::RegisteredHost => "registered host",
            Self::Array => "array",
            Self::MipmappedArray => "mipmapped array",
            Self::ExplicitPool => "explicit pool",
            Self::VirtualMemory => "virtual memory",
            Self::Ipc => "from other processes",
            Self::External => "external",
            Self::Graph => "graph",
            Self::OtherContext => "other context",
        }
    }

    /// Whether it is memory of the host, which is no device's and which no budget is charged for.
    pub fn is_host(self) -> bool {
        matches!(self, Self::PinnedHost | Self::RegisteredHost)
    }
}

/// Which of the driver's calls the code made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// `cuMemAllocAsync`, and everything the handle does on a stream.
    #[default]
    StreamOrdered,
    /// `cuMemAlloc`.
    Plain,
}

/// What sort of segment the device gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A caching segment for small blocks.
    Small,
    /// A caching segment for large blocks.
    Large,
    /// A 2 MiB page of plain memory that several small allocations share.
    SharedPage,
    /// Pages of plain memory that one allocation has for itself.
    OwnPages,
    /// A region of a bfc pool that collects garbage: it goes back once nothing in it is in use.
    Region,
    /// A region of a bfc pool that gives nothing back.
    KeptRegion,
}

/// Why a request could not be served.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OomClass {
    /// All memory of the device is in use.
    Exhausted,
    /// There is enough free memory, but no hole is large enough.
    Fragmented,
    /// The device has room, the budget has not.
    Budget,
    /// Free memory that would do belongs to another stream or pool.
    CachedElsewhere,
    /// Freed memory that would do may still be used by a stream.
    FreesPending,
    /// Other processes hold the memory.
    OutsideProcess,
}

impl OomClass {
    /// What it is called in reports and in snapshots.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Fragmented => "fragmented",
            Self::Budget => "budget",
            Self::CachedElsewhere => "cached elsewhere",
            Self::FreesPending => "frees pending",
            Self::OutsideProcess => "outside process",
        }
    }
}

/// Takes what happens, in order. The unit type takes nothing and costs nothing.
pub trait EventSink {
    /// Takes one event.
    fn record(&mut self, kind: EventKind);
}

impl EventSink for () {
    #[inline]
    fn record(&mut self, _: EventKind) {}
}

impl<S: EventSink> EventSink for &mut S {
    #[inline]
    fn record(&mut self, kind: EventKind) {
        (**self).record(kind);
    }
}

impl EventSink for Vec<EventKind> {
    #[inline]
    fn record(&mut self, kind: EventKind) {
        self.push(kind);
    }
}
