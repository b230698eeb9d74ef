//! The child's side: one test's body in its session.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;

use crate::config::{DeviceSpec, HeldByNeighbour};
use crate::error::Error;
use crate::gpu::Gpu;
use crate::intercept::{self, Availability};
use crate::ledger::Ledger;
use crate::session::{Neighbours, Session, SessionConfig};

use super::exit_code;
use super::messages;
use super::plan::Case;
use super::platform;
use super::protocol::{self, End, Scratch};
use super::registry::MaxLeak;
use super::settings::{Settings, SitesSetting};

/// A test's body, which takes the index of its argument.
type Body = fn(&Gpu, usize) -> Result<(), String>;

thread_local! {
    /// The last panic of this thread: what it said and where.
    static LAST_PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Runs the body and writes how it ended. The process then returns from `main`, whatever threads
/// the body left running.
///
/// `held` is what its neighbours hold of a real card.
pub(super) fn run(
    case: &Case,
    settings: &Settings,
    scratch: &Scratch,
    held: Vec<HeldByNeighbour>,
) -> ExitCode {
    platform::follow_supervisor();
    record_panics();
    let end = run_body(case, settings, scratch, held).unwrap_or_else(|error| {
        match error.is_unavailable() {
            true => End::Skipped {
                reason: messages::not_run(&error),
            },
            false => End::NotStarted {
                message: messages::no_session(case, &error),
            },
        }
    });
    match protocol::write(&scratch.end(), &end) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::from(exit_code::NOT_STARTED)
        }
    }
}

fn run_body(
    case: &Case,
    settings: &Settings,
    scratch: &Scratch,
    held: Vec<HeldByNeighbour>,
) -> Result<End, Error> {
    let ledger = Arc::new(Ledger::open(&scratch.ledger())?);
    let session = Session::open(SessionConfig {
        device: device_here(&case.device),
        names_device: case.device_named,
        policy: case.policy.clone(),
        budget: case.budget,
        neighbours: Neighbours {
            specs: case.neighbours.clone(),
            held,
        },
        ledger,
        samples_process: case.entry.options.max_process_memory.is_some(),
        keeps_call_sites: settings.sites != SitesSetting::Off,
    })?;
    let mut facts = session.facts();
    if let DeviceSpec::Cuda { .. } = case.device {
        facts.device = case.device.to_string();
    }
    protocol::write(&scratch.session(), &facts)?;
    // Where there is no door, the handle is all that is seen; the supervisor says so.
    if !matches!(intercept::availability(), Availability::Unsupported { .. }) {
        intercept::serve(&session)?;
    }
    let gpu = Gpu::of(Arc::clone(&session));
    let runs = match case.entry.options.max_leak {
        MaxLeak::Steady => 2,
        MaxLeak::Bytes(_) => 1,
    };
    let mut end = End::Returned;
    for run in 0..runs {
        session.run_begin(run);
        end = guarded(|| __rust_begin_short_backtrace(case.entry.run, &gpu, case.arg));
        // After a panic too: the unwinding dropped what the body held, and what is left is left.
        session.run_end(run);
        if end != End::Returned {
            break;
        }
    }
    session.close();
    intercept::close();
    Ok(end)
}

/// The device of a test by this process's count: the supervisor shows it only the GPU that the
/// test runs on.
pub(super) fn device_here(device: &DeviceSpec) -> DeviceSpec {
    match device {
        DeviceSpec::Cuda { .. } => DeviceSpec::Cuda { ordinal: 0 },
        simulated => simulated.clone(),
    }
}

/// Calls the body. std ends a backtrace at a function of this name, so that one of a panic in the
/// body holds the user's frames and not ours.
///
/// Source: std 1.85, `std::sys::backtrace::__rust_begin_short_backtrace`; libtest has its own too.
#[inline(never)]
fn __rust_begin_short_backtrace(body: Body, gpu: &Gpu, arg: usize) -> Result<(), String> {
    let result = body(gpu, arg);
    // No tail call, which would take the frame away.
    std::hint::black_box(());
    result
}

fn guarded(body: impl FnOnce() -> Result<(), String>) -> End {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => End::Returned,
        Ok(Err(message)) => End::Failed { message },
        Err(payload) => {
            let message = words(payload.as_ref());
            // `resume_unwind` calls no hook: the place of an earlier panic must not pass for its.
            let place = LAST_PANIC
                .take()
                .filter(|(said, _)| *said == message)
                .map_or_else(String::new, |(_, place)| place);
            End::Panicked { message, place }
        }
    }
}

/// Keeps words and place of a panic; the usual hook prints it into the captured output.
fn record_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, |place| {
            format!("{}:{}", place.file(), place.line())
        });
        let _ = LAST_PANIC.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = Some((words(info.payload()), place));
            }
        });
        usual(info);
    }));
}

/// What a panic said.
pub(super) fn words(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match payload.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "(a panic whose value is no text)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{End, guarded};

    #[test]
    fn a_panic_without_words_is_still_a_panic() {
        let end = guarded(|| std::panic::panic_any(7));
        assert!(matches!(end, End::Panicked { message, .. } if message.contains("no text")));
    }

    #[test]
    fn an_error_is_no_panic() {
        let end = guarded(|| Err("broken".to_owned()));
        assert_eq!(
            end,
            End::Failed {
                message: "broken".to_owned()
            }
        );
    }
}
