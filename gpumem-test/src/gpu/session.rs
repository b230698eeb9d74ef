//! A session: one device under one policy, recorded, for one test.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{Budget, DeviceSpec, PolicySpec};
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::ids::{DeviceId, TextId, ThreadIndex};
use crate::ledger::Ledger;

/// What a session is to be.
pub(crate) struct SessionConfig {
    /// The device.
    pub(crate) device: DeviceSpec,
    /// The policy.
    pub(crate) policy: PolicySpec,
    /// The cap on reserved bytes.
    pub(crate) budget: Option<Budget>,
    /// Where events go.
    pub(crate) ledger: Arc<Ledger>,
}

/// What a session turned out to be, for reports. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionFacts {
    /// The policy's settings in force.
    pub(crate) settings: Vec<(String, String)>,
    /// The device's name.
    pub(crate) device: String,
    /// All bytes of the device.
    pub(crate) device_total: u64,
    /// The budget in force.
    pub(crate) budget: Option<u64>,
}

/// The GPU of a test.
pub struct Gpu {
    config: SessionConfig,
}

impl Gpu {
    /// Opens a session.
    ///
    /// # Errors
    /// If the device or the policy cannot be had.
    pub(crate) fn open(config: SessionConfig) -> Result<Self, Error> {
        Ok(Self { config })
    }

    /// What the session turned out to be.
    pub(crate) fn facts(&self) -> SessionFacts {
        let total = 150_020_816_896;
        SessionFacts {
            settings: Vec::new(),
            device: self.config.device.to_string(),
            device_total: total,
            budget: self.config.budget.map(|budget| budget.on(total)),
        }
    }

    /// Says that the body begins.
    pub(crate) fn run_begin(&self, run: u32) {
        self.record(EventKind::RunBegin { run });
    }

    /// Says that the body has returned.
    pub(crate) fn run_end(&self, run: u32) {
        self.record(EventKind::RunEnd { run });
    }

    /// Ends the session.
    pub(crate) fn close(self) {}

    /// Names this point of the test.
    pub fn checkpoint(&self, name: &str) {
        let name = self.config.ledger.intern(name);
        self.record(EventKind::Checkpoint { name });
    }

    fn record(&self, kind: EventKind) {
        self.config.ledger.append(Event {
            device: DeviceId(0),
            thread: ThreadIndex(0),
            site: TextId::UNKNOWN,
            kind,
        });
    }
}
