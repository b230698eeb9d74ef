//! A test's session: its heaps (one for each device), the ledger, and who causes what.
//!
//! Both front doors stand on it: the handle (`gpu`) and the driver's functions (`intercept`). A
//! block that one of them handed out can be freed through the other, since [`Held`] keeps them by
//! address. The room makes no figures.

mod devices;
mod held;
mod neighbours;
mod threads;
mod witness;

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use crate::callsite::CallSites;
use crate::config::{Budget, DeviceSpec, PolicySpec};
use crate::device::any::AnyDevice;
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::heap::{Cause, Heap};
use crate::ids::{DeviceId, TextId};
use crate::ledger::{Ledger, Sites};
use crate::policy::{AnyPolicy, Policy};

pub(crate) use devices::open_beside;
pub(crate) use held::{Held, HeldBlock};
pub(crate) use neighbours::{Neighbours, take};
use witness::Witness;

/// What the heaps of a session stand on.
pub(crate) type SessionDevice = AnyDevice;

/// A heap of a session, locked.
pub(crate) type LockedHeap<'a> = MutexGuard<'a, Heap<SessionDevice>>;

/// What a session is made of.
pub(crate) struct SessionConfig {
    pub(crate) device: DeviceSpec,
    /// Whether the test itself names it.
    pub(crate) names_device: bool,
    pub(crate) policy: PolicySpec,
    pub(crate) budget: Option<Budget>,
    pub(crate) neighbours: Neighbours,
    pub(crate) ledger: Arc<Ledger>,
    /// Whether the places of driver calls are kept.
    pub(crate) keeps_call_sites: bool,
    /// Whether the peak of the process's memory is wanted, where a card can say it.
    pub(crate) samples_process: bool,
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
    /// Bytes of the device that are gone before the first request, those of neighbours left out.
    pub(crate) context_overhead: u64,
    /// The other processes on each device: as the test writes them, and what they took beside their
    /// contexts.
    pub(crate) neighbours: Vec<(String, u64)>,
}

/// What the front doors of one test share.
pub(crate) struct Session {
    heaps: Vec<Mutex<Heap<SessionDevice>>>,
    ledger: Arc<Ledger>,
    sites: Sites,
    call_sites: CallSites,
    checkpoints: Mutex<HashMap<String, u32>>,
    /// Blocks that the program holds by their bare address.
    held: Held,
    threads: threads::Roll,
    closed: AtomicBool,
    /// What the last wait at the end of a run returned; 0 for success.
    failed_wait: AtomicU32,
    policy: PolicySpec,
    budget: Option<u64>,
    about: String,
    /// What a front door adds to the ledger at checkpoints and at the end of a run.
    at_points: OnceLock<fn(&Arc<Session>)>,
    /// What real cards say of themselves, by device.
    witnesses: Vec<Option<Witness>>,
    /// The other processes on each device.
    neighbours: Neighbours,
}

impl Session {
    /// Starts the session of a test.
    ///
    /// # Errors
    /// If a string does not parse or the budget is larger than the device.
    pub(crate) fn open(config: SessionConfig) -> Result<Arc<Self>, Error> {
        let SessionConfig {
            device,
            names_device,
            policy,
            budget,
            mut neighbours,
            ledger,
            keeps_call_sites,
            samples_process,
        } = config;
        let devices = devices::open(&device, names_device, &policy, budget, &mut neighbours)?;
        let about = match &devices[..] {
            [device] => format!("{policy} on {}", device.device_name()),
            all => format!("{policy} on {}*{}", all[0].device_name(), all.len()),
        };
        let witnesses = (devices.iter())
            .map(|device| Witness::of(device, samples_process))
            .collect();
        let budget_in_bytes = devices.first().and_then(AnyDevice::budget);
        let mut heaps = Vec::with_capacity(devices.len());
        for (number, mut device) in (0..).zip(devices) {
            let mut policy = AnyPolicy::new(&policy, &device.card())?;
            policy.prepare(&mut device)?;
            let heap = Heap::new(DeviceId(number), device, policy, Arc::clone(&ledger));
            heaps.push(Mutex::new(heap));
        }
        Ok(Arc::new(Self {
            heaps,
            ledger,
            sites: Sites::default(),
            call_sites: CallSites::new(keeps_call_sites),
            checkpoints: Mutex::default(),
            held: Held::default(),
            threads: threads::Roll::default(),
            closed: AtomicBool::new(false),
            failed_wait: AtomicU32::new(0),
            policy,
            budget: budget_in_bytes,
            about,
            at_points: OnceLock::new(),
            witnesses,
            neighbours,
        }))
    }

    /// What the session turned out to be.
    pub(crate) fn facts(&self) -> SessionFacts {
        let heap = self.lock();
        let profile = heap.device().profile();
        SessionFacts {
            settings: (heap.policy().settings().into_iter())
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            device: heap.device().device_name(),
            device_total: profile.total,
            budget: heap.device().budget(),
            context_overhead: profile.context_overhead,
            neighbours: (self.neighbours.specs.iter().zip(&self.neighbours.held))
                .map(|(spec, held)| (spec.to_string(), held.bytes))
                .collect(),
        }
    }

    /// Marks the beginning of a run of the body.
    pub(crate) fn run_begin(self: &Arc<Self>, run: u32) {
        if run == 0 {
            // What the card holds before the test: all later figures are beside it.
            self.point();
        }
        let cause = self.cause_unknown();
        self.record(cause, EventKind::RunBegin { run });
    }

    /// Waits for all streams and for threads that are just ending, and marks the end of a run.
    pub(crate) fn run_end(self: &Arc<Self>, run: u32) {
        let cause = self.cause_unknown();
        for device in self.devices() {
            let waited = (self.lock_device(device)).synchronize(cause, AnyDevice::synchronize);
            if let Err(refusal) = waited {
                self.failed_wait.store(refusal.code(), Ordering::Release);
            }
        }
        self.threads.settle();
        self.point();
        self.record(cause, EventKind::RunEnd { run });
    }

    /// The code of the wait at the end of a run, if it failed and nobody asked before.
    pub(crate) fn take_failed_wait(&self) -> u32 {
        self.failed_wait.swap(0, Ordering::AcqRel)
    }

    /// Has `what` called at checkpoints and at the end of a run, before these are recorded.
    pub(crate) fn at_points(&self, what: fn(&Arc<Self>)) {
        let _ = self.at_points.set(what);
    }

    /// A point at which figures are taken that no call brings.
    pub(crate) fn point(self: &Arc<Self>) {
        if let Some(what) = self.at_points.get() {
            what(self);
        }
        for (device, witness) in self.devices().zip(&self.witnesses) {
            // What was written since the last call of the policy.
            self.lock_device(device).write(|_| ());
            if let Some(witness) = witness {
                witness.record(self, device);
            }
        }
    }

    /// Ends the session: buffers that live on can be dropped, and do nothing more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// How many devices there are.
    pub(crate) fn device_count(&self) -> usize {
        self.heaps.len()
    }

    /// The devices, counted from 0.
    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceId> + use<> {
        // A session has few devices: their number fits.
        (0..self.heaps.len() as u16).map(DeviceId)
    }

    /// The first device's heap, to do `what` with it.
    pub(crate) fn heap(&self, what: &str) -> Result<LockedHeap<'_>, Error> {
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

    /// The first device's heap, whether or not the session has ended.
    pub(crate) fn lock(&self) -> LockedHeap<'_> {
        self.lock_device(DeviceId(0))
    }

    /// A device's heap, whether or not the session has ended. A panic while it was held left it
    /// whole: policies change state only after what can fail.
    ///
    /// # Panics
    /// If the session has no such device.
    pub(crate) fn lock_device(&self, device: DeviceId) -> LockedHeap<'_> {
        self.heaps[usize::from(device.0)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks that the program holds by their bare address.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// The budget of each device in bytes.
    pub(crate) fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// Whether the session has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the devices are simulated ones.
    pub(crate) fn is_simulated(&self) -> bool {
        self.lock().device().as_sim().is_some()
    }

    /// The policy, as the test names it.
    pub(crate) fn policy(&self) -> &PolicySpec {
        &self.policy
    }

    /// The policy and the device, in words.
    pub(crate) fn describe(&self) -> &str {
        &self.about
    }

    /// Who causes an event: the caller's place, this thread.
    pub(crate) fn cause(self: &Arc<Self>, place: &'static Location<'static>) -> Cause {
        Cause {
            site: self.sites.id(&self.ledger, place),
            thread: threads::index(self),
        }
    }

    /// Who makes the driver call that is being served.
    #[inline]
    pub(crate) fn cause_of_call(self: &Arc<Self>) -> Cause {
        Cause {
            site: self.call_sites.capture(&self.ledger),
            thread: threads::index(self),
        }
    }

    /// The same where no place is known.
    pub(crate) fn cause_unknown(self: &Arc<Self>) -> Cause {
        Cause {
            site: TextId::UNKNOWN,
            thread: threads::index(self),
        }
    }

    /// Records what the policy has no part in.
    pub(crate) fn record(&self, cause: Cause, kind: EventKind) {
        self.record_on(DeviceId(0), cause, kind);
    }

    /// The same of a device.
    pub(crate) fn record_on(&self, device: DeviceId, cause: Cause, kind: EventKind) {
        self.ledger.append(Event {
            device,
            thread: cause.thread,
            site: cause.site,
            kind,
        });
    }

    /// Records a wrong use where no error can be returned.
    pub(crate) fn record_misuse(&self, cause: Cause, message: &str) {
        let message = self.ledger.intern(message);
        self.record(cause, EventKind::Misuse { message });
    }

    /// A text's id in the ledger.
    pub(crate) fn intern(&self, text: &str) -> TextId {
        self.ledger.intern(text)
    }

    /// The name of the next checkpoint called `name`.
    pub(crate) fn checkpoint_name(&self, name: &str) -> TextId {
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
