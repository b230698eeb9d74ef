//! What the tests of this room share: one driver over many devices, one for each test.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::objects::lock;
use super::{Devices, Function, function, open};
use crate::abi::Handle;
use crate::device::sim::{DeviceProfile, SimDevice};

/// Calls the function of a name as a program does: `call!("cuInit"(flags: u32) = 0)`.
macro_rules! call {
    ($name:literal ( $($value:expr => $kind:ty),* $(,)? )) => {{
        let function = $crate::sim_driver::function($name)
            .unwrap_or_else(|| panic!("{} is not simulated", $name));
        // SAFETY: the test names the function's signature.
        let function: unsafe extern "C" fn($($kind),*) -> i32 =
            unsafe { std::mem::transmute(function) };
        // SAFETY: the test passes what the function's contract wants.
        unsafe { function($($value),*) }
    }};
}

/// Calls a library's function as a program does.
macro_rules! call_library {
    ($library:expr, $name:literal ( $($value:expr => $kind:ty),* $(,)? )) => {{
        let function = $crate::sim_driver::library_function($library, $name)
            .unwrap_or_else(|| panic!("{} is not simulated", $name));
        // SAFETY: the test names the function's signature.
        let function: unsafe extern "C" fn($($kind),*) -> i32 =
            unsafe { std::mem::transmute(function) };
        // SAFETY: the test passes what the function's contract wants.
        unsafe { function($($value),*) }
    }};
}

pub(super) use {call, call_library};

/// More devices than there are tests.
const DEVICES: usize = 128;

struct Host(Vec<Mutex<SimDevice>>);

impl Devices for Host {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice)) {
        run(&mut lock(&self.0[ordinal]));
    }
}

fn door(name: &CStr) -> Function {
    name.to_str()
        .ok()
        .and_then(function)
        .unwrap_or(std::ptr::null())
}

/// Opens the driver, makes a device current that no other test has, and says which.
pub(super) fn device() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let device = || Mutex::new(SimDevice::new(DeviceProfile::h200()));
    open(
        Arc::new(Host(std::iter::repeat_with(device).take(DEVICES).collect())),
        door,
    );
    let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
    assert_eq!(call!("cuInit"(0 => u32)), 0);
    use_device(ordinal);
    ordinal
}

/// Makes a device's primary context the calling thread's.
pub(super) fn use_device(ordinal: usize) {
    let mut context = 0;
    let code = call!("cuDevicePrimaryCtxRetain"(
        &raw mut context => *mut Handle, ordinal as i32 => i32
    ));
    assert_eq!(code, 0);
    assert_eq!(call!("cuCtxSetCurrent"(context => Handle)), 0);
}

/// A kernel of that name, in a module that has no other.
pub(super) fn module_function(name: &CStr) -> Handle {
    let name_text = name.to_str().unwrap();
    let text = format!(".version 8.0\n.target sm_90\n.visible .entry {name_text}() {{ ret; }}\0");
    let (mut module, mut function) = (0, 0);
    let code = call!("cuModuleLoadData"(
        &raw mut module => *mut Handle, text.as_ptr() => *const u8
    ));
    assert_eq!(code, 0);
    let code = call!("cuModuleGetFunction"(
        &raw mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char
    ));
    assert_eq!(code, 0);
    function
}
