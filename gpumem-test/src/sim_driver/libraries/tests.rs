use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Library, library, library_function};
use crate::abi::Handle;
use crate::sim_driver::bench::Bench;
use crate::sim_driver::launch::launches;
use crate::sim_driver::reach;
use crate::sim_driver::testing::{call, call_library};

#[test]
fn libraries_are_known_by_the_names_of_their_files() {
    for (name, expected) in [
        ("libcublas.so", Some(Library::Cublas)),
        ("libcublas.so.13", Some(Library::Cublas)),
        ("libcublasLt.so.12", Some(Library::CublasLt)),
        ("libcurand.so.10", Some(Library::Curand)),
        ("libcudnn.so.9", Some(Library::Cudnn)),
        ("libnvrtc.so.13", Some(Library::Nvrtc)),
        ("libnvidia-ml.so.1", Some(Library::Nvml)),
        ("libnvrtc-builtins.so.13.0", None),
        ("libcufft.so.11", None),
        ("libnccl.so.2", None),
        ("libcuda.so.1", None), // the driver itself is the door's
    ] {
        assert_eq!(library(name.as_bytes()), expected, "{name}");
    }
}

#[test]
fn a_function_that_is_not_simulated_is_not_found() {
    for (library, name) in [
        (Library::Cublas, "cublasXtCreate"),
        (Library::Cublas, "cublasSgemm_v3"),
        (Library::CublasLt, "cublasLtMatrixTransform"),
        (Library::Curand, "curandGetDirectionVectors64"),
        (Library::Cudnn, "cudnnBackendExecute"),
        (Library::Cudnn, "cudnnOpsInferVersionCheck"),
        (Library::Nvrtc, "nvrtcGetLTOIR"),
        (Library::Nvml, "nvmlDeviceSetPowerManagementLimit"),
        (Library::Nvml, "cublasCreate_v2"),
    ] {
        assert_eq!(library_function(library, name), None, "{name}");
    }
}

#[test]
fn all_functions_that_the_known_bindings_call_are_found() {
    // Source: cudarc 0.19.10, the functions that its safe API calls (version 9 of cuDNN).
    let names = include_str!("called.txt");
    let mut found = 0;
    for line in names.lines().filter(|line| !line.starts_with('#')) {
        let (file, name) = line.split_once(' ').unwrap();
        let library = library(file.as_bytes()).unwrap();
        assert!(library_function(library, name).is_some(), "{name}");
        found += 1;
    }
    assert_eq!(found, 98);
}

fn compile(source: &CStr, expressions: &[&CStr]) -> (Handle, Vec<u8>) {
    let nothing = ptr::null::<c_void>();
    let mut program = 0;
    let code = call_library!(Library::Nvrtc, "nvrtcCreateProgram"(
        &raw mut program => *mut Handle, source.as_ptr() => *const c_char,
        nothing => *const c_void, 0 => i32, nothing => *const c_void, nothing => *const c_void
    ));
    assert_eq!(code, 0);
    for expression in expressions {
        let code = call_library!(Library::Nvrtc, "nvrtcAddNameExpression"(
            program => Handle, expression.as_ptr() => *const c_char
        ));
        assert_eq!(code, 0);
    }
    let options = [c"--gpu-architecture=compute_89".as_ptr()];
    let code = call_library!(Library::Nvrtc, "nvrtcCompileProgram"(
        program => Handle, 1 => i32, options.as_ptr() => *const *const c_char
    ));
    assert_eq!(code, 0);
    let mut bytes = 0;
    let code = call_library!(Library::Nvrtc, "nvrtcGetPTXSize"(
        program => Handle, &raw mut bytes => *mut usize
    ));
    assert_eq!(code, 0);
    let mut ptx = vec![0; bytes];
    let code = call_library!(Library::Nvrtc, "nvrtcGetPTX"(
        program => Handle, ptx.as_mut_ptr() => *mut u8
    ));
    assert_eq!(code, 0);
    (program, ptx)
}

#[test]
fn a_source_becomes_a_module_whose_kernels_launch() {
    let _bench = Bench::ready(1);
    let source = c"extern \"C\" __global__ void scale(float* x) { }\n\
                   template <typename T> __global__ void norm(T* x) { }";
    let (mut program, ptx) = compile(source, &[c"norm<float>"]);
    let mut lowered = ptr::null();
    let code = call_library!(Library::Nvrtc, "nvrtcGetLoweredName"(
        program => Handle, c"norm<float>".as_ptr() => *const c_char,
        &raw mut lowered => *mut *const c_char
    ));
    assert_eq!(code, 0);
    let mut module = 0;
    let code = call!("cuModuleLoadData"(
        &raw mut module => *mut Handle, ptx.as_ptr().cast() => *const c_void
    ));
    assert_eq!(code, 0);
    let mut function = 0;
    for (name, expected) in [
        (c"scale".as_ptr(), 0),
        (lowered, 0),
        (c"_Z4normIdEvPT_".as_ptr(), 0),
        (c"missing".as_ptr(), 500),
    ] {
        let code = call!("cuModuleGetFunction"(
            &raw mut function => *mut Handle, module => Handle, name => *const c_char
        ));
        assert_eq!(code, expected);
    }
    let mut version = 0;
    let code = call!("cuFuncGetAttribute"(
        &raw mut version => *mut i32, 6 => i32, function => Handle
    ));
    assert_eq!((code, version), (0, 89));
    let before = launches();
    let code = call!("cuLaunchKernel"(
        function => Handle, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32,
        0 => u32, 0 => Handle, ptr::null() => *const c_void, ptr::null() => *const c_void
    ));
    assert!(code == 0 && launches() > before);
    let code =
        call_library!(Library::Nvrtc, "nvrtcDestroyProgram"(&raw mut program => *mut Handle));
    assert_eq!((code, program), (0, 0));
}

#[test]
fn calls_of_nvrtc_in_the_wrong_order_are_refused() {
    let (program, _) = compile(c"extern \"C\" __global__ void f() { }", &[]);
    let add = |program: Handle| {
        call_library!(Library::Nvrtc, "nvrtcAddNameExpression"(
            program => Handle, c"f".as_ptr() => *const c_char
        ))
    };
    assert_eq!(add(program), 8);
    assert_eq!(add(0), 4);
    let mut bytes = 0_usize;
    let code = call_library!(Library::Nvrtc, "nvrtcGetPTXSize"(
        0 => Handle, &raw mut bytes => *mut usize
    ));
    assert_eq!(code, 4);
    // What a compiler would refuse passes: kernels are not compiled.
    compile(c"int f( {{{", &[]);
}

#[test]
fn cublas_takes_and_gives_what_the_real_one_does() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let used =
        || reach::with(ordinal, |device| (device.used(), device.live_allocations())).unwrap();
    let before = used();
    let mut handle = 0;
    let code = call_library!(Library::Cublas, "cublasCreate_v2"(&raw mut handle => *mut Handle));
    assert_eq!(code, 0);
    // 1 KiB and 128 KiB share a page of 2 MiB with other small allocations.
    assert_eq!(used(), (before.0 + (2 << 20) + 67_108_864, before.1 + 3));
    let gemm = |handle: Handle| {
        call_library!(Library::Cublas, "cublasSgemm_v2"(
            handle => Handle, 0 => i32, 0 => i32, 2 => i32, 2 => i32, 2 => i32,
            ptr::null() => *const f32, 0 => u64, 2 => i32, 0 => u64, 2 => i32,
            ptr::null() => *const f32, 0 => u64, 2 => i32
        ))
    };
    let launched = launches();
    assert_eq!(gemm(handle), 0);
    assert!(launches() > launched);
    let mut sum = 7.0_f32;
    let code = call_library!(Library::Cublas, "cublasSasum_v2"(
        handle => Handle, 2 => i32, 0 => u64, 1 => i32, &raw mut sum => *mut f32
    ));
    assert_eq!((code, sum), (0, 0.0));
    assert_eq!(gemm(0), 1, "not initialised");
    let destroy =
        |handle: Handle| call_library!(Library::Cublas, "cublasDestroy_v2"(handle => Handle));
    assert_eq!(destroy(handle), 0);
    assert_eq!(used(), before);
    assert_eq!((destroy(handle), gemm(handle)), (1, 1));
}

#[test]
fn a_library_that_gets_no_memory_says_so_and_keeps_none() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    reach::with(ordinal, |device| device.set_budget(Some(16 << 20))).unwrap();
    let mut handle = 0;
    let code = call_library!(Library::Cublas, "cublasCreate_v2"(&raw mut handle => *mut Handle));
    assert_eq!((code, handle), (3, 0));
    reach::with(ordinal, |device| {
        assert_eq!(device.live_allocations(), 0);
        device.set_budget(Some(0));
    })
    .unwrap();
    let code = call_library!(Library::Curand, "curandCreateGenerator"(
        &raw mut handle => *mut Handle, 100 => i32
    ));
    assert_eq!(code, 0);
    let code = call_library!(Library::Curand, "curandGenerateSeeds"(handle => Handle));
    assert_eq!(code, 102);
}

#[test]
fn curand_takes_its_memory_at_first_use_and_checks_what_it_is_asked_for() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let mut generator = 0;
    let mut create = |kind: i32| {
        call_library!(Library::Curand, "curandCreateGenerator"(
            &raw mut generator => *mut Handle, kind => i32
        ))
    };
    assert_eq!(create(99), 103);
    assert_eq!(create(100), 0);
    let address = crate::ids::Address(taken_by_curand(ordinal));
    reach::with(ordinal, |device| assert_eq!(device.live_allocations(), 0)).unwrap();
    let code = call_library!(Library::Curand, "curandGenerateUniform"(
        generator => Handle, 0 => u64, 4 => usize
    ));
    assert_eq!(code, 0);
    reach::with(ordinal, |device| {
        assert_eq!(device.address_range(address), Ok((address, 196_608)));
    })
    .unwrap();
    let normal = |count: usize| {
        call_library!(Library::Curand, "curandGenerateNormal"(
            generator => Handle, 0 => u64, count => usize, 0.0 => f32, 1.0 => f32
        ))
    };
    assert_eq!((normal(4), normal(5)), (0, 105));
    let code = call_library!(Library::Curand, "curandDestroyGenerator"(generator => Handle));
    assert_eq!(code, 0);
    reach::with(ordinal, |device| assert_eq!(device.live_allocations(), 0)).unwrap();
    assert_eq!(normal(4), 101);
}

/// Where a first plain allocation of a device lies.
fn taken_by_curand(ordinal: usize) -> u64 {
    let base = AtomicU64::new(0);
    reach::with(ordinal, |device| {
        base.store(device.direct_base().0, Ordering::Relaxed)
    })
    .unwrap();
    base.into_inner()
}

#[test]
fn cublaslt_finds_an_algorithm_and_counts_its_product() {
    let _bench = Bench::ready(1);
    let mut handle = 0;
    let code = call_library!(Library::CublasLt, "cublasLtCreate"(&raw mut handle => *mut Handle));
    assert_eq!(code, 0);
    let (mut layout, mut description, mut preference) = (0, 0, 0);
    let code = call_library!(Library::CublasLt, "cublasLtMatrixLayoutCreate"(
        &raw mut layout => *mut Handle, 0 => i32, 2 => u64, 2 => u64, 2 => i64
    ));
    assert_eq!(code, 0);
    let code = call_library!(Library::CublasLt, "cublasLtMatmulDescCreate"(
        &raw mut description => *mut Handle, 68 => i32, 0 => i32
    ));
    assert_eq!(code, 0);
    let code = call_library!(Library::CublasLt, "cublasLtMatmulPreferenceCreate"(
        &raw mut preference => *mut Handle
    ));
    assert_eq!(code, 0);
    let mut results = [[u64::MAX; 12]; 2];
    let mut found = 0;
    let mut search = |layout: Handle| {
        call_library!(Library::CublasLt, "cublasLtMatmulAlgoGetHeuristic"(
            handle => Handle, description => Handle, layout => Handle, layout => Handle,
            layout => Handle, layout => Handle, preference => Handle, 2 => i32,
            results.as_mut_ptr() => *mut [u64; 12], &raw mut found => *mut i32
        ))
    };
    assert_eq!(search(0), 7);
    assert_eq!(search(layout), 0);
    assert_eq!((found, results[0][8], results[1][8]), (1, 0, u64::MAX));
    let launched = launches();
    let code = call_library!(Library::CublasLt, "cublasLtMatmul"(
        handle => Handle, description => Handle, 0 => u64, 0 => u64, layout => Handle, 0 => u64,
        layout => Handle, 0 => u64, 0 => u64, layout => Handle, 0 => u64, layout => Handle,
        results.as_ptr().cast() => *const c_void, 0 => u64, 0 => usize, 0 => Handle
    ));
    assert!(code == 0 && launches() > launched);
}

#[test]
fn cudnn_checks_handles_and_descriptors() {
    let _bench = Bench::ready(1);
    let (mut handle, mut tensor) = (0, 0);
    let code = call_library!(Library::Cudnn, "cudnnCreate"(&raw mut handle => *mut Handle));
    assert_eq!(code, 0);
    let live = || reach::with(0, |device| device.live_allocations()).unwrap();
    assert_eq!(live(), 2);
    let code = call_library!(Library::Cudnn, "cudnnCreateTensorDescriptor"(
        &raw mut tensor => *mut Handle
    ));
    assert_eq!(code, 0);
    let set = |tensor: Handle| {
        call_library!(Library::Cudnn, "cudnnSetTensor4dDescriptor"(
            tensor => Handle, 0 => i32, 0 => i32, 1 => i32, 1 => i32, 2 => i32, 2 => i32
        ))
    };
    assert_eq!((set(tensor), set(0)), (0, 2000));
    let softmax = |handle: Handle| {
        call_library!(Library::Cudnn, "cudnnSoftmaxForward"(
            handle => Handle, 0 => i32, 0 => i32, 0 => u64, tensor => Handle, 0 => u64,
            0 => u64, tensor => Handle, 0 => u64
        ))
    };
    assert_eq!((softmax(handle), softmax(0)), (0, 1001));
    let code = call_library!(Library::Cudnn, "cudnnDestroyTensorDescriptor"(tensor => Handle));
    assert_eq!((code, set(tensor)), (0, 2000));
    let code = call_library!(Library::Cudnn, "cudnnDestroy"(handle => Handle));
    assert_eq!((code, live()), (0, 0));
}

#[test]
fn nvml_says_what_an_h200_says() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let mut nvml = 0;
    let code = call_library!(Library::Nvml, "nvmlDeviceGetHandleByIndex_v2"(
        ordinal as u32 => u32, &raw mut nvml => *mut Handle
    ));
    assert_eq!(code, 0);
    let mut memory = [0_u64; 3];
    let mut ask = |nvml: Handle| {
        call_library!(Library::Nvml, "nvmlDeviceGetMemoryInfo"(
            nvml => Handle, memory.as_mut_ptr() => *mut u64
        ))
    };
    assert_eq!((ask(nvml), ask(0)), (0, 2));
    assert_eq!(
        memory,
        [
            150_754_820_096,
            149_557_477_376,
            150_754_820_096 - 149_557_477_376
        ]
    );
    let mut memory = [0_u64; 5];
    memory[0] = 40 | 2 << 24;
    let mut ask = || {
        call_library!(Library::Nvml, "nvmlDeviceGetMemoryInfo_v2"(
            nvml => Handle, memory.as_mut_ptr() => *mut u64
        ))
    };
    assert_eq!(ask(), 0);
    assert_eq!(
        (memory[1], memory[2], memory[3]),
        (150_754_820_096, 644_939_776, 149_557_477_376)
    );
    let mut name = [1_u8; 96];
    let code = call_library!(Library::Nvml, "nvmlDeviceGetName"(
        nvml => Handle, name.as_mut_ptr() => *mut u8, 96 => u32
    ));
    assert_eq!(code, 0);
    let name = CStr::from_bytes_until_nul(&name).unwrap();
    assert_eq!(name, &*CString::new("NVIDIA H200").unwrap());
    let mut short = [0_u8; 4];
    let code = call_library!(Library::Nvml, "nvmlDeviceGetName"(
        nvml => Handle, short.as_mut_ptr() => *mut u8, 4 => u32
    ));
    assert_eq!(code, 7);
}
