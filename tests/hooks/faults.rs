//! A kernel that fails, and with it everything after it. Only a GPU runs kernels.

use std::ffi::{c_char, c_void};
use std::process::Command;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Refused, alloc, context, free};

/// Writes to where nothing is.
const KERNEL: &std::ffi::CStr = c"
.version 6.4
.target sm_52
.address_size 64
.visible .entry fails()
{
    .reg .b64 %address;
    .reg .b32 %value;
    mov.u64 %address, 16;
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
";

#[gpu_mem_test(
    device = "cuda:0",
    policy = ["driver", "eager", "async", "lazy", "caching"],
    max_leak = "4MiB",
    ignore = "it must fail: a_kernel_that_fails_is_reported_on_gpu runs it"
)]
fn has_a_kernel_that_fails_on_gpu() -> TestResult {
    context()?;
    let block = alloc(4 << 20)?;
    let (mut module, mut function) = (0u64, 0u64);
    let nothing = std::ptr::null_mut::<*mut c_void>;
    call!(cuModuleLoadData(&mut module => *mut u64, KERNEL.as_ptr() => *const c_char))?;
    call!(cuModuleGetFunction(
        &mut function => *mut u64, module => u64, c"fails".as_ptr() => *const c_char
    ))?;
    call!(cuLaunchKernel(
        function => u64, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        0 => u64, nothing() => *mut *mut c_void, nothing() => *mut *mut c_void
    ))?;
    assert_eq!(
        call!(cuCtxSynchronize()),
        Err(Refused("cuCtxSynchronize", 700))
    );
    assert_eq!(free(block), Err(Refused("cuMemFree_v2", 700)));
    Ok(())
}

#[gpu_mem_test(device = "cuda:0", args = ["driver", "caching"])]
fn a_kernel_that_fails_is_reported_on_gpu(_: &Gpu, policy: &str) -> TestResult {
    let name = format!("faults::has_a_kernel_that_fails_on_gpu::{policy}");
    let output = Command::new(std::env::current_exe()?)
        .args([&name, "--exact", "--ignored"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = "cuCtxSynchronize returned 700: a kernel of the test failed and left the context \
                unusable, so that every later call fails";
    assert_eq!(text.matches(said).count(), 1, "{text}");
    assert_eq!(output.status.code(), Some(101), "{text}");
    Ok(())
}
