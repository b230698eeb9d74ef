//! The driver, through cudarc: what loads it, opens a card, and makes the calls.
//!
//! cudarc finds each function when it is first called, by the names that every program uses; in a
//! process with the door these are the door's, and the guard of each scope lets them pass.

mod calls;
mod loading;
mod scope;

use std::ffi::{c_char, c_int};

use cudarc::driver::sys;

use self::loading::Library;
use super::raw::{CardFacts, CardGlance, DriverError};
use crate::error::Error;
use crate::guard::Guard;

/// The driver of one card, whose primary context it retains.
#[derive(Debug)]
pub struct Driver {
    facts: CardFacts,
    device: c_int,
    /// The primary context (`CUcontext`), as a number: it is no memory of ours.
    context: u64,
    /// Whether calls may be made while the program captures a stream: they are a policy's, and the
    /// program knows nothing of them.
    relaxed: bool,
    /// Recorded behind work on bytes, to wait for it.
    behind_bytes: u64,
}

/// The outcome of a call of the driver.
fn check(call: &'static str, code: sys::CUresult) -> Result<(), DriverError> {
    match code as u32 {
        0 => Ok(()),
        code => Err(DriverError { call, code }),
    }
}

/// How many cards the driver shows this process. Cheap where there is no driver; where there is
/// one, the first call initialises it (235 ms on an H200).
///
/// # Errors
/// If there is no driver that can be used, with the cause and what to do.
pub fn count() -> Result<usize, Error> {
    let _guard = Guard::enter();
    let library = Library::load()?;
    match library.initialise() {
        Ok(()) => {}
        Err(error) if error.code == sys::CUresult::CUDA_ERROR_NO_DEVICE as u32 => return Ok(0),
        Err(error) => return Err(library.explain(error)),
    }
    let mut count = 0;
    // SAFETY: the driver is loaded and initialised; it writes one integer.
    let code = unsafe { sys::cuDeviceGetCount(&raw mut count) };
    check("cuDeviceGetCount", code).map_err(|error| library.explain(error))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Looks at a card without making a context on it.
///
/// # Errors
/// If there is no driver, or no such card.
pub(crate) fn glance(ordinal: u32) -> Result<CardGlance, Error> {
    known(ordinal)?;
    let _guard = Guard::enter();
    let library = Library::load()?;
    let look = || {
        let device = device_of(ordinal)?;
        let mut uuid = [0; 16];
        // SAFETY: an identity is 16 bytes, which the driver writes.
        let code = unsafe { sys::cuDeviceGetUuid_v2(uuid.as_mut_ptr().cast(), device) };
        check("cuDeviceGetUuid", code)?;
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the driver writes two integers.
        let code =
            unsafe { sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active) };
        check("cuDevicePrimaryCtxGetState", code)?;
        Ok(CardGlance {
            uuid,
            has_context: active != 0,
            cuda_version: library.cuda_version(),
        })
    };
    look().map_err(|error| library.explain(error))
}

/// Opens a card as it is, without a budget and without a model of it, and retains its primary
/// context.
///
/// # Errors
/// If there is no driver, no such card, or the card does not let us in.
pub(crate) fn open(ordinal: u32) -> Result<Driver, Error> {
    Driver::open(ordinal, false)
}

/// The driver's number of a card.
fn device_of(ordinal: u32) -> Result<c_int, DriverError> {
    let mut device = 0;
    // SAFETY: the driver is initialised; it writes one integer.
    let code = unsafe { sys::cuDeviceGet(&raw mut device, ordinal as c_int) };
    check("cuDeviceGet", code).map(|()| device)
}

/// Whether the driver shows a card.
///
/// # Errors
/// If not, or there is no driver.
fn known(ordinal: u32) -> Result<(), Error> {
    let known = count()?;
    if (ordinal as usize) < known {
        return Ok(());
    }
    let cards = match known {
        0 => "the driver shows no card".to_owned(),
        1 => "the driver shows one card, cuda:0".to_owned(),
        _ => format!(
            "the driver shows {known} cards, cuda:0 to cuda:{}",
            known - 1
        ),
    };
    Err(Error::device(format!("cannot open cuda:{ordinal}: {cards}")).with_help(NO_CARD_HELP))
}

impl Driver {
    /// Opens a card and retains its primary context. `relaxed`: calls may be made while the program
    /// captures a stream.
    ///
    /// # Errors
    /// If there is no driver, no such card, or the card does not let us in.
    pub(super) fn open(ordinal: u32, relaxed: bool) -> Result<Self, Error> {
        known(ordinal)?;
        let _guard = Guard::enter();
        let library = Library::load()?;
        let explain = |error| {
            Error::device(format!("cannot open cuda:{ordinal}")).caused_by(library.explain(error))
        };
        let mut driver = Self::retain(ordinal, relaxed).map_err(explain)?;
        driver.look_up().map_err(explain)?;
        Ok(driver)
    }

    /// Lets calls be made while the program captures a stream.
    pub(super) fn relax_captures(&mut self) {
        self.relaxed = true;
    }

    fn retain(ordinal: u32, relaxed: bool) -> Result<Self, DriverError> {
        let (device, mut context) = (device_of(ordinal)?, std::ptr::null_mut());
        // SAFETY: the device exists; the driver writes one handle.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        check("cuDevicePrimaryCtxRetain", code)?;
        let facts = CardFacts {
            ordinal,
            name: String::new(),
            uuid: [0; 16],
            granularity: 0,
            compute_capability: (0, 0),
            default_pool: 0,
        };
        Ok(Self {
            facts,
            device,
            context: context as u64,
            relaxed,
            behind_bytes: 0,
        })
    }

    /// Asks for what does not change.
    fn look_up(&mut self) -> Result<(), DriverError> {
        use super::raw::RawDriver;
        let _scope = self.enter()?;
        let mut name = [0_u8; 256];
        let place = name.as_mut_ptr().cast::<c_char>();
        // SAFETY: the place has as many bytes as are said.
        let code = unsafe { sys::cuDeviceGetName(place, name.len() as c_int, self.device) };
        check("cuDeviceGetName", code)?;
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        self.facts.name = String::from_utf8_lossy(&name[..end]).into_owned();
        // SAFETY: an identity is 16 bytes, which the driver writes.
        let code =
            unsafe { sys::cuDeviceGetUuid_v2(self.facts.uuid.as_mut_ptr().cast(), self.device) };
        check("cuDeviceGetUuid", code)?;
        self.facts.granularity = calls::granularity(self.device)?;
        self.facts.compute_capability = calls::compute_capability(self.device)?;
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let code = unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, self.device) };
        check("cuDeviceGetDefaultMemPool", code)?;
        self.facts.default_pool = pool as u64;
        self.behind_bytes = self.create_event()?;
        Ok(())
    }
}

/// What to do where no card can be used.
const NO_CARD_HELP: &str = "run it on a simulated device with `GPUMEM_DEVICE=sim cargo test`";

impl Drop for Driver {
    fn drop(&mut self) {
        let _guard = Guard::enter();
        // SAFETY: retained once in `retain`. A driver that has shut down says so, which is no harm.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
