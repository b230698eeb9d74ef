//! The smallest budget under which a test passes.

use crate::bytes::Bytes;
use crate::summary::Summary;

use super::Enough;
use super::replay::Settings;
use super::trial::{Trials, Verdict};

/// How exact the answer is, in bytes: what a device gives is pages of so much.
const STEP: u64 = 2 << 20;

/// How much larger than the card the device is on which a test that has no budget is tried.
const LARGER: u64 = 16;

/// The smallest budget under which the test passes with the policy of `recorded`, or how much a
/// device must have to give. None if no budget is enough.
pub(super) fn smallest(
    trials: &mut Trials,
    recorded: &Settings,
    summary: &Summary,
) -> Option<Enough> {
    let mut profile = recorded.profile.clone();
    let has = profile.usable().saturating_sub(recorded.held_by_others);
    profile.total = profile.total.checked_mul(LARGER)?;
    profile.device_total = profile.total;
    let with = |budget| Settings {
        budget,
        profile: profile.clone(),
        ..recorded.clone()
    };
    let mut passes = |budget: Option<u64>| match trials.of_all(&with(budget)) {
        Ok(Verdict::Passes(figures)) => Some(Some(figures)),
        Ok(Verdict::Fails) | Err(_) => Some(None),
        Ok(Verdict::NotTried) => None,
    };
    let charged = summary.devices.iter().map(|device| device.charged.peak);
    let charged = charged.max().unwrap_or_default();
    let needs = passes(None)??.reserved.get() + charged.get();
    // Counted in steps: the first is too little, the second enough.
    let mut low = recorded.budget.unwrap_or(has).min(has) / STEP;
    let mut high = needs.div_ceil(STEP).max(low + 1);
    // Of several devices another may need more than the one whose figures are known.
    while passes(Some(high * STEP))?.is_none() {
        low = high;
        high = high
            .checked_mul(2)
            .filter(|high| high * STEP <= profile.total)?;
    }
    let mut smallest = true;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match passes(Some(middle * STEP)) {
            Some(Some(_)) => high = middle,
            Some(None) => low = middle,
            None => {
                smallest = false;
                break;
            }
        }
    }
    Some(Enough {
        bytes: Bytes::new(high * STEP),
        smallest,
        fits_device: high * STEP <= has,
    })
}
