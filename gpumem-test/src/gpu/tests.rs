//! The handle, over the simulated device.

use crate::bytes::Bytes;
use crate::error::Error;
use crate::gpu::{Buffer, Gpu};
use crate::ids::Address;

fn gpu(policy: &str) -> Gpu {
    Gpu::builder().policy(policy).budget("1GiB").open().unwrap()
}

#[test]
fn copies_and_fills_move_bytes() -> Result<(), Error> {
    for policy in [
        "driver",
        "eager",
        "async",
        "lazy",
        "caching",
        "caching:expandable_segments:True",
        "bfc",
        "xla",
    ] {
        let gpu = gpu(policy);
        let mut source = gpu.upload(&[1_u32, 2, 3, 0xdead_beef])?;
        assert_eq!(source.copy_to_host()?, [1, 2, 3, 0xdead_beef]);
        let mut target = gpu.alloc_zeros::<u32>(8)?;
        target.copy_at(2, &source)?;
        assert_eq!(target.copy_to_host()?, [0, 0, 1, 2, 3, 0xdead_beef, 0, 0]);
        source.fill(7)?;
        assert_eq!(source.copy_to_host()?, [7; 4]);
        source.fill_bytes(0xff)?;
        assert_eq!(source.copy_to_host()?, [u32::MAX; 4]);
    }
    Ok(())
}

#[test]
fn huge_fills_cost_little_host_memory() -> Result<(), Error> {
    let gpu = Gpu::builder().device("sim:h200").policy("caching").open()?;
    let mut huge = gpu.alloc::<u32>(20 << 30)?;
    huge.fill_bytes(0x55)?;
    drop(huge);
    assert_eq!(gpu.max_memory_allocated(), Bytes::gib(80));
    Ok(())
}

#[test]
fn a_dropped_buffer_is_freed_once() -> Result<(), Error> {
    let gpu = gpu("caching");
    let buffer = gpu.alloc::<u8>(1_000)?;
    assert_eq!(
        (buffer.size(), buffer.allocated_size()),
        (Bytes::new(1_000), Bytes::new(1_024))
    );
    buffer.free()?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}

#[test]
fn zero_elements_take_nothing() -> Result<(), Error> {
    for policy in ["driver", "caching"] {
        let gpu = gpu(policy);
        let mut empty: Buffer<f64> = gpu.alloc(0)?;
        assert_eq!((empty.address(), empty.len()), (Address::NULL, 0));
        empty.copy_from_host(&[])?;
        empty.fill(1.0)?;
        assert!(empty.copy_to_host()?.is_empty());
        assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    }
    Ok(())
}

#[test]
fn the_driver_refuses_a_plain_request_of_nothing() -> Result<(), Error> {
    let error = gpu("driver").malloc(Bytes::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "cuMemAlloc of 0 B failed: invalid value");
    assert_eq!(gpu("caching").malloc(Bytes::ZERO)?, Address::NULL);
    Ok(())
}

#[test]
fn absurd_sizes_are_out_of_memory_or_named() {
    for policy in ["driver", "caching"] {
        let gpu = gpu(policy);
        for len in [1 << 50, 1 << 60, u64::MAX as usize] {
            let error = gpu.alloc::<u8>(len).unwrap_err();
            assert!(error.is_out_of_memory(), "{policy} {len}: {error}");
        }
        let error = gpu.alloc::<u64>(usize::MAX).unwrap_err();
        assert!(error.to_string().contains("2^64 bytes or more"), "{error}");
    }
}

#[test]
fn a_raw_address_is_freed_once_and_only_here() -> Result<(), Error> {
    let gpu = gpu("driver");
    let address = gpu.malloc(Bytes::mib(3))?;
    assert_eq!(gpu.memory_reserved(), Bytes::mib(4));
    gpu.free(address)?;
    gpu.free(Address::NULL)?;
    let again = gpu.free(address).unwrap_err();
    assert!(
        again.is_misuse() && again.to_string().contains("freed twice"),
        "{again}"
    );
    let foreign = gpu.free(Address(12_345)).unwrap_err();
    assert!(foreign.is_misuse(), "{foreign}");
    Ok(())
}

#[test]
fn what_belongs_to_another_session_is_refused() -> Result<(), Error> {
    let (here, there) = (gpu("caching"), gpu("driver"));
    let mut ours = here.alloc::<u8>(16)?;
    let theirs = there.alloc::<u8>(16)?;
    for error in [
        ours.copy_from(&theirs).unwrap_err(),
        ours.record_stream(&there.stream()?).unwrap_err(),
        here.default_stream()
            .wait_for(&there.default_stream())
            .unwrap_err(),
    ] {
        assert!(
            error.is_misuse() && error.to_string().contains("another session"),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn a_buffer_that_outlives_its_session_says_so() -> Result<(), Error> {
    let gpu = gpu("caching");
    let mut buffer = gpu.alloc::<u8>(16)?;
    gpu.session.close();
    let error = buffer.fill(1).unwrap_err();
    assert!(
        error.to_string().contains("outlived its session"),
        "{error}"
    );
    assert!(error.to_string().contains("tests.rs"), "{error}");
    assert!(gpu.alloc::<u8>(1).unwrap_err().is_misuse());
    drop(buffer);
    Ok(())
}

#[test]
fn lengths_that_differ_are_named() -> Result<(), Error> {
    let gpu = gpu("caching");
    let mut buffer = gpu.alloc::<u8>(16)?;
    let error = buffer.copy_from_host(&[0; 3]).unwrap_err();
    assert!(
        error.to_string().contains("cannot copy in 3 elements"),
        "{error}"
    );
    let source = gpu.alloc::<u8>(10)?;
    assert!(buffer.copy_at(7, &source).unwrap_err().is_misuse());
    Ok(())
}

#[test]
fn the_budget_is_the_card_that_the_code_sees() -> Result<(), Error> {
    for policy in ["driver", "caching", "caching:expandable_segments:True"] {
        let gpu = Gpu::builder().policy(policy).budget("64MiB").open()?;
        assert_eq!(gpu.memory_info().total, 64 << 20);
        let held = gpu.alloc_bytes(Bytes::mib(40))?;
        assert!(
            gpu.alloc_bytes(Bytes::mib(40))
                .unwrap_err()
                .is_out_of_memory()
        );
        assert!(gpu.memory_reserved() <= Bytes::mib(64));
        let info = gpu.memory_info();
        assert_eq!(info.free, info.total - gpu.memory_reserved().get());
        drop(held);
    }
    Ok(())
}

#[test]
fn a_budget_above_the_device_is_refused_with_both_numbers() {
    let error = Gpu::builder()
        .device("sim:24GiB")
        .budget("48GiB")
        .open()
        .unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("48.00 GiB exceeds the 24.00 GiB"), "{text}");
    assert!(text.contains("help:"), "{text}");
}

#[test]
fn recorded_streams_keep_memory_until_their_fence() -> Result<(), Error> {
    let gpu = gpu("caching");
    let side = gpu.stream()?;
    let buffer = gpu.alloc_bytes(Bytes::mib(30))?;
    buffer.record_stream(&side)?;
    let busy = side.hold()?;
    drop(buffer);
    let second = gpu.alloc_bytes(Bytes::mib(30))?;
    assert_eq!(
        gpu.memory_reserved(),
        Bytes::mib(60),
        "the first is still in use"
    );
    drop((busy, second));
    let (_a, _b) = (
        gpu.alloc_bytes(Bytes::mib(30))?,
        gpu.alloc_bytes(Bytes::mib(30))?,
    );
    assert_eq!(gpu.memory_reserved(), Bytes::mib(60), "both are free again");
    Ok(())
}

#[test]
fn the_figures_have_pytorchs_names() -> Result<(), Error> {
    let gpu = gpu("caching");
    let _held = gpu.alloc_bytes(Bytes::kib(600))?;
    let stats = gpu.memory_stats();
    assert_eq!(stats.len(), 122);
    assert_eq!(stats["allocated_bytes.small_pool.peak"], 600 << 10);
    assert!(
        gpu.memory_summary()
            .contains("PyTorch CUDA memory summary, device ID 0")
    );
    assert_eq!(gpu.memory_snapshot().segments.len(), 1);
    gpu.reset_peak_memory_stats();
    assert_eq!(gpu.max_memory_reserved(), Bytes::mib(2));
    Ok(())
}

#[test]
fn the_handle_is_used_from_many_threads() -> Result<(), Error> {
    let gpu = gpu("caching");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for size in 1..200 {
                    drop(gpu.alloc::<u8>(size * 100).unwrap());
                }
            });
        }
    });
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    assert_eq!(gpu.memory_stats()["allocation.all.allocated"], 8 * 199);
    Ok(())
}

#[test]
fn a_bare_bfc_pool_takes_the_budget_or_the_card_at_its_first_request() -> Result<(), Error> {
    let cards = [None, Some("3GB")].map(|budget| {
        let gpu = Gpu::builder().device("sim:h200").policy("bfc");
        budget
            .into_iter()
            .fold(gpu, |gpu, budget| gpu.budget(budget))
    });
    for (card, pool) in cards.into_iter().zip([71_313, 1_430]) {
        let gpu = card.open()?;
        assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
        let _byte = gpu.alloc::<u8>(1)?;
        // All pages that can be had, in one region: the device refused nothing.
        assert_eq!(gpu.memory_reserved(), Bytes::mib(2 * pool));
        assert_eq!(gpu.memory_snapshot().segments.len(), 1);
    }
    Ok(())
}

#[test]
fn a_pool_with_a_fraction_is_refused_more_for_its_budget() -> Result<(), Error> {
    let policy = "bfc:per_process_gpu_memory_fraction=0.45";
    let gpu = Gpu::builder().device("sim:24GiB").policy(policy).open()?;
    let _block = gpu.alloc::<u8>(1 << 20)?;
    let limit = ((24_u64 << 30) as f64 * 0.45) as u64;
    assert_eq!(gpu.memory_reserved(), Bytes::new(limit / 256 * 256));
    let error = gpu.alloc::<u8>(12 << 30).unwrap_err();
    let class = error.as_out_of_memory().unwrap().class;
    assert_eq!(class, crate::event::OomClass::Budget);
    Ok(())
}

#[test]
fn the_figures_of_bfc_are_there_under_bfc_only() -> Result<(), Error> {
    let gpu = gpu("tensorflow:TF_FORCE_GPU_ALLOW_GROWTH=true");
    let _block = gpu.alloc::<u8>(3 << 20)?;
    let stats = gpu.bfc_stats().unwrap();
    assert_eq!((stats.pool_bytes, stats.bytes_limit), (4 << 20, 1 << 30));
    let log = gpu.bfc_memory_dump(Bytes::gib(2), "MatMul").unwrap();
    assert!(log.contains("BFCAllocator dump for GPU_0_bfc"), "{log}");
    assert!(self::gpu("caching").bfc_stats().is_none());
    Ok(())
}

#[test]
fn eager_takes_a_buffer_back_when_it_is_dropped_and_async_when_it_is_settled() -> Result<(), Error>
{
    let (eager, ordered) = (gpu("eager"), gpu("async:release_threshold=32MiB"));
    drop(eager.alloc::<u8>(3 << 20)?);
    assert_eq!(eager.memory_reserved(), Bytes::ZERO);
    assert_eq!(eager.max_memory_reserved(), Bytes::mib(4));
    drop(ordered.alloc::<u8>(40 << 20)?);
    assert_eq!(ordered.memory_reserved(), Bytes::mib(64));
    ordered.synchronize()?;
    assert_eq!(ordered.memory_reserved(), Bytes::mib(32));
    ordered.empty_cache()?;
    assert_eq!(ordered.memory_reserved(), Bytes::ZERO);
    assert_eq!(
        eager.memory_committed(),
        None,
        "it is all there at the request"
    );
    Ok(())
}

#[test]
fn bare_addresses_go_back_under_every_policy_of_the_driver() -> Result<(), Error> {
    for policy in ["driver", "eager", "async:max_size=64MiB", "lazy"] {
        let gpu = gpu(policy);
        let address = gpu.malloc(Bytes::mib(5))?;
        assert!(gpu.memory_allocated() >= Bytes::mib(5), "{policy}");
        gpu.free(address)?;
        assert_eq!(gpu.memory_allocated(), Bytes::ZERO, "{policy}");
        gpu.empty_cache()?;
        assert_eq!(gpu.memory_reserved(), Bytes::ZERO, "{policy}");
    }
    Ok(())
}

#[test]
fn lazy_has_memory_for_what_was_written() -> Result<(), Error> {
    let gpu = gpu("lazy");
    let mut buffer = gpu.alloc::<u32>(8 << 20)?;
    assert_eq!(gpu.memory_reserved(), Bytes::mib(32));
    assert_eq!(gpu.memory_committed(), Some(Bytes::ZERO));
    let source = gpu.upload(&[1_u32; 1 << 10])?;
    assert_eq!(gpu.memory_committed(), Some(Bytes::mib(2)));
    buffer.copy_at(4 << 20, &source)?;
    assert_eq!(gpu.memory_committed(), Some(Bytes::mib(4)));
    assert_eq!(buffer.copy_to_host()?[4 << 20], 1);
    buffer.fill(9)?;
    assert_eq!(gpu.memory_committed(), Some(Bytes::mib(34)));
    drop(buffer);
    assert_eq!(gpu.memory_committed(), Some(Bytes::mib(2)));
    let error = gpu.alloc::<u8>(2 << 30).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    Ok(())
}

#[test]
fn policies_of_the_driver_say_what_is_wrong_with_their_options() {
    for (policy, said) in [
        ("eager:threshold=1", "policy `eager` has no options"),
        ("lazy:page=2MiB", "policy `lazy` has no options"),
        ("async:max_size=1MiB", "between 32.00 MiB"),
    ] {
        let error = Gpu::builder().policy(policy).open().unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let gpu = gpu("stream-ordered:release_threshold:100MiB");
    let expected = [
        ("release_threshold", "96.00 MiB".to_owned()),
        ("max_size", "none".to_owned()),
    ];
    assert_eq!(gpu.policy_settings(), expected);
}
