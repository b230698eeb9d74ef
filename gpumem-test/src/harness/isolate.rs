//! One child process for a test: started, watched, ended.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::error::Error;

use super::ended::Ended;
use super::platform;
use super::protocol::{self, End, Job};

/// The most of a child's output that a report shows, from its end.
const MOST_OUTPUT: u64 = 256 << 10;

/// A child that ended.
pub(super) struct Finished {
    /// How.
    pub(super) ended: Ended,
    /// Its standard output and error, in the order written; empty if not captured.
    pub(super) output: String,
}

/// How to start children.
pub(super) struct Isolation {
    /// This program.
    pub(super) executable: PathBuf,
    /// Whether children write where this process writes (`--nocapture`).
    pub(super) inherit_output: bool,
}

impl Isolation {
    /// Runs `job` in a child and waits for its end, for at most `timeout`.
    ///
    /// # Errors
    /// If the child cannot be started or its files not be made.
    pub(super) fn run(
        &self,
        job: &Job,
        environment: &[(&str, &Path)],
        capture: bool,
        timeout: Option<Duration>,
    ) -> Result<Finished, Error> {
        let output = job.scratch.output(job.task);
        let mut command = Command::new(&self.executable);
        // The arguments are for the reader of a process list; the job is in the environment.
        command.args([job.case.as_str(), "--exact", "--nocapture"]);
        command.stdin(Stdio::null());
        if capture {
            let (out, err) = capture_file(&output)?;
            command.stdout(out).stderr(err);
        }
        command.envs(environment.iter().copied());
        job.hand_to(&mut command);
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
        let end = protocol::read(&job.scratch.end(job.task));
        Ok(Finished {
            ended: status.map_or_else(|timed_out| timed_out, |status| ended(status, end)),
            output: if capture {
                read_output(&output)
            } else {
                String::new()
            },
        })
    }
}

/// Joins what the child said with how its process ended.
fn ended(status: ExitStatus, end: Option<End>) -> Ended {
    match end {
        Some(End::Failed { message } | End::NotStarted { message }) => Ended::Failed { message },
        Some(End::Panicked { message, place }) => Ended::Panicked { message, place },
        // A body that returned in a process that then died (in a library's destructor, say) has
        // not gone well.
        Some(End::Returned) if status.success() => Ended::Returned,
        Some(End::Returned) | None => match platform::signal(status) {
            Some((number, name)) => Ended::Signalled { number, name },
            None => Ended::Exited {
                code: status.code().unwrap_or_default(),
            },
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
