//! Limits of a context, and the memory that the stack's takes.

use std::ffi::c_int;

use super::current;
use crate::abi::Status;
use crate::sim_driver::devices::cards::{self, Card, card_of};
use crate::sim_driver::devices::persisting_l2;
use crate::sim_driver::export::{Answer, put};

const STACK_SIZE: c_int = 0;
const PRINTF_FIFO_SIZE: c_int = 1;
const MALLOC_HEAP_SIZE: c_int = 2;
const DEV_RUNTIME_SYNC_DEPTH: c_int = 3;
const DEV_RUNTIME_PENDING_LAUNCH_COUNT: c_int = 4;
const MAX_L2_FETCH_GRANULARITY: c_int = 5;
const PERSISTING_L2_CACHE_SIZE: c_int = 6;
/// Can only be asked for.
const SHARED_MEMORY_SIZE: c_int = 7;
/// As above: graphics contexts are not shared.
const GRAPHICS_ENABLED: c_int = 8;
const GRAPHICS_SHARED_MEMORY: c_int = 9;

/// The limits that were set, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits([Option<usize>; 7]);

impl Limits {
    fn stack(&self) -> u64 {
        self.0[STACK_SIZE as usize].map_or(DEFAULT_STACK, |bytes| bytes as u64)
    }
}

/// A limit that was not set.
///
/// Source: driver 580.159 on an H200; what depends on the card is the same part of another's cache.
fn default_of(limit: c_int, card: Card) -> Result<usize, Status> {
    Ok(match limit {
        STACK_SIZE => DEFAULT_STACK as usize,
        PRINTF_FIFO_SIZE => 8_650_752,
        MALLOC_HEAP_SIZE => 8 << 20,
        DEV_RUNTIME_PENDING_LAUNCH_COUNT => 2048,
        MAX_L2_FETCH_GRANULARITY => 64,
        PERSISTING_L2_CACHE_SIZE => persisting_l2(card) as usize / 10 * 3,
        SHARED_MEMORY_SIZE => card.shared_per_block as usize,
        GRAPHICS_ENABLED => 0,
        DEV_RUNTIME_SYNC_DEPTH | GRAPHICS_SHARED_MEMORY => return Err(Status::UNSUPPORTED_LIMIT),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// The stack that a context comes with, in its own overhead.
const DEFAULT_STACK: u64 = 1 << 10;

/// Device memory that stacks of `bytes` a thread take beside the context's own: for every thread
/// that the device can run at once, in pages of 2 MiB.
///
/// Source: 4 152 360 960 bytes for 16 KiB on an H200 (132 × 2048 threads), driver 580.159.
pub(super) fn stack_memory(bytes: u64, threads: u64) -> u64 {
    const PAGE: u64 = 2 << 20;
    bytes
        .saturating_sub(DEFAULT_STACK)
        .saturating_mul(threads)
        .checked_next_multiple_of(PAGE)
        .unwrap_or(u64::MAX)
}

fn set_stack(bytes: usize) -> Answer {
    let current = current()?;
    let threads = current.device(|device| cards::resident_threads(device.profile()));
    let wanted = stack_memory(bytes as u64, threads);
    let before = {
        let tables = &mut *current.host.state.tables();
        stack_memory(
            tables.contexts.get(current.context)?.limits.stack(),
            threads,
        )
    };
    current.device(|device| {
        if wanted >= before {
            device.take_outside(wanted - before)
        } else {
            device.give_outside(before - wanted);
            Ok(())
        }
    })?;
    let tables = &mut *current.host.state.tables();
    let context = tables.contexts.get_mut(current.context)?;
    context.outside = context.outside + wanted - before;
    context.limits.0[STACK_SIZE as usize] = Some(bytes);
    Ok(())
}

driver_functions! {
    /// Only the stack's takes memory at the call; the heap's takes some when a kernel uses it.
    fn cuCtxSetLimit(limit: c_int, value: usize) {
        match limit {
            STACK_SIZE => set_stack(value),
            PRINTF_FIFO_SIZE | MALLOC_HEAP_SIZE | DEV_RUNTIME_PENDING_LAUNCH_COUNT
            | MAX_L2_FETCH_GRANULARITY | PERSISTING_L2_CACHE_SIZE => {
                let current = current()?;
                let tables = &mut *current.host.state.tables();
                tables.contexts.get_mut(current.context)?.limits.0[limit as usize] = Some(value);
                Ok(())
            }
            DEV_RUNTIME_SYNC_DEPTH | GRAPHICS_SHARED_MEMORY => Err(Status::UNSUPPORTED_LIMIT),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    fn cuCtxGetLimit(value: *mut usize, limit: c_int) {
        let current = current()?;
        let card = current.device(|device| card_of(device.profile()));
        let default = default_of(limit, card)?;
        let tables = current.host.state.tables();
        let set = tables.contexts.get(current.context)?.limits.0.get(limit as usize).copied();
        put(value, set.flatten().unwrap_or(default))
    }
}

#[cfg(test)]
mod tests {
    use super::stack_memory;

    #[test]
    fn the_stack_takes_what_was_measured() {
        let threads = 132 * 2048;
        assert_eq!(stack_memory(16 << 10, threads), 4_152_360_960);
        assert_eq!(stack_memory(1 << 10, threads), 0);
        assert_eq!(stack_memory(u64::MAX, threads), u64::MAX);
    }
}
