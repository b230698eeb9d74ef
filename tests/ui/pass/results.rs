use gpumem_test::{Gpu, TestResult, gpu_mem_test};

#[derive(Debug)]
struct Mine;

#[gpu_mem_test]
fn ours() -> TestResult {
    std::fs::read("missing")?;
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

fn main() {}
