//! The GPUs of this machine.

use std::sync::OnceLock;

use crate::error::Error;

/// How many GPUs there are, asked once and only where a test depends on it.
pub(super) struct Machine {
    count: fn() -> Result<usize, Error>,
    answer: OnceLock<Gpus>,
}

/// What the driver said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gpus {
    /// How many there are.
    pub(super) count: usize,
    /// Why there are none, with its causes a line each; empty where the driver itself counts none.
    pub(super) why_none: String,
}

impl Machine {
    /// The machine that this process runs on.
    pub(super) fn here() -> Self {
        Self::asking(gpus_here)
    }

    /// A machine whose GPUs `count` counts.
    pub(super) fn asking(count: fn() -> Result<usize, Error>) -> Self {
        Self {
            count,
            answer: OnceLock::new(),
        }
    }

    /// A machine that somebody else has asked: a child's, so that its supervisor and it agree, and
    /// no driver is loaded before the door is open.
    pub(super) fn with(gpus: usize) -> Self {
        let machine = Self::asking(|| Ok(0));
        machine.answer.get_or_init(|| Gpus {
            count: gpus,
            why_none: String::new(),
        });
        machine
    }

    /// The GPUs.
    pub(super) fn gpus(&self) -> &Gpus {
        self.answer.get_or_init(|| match (self.count)() {
            Ok(count) => Gpus {
                count,
                why_none: String::new(),
            },
            Err(error) => Gpus {
                count: 0,
                why_none: super::messages::with_causes(&error),
            },
        })
    }

    /// How many GPUs there are, if that was asked.
    pub(super) fn known(&self) -> Option<usize> {
        self.answer.get().map(|gpus| gpus.count)
    }
}

/// Asks the driver.
fn gpus_here() -> Result<usize, Error> {
    crate::device::cuda::count()
}

#[cfg(test)]
mod tests {
    use super::{Error, Machine};

    #[test]
    fn a_machine_is_asked_once_and_only_when_it_matters() {
        let machine = Machine::asking(|| Ok(2));
        assert_eq!(machine.known(), None);
        assert_eq!(machine.gpus().count, 2);
        assert_eq!(machine.known(), Some(2));
        assert_eq!(Machine::with(3).known(), Some(3));
    }

    #[test]
    fn a_driver_that_cannot_be_loaded_is_no_gpu_with_its_reason() {
        let machine = Machine::asking(|| {
            let cause = std::io::Error::other("no such file");
            Err(Error::device("cannot load the driver").caused_by(cause))
        });
        let gpus = machine.gpus();
        assert_eq!(gpus.count, 0);
        assert_eq!(gpus.why_none, "cannot load the driver: no such file");
    }
}
