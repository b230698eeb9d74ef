//! Arguments of several types, and the names that they give.

use gpumem_test::{Gpu, TestResult, gpu_mem_test};

#[derive(Clone, Copy)]
enum Mode {
    Fast,
    Exact,
}

const LIMIT: usize = 4;

#[gpu_mem_test(args = [1, 8, 64, LIMIT, 2 * LIMIT])]
fn numbers(_: &Gpu, _batch: usize) {}

#[gpu_mem_test(args = [-1.0, 0.5, 1e3])]
fn floats(_: &Gpu, _: f32) {}

#[gpu_mem_test(args = ["f32", "bf16", ""])]
fn strings(_: &Gpu, kind: &str) -> TestResult {
    Err(kind)?
}

#[gpu_mem_test(args = [String::from("x"), format!("{LIMIT}")])]
fn owned(_: &Gpu, mut text: String) {
    text.push('!');
}

#[gpu_mem_test(args = [Mode::Fast, Mode::Exact])]
fn enums(_: &Gpu, mode: Mode) {
    match mode {
        Mode::Fast | Mode::Exact => {}
    }
}

#[gpu_mem_test(args = [(1, true), (2, false)])]
fn tuples(_: &Gpu, (_layers, _recompute): (usize, bool)) {}

#[gpu_mem_test(args = [&[1, 2], &[3, 4]], policy = ["driver", "caching"])]
fn slices(_: &Gpu, _shape: &[usize]) {}

#[gpu_mem_test(args = [|x| x + 1])]
fn closures(_: &Gpu, f: fn(u8) -> u8) {
    assert_eq!(f(1), 2);
}

#[test]
fn arguments_are_named_by_their_text() {
    for (test, names) in [
        ("numbers", vec!["1", "8", "64", "LIMIT", "2-LIMIT"]),
        ("floats", vec!["-1.0", "0.5", "1e3"]),
        ("strings", vec!["f32", "bf16", "empty"]),
        ("owned", vec!["String-from-x", "format-LIMIT"]),
        ("enums", vec!["Mode-Fast", "Mode-Exact"]),
        ("tuples", vec!["1-true", "2-false"]),
        ("slices", vec!["1-2", "3-4"]),
        ("closures", vec!["x-x-1"]),
    ] {
        assert_eq!(super::entry(test).args, names, "{test}");
    }
}
