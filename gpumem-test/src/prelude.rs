//! What a test file needs: `use gpumem_test::prelude::*;`.

pub use crate::{Buffer, Bytes, Error, Gpu, Stream, TestResult, gpu_mem_test};
