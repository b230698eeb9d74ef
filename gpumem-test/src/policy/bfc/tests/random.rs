//! Random sequences against the obvious model.

use proptest::prelude::*;

use super::obvious::{ObviousBfc, map_of};
use super::{BfcAttributes, BfcOptions, BfcPolicy, CountingDevice, GIB, KIB, MIB};
use crate::ids::StreamId;
use crate::policy::{Policy, Request};

#[derive(Clone, Debug)]
enum Operation {
    Alloc { size: u64, alignment: u64 },
    Free { block: usize },
    Capacity { bytes: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let size = prop_oneof![
        4 => 1..4 * KIB,
        3 => Just(MIB),
        3 => 1..8 * MIB,
        2 => 8 * MIB..200 * MIB,
        1 => Just(u64::MAX),
    ];
    let alignment = prop_oneof![4 => Just(64), 1 => (8..24_u32).prop_map(|bits| 1 << bits)];
    prop_oneof![
        6 => (size, alignment).prop_map(|(size, alignment)| Operation::Alloc { size, alignment }),
        5 => (0..64_usize).prop_map(|block| Operation::Free { block }),
        1 => (0..600 * MIB).prop_map(|bytes| Operation::Capacity { bytes }),
    ]
}

fn options() -> impl Strategy<Value = BfcOptions> {
    let limit = prop_oneof![Just(777), Just(10 * MIB + 5), 1..GIB];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let fraction = prop_oneof![3 => Just(0.0), 1 => 0.0..0.5];
    (limit, flags, fraction).prop_map(|(limit, (growth, retry, gc, coalesce), fraction)| {
        BfcOptions {
            allow_growth: growth,
            allow_retry_on_failure: retry,
            garbage_collection: gc,
            fragmentation_fraction: fraction,
            may_coalesce: coalesce,
            ..BfcOptions::new(limit)
        }
    })
}

fn device() -> impl Strategy<Value = CountingDevice> {
    let gap = prop_oneof![Just(0), Just(512), Just(3 * MIB)];
    let page = prop_oneof![Just(256), Just(2 * MIB)];
    (gap, page).prop_map(|(gap, page)| CountingDevice {
        gap,
        page,
        ..CountingDevice::new(600 * MIB)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_equals_the_obvious_model(
        options in options(),
        device in device(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let (mut policy, mut mine) = (BfcPolicy::new(options.clone()), device.clone());
        let (mut model, mut other) = (ObviousBfc::new(&options), device);
        let mut held = Vec::new();
        for operation in operations {
            match operation {
                Operation::Alloc { size, alignment } => {
                    let attributes = BfcAttributes { alignment, ..BfcAttributes::default() };
                    let request = Request::new(size, StreamId::DEFAULT);
                    let got = policy.alloc_with(&mut mine, &mut (), request, attributes);
                    let expected = model.alloc(&mut other, size, alignment);
                    let place = got.as_ref().ok().map(|block| (block.address.0, block.size));
                    prop_assert_eq!(place, expected);
                    held.extend(got.ok());
                }
                Operation::Free { block } if !held.is_empty() => {
                    let block = held.swap_remove(block % held.len());
                    policy.free(&mut mine, &mut (), block.id, StreamId::DEFAULT).unwrap();
                    model.free(block.address.0);
                }
                Operation::Free { .. } => {}
                Operation::Capacity { bytes } => {
                    (mine.capacity, other.capacity) = (bytes, bytes);
                }
            }
            prop_assert_eq!(policy.check(), Ok(()));
            prop_assert_eq!(map_of(&policy.heap_map()), model.map());
            prop_assert_eq!(&mine.asked, &other.asked);
            prop_assert_eq!(mine.used, policy.stats().pool_bytes);
        }
    }
}
