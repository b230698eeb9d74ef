//! The driver as a C program has it: looked up by name at run time, called with bare addresses.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// A pool of the program's own on device 0.
pub(crate) fn pool() -> Outcome<u64> {
    let properties = PoolProperties {
        kind: 1,
        handles: 0,
        location: [1, 0],
        security: std::ptr::null_mut(),
        max_size: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let mut pool = 0u64;
    call!(cuMemPoolCreate(&mut pool => *mut u64, &properties => *const PoolProperties))?;
    Ok(pool)
}

/// `CUmemPoolProps`.
#[repr(C)]
struct PoolProperties {
    kind: c_int,
    handles: c_int,
    location: [c_int; 2],
    security: *mut c_void,
    max_size: usize,
    usage: u16,
    reserved: [u8; 54],
}

pub(crate) fn alloc_from(pool: u64, size: usize, stream: u64) -> Outcome<u64> {
    let mut address = 0u64;
    call!(cuMemAllocFromPoolAsync(
        &mut address => *mut u64, size => usize, pool => u64, stream => u64
    ))
    .map(|()| address)
}

/// Work in a stream that does not end before somebody says so.
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Puts one into a stream.
    pub(crate) fn close(stream: u64) -> Outcome<Self> {
        extern "C" fn wait(open: *mut c_void) {
            // SAFETY: what `close` gave, once.
            let open = unsafe { Arc::from_raw(open.cast::<AtomicBool>()) };
            while !open.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let open = Arc::new(AtomicBool::new(false));
        let argument = Arc::into_raw(Arc::clone(&open)).cast_mut().cast::<c_void>();
        call!(cuLaunchHostFunc(
            stream => u64, wait => extern "C" fn(*mut c_void), argument => *mut c_void
        ))?;
        Ok(Self(open))
    }

    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Opens it in a while, from another thread.
    pub(crate) fn opens_later(&self) -> std::thread::JoinHandle<()> {
        let open = Arc::clone(&self.0);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            open.store(true, Ordering::Release);
        })
    }
}
