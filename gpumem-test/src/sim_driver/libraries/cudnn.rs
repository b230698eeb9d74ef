//! cuDNN: descriptors are checked and forgotten, layers are counted and not computed.
//!
//! A handle takes what the real one takes. Algorithms need no workspace here, so that the memory of
//! programs over cuDNN is not that of a real device where its algorithms want some.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::export::{Answer, LibraryStatus, answer, put};
use super::workspace::Workspace;
use crate::abi::Handle;
use crate::sim_driver::notes::note;
use crate::sim_driver::objects::{Objects, lock};
use crate::sim_driver::{Function, launch, reach};

// Numbers of `cudnnStatus_t`, version 9.
const NOT_INITIALIZED: LibraryStatus = LibraryStatus(1001);
const BAD_PARAM: LibraryStatus = LibraryStatus(2000);
const NULL_POINTER: LibraryStatus = LibraryStatus(2002);
const INTERNAL_ERROR: LibraryStatus = LibraryStatus(4000);
const EXECUTION_FAILED: LibraryStatus = LibraryStatus(5000);

const ALLOCATION_FAILED: LibraryStatus = LibraryStatus(4002);

/// Bytes that a handle takes with `cuMemAlloc`, and of pinned host memory.
///
/// Source: `cudnnCreate` of cuDNN 9.14 on an H200, seen through the door; assumed for other cards.
const TAKEN: [usize; 2] = [25_344, 4];
const PINNED: usize = 4;

static HANDLES: Objects<Arc<Context>> = Objects::new();
static DESCRIPTORS: Objects<()> = Objects::new();

/// A handle.
#[derive(Debug)]
struct Context {
    stream: AtomicU64,
    workspace: Mutex<Workspace>,
}

fn of(handle: Handle) -> Result<Arc<Context>, LibraryStatus> {
    HANDLES.get(handle).ok_or(NOT_INITIALIZED)
}

/// One algorithm out of a search (`cudnnConvolution…AlgoPerf_t`).
#[derive(Clone, Copy)]
#[repr(C)]
struct Algorithm {
    number: c_int,
    status: c_int,
    milliseconds: f32,
    workspace_bytes: usize,
    deterministic: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

/// # Safety
/// The out-parameters are null or valid for a write.
unsafe fn only_algorithm(
    handle: Handle,
    wanted: c_int,
    found: *mut c_int,
    results: *mut Algorithm,
) -> Answer {
    of(handle)?;
    if wanted < 1 {
        return Err(BAD_PARAM);
    }
    let only = Algorithm {
        number: 1, // all searches have one of this number
        status: 0,
        milliseconds: 0.0,
        workspace_bytes: 0,
        deterministic: 1,
        math: 0,
        reserved: [0; 3],
    };
    // SAFETY: the caller's.
    unsafe {
        put(results, only, NULL_POINTER)?;
        put(found, 1, NULL_POINTER)
    }
}

library_functions! { INTERNAL_ERROR;
    fn cudnnCreate(handle: *mut Handle) {
        reach::device().map_err(|_| NOT_INITIALIZED)?;
        note("cuDNN's algorithms take no workspace when simulated; the real ones may");
        if handle.is_null() {
            return Err(NULL_POINTER);
        }
        let workspace = Workspace::take(&TAKEN)
            .and_then(|workspace| workspace.with_pinned(PINNED))
            .map_err(|_| ALLOCATION_FAILED)?;
        let made = HANDLES.add(Arc::new(Context {
            stream: AtomicU64::new(0),
            workspace: Mutex::new(workspace),
        }));
        put(handle, made, NULL_POINTER)
    }

    fn cudnnDestroy(handle: Handle) {
        let context = HANDLES.remove(handle).ok_or(NOT_INITIALIZED)?;
        let workspace = std::mem::take(&mut *lock(&context.workspace));
        workspace.give();
        Ok(())
    }

    fn cudnnSetStream(handle: Handle, stream: Handle) {
        of(handle)?.stream.store(stream, Ordering::Relaxed);
        Ok(())
    }

    fn cudnnGetStream(handle: Handle, stream: *mut Handle) {
        put(stream, of(handle)?.stream.load(Ordering::Relaxed), NULL_POINTER)
    }

    fn cudnnGetConvolutionForwardAlgorithm_v7(
        handle: Handle,
        _x: Handle,
        _w: Handle,
        _convolution: Handle,
        _y: Handle,
        wanted: c_int,
        found: *mut c_int,
        results: *mut Algorithm,
    ) {
        only_algorithm(handle, wanted, found, results)
    }

    fn cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle: Handle,
        _w: Handle,
        _dy: Handle,
        _convolution: Handle,
        _dx: Handle,
        wanted: c_int,
        found: *mut c_int,
        results: *mut Algorithm,
    ) {
        only_algorithm(handle, wanted, found, results)
    }

    fn cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle: Handle,
        _x: Handle,
        _dy: Handle,
        _convolution: Handle,
        _dw: Handle,
        wanted: c_int,
        found: *mut c_int,
        results: *mut Algorithm,
    ) {
        only_algorithm(handle, wanted, found, results)
    }

    fn cudnnGetConvolutionForwardWorkspaceSize(
        handle: Handle,
        _x: Handle,
        _w: Handle,
        _convolution: Handle,
        _y: Handle,
        _algorithm: c_int,
        bytes: *mut usize,
    ) {
        of(handle)?;
        put(bytes, 0, NULL_POINTER)
    }

    fn cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle: Handle,
        _w: Handle,
        _dy: Handle,
        _convolution: Handle,
        _dx: Handle,
        _algorithm: c_int,
        bytes: *mut usize,
    ) {
        of(handle)?;
        put(bytes, 0, NULL_POINTER)
    }

    fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle: Handle,
        _x: Handle,
        _dy: Handle,
        _convolution: Handle,
        _dw: Handle,
        _algorithm: c_int,
        bytes: *mut usize,
    ) {
        of(handle)?;
        put(bytes, 0, NULL_POINTER)
    }

    fn cudnnGetReductionIndicesSize(
        handle: Handle,
        _reduction: Handle,
        _a: Handle,
        _c: Handle,
        bytes: *mut usize,
    ) {
        of(handle)?;
        put(bytes, 0, NULL_POINTER)
    }

    fn cudnnGetReductionWorkspaceSize(
        handle: Handle,
        _reduction: Handle,
        _a: Handle,
        _c: Handle,
        bytes: *mut usize,
    ) {
        of(handle)?;
        put(bytes, 0, NULL_POINTER)
    }
}

// Functions that do the same name only the arguments that they read: callers of the C convention
// of x86-64 and aarch64 pass the others where a function that does not read them is not disturbed.

/// A layer: its first argument is the handle.
unsafe extern "C" fn layer(handle: Handle) -> c_int {
    answer(INTERNAL_ERROR, || {
        let stream = of(handle)?.stream.load(Ordering::Relaxed);
        launch::issue_of_library(stream).map_err(|_| EXECUTION_FAILED)
    })
}

unsafe extern "C" fn create_descriptor(descriptor: *mut Handle) -> c_int {
    answer(INTERNAL_ERROR, || {
        // SAFETY: the out-parameter of a function that makes a descriptor.
        unsafe { put(descriptor, DESCRIPTORS.add(()), NULL_POINTER) }
    })
}

unsafe extern "C" fn set_descriptor(descriptor: Handle) -> c_int {
    answer(INTERNAL_ERROR, || {
        DESCRIPTORS.get(descriptor).ok_or(BAD_PARAM)
    })
}

unsafe extern "C" fn destroy_descriptor(descriptor: Handle) -> c_int {
    answer(INTERNAL_ERROR, || {
        DESCRIPTORS.remove(descriptor).ok_or(BAD_PARAM)
    })
}

/// The parts of the library agree on their version.
unsafe extern "C" fn check_version() -> c_int {
    0
}

/// Source: cuDNN 9.13, the version for CUDA 13.0.
unsafe extern "C" fn version() -> usize {
    91_300
}

unsafe extern "C" fn runtime_version() -> usize {
    13_000
}

/// Text for a status, which lives as long as the process.
unsafe extern "C" fn status_text(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"CUDNN_STATUS_SUCCESS",
        1001 => c"CUDNN_STATUS_NOT_INITIALIZED",
        2000 => c"CUDNN_STATUS_BAD_PARAM",
        2002 => c"CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
        4000 => c"CUDNN_STATUS_INTERNAL_ERROR",
        5000 => c"CUDNN_STATUS_EXECUTION_FAILED",
        _ => c"unknown status",
    };
    text.as_ptr()
}

/// The function of a name, of those that are alike.
pub(super) fn lookup_alike(name: &str) -> Option<Function> {
    Some(match name {
        "cudnnActivationBackward"
        | "cudnnActivationForward"
        | "cudnnAddTensor"
        | "cudnnConvolutionBackwardBias"
        | "cudnnConvolutionBackwardData"
        | "cudnnConvolutionBackwardFilter"
        | "cudnnConvolutionBiasActivationForward"
        | "cudnnConvolutionForward"
        | "cudnnOpTensor"
        | "cudnnPoolingBackward"
        | "cudnnPoolingForward"
        | "cudnnReduceTensor"
        | "cudnnScaleTensor"
        | "cudnnSetTensor"
        | "cudnnSoftmaxBackward"
        | "cudnnSoftmaxForward"
        | "cudnnTransformTensor" => layer as *const c_void,
        "cudnnCreateActivationDescriptor"
        | "cudnnCreateConvolutionDescriptor"
        | "cudnnCreateFilterDescriptor"
        | "cudnnCreateOpTensorDescriptor"
        | "cudnnCreatePoolingDescriptor"
        | "cudnnCreateReduceTensorDescriptor"
        | "cudnnCreateTensorDescriptor" => create_descriptor as *const c_void,
        "cudnnDestroyActivationDescriptor"
        | "cudnnDestroyConvolutionDescriptor"
        | "cudnnDestroyFilterDescriptor"
        | "cudnnDestroyOpTensorDescriptor"
        | "cudnnDestroyPoolingDescriptor"
        | "cudnnDestroyReduceTensorDescriptor"
        | "cudnnDestroyTensorDescriptor" => destroy_descriptor as *const c_void,
        "cudnnSetActivationDescriptor"
        | "cudnnSetConvolution2dDescriptor"
        | "cudnnSetConvolutionGroupCount"
        | "cudnnSetConvolutionMathType"
        | "cudnnSetConvolutionNdDescriptor"
        | "cudnnSetFilter4dDescriptor"
        | "cudnnSetFilterNdDescriptor"
        | "cudnnSetOpTensorDescriptor"
        | "cudnnSetPooling2dDescriptor"
        | "cudnnSetPoolingNdDescriptor"
        | "cudnnSetReduceTensorDescriptor"
        | "cudnnSetTensor4dDescriptor"
        | "cudnnSetTensor4dDescriptorEx"
        | "cudnnSetTensorNdDescriptor" => set_descriptor as *const c_void,
        "cudnnAdvVersionCheck"
        | "cudnnCnnVersionCheck"
        | "cudnnGraphVersionCheck"
        | "cudnnOpsVersionCheck" => check_version as *const c_void,
        "cudnnGetVersion" => version as *const c_void,
        "cudnnGetCudartVersion" => runtime_version as *const c_void,
        "cudnnGetErrorString" => status_text as *const c_void,
        _ => return None,
    })
}
