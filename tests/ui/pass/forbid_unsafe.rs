//! The expansion needs no unsafe code and leaves no warning.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused, unused_qualifications, unused_results)]
#![deny(let_underscore_drop, single_use_lifetimes, trivial_casts, unreachable_pub)]

use gpumem_test::gpu_mem_test;

/// Has all that an expansion can have.
#[gpu_mem_test(budget = "2GiB", policy = ["driver", "caching"], args = [1], snapshot)]
pub fn documented(_gpu: &gpumem_test::Gpu, _batch: usize) {}

#[gpu_mem_test]
fn private() {}

fn main() {}
