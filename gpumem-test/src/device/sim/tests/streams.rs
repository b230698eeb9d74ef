//! Progress of streams: holds, fences, host functions.

use super::{Bench, MIB};
use crate::device::sim::StreamKind;
use crate::device::{DeviceMemory, Refusal};
use crate::ids::StreamId;

#[test]
fn fences_complete_at_once_unless_the_stream_is_held() {
    let mut bench = Bench::new(0);
    let (s, other) = (bench.stream(), bench.stream());
    let free = bench.device.record(s);
    assert!(bench.device.query(free));
    bench.device.hold(s);
    let held = bench.device.record(s);
    assert!(!bench.device.query(held));
    assert_eq!(bench.device.query_stream(s), Ok(false));
    assert_eq!(bench.device.query_stream(other), Ok(true));
    bench.device.release(s);
    assert!(bench.device.query(held));
    assert_eq!(bench.device.query_stream(s), Ok(true));
}

#[test]
fn waiting_gets_past_a_hold_and_what_comes_later_is_held_again() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    bench.device.hold(s);
    let first = bench.device.record(s);
    let second = bench.device.record(s);
    bench.device.wait(first);
    assert!(bench.device.query(first));
    assert!(!bench.device.query(second));
    bench.device.synchronize_stream(s).unwrap();
    assert!(bench.device.query(second));
    let third = bench.device.record(s);
    assert!(!bench.device.query(third));
    bench.device.release(s);
    assert!(bench.device.query(third));
}

#[test]
fn a_stream_that_waits_for_a_held_one_is_busy_from_there_on() {
    let mut bench = Bench::new(u64::MAX);
    let (s, waiting, third) = (bench.stream(), bench.stream(), bench.stream());
    let block = bench.take(30, waiting);
    bench.device.hold(s);
    let event = bench.device.create_fence();
    bench.device.record_fence(event, s).unwrap();
    bench.device.stream_wait(waiting, event).unwrap();
    bench.free(block, waiting);
    assert_eq!(
        bench.take_at(30, third),
        30,
        "the free on the waiting stream is not finished"
    );
    bench.device.release(s);
    assert_eq!(bench.take_at(30, third), 0);
}

#[test]
fn a_host_functions_turn_settles_what_came_before_it_alone() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let (before, behind) = (bench.take(64, s), bench.take(64, s));
    bench.free(before, s);
    let function = bench.device.launch_host_function(s);
    assert_eq!(bench.reserved(), 64, "before the function has returned");
    bench.free(behind, s);
    bench.device.finish_host_function(function);
    bench.device.finish_host_function(function);
    assert_eq!(bench.reserved(), 64, "its end changes nothing");
    bench.device.synchronize_stream(s).unwrap();
    assert_eq!(bench.reserved(), 0);
}

#[test]
fn a_delayed_effect_comes_when_it_is_shown() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    bench.device.delay_host_functions(true);
    let block = bench.take(64, s);
    bench.free(block, s);
    let function = bench.device.launch_host_function(s);
    assert_eq!(bench.reserved(), 64);
    bench.device.show_host_function(function);
    assert_eq!(bench.reserved(), 0);
    let block = bench.take(64, s);
    bench.free(block, s);
    bench.device.launch_host_function(s);
    bench.device.synchronize();
    assert_eq!(bench.reserved(), 0, "a synchronisation waits for it");
}

#[test]
fn a_host_function_behind_another_has_its_turn_later() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let block = bench.take(64, s);
    let first = bench.device.launch_host_function(s);
    bench.free(block, s);
    let second = bench.device.launch_host_function(s);
    assert_eq!(bench.reserved(), 64);
    bench.device.finish_host_function(first);
    assert_eq!(bench.reserved(), 0);
    assert_eq!(bench.device.query_stream(s), Ok(false));
    bench.device.finish_host_function(second);
    assert_eq!(bench.device.query_stream(s), Ok(true));
}

#[test]
fn an_event_settles_only_what_was_freed_before_its_record() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let (before, _between, behind) = (bench.take(64, s), bench.take(32, s), bench.take(64, s));
    bench.free(before, s);
    let event = bench.device.create_fence();
    bench.device.record_fence(event, s).unwrap();
    bench.free(behind, s);
    bench.device.synchronize_fence(event).unwrap();
    assert_eq!(bench.reserved(), 96);
    bench.device.destroy_fence(event).unwrap();
    assert_eq!(
        bench.device.synchronize_fence(event),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.stream_wait(s, event),
        Err(Refusal::InvalidValue)
    );
}

#[test]
fn destroying_a_stream_settles_its_frees_and_its_handle_is_unknown() {
    let mut bench = Bench::new(0);
    let s = bench.device.create_stream(StreamKind::Blocking);
    let block = bench.take(64, s);
    bench.device.hold(s);
    bench.free(block, s);
    bench.device.destroy_stream(s).unwrap();
    assert_eq!(bench.reserved(), 0);
    assert_eq!(
        bench.device.synchronize_stream(s),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(bench.device.destroy_stream(s), Err(Refusal::InvalidValue));
    assert_eq!(
        bench.device.destroy_stream(StreamId::DEFAULT),
        Err(Refusal::InvalidValue)
    );
    let next = bench.stream();
    assert!(next != s);
    assert_eq!(
        bench.device.malloc_async(bench.pool, MIB, next),
        Ok(bench.at(0))
    );
}

#[test]
fn one_shot_fences_do_not_pile_up() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let first = bench.device.record(s);
    assert!(bench.device.query(first));
    for _ in 0..1_000 {
        let fence = bench.device.record(s);
        assert_eq!(fence.0 as u32, first.0 as u32, "the slot is used again");
        bench.device.wait(fence);
    }
    assert!(bench.device.query(first), "what was seen complete stays so");
}

#[test]
fn what_a_destroyed_stream_left_does_not_reach_the_next_one_in_its_place() {
    let mut bench = Bench::new(u64::MAX);
    let (s, reader) = (bench.stream(), bench.stream());
    let block = bench.take(32, s);
    bench.free(block, s);
    let event = bench.device.create_fence();
    bench.device.record_fence(event, s).unwrap();
    bench.device.stream_wait(reader, event).unwrap();
    bench.device.destroy_stream(s).unwrap();
    let next = bench.stream();
    let block = bench.take(32, next);
    bench.device.hold(next);
    bench.free(block, next);
    assert_eq!(
        bench.take_at(32, reader),
        32,
        "the wait was for the destroyed stream's frees"
    );
}
