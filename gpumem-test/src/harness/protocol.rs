//! What a supervisor and its child tell each other: a job in the environment, files in a folder.
//!
//! | file in the scratch folder | written by | holds |
//! |---|---|---|
//! | `ledger` | both | the events of the test |
//! | `session.json` | child, once the session is open | what the session turned out to be |
//! | `end.json` | child, last | how the body ended |
//! | `output.txt` | child | standard output and error |
//! | `summary.txt` | supervisor | the text that a comparing child compares |
//! | `compared.json`, `compared.txt` | comparing child | how that ended, and what insta printed |

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;

const JOB: &str = "GPUMEM_INTERNAL_JOB";
const SCRATCH: &str = "GPUMEM_INTERNAL_SCRATCH";

/// Supervisors within supervisors before something must be wrong.
const DEEPEST: u32 = 8;

/// Whether an environment variable belongs to this protocol.
pub(super) fn is_ours(variable: &str) -> bool {
    variable == JOB || variable == SCRATCH
}

/// What a child is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// Run the body of the test.
    Run,
    /// Compare the summary's text with the accepted snapshot.
    Compare,
}

/// The work of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// What to do.
    pub(super) task: Task,
    /// The name of the case.
    pub(super) case: String,
    /// Where its files are.
    pub(super) scratch: Scratch,
}

#[derive(Serialize, Deserialize)]
struct Order {
    task: Task,
    case: String,
    /// The supervisor. A process further down inherits the environment, but is not the child.
    parent: u32,
    depth: u32,
}

impl Job {
    /// The job of this process, if a supervisor started it for one.
    ///
    /// # Errors
    /// If the job cannot be read, or supervisors start each other without end.
    pub(super) fn from_env() -> Result<Option<Self>, Error> {
        let Some(order) = order_from_env()? else {
            return Ok(None);
        };
        if order.depth > DEEPEST {
            return Err(Error::configuration(format!(
                "test `{}` starts itself again and again: its body must not run this program",
                order.case
            )));
        }
        if !is_child_of(order.parent) {
            return Ok(None);
        }
        let folder = std::env::var_os(SCRATCH)
            .ok_or_else(|| Error::configuration(format!("{JOB} is set and {SCRATCH} is not")))?;
        Ok(Some(Self {
            task: order.task,
            case: order.case,
            scratch: Scratch(folder.into()),
        }))
    }

    /// Tells `command` that it is for this job.
    pub(super) fn hand_to(&self, command: &mut Command) {
        let depth = order_from_env()
            .ok()
            .flatten()
            .map_or(0, |order| order.depth);
        let order = Order {
            task: self.task,
            case: self.case.clone(),
            parent: std::process::id(),
            depth: depth + 1,
        };
        let text = serde_json::to_string(&order).unwrap_or_else(|error| {
            unreachable!("strings and numbers always make JSON: {error}");
        });
        command.env(JOB, text).env(SCRATCH, &self.scratch.0);
    }
}

fn order_from_env() -> Result<Option<Order>, Error> {
    let Some(text) = std::env::var_os(JOB) else {
        return Ok(None);
    };
    serde_json::from_str(&text.to_string_lossy())
        .map(Some)
        .map_err(|error| {
            Error::configuration(format!("{JOB} is not from this version")).caused_by(error)
        })
}

#[cfg(unix)]
fn is_child_of(parent: u32) -> bool {
    std::os::unix::process::parent_id() == parent
}

/// Where a process cannot ask for its parent, the environment is believed.
#[cfg(not(unix))]
fn is_child_of(_parent: u32) -> bool {
    true
}

/// The folder of one test's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }

    pub(super) fn session(&self) -> PathBuf {
        self.0.join("session.json")
    }

    pub(super) fn end(&self, task: Task) -> PathBuf {
        self.0.join(match task {
            Task::Run => "end.json",
            Task::Compare => "compared.json",
        })
    }

    pub(super) fn output(&self, task: Task) -> PathBuf {
        self.0.join(match task {
            Task::Run => "output.txt",
            Task::Compare => "compared.txt",
        })
    }

    pub(super) fn summary(&self) -> PathBuf {
        self.0.join("summary.txt")
    }
}

/// How a child's work ended, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(super) enum End {
    /// It returned, without an error.
    Returned,
    /// It returned an error.
    Failed {
        /// The error, printed.
        message: String,
    },
    /// It panicked.
    Panicked {
        /// What it said.
        message: String,
        /// Where, as `file:line`; empty if unknown.
        place: String,
    },
    /// It never began: there was no session.
    NotStarted {
        /// Why.
        message: String,
    },
}

/// Writes `value` as JSON.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Error::recording("cannot make JSON").caused_by(error))?;
    fs::write(path, text)
        .map_err(|error| Error::io(format!("cannot write {}", path.display()), error))
}

/// Reads JSON, if the file is there and whole: a child that was killed leaves none, or a part.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::{End, Job, Scratch, Task};
    use std::process::Command;

    #[test]
    fn a_job_names_its_supervisor() {
        let job = Job {
            task: Task::Run,
            case: "a::b".to_owned(),
            scratch: Scratch("folder".into()),
        };
        let mut command = Command::new("x");
        job.hand_to(&mut command);
        let order = command
            .get_envs()
            .find(|(name, _)| *name == "GPUMEM_INTERNAL_JOB")
            .and_then(|(_, value)| value?.to_str())
            .unwrap()
            .to_owned();
        let parent = format!(r#""parent":{}"#, std::process::id());
        assert!(order.contains(&parent), "{order}");
        assert!(order.contains(r#""case":"a::b""#), "{order}");
    }

    #[test]
    fn a_process_without_a_job_is_a_supervisor() {
        assert_eq!(Job::from_env().unwrap(), None);
    }

    #[test]
    fn half_an_end_is_none() {
        let folder = std::env::temp_dir().join(format!("gpumem-protocol-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let scratch = Scratch(folder.clone());
        let path = scratch.end(Task::Run);
        let end = End::Panicked {
            message: "no".to_owned(),
            place: String::new(),
        };
        super::write(&path, &end).unwrap();
        assert_eq!(super::read(&path), Some(end));
        std::fs::write(&path, r#"{"end":"panicked","mess"#).unwrap();
        assert_eq!(super::read::<End>(&path), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
