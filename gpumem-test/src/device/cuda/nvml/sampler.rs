//! The highest of many samples of a figure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// No sample has had a figure.
const UNKNOWN: u64 = u64::MAX;

/// Takes samples of a figure and keeps the highest: from a thread of its own every few
/// milliseconds, and whenever it is told to, at checkpoints and when a segment comes or goes.
///
/// A peak between two samples is missed. A bound on such a figure is judged on the highest sample:
/// where it is broken it was broken, where it holds it may have been broken unseen for less than
/// the interval.
#[derive(Debug)]
pub struct PeakSampler {
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    read: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    peak: AtomicU64,
    samples: AtomicU64,
}

impl Shared {
    fn sample(&self) {
        if let Some(figure) = (self.read)() {
            let figure = figure.min(UNKNOWN - 1);
            let raise = |peak| (peak == UNKNOWN || figure > peak).then_some(figure);
            // An error is a peak that stays.
            let _ = (self.peak).fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
            self.samples.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("peak", &self.peak)
            .finish_non_exhaustive()
    }
}

impl PeakSampler {
    /// How often the thread samples, if nobody says otherwise.
    pub const INTERVAL: Duration = Duration::from_millis(5);

    /// Starts to sample what `read` says, every `interval`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        interval: Duration,
        read: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            read: Box::new(read),
            peak: AtomicU64::new(UNKNOWN),
            samples: AtomicU64::new(0),
        });
        shared.sample();
        let (stop, stopped) = channel::<()>();
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("gpumem-sampler".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    mine.sample();
                }
            })?;
        Ok(Self {
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Takes a sample now.
    pub fn sample(&self) {
        self.shared.sample();
    }

    /// The highest sample; `None` if the figure was never known.
    pub fn peak(&self) -> Option<u64> {
        Some(self.shared.peak.load(Ordering::Relaxed)).filter(|peak| *peak != UNKNOWN)
    }

    /// How many samples had a figure.
    pub fn samples(&self) -> u64 {
        self.shared.samples.load(Ordering::Relaxed)
    }
}

impl Drop for PeakSampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has sampled nothing since, which `samples` shows.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::PeakSampler;

    #[test]
    fn the_highest_sample_is_kept_and_unknown_stays_unknown() {
        let figure = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&figure);
        let known = move || Some(read.load(Ordering::Relaxed)).filter(|figure| *figure > 0);
        let sampler = PeakSampler::start(Duration::from_secs(3_600), known).unwrap();
        assert_eq!((sampler.peak(), sampler.samples()), (None, 0));
        for value in [5, 9, 0, 3] {
            figure.store(value, Ordering::Relaxed);
            sampler.sample();
        }
        assert_eq!((sampler.peak(), sampler.samples()), (Some(9), 3));
    }

    #[test]
    fn the_thread_samples_by_itself_and_ends_with_the_sampler() {
        let figure = Arc::new(AtomicU64::new(1));
        let read = Arc::clone(&figure);
        let interval = Duration::from_micros(200);
        let sampler =
            PeakSampler::start(interval, move || Some(read.load(Ordering::Relaxed))).unwrap();
        figure.store(77, Ordering::Relaxed);
        while sampler.peak() != Some(77) {
            std::thread::yield_now();
        }
        drop(sampler);
        assert_eq!(Arc::strong_count(&figure), 1, "nobody reads any more");
    }
}
