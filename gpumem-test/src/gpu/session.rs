//! A test's session: the heap, the ledger, and who causes what.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::config::{Budget, DeviceSpec, PolicySpec};
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::heap::{Cause, Heap};
use crate::ids::{Address, BlockId, DeviceId, StreamId, TextId};
use crate::ledger::{Ledger, Sites};
use crate::policy::{AnyPolicy, Policy};

use super::Gpu;
use super::threads;

/// What a session is made of.
pub(crate) struct SessionConfig {
    pub(crate) device: DeviceSpec,
    pub(crate) policy: PolicySpec,
    pub(crate) budget: Option<Budget>,
    pub(crate) ledger: Arc<Ledger>,
}

/// What a session turned out to be, for reports. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionFacts {
    /// The policy's settings in force.
    pub(crate) settings: Vec<(String, String)>,
    /// The device's name.
    pub(crate) device: String,
    /// All bytes of the device, as the code would see them without a budget.
    pub(crate) device_total: u64,
    /// The budget in force.
    pub(crate) budget: Option<u64>,
    /// Bytes of the device that are gone before the first request.
    pub(crate) context_overhead: u64,
}

/// What the handles of one session share.
pub(super) struct Session {
    heap: Mutex<Heap<SimDevice>>,
    ledger: Arc<Ledger>,
    sites: Sites,
    checkpoints: Mutex<HashMap<String, u32>>,
    /// Addresses given out by `Gpu::malloc`, which `Gpu::free` takes back by address.
    pub(super) raw: Mutex<FxHashMap<Address, RawBlock>>,
    pub(super) threads: threads::Roll,
    closed: AtomicBool,
    policy: PolicySpec,
    about: String,
}

/// A block that the code holds by its bare address.
#[derive(Clone, Copy)]
pub(super) struct RawBlock {
    pub(super) id: BlockId,
    pub(super) stream: StreamId,
}

impl SessionConfig {
    /// The device's profile and the bytes of the budget on it.
    ///
    /// # Errors
    /// If the profile is unknown, or the budget larger than the device.
    pub(crate) fn resolve(
        device: &DeviceSpec,
        budget: Option<Budget>,
    ) -> Result<(DeviceProfile, Option<u64>), Error> {
        let profile = DeviceProfile::by_name(device.profile_name())?;
        let total = profile.total;
        let budget = budget.map(|budget| budget.on(total));
        if let Some(budget) = budget.filter(|budget| *budget > total) {
            let (budget, total) = (Bytes::new(budget), Bytes::new(total));
            return Err(Error::configuration(format!(
                "the budget of {budget} exceeds the {total} of {} by {}",
                profile.device_name(),
                budget - total
            ))
            .with_help("lower the budget, or name a larger device as in `device = \"sim:b200\"`"));
        }
        Ok((profile, budget))
    }
}

impl Gpu {
    /// Starts the session of a test.
    ///
    /// # Errors
    /// If a string does not parse or the budget is larger than the device.
    pub(crate) fn open(config: SessionConfig) -> Result<Self, Error> {
        let (profile, budget) = SessionConfig::resolve(&config.device, config.budget)?;
        let about = format!("{} on {}", config.policy, profile.device_name());
        let mut device = SimDevice::new(profile);
        device.set_budget(budget);
        let total = crate::device::DeviceMemory::memory_info(&device).total;
        let policy = AnyPolicy::new(&config.policy, total, budget)?;
        let heap = Heap::new(DeviceId(0), device, policy, Arc::clone(&config.ledger));
        let session = Session {
            heap: Mutex::new(heap),
            ledger: config.ledger,
            sites: Sites::default(),
            checkpoints: Mutex::default(),
            raw: Mutex::default(),
            threads: threads::Roll::default(),
            closed: AtomicBool::new(false),
            policy: config.policy,
            about,
        };
        Ok(Self {
            session: Arc::new(session),
        })
    }

    /// What the session turned out to be.
    pub(crate) fn facts(&self) -> SessionFacts {
        let heap = self.session.lock();
        let profile = heap.device().profile();
        SessionFacts {
            settings: (heap.policy().settings().into_iter())
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            device: profile.device_name(),
            device_total: profile.total,
            budget: heap.device().budget(),
            context_overhead: profile.context_overhead,
        }
    }

    /// Marks the beginning of a run of the body.
    pub(crate) fn run_begin(&self, run: u32) {
        let cause = self.session.cause_unknown();
        self.session.record(cause, EventKind::RunBegin { run });
    }

    /// Waits for all streams and for threads that are just ending, and marks the end of a run.
    pub(crate) fn run_end(&self, run: u32) {
        let cause = self.session.cause_unknown();
        self.session
            .lock()
            .synchronize(cause, SimDevice::synchronize);
        self.session.threads.settle();
        self.session.record(cause, EventKind::RunEnd { run });
    }

    /// Ends the session: buffers that live on can be dropped, and do nothing more.
    pub(crate) fn close(&self) {
        self.session.closed.store(true, Ordering::Release);
    }
}

impl Session {
    /// The heap, to do `what` with it.
    pub(super) fn heap(&self, what: &str) -> Result<MutexGuard<'_, Heap<SimDevice>>, Error> {
        if self.is_closed() {
            return Err(Error::misuse(format!(
                "cannot {what}: the session of this test has ended"
            ))
            .with_help(
                "drop buffers and streams before the test returns; a `static` outlives it",
            ));
        }
        Ok(self.lock())
    }

    /// The heap, whether or not the session has ended. A panic while it was held left it whole:
    /// policies change state only after what can fail.
    pub(super) fn lock(&self) -> MutexGuard<'_, Heap<SimDevice>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the session has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the device is a simulated one.
    pub(crate) fn is_simulated(&self) -> bool {
        self.lock().device().is_simulated()
    }

    /// The policy, as the test names it.
    pub(super) fn policy(&self) -> &PolicySpec {
        &self.policy
    }

    /// The policy and the device, in words.
    pub(super) fn describe(&self) -> &str {
        &self.about
    }

    /// Who causes an event: the caller's place, this thread.
    pub(super) fn cause(self: &Arc<Self>, place: &'static Location<'static>) -> Cause {
        Cause {
            site: self.sites.id(&self.ledger, place),
            thread: threads::index(self),
        }
    }

    /// The same where no place is known.
    pub(super) fn cause_unknown(self: &Arc<Self>) -> Cause {
        Cause {
            site: TextId::UNKNOWN,
            thread: threads::index(self),
        }
    }

    /// Records what the policy has no part in.
    pub(super) fn record(&self, cause: Cause, kind: EventKind) {
        self.ledger.append(Event {
            device: DeviceId(0),
            thread: cause.thread,
            site: cause.site,
            kind,
        });
    }

    /// Records a wrong use where no error can be returned.
    pub(super) fn record_misuse(&self, cause: Cause, message: &str) {
        let message = self.ledger.intern(message);
        self.record(cause, EventKind::Misuse { message });
    }

    /// A text's id in the ledger.
    pub(super) fn intern(&self, text: &str) -> TextId {
        self.ledger.intern(text)
    }

    /// The name of the next checkpoint called `name`.
    pub(super) fn checkpoint_name(&self, name: &str) -> TextId {
        let mut seen = self
            .checkpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = seen.entry(name.to_owned()).or_insert(0);
        *count += 1;
        if *count == 1 {
            self.ledger.intern(name)
        } else {
            self.ledger.intern(&format!("{name}#{count}"))
        }
    }
}
