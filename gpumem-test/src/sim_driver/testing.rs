//! Calls of the driver's and libraries' functions in tests, with the types of their arguments.

use std::ffi::{CStr, c_char};

use crate::abi::Handle;

/// Calls the function of a name as a program does: `call!("cuCtxSetCurrent"(context => Handle))`.
macro_rules! call {
    ($name:literal ( $($value:expr => $kind:ty),* $(,)? )) => {{
        let function = $crate::sim_driver::function($name)
            .unwrap_or_else(|| panic!("{} is not simulated", $name));
        type Signature = unsafe extern "C" fn($($kind),*) -> i32;
        // SAFETY: the test names the function's signature.
        let function = unsafe { std::mem::transmute::<$crate::sim_driver::Function, Signature>(function) };
        // SAFETY: the test passes what the function's contract wants.
        unsafe { function($($value),*) }
    }};
}

/// Calls a library's function as a program does.
macro_rules! call_library {
    ($library:expr, $name:literal ( $($value:expr => $kind:ty),* $(,)? )) => {{
        let function = $crate::sim_driver::library_function($library, $name)
            .unwrap_or_else(|| panic!("{} is not simulated", $name));
        type Signature = unsafe extern "C" fn($($kind),*) -> i32;
        // SAFETY: the test names the function's signature.
        let function = unsafe { std::mem::transmute::<$crate::sim_driver::Function, Signature>(function) };
        // SAFETY: the test passes what the function's contract wants.
        unsafe { function($($value),*) }
    }};
}

pub(super) use {call, call_library};

/// A kernel of that name, in a module that has no other.
pub(super) fn module_function(name: &CStr) -> Handle {
    let text = name.to_str().unwrap();
    let text = format!(".version 8.0\n.target sm_90\n.visible .entry {text}() {{ ret; }}\0");
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
