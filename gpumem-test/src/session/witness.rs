//! What a real card says of itself: the driver's management library and the model beside the
//! driver, recorded at checkpoints and when a run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::any::AnyDevice;
use crate::device::cuda::{CudaDevice, Nvml, PeakSampler};
use crate::event::EventKind;

use super::{DeviceId, Session};

/// The witness of one card.
pub(super) struct Witness {
    /// `None` where the library cannot be loaded: its figures stay unknown.
    nvml: Option<Arc<Nvml>>,
    /// Runs where a bound is on the process's memory.
    sampler: Option<PeakSampler>,
    /// Bytes that we know the process to hold, by which its entry is known in a container.
    held: Arc<AtomicU64>,
    /// Differences of the model that are recorded already.
    said: AtomicU64,
}

impl Witness {
    /// The witness of a card, if the device is one. `samples_process`: whether the process's peak
    /// is wanted between checkpoints too.
    pub(super) fn of(device: &AnyDevice, samples_process: bool) -> Option<Self> {
        let card = device.as_cuda()?;
        let nvml = Nvml::open(card.uuid()).ok().map(Arc::new);
        let held = Arc::new(AtomicU64::new(0));
        let sampler = nvml.as_ref().filter(|_| samples_process).and_then(|nvml| {
            let (nvml, held) = (Arc::clone(nvml), Arc::clone(&held));
            let read = move || nvml.process(held.load(Ordering::Relaxed));
            // Without its thread the peak is that of the checkpoints.
            PeakSampler::start(PeakSampler::INTERVAL, read).ok()
        });
        Some(Self {
            nvml,
            sampler,
            held,
            said: AtomicU64::new(0),
        })
    }

    /// Records what the card says now.
    pub(super) fn record(&self, session: &Arc<Session>, id: DeviceId) {
        let mut heap = session.lock_device(id);
        let fault = heap.device_mut().take_fault();
        let device = heap.device();
        // Managed memory counts for no process.
        let managed = device.as_cuda().map_or(0, CudaDevice::promised);
        let held = device.used() - managed;
        let differences = device.differences();
        let said = self.said.swap(differences.len() as u64, Ordering::Relaxed);
        let new = differences[said as usize..].to_vec();
        let exceeded = device.budget_exceeded().zip(device.budget());
        drop(heap);
        self.held.store(held, Ordering::Relaxed);
        let cause = session.cause_unknown();
        if let Some(fault) = fault {
            let message = session.intern(&format!(
                "{fault} in a call of the policy's own, which could not return it: the figures \
                 after it are not sound"
            ));
            session.record_on(id, cause, EventKind::DoorViolation { message });
        }
        for difference in new {
            let kind = EventKind::ShadowDiffers {
                model: difference.expected,
                driver: difference.reserved,
            };
            session.record_on(id, cause, kind);
        }
        if let Some((reserved, budget)) = exceeded {
            let kind = EventKind::BudgetExceeded { reserved, budget };
            session.record_on(id, cause, kind);
        }
        let Some(nvml) = &self.nvml else { return };
        if let Some(sampler) = &self.sampler {
            sampler.sample();
        }
        let kind = EventKind::DeviceSample {
            used: nvml.card().map(|card| card.used),
            process: nvml.process(held),
            process_peak: self.sampler.as_ref().and_then(PeakSampler::peak),
        };
        session.record_on(id, cause, kind);
    }
}
