//! Other processes on a real card: each takes its share, says so, and holds it until its standard
//! input ends.
//!
//! They are this program again. The supervisor starts them one after the other, since a policy may
//! take by what is free, and ends them when the test has ended; should it die itself, their input
//! ends, and so do they. Simulated cards need none: there, neighbours are figures.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wait_timeout::ChildExt;

use crate::config::{HeldByNeighbour, NeighbourSpec};
use crate::device::any::AnyDevice;
use crate::error::Error;
use crate::session;

use super::messages;
use super::plan::Case;
use super::platform;
use super::protocol;

/// What nothing else that the process or its libraries print starts a line with.
const MARK: &str = "\u{1}gpumem neighbour ";

/// How long a neighbour may take until it holds its memory: a context takes a second or two, on a
/// machine that is busy some more.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a process may run on whose output has ended.
const AFTER_ITS_OUTPUT: Duration = Duration::from_secs(2);

/// What a neighbour says, once.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Answer {
    /// It holds its share.
    Held(HeldByNeighbour),
    /// The card does not have its share.
    Refused {
        /// Who wanted how much.
        reason: String,
    },
    /// It could not use the card.
    Failed {
        /// Why, with causes and help.
        message: String,
    },
}

/// The neighbour's side: the process of one neighbour of a test, beside those that hold `before`.
pub(super) fn hold(case: &Case, index: usize, before: &[HeldByNeighbour]) -> ExitCode {
    platform::follow_supervisor();
    let spec = &case.neighbours[index];
    let opened = session::open_beside(
        &super::child::device_here(&case.device),
        case.device_named,
        before,
    );
    hold_on(
        opened,
        spec,
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )
}

/// Takes the share of `spec`, says so on `output`, and holds it until `input` ends.
fn hold_on(
    opened: Result<AnyDevice, Error>,
    spec: &NeighbourSpec,
    mut input: impl Read,
    mut output: impl Write,
) -> ExitCode {
    let mut device = None;
    let taken = opened.and_then(|opened| session::take(spec, device.insert(opened)));
    let answer = match (taken, &device) {
        (Ok(bytes), Some(device)) => Answer::Held(HeldByNeighbour {
            bytes,
            gone: device.gone(),
        }),
        (Err(error), Some(_)) if error.is_configuration() => Answer::Refused {
            reason: messages::not_run(&error),
        },
        (Err(error), _) => Answer::Failed {
            message: format!("{error:?}"),
        },
        (Ok(_), None) => unreachable!("memory is taken of a device"),
    };
    let holds = matches!(answer, Answer::Held(_));
    let said =
        writeln!(output, "{MARK}{}", protocol::to_line(&answer)).and_then(|()| output.flush());
    if holds && said.is_ok() {
        // Nobody writes: it ends when the supervisor lets go of its end, or is gone. Unlike a single
        // read, this goes on after a signal.
        let _ = std::io::copy(&mut input, &mut std::io::sink());
    }
    drop(device);
    ExitCode::SUCCESS
}

/// The supervisor's side: processes that hold memory until this is dropped.
#[derive(Default)]
pub(super) struct Holding {
    processes: Vec<Process>,
    /// What they hold, in their order.
    pub(super) held: Vec<HeldByNeighbour>,
}

/// A process that holds memory.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        platform::kill(&mut self.0);
        let _ = self.0.wait();
    }
}

impl Holding {
    /// Starts a neighbour by `command` beside those that are there, and waits until it holds its
    /// share. The reason comes back where the card does not have it.
    ///
    /// # Errors
    /// If the process cannot be started, or ended without holding anything.
    pub(super) fn add(
        &mut self,
        spec: &NeighbourSpec,
        mut command: Command,
    ) -> Result<Result<(), String>, Error> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        platform::prepare(&mut command);
        let mut child = command
            .spawn()
            .map_err(|error| Error::io(format!("cannot start the neighbour `{spec}`"), error))?;
        let output = child.stdout.take();
        // From here on whatever happens ends the process.
        let mut process = Process(child);
        let output = output.unwrap_or_else(|| unreachable!("the output was asked to be a pipe"));
        match answer(output) {
            Ok(Answer::Held(held)) => {
                self.held.push(held);
                self.processes.push(process);
                Ok(Ok(()))
            }
            Ok(Answer::Refused { reason }) => Ok(Err(reason)),
            Ok(Answer::Failed { message }) => Err(messages::neighbour_failed(spec, &message)),
            Err(RecvTimeoutError::Timeout) => Err(messages::neighbour_is_slow(spec, PATIENCE)),
            Err(RecvTimeoutError::Disconnected) => {
                // Its output has ended, so that it is about to; one that is not is ended below.
                let ended = process.0.wait_timeout(AFTER_ITS_OUTPUT);
                let status = match ended {
                    Ok(Some(status)) => status.to_string(),
                    Ok(None) => "it still runs".to_owned(),
                    Err(error) => error.to_string(),
                };
                Err(messages::neighbour_is_silent(spec, &status))
            }
        }
    }
}

/// What a neighbour says on its output; disconnected if it ended before. The thread that reads ends
/// with the process.
fn answer(output: ChildStdout) -> Result<Answer, RecvTimeoutError> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(text) = line.strip_prefix(MARK)
                && let Ok(answer) = protocol::from_line::<Answer>(text)
            {
                let _ = sender.send(answer);
            }
        }
    };
    std::thread::spawn(read);
    receiver.recv_timeout(PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{Answer, MARK, hold_on};
    use crate::config::HeldByNeighbour;
    use crate::device::any::AnyDevice;
    use crate::device::sim::{DeviceProfile, SimDevice};
    use crate::error::Error;

    /// An input that ends when the test looks at it, and says that it was waited for.
    struct Input<'a>(&'a mut bool);

    impl Read for Input<'_> {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            *self.0 = true;
            Ok(0)
        }
    }

    /// What a neighbour on a simulated card says, and whether it waited for its end.
    fn says(opened: Result<DeviceProfile, Error>, takes: &str) -> (Answer, bool) {
        let opened = opened.map(|profile| AnyDevice::Sim(Box::new(SimDevice::new(profile))));
        let (mut waited, mut output) = (false, Vec::new());
        let _ = hold_on(
            opened,
            &takes.parse().unwrap(),
            Input(&mut waited),
            &mut output,
        );
        let line = String::from_utf8(output).unwrap();
        let text = line.strip_prefix(MARK).unwrap();
        (super::protocol::from_line(text).unwrap(), waited)
    }

    #[test]
    fn a_neighbour_says_what_it_holds_and_holds_it() {
        let card = DeviceProfile::h200();
        let gone = card.context_overhead + (10 << 30);
        let held = Answer::Held(HeldByNeighbour {
            bytes: 10 << 30,
            gone,
        });
        assert_eq!(says(Ok(card), "10GiB"), (held, true));
    }

    #[test]
    fn a_neighbour_that_finds_too_little_says_so_and_goes() {
        let card = DeviceProfile::by_name("24GiB").unwrap();
        let (answer, waited) = says(Ok(card), "30GiB");
        let Answer::Refused { reason } = answer else {
            panic!("{answer:?}");
        };
        assert!(
            reason.starts_with("the neighbour `30GiB` wants 30.00 GiB, but 23.49 GiB of 24.00 GiB"),
            "{reason}"
        );
        assert!(!waited);
    }

    #[test]
    fn a_neighbour_without_a_card_says_why() {
        let (answer, waited) = says(Err(Error::device("no such card")), "1GiB");
        assert_eq!(
            answer,
            Answer::Failed {
                message: "no such card".to_owned()
            }
        );
        assert!(!waited);
    }
}

/// The supervisor's side, with a shell in place of this program.
#[cfg(all(test, unix))]
mod holding {
    use std::process::Command;

    use super::Holding;
    use crate::config::HeldByNeighbour;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn add(holding: &mut Holding, script: &str) -> Result<Result<(), String>, String> {
        let added = holding.add(&"1GiB".parse().unwrap(), shell(script));
        added.map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn processes_hold_until_they_are_let_go() {
        let mut holding = Holding::default();
        let script = r#"echo noise
            printf '\001gpumem neighbour {"answer":"held","bytes":5,"gone":7}\n'
            cat"#;
        assert_eq!(add(&mut holding, script), Ok(Ok(())));
        let held = HeldByNeighbour { bytes: 5, gone: 7 };
        assert_eq!(holding.held, [held]);
        let id = i32::try_from(holding.processes[0].0.id()).unwrap();
        let is_there = || {
            let id = rustix::process::Pid::from_raw(id).unwrap();
            rustix::process::test_kill_process(id).is_ok()
        };
        assert!(is_there());
        drop(holding);
        assert!(!is_there());
    }

    #[test]
    fn a_refusal_is_no_failure() {
        let script = r#"printf '\001gpumem neighbour {"answer":"refused","reason":"full"}\n'"#;
        let mut holding = Holding::default();
        assert_eq!(add(&mut holding, script), Ok(Err("full".to_owned())));
        assert!(holding.held.is_empty() && holding.processes.is_empty());
    }

    #[test]
    fn a_neighbour_that_fails_or_dies_is_an_error() {
        let mut holding = Holding::default();
        let script = r#"printf '\001gpumem neighbour {"answer":"failed","message":"broken"}\n'"#;
        let error = add(&mut holding, script).unwrap_err();
        assert!(
            error.contains("`1GiB`") && error.contains("broken"),
            "{error}"
        );
        let error = add(&mut holding, "exit 3").unwrap_err();
        assert!(
            error.contains("ended without a word (exit status: 3)"),
            "{error}"
        );
    }
}
