//! What a test may return.
// The functions show types, not bodies that need them.
#![allow(clippy::unnecessary_wraps, clippy::unused_unit, clippy::unit_arg)]

use gpumem_test::{Gpu, TestResult, gpu_mem_test};

#[derive(Debug)]
struct Mine;

#[gpu_mem_test]
fn ours() -> TestResult {
    "x".parse::<u8>().map(drop)?;
    Ok(())
}

#[gpu_mem_test]
fn a_string(_: &Gpu) -> Result<(), String> {
    Err("no".to_owned())
}

#[gpu_mem_test]
fn the_users_own(_: &Gpu) -> Result<(), Mine> {
    Err(Mine)
}

#[gpu_mem_test]
fn of_the_crate() -> Result<(), gpumem_test::Error> {
    Ok(())
}

#[gpu_mem_test]
fn one_in_the_other() -> Result<TestResult, std::fmt::Error> {
    Ok(Ok(()))
}

#[gpu_mem_test]
fn unit() -> () {}

#[gpu_mem_test]
fn panics(_: &Gpu) {
    panic!("as any test may");
}

#[test]
fn a_body_that_fails_says_why() {
    use gpumem_test::__private::finish;

    assert!(finish(ours()).is_err_and(|error| error.contains("InvalidDigit")));
    assert_eq!(finish(Err::<(), _>(Mine)), Err("Mine".to_owned()));
    assert_eq!(finish(one_in_the_other()), Ok(()));
    assert_eq!(finish(unit()), Ok(()));
}
