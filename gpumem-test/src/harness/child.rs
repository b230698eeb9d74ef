//! The child's side: one test's body in its session, or one comparison.

use std::cell::RefCell;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;

use crate::error::Error;
use crate::gpu::{Gpu, SessionConfig};
use crate::ledger::Ledger;
use crate::snapshot::Comparison;

use super::exit_code;
use super::plan::Case;
use super::platform;
use super::protocol::{self, End, Job, Task};
use super::registry::MaxLeak;

thread_local! {
    /// The last panic of this thread: what it said and where.
    static LAST_PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Does the job and writes how it ended. The process then returns from `main`, whatever threads
/// the body left running.
pub(super) fn run(job: &Job, case: &Case) -> ExitCode {
    platform::follow_supervisor();
    record_panics(job.task);
    let end = match job.task {
        Task::Run => run_body(job, case).unwrap_or_else(|error| End::NotStarted {
            message: format!("cannot run {}: {error:?}", case.name),
        }),
        Task::Compare => compare(job, case),
    };
    match protocol::write(&job.scratch.end(job.task), &end) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::from(exit_code::NOT_STARTED)
        }
    }
}

fn run_body(job: &Job, case: &Case) -> Result<End, Error> {
    let ledger = Arc::new(Ledger::open(&job.scratch.ledger())?);
    let gpu = Gpu::open(SessionConfig {
        device: case.device.clone(),
        policy: case.policy.clone(),
        budget: case.budget,
        ledger,
    })?;
    protocol::write(&job.scratch.session(), &gpu.facts())?;
    let runs = match case.entry.options.max_leak {
        MaxLeak::Steady => 2,
        MaxLeak::Bytes(_) => 1,
    };
    let mut end = End::Returned;
    for run in 0..runs {
        gpu.run_begin(run);
        end = guarded(|| (case.entry.run)(&gpu, case.arg));
        // After a panic too: the unwinding dropped what the body held, and what is left is left.
        gpu.run_end(run);
        if end != End::Returned {
            break;
        }
    }
    gpu.close();
    Ok(end)
}

fn compare(job: &Job, case: &Case) -> End {
    let text = match fs::read_to_string(job.scratch.summary()) {
        Ok(text) => text,
        Err(error) => {
            return End::NotStarted {
                message: format!("cannot read the summary: {error}"),
            };
        }
    };
    let name = case.snapshot.clone().unwrap_or_default();
    let comparison = Comparison::new(name, text, case.entry.options.tolerance);
    guarded(|| {
        (case.entry.compare)(&comparison);
        Ok(())
    })
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

/// Keeps words and place of a panic; the usual hook prints it into the captured output. What
/// insta panics with is printed by the supervisor, beside its difference.
fn record_panics(task: Task) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info
            .location()
            .map_or_else(String::new, ToString::to_string);
        let _ = LAST_PANIC.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = Some((words(info.payload()), place));
            }
        });
        if task == Task::Run {
            usual(info);
        }
    }));
}

fn words(payload: &(dyn std::any::Any + Send)) -> String {
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
