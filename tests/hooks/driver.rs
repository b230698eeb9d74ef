//! The driver as a C program has it: looked up by name at run time, called with bare addresses.

use std::ffi::{CString, c_int, c_void};

/// A call that the driver refused: its name and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) &'static str, pub(crate) c_int);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} returned {}", self.0, self.1)
    }
}

impl std::error::Error for Refused {}

pub(crate) type Outcome<T = ()> = Result<T, Refused>;

/// The address of a driver function.
pub(crate) fn find(name: &str) -> *const c_void {
    let name = CString::new(name).expect("names have no NUL");
    // SAFETY: both are C strings.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "libcuda.so.1 opens");
        libc::dlsym(library, name.as_ptr())
    }
}

/// Calls a driver function by its name.
#[macro_export]
macro_rules! call {
    ($name:ident ( $($value:expr => $kind:ty),* $(,)? )) => {{
        let function = $crate::driver::find(stringify!($name));
        assert!(!function.is_null(), concat!(stringify!($name), " is found"));
        // SAFETY: the signature is the driver's, as the test writes it.
        let code = unsafe {
            std::mem::transmute::<
                *const std::ffi::c_void,
                unsafe extern "C" fn($($kind),*) -> std::ffi::c_int,
            >(function)($($value),*)
        };
        if code == 0 { Ok(()) } else { Err($crate::driver::Refused(stringify!($name), code)) }
    }};
}

/// A context on device 0, current on this thread.
pub(crate) fn context() -> Outcome<u64> {
    let mut context = 0;
    call!(cuInit(0 => u32))?;
    call!(cuDevicePrimaryCtxRetain(&mut context => *mut u64, 0 => c_int))?;
    call!(cuCtxSetCurrent(context => u64))?;
    Ok(context)
}

pub(crate) fn alloc(size: usize) -> Outcome<u64> {
    let mut address = 0;
    call!(cuMemAlloc_v2(&mut address => *mut u64, size => usize)).map(|()| address)
}

pub(crate) fn free(address: u64) -> Outcome {
    call!(cuMemFree_v2(address => u64))
}

pub(crate) fn alloc_async(size: usize, stream: u64) -> Outcome<u64> {
    let mut address = 0;
    call!(cuMemAllocAsync(&mut address => *mut u64, size => usize, stream => u64)).map(|()| address)
}

pub(crate) fn free_async(address: u64, stream: u64) -> Outcome {
    call!(cuMemFreeAsync(address => u64, stream => u64))
}

pub(crate) fn stream() -> Outcome<u64> {
    let mut stream = 0;
    call!(cuStreamCreate(&mut stream => *mut u64, 1 => u32)).map(|()| stream)
}

pub(crate) fn synchronize(stream: u64) -> Outcome {
    call!(cuStreamSynchronize(stream => u64))
}

/// Free and total bytes.
pub(crate) fn memory() -> Outcome<(u64, u64)> {
    let (mut free, mut total) = (0usize, 0usize);
    call!(cuMemGetInfo_v2(&mut free => *mut usize, &mut total => *mut usize))
        .map(|()| (free as u64, total as u64))
}
