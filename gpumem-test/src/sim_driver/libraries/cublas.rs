//! cuBLAS: handles with the real one's memory; products are counted and not computed.
//!
//! Results in device memory stay as they were, and single numbers that the host asks for are 0.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::export::{Answer, LibraryStatus, put};
use super::workspace::Workspace;
use crate::abi::Handle;
use crate::sim_driver::objects::{Objects, lock};
use crate::sim_driver::{Function, launch, reach};

// Numbers of `cublasStatus_t`.
pub(super) const NOT_INITIALIZED: LibraryStatus = LibraryStatus(1);
pub(super) const ALLOC_FAILED: LibraryStatus = LibraryStatus(3);
pub(super) const INVALID_VALUE: LibraryStatus = LibraryStatus(7);
pub(super) const EXECUTION_FAILED: LibraryStatus = LibraryStatus(13);
pub(super) const INTERNAL_ERROR: LibraryStatus = LibraryStatus(14);

/// Bytes that a handle takes with `cuMemAlloc`, in this order.
///
/// Source: `cublasCreate` of CUDA 13.0 on an H200, seen through the door; assumed for other cards.
const TAKEN: [usize; 3] = [1024, 131_072, 67_108_864];

/// What `cublasGetVersion` says: CUDA 13.0's.
pub(super) const VERSION: c_int = 130_000;

static HANDLES: Objects<Arc<Cublas>> = Objects::new();

#[derive(Debug)]
struct Cublas {
    stream: AtomicU64,
    pointer_mode: AtomicI32,
    math_mode: AtomicI32,
    atomics_mode: AtomicI32,
    workspace: Mutex<Workspace>,
}

fn of(handle: Handle) -> Result<Arc<Cublas>, LibraryStatus> {
    HANDLES.get(handle).ok_or(NOT_INITIALIZED)
}

/// Counts a kernel in a handle's stream.
fn work(handle: Handle) -> Result<Arc<Cublas>, LibraryStatus> {
    let cublas = of(handle)?;
    let stream = cublas.stream.load(Ordering::Relaxed);
    launch::issue_of_library(stream).map_err(|_| EXECUTION_FAILED)?;
    Ok(cublas)
}

/// A function that gives the host one number.
///
/// # Safety
/// `result` is null, or valid for a write where the handle's results go to the host.
unsafe fn one_number<T: Default>(handle: Handle, result: *mut T) -> Answer {
    let cublas = work(handle)?;
    if cublas.pointer_mode.load(Ordering::Relaxed) == 0 {
        // SAFETY: the caller's, for a host pointer.
        unsafe { put(result, T::default(), INVALID_VALUE) }?;
    }
    Ok(())
}

library_functions! { INTERNAL_ERROR;
    fn cublasCreate_v2(handle: *mut Handle) {
        if handle.is_null() {
            return Err(INVALID_VALUE);
        }
        reach::device().map_err(|_| NOT_INITIALIZED)?;
        let workspace = Workspace::take(&TAKEN).map_err(|_| ALLOC_FAILED)?;
        let made = HANDLES.add(Arc::new(Cublas {
            stream: AtomicU64::new(0),
            pointer_mode: AtomicI32::new(0),
            math_mode: AtomicI32::new(0),
            atomics_mode: AtomicI32::new(0),
            workspace: Mutex::new(workspace),
        }));
        put(handle, made, INVALID_VALUE)
    }

    fn cublasDestroy_v2(handle: Handle) {
        let cublas = HANDLES.remove(handle).ok_or(NOT_INITIALIZED)?;
        let workspace = std::mem::take(&mut *lock(&cublas.workspace));
        workspace.give();
        Ok(())
    }

    fn cublasGetVersion_v2(handle: Handle, version: *mut c_int) {
        of(handle)?;
        put(version, VERSION, INVALID_VALUE)
    }

    fn cublasGetProperty(kind: c_int, value: *mut c_int) {
        match kind {
            0 => put(value, VERSION / 10_000, INVALID_VALUE),
            1 => put(value, VERSION / 100 % 100, INVALID_VALUE),
            2 => put(value, VERSION % 100, INVALID_VALUE),
            _ => Err(INVALID_VALUE),
        }
    }

    fn cublasSetStream_v2(handle: Handle, stream: Handle) {
        of(handle)?.stream.store(stream, Ordering::Relaxed);
        Ok(())
    }

    fn cublasGetStream_v2(handle: Handle, stream: *mut Handle) {
        put(stream, of(handle)?.stream.load(Ordering::Relaxed), INVALID_VALUE)
    }

    /// The program's own memory serves from now on; what the handle took stays, as in the real
    /// one.
    fn cublasSetWorkspace_v2(handle: Handle, _workspace: *mut c_void, _bytes: usize) {
        of(handle).map(drop)
    }

    fn cublasSetPointerMode_v2(handle: Handle, mode: c_int) {
        if !matches!(mode, 0 | 1) {
            return Err(INVALID_VALUE);
        }
        of(handle)?.pointer_mode.store(mode, Ordering::Relaxed);
        Ok(())
    }

    fn cublasGetPointerMode_v2(handle: Handle, mode: *mut c_int) {
        put(mode, of(handle)?.pointer_mode.load(Ordering::Relaxed), INVALID_VALUE)
    }

    fn cublasSetMathMode(handle: Handle, mode: c_int) {
        of(handle)?.math_mode.store(mode, Ordering::Relaxed);
        Ok(())
    }

    fn cublasGetMathMode(handle: Handle, mode: *mut c_int) {
        put(mode, of(handle)?.math_mode.load(Ordering::Relaxed), INVALID_VALUE)
    }

    fn cublasSetAtomicsMode(handle: Handle, mode: c_int) {
        of(handle)?.atomics_mode.store(mode, Ordering::Relaxed);
        Ok(())
    }

    fn cublasGetAtomicsMode(handle: Handle, mode: *mut c_int) {
        put(mode, of(handle)?.atomics_mode.load(Ordering::Relaxed), INVALID_VALUE)
    }

    fn cublasSasum_v2(handle: Handle, _n: c_int, _x: *const f32, _step: c_int, result: *mut f32) {
        one_number(handle, result)
    }

    fn cublasDasum_v2(handle: Handle, _n: c_int, _x: *const f64, _step: c_int, result: *mut f64) {
        one_number(handle, result)
    }

    fn cublasSnrm2_v2(handle: Handle, _n: c_int, _x: *const f32, _step: c_int, result: *mut f32) {
        one_number(handle, result)
    }

    fn cublasDnrm2_v2(handle: Handle, _n: c_int, _x: *const f64, _step: c_int, result: *mut f64) {
        one_number(handle, result)
    }

    fn cublasSdot_v2(
        handle: Handle,
        _n: c_int,
        _x: *const f32,
        _x_step: c_int,
        _y: *const f32,
        _y_step: c_int,
        result: *mut f32,
    ) {
        one_number(handle, result)
    }

    fn cublasDdot_v2(
        handle: Handle,
        _n: c_int,
        _x: *const f64,
        _x_step: c_int,
        _y: *const f64,
        _y_step: c_int,
        result: *mut f64,
    ) {
        one_number(handle, result)
    }
}

/// Every function whose first argument is the handle and whose results are device memory.
///
/// It names the first argument only: callers of the C convention of x86-64 and aarch64 pass the
/// others where a function that does not read them is not disturbed.
unsafe extern "C" fn kernel(handle: Handle) -> c_int {
    super::export::answer(INTERNAL_ERROR, || work(handle).map(drop))
}

/// Text for a status, which lives as long as the process.
unsafe extern "C" fn status_name(status: c_int) -> *const c_char {
    let name = match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"unknown status",
    };
    name.as_ptr()
}

/// Functions with a version for each of the types `S`, `D`, `C` and `Z`, by what follows the type.
const TYPED: [&str; 18] = [
    "axpy_v2",
    "copy_v2",
    "dgmm",
    "geam",
    "gemmBatched",
    "gemmStridedBatched",
    "gemm_v2",
    "gemv_v2",
    "gemvBatched",
    "gemvStridedBatched",
    "scal_v2",
    "swap_v2",
    "symm_v2",
    "symv_v2",
    "syrk_v2",
    "trmm_v2",
    "trsmBatched",
    "trsm_v2",
];

/// Functions that are not one for each type.
const OTHERS: [&str; 15] = [
    "cublasCgemm3m",
    "cublasCgemmEx",
    "cublasDgemmGroupedBatched",
    "cublasDger_v2",
    "cublasGemmBatchedEx",
    "cublasGemmEx",
    "cublasGemmGroupedBatchedEx",
    "cublasGemmStridedBatchedEx",
    "cublasHgemm",
    "cublasHgemmBatched",
    "cublasHgemmStridedBatched",
    "cublasSgemmEx",
    "cublasSgemmGroupedBatched",
    "cublasSger_v2",
    "cublasZgemm3m",
];

/// The function of a name, of those that only count a kernel.
pub(super) fn lookup_kernel(name: &str) -> Option<Function> {
    if matches!(name, "cublasGetStatusName" | "cublasGetStatusString") {
        return Some(status_name as *const c_void);
    }
    let typed = name
        .strip_prefix("cublas")
        .and_then(|rest| rest.strip_prefix(['S', 'D', 'C', 'Z']))
        .is_some_and(|rest| TYPED.contains(&rest));
    (typed || OTHERS.contains(&name)).then_some(kernel as *const c_void)
}
