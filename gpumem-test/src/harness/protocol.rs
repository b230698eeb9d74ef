//! What a supervisor and its children tell each other: a job in the environment, files in a
//! folder.
//!
//! | file in the scratch folder | written by | holds |
//! |---|---|---|
//! | `ledger` | both | the events of the test |
//! | `session.json` | child, once the session is open | what the session turned out to be |
//! | `end.json` | child, last | how the body ended |
//! | `output.txt` | child | standard output and error |

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::HeldByNeighbour;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Run the body of a test.
    Run {
        /// The test's name.
        case: String,
        /// Where its files are.
        scratch: Scratch,
        /// What its neighbours hold of a real card.
        held: Vec<HeldByNeighbour>,
    },
    /// Be a neighbour of a test on a real card.
    Hold {
        /// The test's name.
        case: String,
        /// Which of its neighbours.
        neighbour: usize,
        /// What those before it hold.
        held: Vec<HeldByNeighbour>,
    },
    /// Compare summaries with accepted snapshots, as ordered on standard input.
    Compare,
}

#[derive(Serialize, Deserialize)]
struct Order {
    /// The test to run, or to be a neighbour of; none to compare.
    case: Option<String>,
    /// Which neighbour to be; none to run the test.
    neighbour: Option<usize>,
    /// What the neighbours before hold.
    held: Vec<HeldByNeighbour>,
    /// The supervisor. A process further down inherits the environment, but is not the child.
    parent: u32,
    depth: u32,
    /// How many GPUs the supervisor found; none if it did not ask.
    gpus: Option<usize>,
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
                "this program runs itself {DEEPEST} times over: no test may run its own program"
            )));
        }
        if !is_child_of(order.parent) {
            return Ok(None);
        }
        let Some(case) = order.case else {
            return Ok(Some(Self::Compare));
        };
        if let Some(neighbour) = order.neighbour {
            return Ok(Some(Self::Hold {
                case,
                neighbour,
                held: order.held,
            }));
        }
        let folder = std::env::var_os(SCRATCH)
            .ok_or_else(|| Error::configuration(format!("{JOB} is set and {SCRATCH} is not")))?;
        Ok(Some(Self::Run {
            case,
            scratch: Scratch(folder.into()),
            held: order.held,
        }))
    }

    /// Tells `command` that it is for this job.
    ///
    /// `gpus` is how many GPUs this process found, if it asked.
    pub(super) fn hand_to(&self, command: &mut Command, gpus: Option<usize>) {
        let depth = order_from_env()
            .ok()
            .flatten()
            .map_or(0, |order| order.depth);
        let (case, neighbour, held) = match self {
            Self::Run {
                case,
                scratch,
                held,
            } => {
                command.env(SCRATCH, &scratch.0);
                (Some(case.clone()), None, held.clone())
            }
            Self::Hold {
                case,
                neighbour,
                held,
            } => (Some(case.clone()), Some(*neighbour), held.clone()),
            Self::Compare => (None, None, Vec::new()),
        };
        let order = Order {
            case,
            neighbour,
            held,
            parent: std::process::id(),
            depth: depth + 1,
            gpus,
        };
        command.env(JOB, to_line(&order));
    }
}

/// How many GPUs the supervisor of this process found, if it asked.
pub(super) fn gpus_of_supervisor() -> Option<usize> {
    order_from_env().ok().flatten()?.gpus
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

    pub(super) fn end(&self) -> PathBuf {
        self.0.join("end.json")
    }

    pub(super) fn output(&self) -> PathBuf {
        self.0.join("output.txt")
    }
}

/// How the body of a test ended, in the child's words.
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
    /// It was not run: this machine lacks what it needs, which was found only now.
    Skipped {
        /// What it lacks and what to do, in a line.
        reason: String,
    },
    /// It never began: there was no session.
    NotStarted {
        /// Why.
        message: String,
    },
}

/// `value` as JSON on one line. For types of this protocol, which always make JSON.
pub(super) fn to_line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|error| unreachable!("strings and numbers always make JSON: {error}"))
}

/// The value of a line of JSON.
///
/// # Errors
/// If the line holds another.
pub(super) fn from_line<T: DeserializeOwned>(line: &str) -> std::io::Result<T> {
    Ok(serde_json::from_str(line)?)
}

/// Writes `value` as JSON.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    fs::write(path, to_line(value))
        .map_err(|error| Error::io(format!("cannot write {}", path.display()), error))
}

/// Reads JSON, if the file is there and whole: a child that was killed leaves none, or a part.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::{End, Job, Scratch};
    use std::process::Command;

    #[test]
    fn a_job_names_its_supervisor() {
        let job = Job::Run {
            case: "a::b".to_owned(),
            scratch: Scratch("folder".into()),
            held: Vec::new(),
        };
        let mut command = Command::new("x");
        job.hand_to(&mut command, Some(2));
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
        let path = Scratch(folder.clone()).end();
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
