//! The program's own functions in a stream's order.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use super::issue::Work;
use super::{OnStream, resolve};
use crate::abi::{Handle, Status};
use crate::sim_driver::capture;
use crate::sim_driver::export::Answer;
use crate::sim_driver::graphs::Run;

/// `CUhostFn`.
type HostFn = Option<unsafe extern "C" fn(data: *mut c_void)>;

/// `CUstreamCallback`.
type StreamCallback =
    Option<unsafe extern "C" fn(stream: Handle, status: c_int, data: *mut c_void)>;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// # Errors
/// `NOT_PERMITTED` inside a function that the driver calls: such a function must not call it.
pub(in crate::sim_driver) fn permitted() -> Result<(), Status> {
    if INSIDE.get() {
        Err(Status::NOT_PERMITTED)
    } else {
        Ok(())
    }
}

/// A call of a function of the program, with what it was given for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) enum HostCall {
    Function(unsafe extern "C" fn(*mut c_void), *mut c_void),
    Callback(
        unsafe extern "C" fn(Handle, c_int, *mut c_void),
        Handle,
        *mut c_void,
    ),
}

// SAFETY: the pointer is the program's and only handed on; by the interface's contract, the
// function may be called on another thread.
unsafe impl Send for HostCall {}
// SAFETY: as above; nothing is read through the pointer here.
unsafe impl Sync for HostCall {}

impl HostCall {
    /// Calls the function, outside every lock of ours.
    pub(in crate::sim_driver) fn run(&self) {
        INSIDE.set(true);
        match *self {
            // SAFETY: the program gave function and data for this very call.
            Self::Function(function, data) => unsafe { function(data) },
            // SAFETY: as above.
            Self::Callback(function, stream, data) => unsafe {
                function(stream, Status::SUCCESS.0, data);
            },
        }
        INSIDE.set(false);
    }
}

fn launch(stream: OnStream, call: HostCall) -> Answer {
    if let Some(id) = stream.capture {
        return match call {
            HostCall::Function(..) => capture::keep(id, stream, Work::Call(call)),
            HostCall::Callback(..) => {
                capture::invalidate(id);
                Err(Status::STREAM_CAPTURE_UNSUPPORTED)
            }
        };
    }
    let blocks = stream.device(|device| device.launch_host_function(stream.id));
    let place = stream.place();
    stream.host.state.host_functions.add(place, move || {
        call.run();
        stream.device(|device| device.finish_host_function(blocks));
    });
    Ok(())
}

/// Issues a graph that calls functions of the program: it takes its turn as such a function does.
pub(in crate::sim_driver) fn issue_calls(stream: OnStream, run: Run) {
    stream.device(|device| device.issue_work(stream.id));
    let blocks = stream.device(|device| device.launch_host_function(stream.id));
    let place = stream.place();
    stream.host.state.host_functions.add(place, move || {
        // The call has returned: as with the driver's own, nobody hears of a late failure.
        let _ = run.run();
        stream.device(|device| device.finish_host_function(blocks));
    });
}

stream_functions! { null:
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(
        stream: Handle,
        function: HostFn,
        data: *mut c_void,
    ) {
        let stream = resolve(stream, null)?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        launch(stream, HostCall::Function(function, data))
    }

    fn cuStreamAddCallback, cuStreamAddCallback_ptsz(
        stream: Handle,
        callback: StreamCallback,
        data: *mut c_void,
        flags: c_uint,
    ) {
        let found = resolve(stream, null)?;
        let callback = callback.ok_or(Status::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        launch(found, HostCall::Callback(callback, stream, data))
    }
}
