//! One child process for a test: started, watched, ended.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use wait_timeout::ChildExt;

use crate::check::Ended;
use crate::config::{DeviceSpec, HeldByNeighbour};
use crate::error::Error;

use super::messages;
use super::neighbours::Holding;
use super::plan::Case;
use super::platform;
use super::protocol::{self, End, Job, Scratch};

/// The most of a child's output that a report shows, from its end.
const MOST_OUTPUT: u64 = 256 << 10;

/// Which GPUs the driver shows a process, by number or UUID, separated by commas.
const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";

/// Where cubecl (burn) looks for the toolkit's headers; it panics where there are none. On a
/// simulated device nobody reads them, so that any place will do.
///
/// Source: cubecl-cuda 0.10.0, `install::cuda_path`.
const TOOLKIT: (&str, &str) = ("CUDA_PATH", "/usr/local/cuda");

/// What shows a process the GPU `ordinal` alone, of those that this process is shown.
fn visible(ordinal: u16, shown: Option<String>) -> String {
    let number = ordinal.to_string();
    let Some(shown) = shown else { return number };
    let named = shown.split(',').nth(usize::from(ordinal));
    named.map_or(number, |name| name.trim().to_owned())
}

/// Shows a process the GPU that its test runs on, alone.
fn show_gpu(command: &mut Command, device: &DeviceSpec) {
    if let DeviceSpec::Cuda { ordinal } = device {
        let shown = std::env::var(VISIBLE_GPUS).ok();
        command.env(VISIBLE_GPUS, visible(*ordinal, shown));
    }
}

/// A child that ended.
pub(super) struct Finished {
    /// How.
    pub(super) ended: Ended,
    /// Why it did not run its test after all.
    pub(super) skipped: Option<String>,
    /// Its standard output and error, in the order written; empty if not captured.
    pub(super) output: String,
}

impl Finished {
    /// Of a test whose process was not started.
    pub(super) fn skipped(reason: String) -> Self {
        Self {
            ended: Ended::Returned,
            skipped: Some(reason),
            output: String::new(),
        }
    }
}

/// How to start children.
pub(super) struct Isolation {
    /// This program.
    pub(super) executable: PathBuf,
    /// How many GPUs this process found, if it asked.
    pub(super) gpus: Option<usize>,
    /// Whether children write where this process writes (`--nocapture`).
    pub(super) inherit_output: bool,
}

impl Isolation {
    /// Starts the neighbours of a test on a real card; the reason comes back where the card does not
    /// have what one of them takes. On a simulated card nobody is started.
    ///
    /// # Errors
    /// If one cannot be started, or fails otherwise.
    pub(super) fn start_neighbours(&self, case: &Case) -> Result<Result<Holding, String>, Error> {
        let mut holding = Holding::default();
        if !matches!(case.device, DeviceSpec::Cuda { .. }) {
            return Ok(Ok(holding));
        }
        for (neighbour, spec) in case.neighbours.iter().enumerate() {
            let mut command = Command::new(&self.executable);
            // For the reader of a process list, as below.
            command.args([case.name.as_str(), "--exact", "--nocapture"]);
            let job = Job::Hold {
                case: case.name.clone(),
                neighbour,
                held: holding.held.clone(),
            };
            job.hand_to(&mut command, self.gpus);
            show_gpu(&mut command, &case.device);
            if let Err(reason) = holding.add(spec, command)? {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(holding))
    }

    /// Runs a test in a child and waits for its end, for as long as its timeout allows.
    ///
    /// # Errors
    /// If the child cannot be started or its files not be made.
    ///
    /// `held` is what its neighbours hold of a real card.
    pub(super) fn run(
        &self,
        case: &Case,
        scratch: &Scratch,
        held: &[HeldByNeighbour],
    ) -> Result<Finished, Error> {
        let timeout = case.entry.options.timeout;
        let output = scratch.output();
        let mut command = Command::new(&self.executable);
        // The arguments are for the reader of a process list; the job is in the environment.
        command.args([case.name.as_str(), "--exact", "--nocapture"]);
        command.stdin(Stdio::null());
        if !self.inherit_output {
            let (out, err) = capture_file(&output)?;
            command.stdout(out).stderr(err);
        }
        let job = Job::Run {
            case: case.name.clone(),
            scratch: scratch.clone(),
            held: held.to_vec(),
        };
        job.hand_to(&mut command, self.gpus);
        show_gpu(&mut command, &case.device);
        if matches!(case.device, DeviceSpec::Sim { .. }) && std::env::var_os(TOOLKIT.0).is_none() {
            command.env(TOOLKIT.0, TOOLKIT.1);
        }
        platform::prepare(&mut command);
        let mut child = command.spawn().map_err(|error| {
            Error::io(
                format!("cannot start {} for its test", self.executable.display()),
                error,
            )
        })?;
        let waited = match timeout {
            Some(timeout) => child.wait_timeout(timeout),
            None => child.wait().map(Some),
        };
        let status = match waited {
            Ok(Some(status)) => Ok(status),
            Ok(None) => {
                platform::kill(&mut child);
                let _ = child.wait();
                Err(Ended::TimedOut {
                    after: timeout.unwrap_or_default(),
                })
            }
            Err(error) => {
                platform::kill(&mut child);
                return Err(Error::io("cannot wait for a test's process", error));
            }
        };
        let end = protocol::read(&scratch.end());
        let skipped = match &status {
            Ok(status) => skipped(*status, end.as_ref()),
            Err(_) => None,
        };
        let (ended, before) = match status {
            Ok(status) => ended(status, end),
            Err(timed_out) => (timed_out, None),
        };
        let mut output = match self.inherit_output {
            true => String::new(),
            false => read_output(&output),
        };
        if let Some(before) = before {
            output.push_str(&messages::before_the_crash(&before));
        }
        Ok(Finished {
            ended,
            skipped,
            output,
        })
    }
}

/// Joins what the child said with how its process ended. A body that ended in a process that then
/// died (in a library's destructor, say) has not gone well, `should_oom` or not: that is a crash,
/// and what the body had said before comes beside it.
fn ended(status: ExitStatus, end: Option<End>) -> (Ended, Option<String>) {
    let ended = match end {
        Some(End::Failed { message } | End::NotStarted { message }) => Ended::Failed { message },
        Some(End::Panicked { message, place }) => Ended::Panicked { message, place },
        Some(End::Returned | End::Skipped { .. }) => Ended::Returned,
        None => return (crashed(status), None),
    };
    if status.success() {
        return (ended, None);
    }
    let before = match ended {
        Ended::Failed { message } | Ended::Panicked { message, .. } => Some(message),
        _ => None,
    };
    (crashed(status), before)
}

/// Why a child did not run its test. One that crashed after it said so is a crash.
fn skipped(status: ExitStatus, end: Option<&End>) -> Option<String> {
    match end {
        Some(End::Skipped { reason }) if status.success() => Some(reason.clone()),
        _ => None,
    }
}

fn crashed(status: ExitStatus) -> Ended {
    match platform::signal(status) {
        Some((number, name)) => Ended::Signalled { number, name },
        None => Ended::Exited {
            code: status.code().unwrap_or_default(),
        },
    }
}

/// One file for both streams, so that their lines keep their order.
fn capture_file(path: &Path) -> Result<(File, File), Error> {
    let open = || {
        let out = OpenOptions::new().append(true).create(true).open(path)?;
        let err = out.try_clone()?;
        Ok((out, err))
    };
    open().map_err(|error| Error::io(format!("cannot make {}", path.display()), error))
}

fn read_output(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let skipped = length.saturating_sub(MOST_OUTPUT);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok::<_, std::io::Error>(if skipped > 0 {
            format!("[{skipped} bytes of output are not shown]\n{text}")
        } else {
            text
        })
    };
    read().unwrap_or_else(|error| format!("[the output could not be read: {error}]"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{End, Ended, ended, visible};

    #[test]
    fn a_test_is_shown_its_gpu_alone_by_the_name_that_the_user_gave() {
        assert_eq!(visible(1, None), "1");
        assert_eq!(visible(1, Some("3, GPU-5a".to_owned())), "GPU-5a");
        assert_eq!(visible(0, Some("3".to_owned())), "3");
    }

    #[test]
    fn a_crash_behind_the_body_is_a_crash_and_loses_no_words() {
        let killed = ExitStatus::from_raw(9);
        let failed = End::Failed {
            message: "broken".to_owned(),
        };
        let (end, before) = ended(killed, Some(failed.clone()));
        assert!(matches!(end, Ended::Signalled { number: 9, .. }), "{end:?}");
        assert_eq!(before.as_deref(), Some("broken"));
        assert!(matches!(
            ended(killed, Some(End::Returned)),
            (Ended::Signalled { .. }, None)
        ));
        let well = ExitStatus::from_raw(0);
        assert!(matches!(
            ended(well, Some(failed)),
            (Ended::Failed { .. }, None)
        ));
        assert!(matches!(
            ended(well, None),
            (Ended::Exited { code: 0 }, None)
        ));
    }

    #[test]
    fn a_skip_is_one_only_where_the_process_ended_well() {
        let end = Some(End::Skipped {
            reason: "no GPU".to_owned(),
        });
        let (well, killed) = (ExitStatus::from_raw(0), ExitStatus::from_raw(9));
        assert_eq!(
            super::skipped(well, end.as_ref()).as_deref(),
            Some("no GPU")
        );
        assert_eq!(super::skipped(killed, end.as_ref()), None);
        assert_eq!(super::skipped(well, Some(&End::Returned)), None);
        assert!(matches!(
            ended(killed, end),
            (Ended::Signalled { .. }, None)
        ));
    }
}
