//! The process that compares summaries with accepted snapshots.
//!
//! insta prints its difference on standard output, which a process can only capture of another.
//! One such process serves all tests of a supervisor, so that insta asks cargo for the workspace
//! once. It reads orders from its standard input, one a line, and writes what insta prints and,
//! after a mark, the answer; when its input ends, so does it.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::check::Compared;
use crate::error::Error;
use crate::snapshot::Comparison;

use super::child::words;
use super::exit_code;
use super::messages;
use super::plan::Plan;
use super::protocol::{self, Job};

/// What no snapshot prints at the start of a line.
const MARK: &str = "\u{1}gpumem compared ";

#[derive(Serialize, Deserialize)]
struct Order {
    test: String,
    text: String,
}

/// How a comparison ended, and what insta's assertion said if it failed.
#[derive(Serialize, Deserialize)]
struct Answer {
    compared: Compared,
    said: String,
}

/// The supervisor's end. The process starts with the first comparison.
pub(super) struct Comparer {
    executable: PathBuf,
    /// How many GPUs this process found, if it asked.
    gpus: Option<usize>,
    process: Mutex<Option<Process>>,
}

struct Process {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<PipeReader>,
}

impl Comparer {
    pub(super) fn new(executable: PathBuf, gpus: Option<usize>) -> Self {
        Self {
            executable,
            gpus,
            process: Mutex::new(None),
        }
    }

    /// Compares `text` with the accepted snapshot of the test `name`, or of the table that is so
    /// called; beside the result stands what differs, in insta's words.
    ///
    /// # Errors
    /// If the process cannot be started, or ended before its answer.
    pub(super) fn compare(&self, name: &str, text: &str) -> Result<(Compared, String), Error> {
        let mut process = self
            .process
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // Taken out, so that a process that failed is not asked again.
        let mut running = match process.take() {
            Some(running) => running,
            None => Process::start(&self.executable, self.gpus)?,
        };
        let answer = running.ask(&Order {
            test: name.to_owned(),
            text: text.to_owned(),
        })?;
        *process = Some(running);
        Ok(answer)
    }
}

impl Process {
    fn start(executable: &PathBuf, gpus: Option<usize>) -> Result<Self, Error> {
        let cannot = |error| Error::io("cannot start the process that compares snapshots", error);
        let (answers, out) = std::io::pipe().map_err(cannot)?;
        let mut command = Command::new(executable);
        // Both streams into one pipe, so that insta's lines keep their order.
        command
            .stdin(Stdio::piped())
            .stderr(out.try_clone().map_err(cannot)?)
            .stdout(out);
        Job::Compare.hand_to(&mut command, gpus);
        let mut child = command.spawn().map_err(cannot)?;
        let orders = child
            .stdin
            .take()
            .unwrap_or_else(|| unreachable!("the input was asked to be a pipe"));
        Ok(Self {
            child,
            orders,
            answers: BufReader::new(answers),
        })
    }

    fn ask(&mut self, order: &Order) -> Result<(Compared, String), Error> {
        let printed = self.exchange(order).map_err(|error| {
            Error::io("cannot talk to the process that compares snapshots", error)
        })?;
        let (printed, answer) = match printed {
            Ok(answered) => answered,
            Err(printed) => {
                let printed = printed.trim_end();
                let status = self
                    .child
                    .wait()
                    .map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(Error::recording(format!(
                    "the process that compares snapshots ended without an answer ({status})\n{printed}"
                )));
            }
        };
        let printed = printed.trim_end();
        let said = match printed {
            "" => answer.said,
            printed => printed.to_owned(),
        };
        Ok((answer.compared, said))
    }

    /// What was printed, and the answer; only what was printed if the process ended.
    fn exchange(&mut self, order: &Order) -> std::io::Result<Result<(String, Answer), String>> {
        writeln!(self.orders, "{}", protocol::to_line(order))?;
        self.orders.flush()?;
        let mut printed = String::new();
        let mut line = Vec::new();
        while self.answers.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            if let Some((before, answer)) = text.split_once(MARK) {
                printed.push_str(before);
                return Ok(Ok((printed, protocol::from_line(answer)?)));
            }
            printed.push_str(&text);
            line.clear();
        }
        Ok(Err(printed))
    }
}

/// The process's side: answers until its input ends.
pub(super) fn serve(plan: &Plan) -> ExitCode {
    // What insta panics with is the answer.
    panic::set_hook(Box::new(|_| {}));
    for line in std::io::stdin().lock().lines() {
        let order = line.and_then(|line| protocol::from_line(&line));
        let Ok(order) = order else {
            return ExitCode::from(exit_code::NOT_STARTED);
        };
        let answer = protocol::to_line(&answer(plan, &order));
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{MARK}{answer}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return ExitCode::from(exit_code::NOT_STARTED);
        }
    }
    ExitCode::SUCCESS
}

fn answer(plan: &Plan, order: &Order) -> Answer {
    let Order { test, text } = order;
    let case = plan.cases.iter().find(|case| case.name == *test);
    let table = plan.table(test).and_then(|table| {
        let case = &table.cases.first()?.case;
        Some((case, table.snapshot.clone()?))
    });
    let (entry, comparison) = match (case, table) {
        (Some(case), _) => {
            let name = case.snapshot.clone().unwrap_or_default();
            let tolerance = case.entry.options.tolerance;
            let comparison = Comparison::new(name, text.clone(), tolerance);
            (case.entry, comparison)
        }
        (None, Some((case, name))) => {
            let tolerance = case.entry.options.tolerance;
            let comparison = Comparison::of_table(name, text.clone(), tolerance);
            (case.entry, comparison)
        }
        (None, None) => {
            return Answer {
                compared: Compared::NoneAccepted,
                said: messages::no_such_case(test).to_string(),
            };
        }
    };
    let asserted = panic::catch_unwind(AssertUnwindSafe(|| (entry.compare)(&comparison)));
    match asserted {
        Ok(()) => Answer {
            compared: Compared::Equal,
            said: String::new(),
        },
        Err(payload) => Answer {
            compared: match comparison.found_accepted() {
                true => Compared::Differs,
                false => Compared::NoneAccepted,
            },
            said: words(payload.as_ref()),
        },
    }
}
