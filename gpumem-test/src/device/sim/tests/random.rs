//! Random calls, with everything recomputed in between.

use super::MIB;
use crate::device::DeviceMemory;
use crate::device::sim::{DeviceProfile, ReusePolicy, SimDevice, StreamKind};
use crate::ids::{Address, PoolId, StreamId};

fn run(seed: u64) {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut device = SimDevice::new(DeviceProfile::default());
    device.set_budget(Some(2 << 30));
    let limited = device.create_pool(Some(300 * MIB));
    device
        .set_release_threshold(limited, random(5) * 50 * MIB)
        .expect("the pool exists");
    let reuse = ReusePolicy {
        opportunistic: seed.is_multiple_of(2),
        ..ReusePolicy::default()
    };
    device.set_reuse(limited, reuse).expect("the pool exists");
    let mut streams = vec![StreamId::DEFAULT];
    for kind in [
        StreamKind::Blocking,
        StreamKind::NonBlocking,
        StreamKind::Blocking,
    ] {
        streams.push(device.create_stream(kind));
    }
    let fences = [device.create_fence(), device.create_fence()];
    let mut live: Vec<Address> = Vec::new();
    let mut functions = Vec::new();
    for step in 0..3_000 {
        let index = random(streams.len() as u64) as usize;
        let stream = streams[index];
        let fence = fences[random(2) as usize];
        let magnitude = 1 + random(28);
        let size = 1 + random(1 << magnitude);
        match random(40) {
            0..=13 => {
                let pool = if random(2) == 0 {
                    PoolId::DEFAULT
                } else {
                    limited
                };
                live.extend(device.malloc_async(pool, size, stream));
            }
            14..=16 => live.extend(device.malloc(size)),
            17..=26 if !live.is_empty() => {
                let block = live.swap_remove(random(live.len() as u64) as usize);
                device.free_async(block, stream).expect("a live allocation");
            }
            27 if !live.is_empty() => {
                let block = live.swap_remove(random(live.len() as u64) as usize);
                device.free(block).expect("a live allocation");
            }
            28 => device.synchronize_stream(stream).expect("it exists"),
            29 => device.record_fence(fence, stream).expect("it exists"),
            30 => device.stream_wait(stream, fence).expect("it exists"),
            31 => device.synchronize_fence(fence).expect("it exists"),
            32 => functions.push(device.launch_host_function(stream)),
            33 => functions
                .pop()
                .into_iter()
                .for_each(|function| device.finish_host_function(function)),
            34 => device.hold(stream),
            35 => device.release(stream),
            36 if index > 0 => {
                device.destroy_stream(stream).expect("it exists");
                streams[index] = device.create_stream(StreamKind::Blocking);
            }
            37 => device.trim_pool(limited, size).expect("it exists"),
            38 if step % 5 == 0 => device.synchronize(),
            _ => device.issue_work(stream),
        }
        if step % 7 == 0 {
            device.check();
        }
        assert!(device.used() <= 2 << 30, "the budget holds");
    }
    for block in live {
        device
            .free_async(block, StreamId::DEFAULT)
            .expect("a live allocation");
    }
    device.synchronize();
    device.trim_pools();
    device.check();
    assert_eq!(
        (device.used(), device.live_allocations()),
        (0, 0),
        "everything was returned"
    );
    for stream in streams {
        device.release(stream);
        assert_eq!(device.query_stream(stream), Ok(true));
    }
}

#[test]
fn sums_and_structures_hold_under_random_calls() {
    for seed in 0..6 {
        run(seed);
    }
}
