//! cuBLASLt: descriptors are checked and forgotten, products are counted and not computed.
//!
//! A handle takes nothing of the device.
//!
//! Source: `cublasLtCreate` of CUDA 13.0 on an H200 makes no allocation.

use std::ffi::{c_int, c_void};

use super::cublas::{EXECUTION_FAILED, INTERNAL_ERROR, INVALID_VALUE, NOT_INITIALIZED, VERSION};
use super::export::{Answer, LibraryStatus, put};
use crate::abi::Handle;
use crate::sim_driver::objects::Objects;
use crate::sim_driver::{launch, reach};

static HANDLES: Objects<()> = Objects::new();

/// Layouts, descriptions and preferences.
static DESCRIPTORS: Objects<()> = Objects::new();

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    status: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

fn check(handle: Handle) -> Answer {
    HANDLES.get(handle).ok_or(NOT_INITIALIZED)
}

fn descriptors<const N: usize>(handles: [Handle; N]) -> Answer {
    let known = |handle: &Handle| DESCRIPTORS.get(*handle).is_some();
    if handles.iter().all(known) {
        Ok(())
    } else {
        Err(INVALID_VALUE)
    }
}

fn destroy(descriptor: Handle) -> Result<(), LibraryStatus> {
    DESCRIPTORS.remove(descriptor).ok_or(INVALID_VALUE)
}

fn set(descriptor: Handle, value: *const c_void) -> Answer {
    if value.is_null() {
        return Err(INVALID_VALUE);
    }
    descriptors([descriptor])
}

/// The versions that are functions without a status.
unsafe extern "C" fn version() -> usize {
    VERSION as usize
}

unsafe extern "C" fn runtime_version() -> usize {
    13_000
}

/// The function of a name.
pub(super) fn lookup(name: &str) -> Option<crate::sim_driver::Function> {
    match name {
        "cublasLtGetVersion" => Some(version as *const c_void),
        "cublasLtGetCudartVersion" => Some(runtime_version as *const c_void),
        _ => functions::lookup(name),
    }
}

mod functions {
    use super::*;

    library_functions! { INTERNAL_ERROR;
        fn cublasLtCreate(handle: *mut Handle) {
            reach::device().map_err(|_| NOT_INITIALIZED)?;
            put(handle, HANDLES.add(()), INVALID_VALUE)
        }

        fn cublasLtDestroy(handle: Handle) {
            HANDLES.remove(handle).ok_or(NOT_INITIALIZED)
        }

        fn cublasLtMatrixLayoutCreate(
            layout: *mut Handle,
            _kind: c_int,
            _rows: u64,
            _columns: u64,
            _leading: i64,
        ) {
            put(layout, DESCRIPTORS.add(()), INVALID_VALUE)
        }

        fn cublasLtMatrixLayoutDestroy(layout: Handle) {
            destroy(layout)
        }

        fn cublasLtMatrixLayoutSetAttribute(
            layout: Handle,
            _attribute: c_int,
            value: *const c_void,
            _bytes: usize,
        ) {
            set(layout, value)
        }

        fn cublasLtMatmulDescCreate(description: *mut Handle, _compute: c_int, _scale: c_int) {
            put(description, DESCRIPTORS.add(()), INVALID_VALUE)
        }

        fn cublasLtMatmulDescDestroy(description: Handle) {
            destroy(description)
        }

        fn cublasLtMatmulDescSetAttribute(
            description: Handle,
            _attribute: c_int,
            value: *const c_void,
            _bytes: usize,
        ) {
            set(description, value)
        }

        fn cublasLtMatmulPreferenceCreate(preference: *mut Handle) {
            put(preference, DESCRIPTORS.add(()), INVALID_VALUE)
        }

        fn cublasLtMatmulPreferenceDestroy(preference: Handle) {
            destroy(preference)
        }

        fn cublasLtMatmulPreferenceSetAttribute(
            preference: Handle,
            _attribute: c_int,
            value: *const c_void,
            _bytes: usize,
        ) {
            set(preference, value)
        }

        /// One algorithm that needs no workspace.
        fn cublasLtMatmulAlgoGetHeuristic(
            handle: Handle,
            description: Handle,
            a: Handle,
            b: Handle,
            c: Handle,
            d: Handle,
            preference: Handle,
            wanted: c_int,
            results: *mut Heuristic,
            found: *mut c_int,
        ) {
            check(handle)?;
            descriptors([description, a, b, c, d, preference])?;
            if wanted < 1 {
                return Err(INVALID_VALUE);
            }
            let only = Heuristic {
                algorithm: [0; 8],
                workspace_bytes: 0,
                status: 0,
                waves: 1.0,
                reserved: [0; 4],
            };
            put(results, only, INVALID_VALUE)?;
            put(found, 1, INVALID_VALUE)
        }

        fn cublasLtMatmul(
            handle: Handle,
            description: Handle,
            _alpha: *const c_void,
            _a: u64,
            a_layout: Handle,
            _b: u64,
            b_layout: Handle,
            _beta: *const c_void,
            _c: u64,
            c_layout: Handle,
            _d: u64,
            d_layout: Handle,
            _algorithm: *const c_void,
            _workspace: u64,
            _bytes: usize,
            stream: Handle,
        ) {
            check(handle)?;
            descriptors([description, a_layout, b_layout, c_layout, d_layout])?;
            launch::issue_of_library(stream).map_err(|_| EXECUTION_FAILED)
        }

        fn cublasLtLoggerSetLevel(_level: c_int) {
            Ok(())
        }

        fn cublasLtLoggerOpenFile(_path: *const std::ffi::c_char) {
            Ok(())
        }
    }
}
