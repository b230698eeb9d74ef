//! How much may be reserved.

use super::CachingPolicy;
use crate::error::Error;

/// What bounds a [`CachingPolicy`] from outside. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// All memory of the device, of which `per_process_memory_fraction` is a share and by which
    /// address ranges are sized.
    pub device_total: u64,
    /// A cap on reserved bytes, on a par with the one by the fraction: the smaller one counts.
    pub budget: Option<u64>,
}

impl MemoryLimits {
    /// A device of `device_total` bytes without a budget.
    pub const fn device(device_total: u64) -> Self {
        Self {
            device_total,
            budget: None,
        }
    }

    /// The same with a budget.
    #[must_use]
    pub const fn with_budget(self, budget: u64) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    /// The cap for a fraction. A fraction of 1 is no limit at all, not a limit of the total.
    fn limit(self, fraction: f64) -> Option<u64> {
        // Truncated, as a conversion in C++ is.
        let by_fraction = (fraction < 1.0).then_some((fraction * self.device_total as f64) as u64);
        match (by_fraction, self.budget) {
            (Some(fraction), Some(budget)) => Some(fraction.min(budget)),
            (limit, None) | (None, limit) => limit,
        }
    }
}

impl CachingPolicy {
    /// Caps reserved bytes at a share of the device (`set_per_process_memory_fraction`); 1 lifts
    /// the cap. Lowering it releases nothing.
    ///
    /// # Errors
    /// A configuration error if `fraction` is not in 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::configuration(format!(
                "Invalid fraction value: {fraction}. Allowed range: 0~1"
            )));
        }
        self.fraction = fraction;
        self.apply_limit();
        Ok(())
    }

    /// The cap on reserved bytes, if there is one.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub(super) fn apply_limit(&mut self) {
        self.limit = self.limits.limit(self.fraction);
        self.collects = self.limit.is_some() && self.config.garbage_collection_threshold > 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryLimits;

    #[test]
    fn a_fraction_of_one_is_no_limit() {
        let device = MemoryLimits::device(1000);
        assert_eq!(device.limit(1.0), None);
        assert_eq!(device.limit(0.9999), Some(999));
        assert_eq!(device.limit(0.0), Some(0));
        assert_eq!(device.with_budget(500).limit(1.0), Some(500));
        assert_eq!(device.with_budget(500).limit(0.4), Some(400));
        assert_eq!(device.with_budget(500).limit(0.6), Some(500));
    }
}
