//! How many blocks fit: computed from the device's limits for a kernel of 32 registers.
//!
//! Source: the CUDA programming guide on occupancy. Registers go to warps in steps of 256, shared
//! memory to blocks in steps of 128 bytes, both as on compute capability 9.0.

use std::ffi::{c_int, c_uint, c_void};

use super::functions::REGISTERS;
use super::{KernelFunction, kernel_function};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::reach;

/// Bytes of dynamic shared memory that a block of a size needs (`CUoccupancyB2DSize`).
type SharedOfBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

const REGISTER_STEP: i64 = 256;
const SHARED_STEP: i64 = 128;

/// The largest cluster that every device with clusters can run.
const PORTABLE_CLUSTER: c_int = 8;

/// What one multiprocessor has.
struct Limits {
    warp: i64,
    threads: i64,
    blocks: i64,
    registers: i64,
    shared: i64,
    reserved_shared: i64,
    shared_of_block: i64,
    multiprocessors: i64,
}

impl Limits {
    fn of_current_device() -> Result<Self, Status> {
        let ordinal = reach::device()?;
        // Numbers of `CUdevice_attribute`.
        let attribute = |number| reach::attribute(ordinal, number).map(i64::from);
        Ok(Self {
            warp: attribute(10)?,
            threads: attribute(39)?,
            blocks: attribute(106)?,
            registers: attribute(82)?,
            shared: attribute(81)?,
            reserved_shared: attribute(111)?,
            shared_of_block: attribute(97)?,
            multiprocessors: attribute(16)?,
        })
    }

    /// How many blocks of so many threads and bytes of shared memory fit at once.
    fn blocks(&self, threads: i64, shared: i64) -> i64 {
        let warps = threads.div_euclid(self.warp) + i64::from(threads % self.warp != 0);
        let by_threads = self.threads / (warps * self.warp);
        let of_warp = (i64::from(REGISTERS) * self.warp).next_multiple_of_step(REGISTER_STEP);
        let by_registers = self.registers / of_warp / warps;
        let taken = (shared + self.reserved_shared).next_multiple_of_step(SHARED_STEP);
        let by_shared = if shared > self.shared_of_block {
            0
        } else {
            self.shared / taken.max(1)
        };
        by_threads.min(by_registers).min(by_shared).min(self.blocks)
    }
}

trait Steps {
    fn next_multiple_of_step(self, step: i64) -> i64;
}

impl Steps for i64 {
    fn next_multiple_of_step(self, step: i64) -> i64 {
        (self + step - 1) / step * step
    }
}

fn shared_bytes(function: &KernelFunction, dynamic: usize) -> Result<i64, Status> {
    let dynamic = i64::try_from(dynamic).map_err(|_| Status::INVALID_VALUE)?;
    let declared = i64::try_from(function.kernel.shared_bytes).unwrap_or(i64::MAX);
    Ok(declared.saturating_add(dynamic).min(i64::MAX / 2))
}

fn active_blocks(function: Handle, threads: c_int, dynamic: usize) -> Result<c_int, Status> {
    let function = kernel_function(function)?;
    if threads <= 0 {
        return Err(Status::INVALID_VALUE);
    }
    if threads as u32 > function.max_threads() {
        return Ok(0);
    }
    let limits = Limits::of_current_device()?;
    Ok(limits.blocks(i64::from(threads), shared_bytes(&function, dynamic)?) as c_int)
}

/// The block that keeps most threads busy, the largest of equals, and the grid that fills the
/// device with it.
///
/// # Safety
/// `of_block` is a function of the program's, which is called without a lock.
unsafe fn best_block(
    function: Handle,
    of_block: SharedOfBlock,
    dynamic: usize,
    limit: c_int,
) -> Result<(c_int, c_int), Status> {
    let function = kernel_function(function)?;
    let limits = Limits::of_current_device()?;
    let most = i64::from(function.max_threads());
    let most = if limit > 0 {
        most.min(i64::from(limit))
    } else {
        most
    };
    let (mut best, mut busiest, mut blocks_of_best) = (0, 0, 0);
    let mut threads = most;
    while threads > 0 {
        let dynamic = match of_block {
            // SAFETY: the caller's.
            Some(of_block) => unsafe { of_block(threads as c_int) },
            None => dynamic,
        };
        let blocks = limits.blocks(threads, shared_bytes(&function, dynamic)?);
        if blocks * threads > busiest {
            (best, busiest, blocks_of_best) = (threads, blocks * threads, blocks);
        }
        // Whole warps below an odd limit.
        threads = (threads - 1) / limits.warp * limits.warp;
    }
    let grid = blocks_of_best * limits.multiprocessors;
    Ok((grid as c_int, best as c_int))
}

fn put_best(grid: *mut c_int, block: *mut c_int, best: (c_int, c_int)) -> Answer {
    // SAFETY: out-parameters of the functions below, as C's contract says.
    unsafe {
        put(grid, best.0)?;
        put(block, best.1)
    }
}

driver_functions! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: Handle,
        threads: c_int,
        dynamic: usize,
    ) {
        put(blocks, active_blocks(function, threads, dynamic)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: Handle,
        threads: c_int,
        dynamic: usize,
        _flags: c_uint,
    ) {
        put(blocks, active_blocks(function, threads, dynamic)?)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: Handle,
        of_block: SharedOfBlock,
        dynamic: usize,
        limit: c_int,
    ) {
        put_best(grid, block, best_block(function, of_block, dynamic, limit)?)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int,
        block: *mut c_int,
        function: Handle,
        of_block: SharedOfBlock,
        dynamic: usize,
        limit: c_int,
        _flags: c_uint,
    ) {
        put_best(grid, block, best_block(function, of_block, dynamic, limit)?)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize,
        function: Handle,
        blocks: c_int,
        threads: c_int,
    ) {
        let function = kernel_function(function)?;
        if blocks <= 0 || threads <= 0 {
            return Err(Status::INVALID_VALUE);
        }
        let limits = Limits::of_current_device()?;
        let each = limits.shared / i64::from(blocks) / SHARED_STEP * SHARED_STEP;
        let declared = shared_bytes(&function, 0)?;
        let free = (each - limits.reserved_shared).min(limits.shared_of_block) - declared;
        put(bytes, usize::try_from(free.max(0)).unwrap_or_default())
    }

    fn cuOccupancyMaxPotentialClusterSize(
        size: *mut c_int,
        function: Handle,
        _config: *const c_void,
    ) {
        kernel_function(function)?;
        put(size, PORTABLE_CLUSTER)
    }

    /// Clusters of the portable size, one block on a multiprocessor each.
    fn cuOccupancyMaxActiveClusters(
        count: *mut c_int,
        function: Handle,
        _config: *const c_void,
    ) {
        kernel_function(function)?;
        let multiprocessors = Limits::of_current_device()?.multiprocessors;
        put(count, multiprocessors as c_int / PORTABLE_CLUSTER)
    }
}
