//! Random operations of a program.

use proptest::prelude::*;

/// One operation. Indices are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Asks for so many bytes on one of the streams; plainly or stream-ordered.
    Alloc {
        size: u64,
        stream: usize,
        plain: bool,
    },
    /// Frees one of the blocks held.
    Free { block: usize },
    /// Says that a stream uses one of the blocks held.
    RecordStream { block: usize, stream: usize },
    /// Frees a block that was freed before: misuse.
    FreeAgain { block: usize },
    /// Keeps a stream busy, or lets it go on.
    Hold { stream: usize },
    /// Lets a busy stream go on.
    Release { stream: usize },
    /// Waits for a stream.
    Synchronize { stream: usize },
    /// Empties the cache.
    Trim,
    /// Fills so many of 16 parts of one of the blocks held, from one of them on.
    Write { block: usize, from: u64, parts: u64 },
}

/// Sizes around every boundary of the policies, from one byte to more than a small device has.
fn sizes() -> impl Strategy<Value = u64> {
    const MIB: u64 = 1 << 20;
    prop_oneof![
        4 => prop_oneof![Just(4_096_u64), Just(600 << 10), Just(5 * MIB)],
        6 => 1..8_192_u64,
        6 => 8_192..MIB + 1_024,
        6 => MIB..12 * MIB,
        3 => (1..40_u64).prop_map(|count| count * MIB),
        2 => 12 * MIB..90 * MIB,
        1 => prop_oneof![Just(0), Just(300 * MIB), Just(u64::MAX), Just(1 << 60), Just(2 * MIB - 511)],
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let block = 0..64_usize;
    let write = (block.clone(), 0..16_u64, 1..16_u64)
        .prop_map(|(block, from, parts)| Operation::Write { block, from, parts });
    let stream = 0..3_usize;
    prop_oneof![
        12 => (sizes(), stream.clone(), prop::bool::weighted(0.3))
            .prop_map(|(size, stream, plain)| Operation::Alloc { size, stream, plain }),
        9 => block.clone().prop_map(|block| Operation::Free { block }),
        2 => (block.clone(), stream.clone())
            .prop_map(|(block, stream)| Operation::RecordStream { block, stream }),
        1 => block.prop_map(|block| Operation::FreeAgain { block }),
        1 => stream.clone().prop_map(|stream| Operation::Hold { stream }),
        1 => stream.clone().prop_map(|stream| Operation::Release { stream }),
        1 => stream.prop_map(|stream| Operation::Synchronize { stream }),
        1 => Just(Operation::Trim),
        4 => write,
    ]
}

pub(super) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..100)
}
