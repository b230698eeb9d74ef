//! Finding the driver before cudarc does, which panics where there is none.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::OnceLock;

use cudarc::driver::sys;

use super::{NO_CARD_HELP, check};
use crate::device::cuda::raw::DriverError;
use crate::error::Error;

/// The driver's library, as the driver's installer names it, and as a development link does.
#[cfg(windows)]
const NAMES: [&str; 1] = ["nvcuda.dll"];
#[cfg(not(windows))]
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Every function that this room calls: a driver without one of them is too old.
const FUNCTIONS: [&str; 55] = [
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuCtxGetDevice",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuInit",
    "cuLaunchHostFunc",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemAlloc_v2",
    "cuMemCreate",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemGetAllocationGranularity",
    "cuMemGetInfo_v2",
    "cuMemMap",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuMemsetD16_v2",
    "cuMemsetD32_v2",
    "cuMemsetD8_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuThreadExchangeStreamCaptureMode",
    "cuGetErrorName",
];

/// The driver's library, loaded for good, with all that this room calls.
#[derive(Debug)]
pub(super) struct Library {
    /// The CUDA version that the driver supports, as 1000 × major + 10 × minor.
    version: i32,
    file: libloading::Library,
}

impl Library {
    /// Loads the driver, once.
    ///
    /// # Errors
    /// If there is none, or it is too old.
    pub(super) fn load() -> Result<&'static Self, Error> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library);
        }
        let file = Self::find(&NAMES)?;
        if let Some(missing) = FUNCTIONS.iter().find(|name| !has(&file, name)) {
            return Err(too_old(missing, version_of(&file)));
        }
        let version = version_of(&file).unwrap_or(0);
        Ok(LOADED.get_or_init(|| Self { version, file }))
    }

    fn find(names: &[&str]) -> Result<libloading::Library, Error> {
        let mut cause = None;
        for name in names {
            // SAFETY: the driver's library has initialisers that are made to run anywhere.
            match unsafe { libloading::Library::new(*name) } {
                Ok(file) => return Ok(file),
                // The first name is the one that a driver has.
                Err(error) => _ = cause.get_or_insert(error),
            }
        }
        let error = Error::device("failed to load the CUDA driver").with_help(NO_CARD_HELP);
        let Some(cause) = cause else {
            return Err(error);
        };
        // What the loader says names the file; what libloading says beside it, only its own call.
        Err(match std::error::Error::source(&cause) {
            Some(loader) => error.caused_by(loader.to_string()),
            None => error.caused_by(cause),
        })
    }

    /// Initialises the driver; again and again does no harm.
    pub(super) fn initialise(&self) -> Result<(), DriverError> {
        // SAFETY: the driver is loaded; 0 is the only flag there is.
        check("cuInit", unsafe { sys::cuInit(0) })
    }

    /// Major and minor number of the CUDA version that the driver supports.
    pub(super) fn cuda_version(&self) -> (u32, u32) {
        let version = self.version.unsigned_abs();
        (version / 1000, version % 1000 / 10)
    }

    /// Makes a context (`cuCtxCreate_v2`), the calling thread's current one from then on. Not through
    /// cudarc, whose bindings for CUDA 13 lack it; drivers have it under this name since CUDA 3.2.
    pub(super) fn create_context(&self, flags: u32, device: c_int) -> Result<u64, DriverError> {
        type Create = unsafe extern "C" fn(*mut sys::CUcontext, c_uint, c_int) -> sys::CUresult;
        let mut context = std::ptr::null_mut();
        // SAFETY: the function has had this signature in every driver.
        let create = unsafe { self.file.get::<Create>(b"cuCtxCreate_v2") };
        let Ok(create) = create else {
            let call = "cuCtxCreate";
            let code = sys::CUresult::CUDA_ERROR_NOT_FOUND as u32;
            return Err(DriverError { call, code });
        };
        // SAFETY: the driver is initialised; it writes one handle.
        let code = unsafe { create(&raw mut context, flags, device) };
        check("cuCtxCreate", code).map(|()| context as u64)
    }

    /// A failure of the driver in words, with what to do.
    pub(super) fn explain(&self, error: DriverError) -> Error {
        let (words, help) = match error.code {
            2 => (
                "the card has no memory left for a context",
                "end other programs that use the card",
            ),
            34 => (
                "the library is a stub for linking, not a driver",
                "take the toolkit's `stubs` folder out of `LD_LIBRARY_PATH`",
            ),
            46 => (
                "the card is taken: it is in exclusive mode and another process uses it, or it is in \
                 prohibited mode",
                "end the other process, or `nvidia-smi --compute-mode=0`",
            ),
            100 => ("the driver shows no card", NO_CARD_HELP),
            802 => (
                "the system is not ready: a service such as the fabric manager is still starting",
                "start nvidia-fabricmanager and try again",
            ),
            803 | 804 => (
                "the driver's library and its kernel module do not fit together",
                "restart the machine after a driver update, or take a compatibility library out of \
                 `LD_LIBRARY_PATH`",
            ),
            _ => ("the driver failed", NO_CARD_HELP),
        };
        let name = self.name_of(error.code);
        let supports = version(self.version);
        Error::device(format!(
            "{words} ({} returned {name}, {}, of a driver for CUDA {supports})",
            error.call, error.code
        ))
        .with_help(help)
    }

    /// The driver's name for a code. Not through cudarc, whose list of codes may lack it.
    fn name_of(&self, code: u32) -> String {
        type Ask = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        let mut name = std::ptr::null();
        // SAFETY: the function has had this signature in every driver.
        let known = unsafe { self.file.get::<Ask>(b"cuGetErrorName") }
            // SAFETY: it writes one pointer.
            .is_ok_and(|ask| unsafe { ask(code, &raw mut name) } == 0);
        if !known || name.is_null() {
            return "an unknown error".to_owned();
        }
        // SAFETY: the driver's names are constants that end in a zero.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }
}

fn has(file: &libloading::Library, name: &str) -> bool {
    // SAFETY: the address is not used.
    unsafe { file.get::<*const ()>(name.as_bytes()) }.is_ok()
}

/// The CUDA version that a driver supports, which it says without being initialised.
fn version_of(file: &libloading::Library) -> Option<i32> {
    type Ask = unsafe extern "C" fn(*mut i32) -> i32;
    // SAFETY: the function has had this signature in every driver.
    let ask = unsafe { file.get::<Ask>(b"cuDriverGetVersion") }.ok()?;
    let mut version = 0;
    // SAFETY: it writes one integer.
    let code = unsafe { ask(&raw mut version) };
    (code == 0).then_some(version)
}

fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

fn too_old(missing: &str, found: Option<i32>) -> Error {
    let found = found.map_or_else(
        || "an unknown version of CUDA".to_owned(),
        |number| format!("CUDA {}", version(number)),
    );
    let binding = version(sys::CUDA_VERSION as i32);
    Error::device(format!(
        "the driver is for {found} and has no `{missing}`; this program was built for CUDA {binding}"
    ))
    .with_help(format!(
        "update the driver, or build for its version by `CUDARC_CUDA_VERSION` (as in \
         `CUDARC_CUDA_VERSION=12020`); {NO_CARD_HELP}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Library, too_old};
    use crate::device::cuda::raw::DriverError;

    #[test]
    fn a_driver_that_is_too_old_is_named_with_both_versions() {
        let error = too_old("cuDeviceGetUuid_v2", Some(11_020));
        let text = error.to_string();
        assert!(text.starts_with("the driver is for CUDA 11.2 and has no `cuDeviceGetUuid_v2`; this program was built for CUDA 1"), "{text}");
        assert!(error.help().unwrap().contains("CUDARC_CUDA_VERSION"));
    }

    #[test]
    fn a_driver_that_is_not_there_is_said_with_the_file_and_what_to_do() {
        let error = Library::find(&["libno-such-driver.so.1"]).unwrap_err();
        let text = format!("{error:?}");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("failed to load the CUDA driver"));
        assert!(
            lines.next().unwrap().contains("libno-such-driver.so.1"),
            "{text}"
        );
        assert_eq!(
            lines.next(),
            Some("  help: run it on a simulated device with `GPUMEM_DEVICE=sim cargo test`")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_card_that_lets_nobody_in_is_said_in_words() {
        let library = Library {
            version: 12_040,
            // This program has no function that names codes.
            file: libloading::os::unix::Library::this().into(),
        };
        let explain = |code| {
            let call = "cuDevicePrimaryCtxRetain";
            library.explain(DriverError { call, code })
        };
        assert_eq!(
            explain(46).to_string(),
            "the card is taken: it is in exclusive mode and another process uses it, or it is in \
             prohibited mode (cuDevicePrimaryCtxRetain returned an unknown error, 46, of a driver \
             for CUDA 12.4)"
        );
        for (code, words) in [
            (2, "no memory left"),
            (34, "a stub"),
            (100, "no card"),
            (802, "not ready"),
            (803, "do not fit together"),
            (999, "the driver failed"),
        ] {
            let error = explain(code);
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.help().is_some() && error.is_device());
        }
    }
}
