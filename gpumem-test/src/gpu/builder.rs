//! Starting a session by hand.

use std::sync::Arc;

use crate::config::DeviceSpec;
use crate::error::Error;
use crate::ledger::Ledger;

use super::Gpu;
use crate::session::{Neighbours, SessionConfig};

/// Events that a session started by hand keeps.
const CAPACITY: u64 = 1 << 16;

/// The settings of a session; see [`Gpu::builder`]. Strings are as in the attribute and are read
/// by [`open`](Self::open).
#[derive(Clone, Debug)]
pub struct GpuBuilder {
    device: String,
    policy: String,
    budget: Option<String>,
}

impl Default for GpuBuilder {
    fn default() -> Self {
        Self {
            device: "auto".to_owned(),
            policy: "driver".to_owned(),
            budget: None,
        }
    }
}

impl GpuBuilder {
    /// The device: `"auto"` (the default), `"sim"`, `"sim:rtx4090"`, `"sim:24GiB"`.
    #[must_use]
    pub fn device(mut self, device: &str) -> Self {
        device.clone_into(&mut self.device);
        self
    }

    /// The policy: `"driver"` (the default), `"async:release_threshold=64MiB"`,
    /// `"caching:expandable_segments:True"`.
    #[must_use]
    pub fn policy(mut self, policy: &str) -> Self {
        policy.clone_into(&mut self.policy);
        self
    }

    /// The hard cap on reserved bytes: `"2GiB"`, `"80%"`.
    #[must_use]
    pub fn budget(mut self, budget: &str) -> Self {
        self.budget = Some(budget.to_owned());
        self
    }

    /// Starts the session.
    ///
    /// # Errors
    /// If a string does not parse, or the budget is larger than the device.
    pub fn open(self) -> Result<Gpu, Error> {
        Gpu::open(SessionConfig {
            device: (self.device.parse::<DeviceSpec>()?)
                .resolved(|| crate::device::cuda::count().unwrap_or(0)),
            names_device: true,
            policy: self.policy.parse()?,
            budget: self.budget.as_deref().map(str::parse).transpose()?,
            neighbours: Neighbours::default(),
            ledger: Arc::new(Ledger::in_memory(CAPACITY)?),
            keeps_call_sites: false,
            samples_process: false,
        })
    }
}
