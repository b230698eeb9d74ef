//! Copies and fills.

use super::{Bench, MIB};
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::device::{DeviceMemory, Refusal};

#[test]
fn bytes_move_between_host_and_device() {
    let mut bench = Bench::new(u64::MAX);
    let s = bench.stream();
    let (from, to) = (bench.take(3, s), bench.take(3, s));
    let bytes: Vec<u8> = (0..2 * MIB)
        .map(|place| ((place * 31) >> 3) as u8)
        .collect();
    bench.device.write(from.offset(5), &bytes).unwrap();
    bench
        .device
        .copy(from.offset(5), to.offset(7), 2 * MIB)
        .unwrap();
    let mut back = vec![0; bytes.len()];
    bench.device.read(to.offset(7), &mut back).unwrap();
    assert!(back == bytes);
    bench.device.fill(to, MIB, 9).unwrap();
    bench
        .device
        .fill_pattern(to.offset(4), 8, &[1, 2, 3, 4])
        .unwrap();
    let mut start = [0; 14];
    bench.device.read(to, &mut start).unwrap();
    assert_eq!(start, [9, 9, 9, 9, 1, 2, 3, 4, 1, 2, 3, 4, 9, 9]);
    assert_eq!(
        bench.device.fill_pattern(to.offset(2), 8, &[1, 2, 3, 4]),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.fill_pattern(to, 6, &[1, 2, 3]),
        Err(Refusal::InvalidValue)
    );
}

#[test]
fn a_range_must_lie_inside_one_live_allocation() {
    let mut bench = Bench::new(u64::MAX);
    let s = bench.stream();
    let block = bench.take(1, s);
    let end = block.offset(MIB - 2);
    assert_eq!(
        bench.device.write(end, &[1, 2, 3]),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.fill(block, MIB + 1, 0),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.fill(block, u64::MAX, 0),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.read(bench.at(9), &mut [0]),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(bench.device.copy(block, end, 3), Err(Refusal::InvalidValue));
    assert_eq!(bench.device.write(bench.at(9), &[]), Ok(()));
    bench.free(block, s);
    assert_eq!(bench.device.write(block, &[1]), Err(Refusal::InvalidValue));
}

#[test]
fn a_whole_card_can_be_filled_and_is_forgotten_with_its_memory() {
    let mut device = SimDevice::new(DeviceProfile::default());
    let size = device.free_without_budget();
    let all = device.malloc(size).unwrap();
    device.fill(all, size, 0xaa).unwrap();
    device.write(all.offset(size / 2), &[1; 100]).unwrap();
    assert!(device.host_bytes() < 10_000);
    let mut last = [0; 2];
    device.read(all.offset(size - 2), &mut last).unwrap();
    assert_eq!(last, [0xaa; 2]);
    device.free(all).unwrap();
    assert_eq!(device.host_bytes(), 0);
}

#[test]
fn a_chunk_that_lost_its_memory_lost_its_bytes() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let block = bench.take(32, s);
    bench.device.fill(block, 32 * MIB, 5).unwrap();
    bench.free(block, s);
    let again = bench.take(32, s);
    let mut byte = [0];
    bench.device.read(again, &mut byte).unwrap();
    assert_eq!(
        (again, byte),
        (block, [5]),
        "reused in stream order, as it was"
    );
    bench.free(again, s);
    bench.device.synchronize_stream(s).unwrap();
    assert_eq!(bench.device.host_bytes(), 0);
}
