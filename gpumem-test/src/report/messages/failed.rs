//! What a request that failed says.

use crate::bytes::Bytes;
use crate::check::{Finding, Place};
use crate::event::OomClass;
use crate::summary::{FailedRequest, Summary};

use super::sizes;

/// Where the code handles the failure itself.
const ALLOW: &str = "allow_oom lets the code handle it";

/// A request that failed.
pub(in crate::report) fn failed_request(request: &FailedRequest) -> String {
    let [requested, rounded] = sizes([request.requested, request.rounded]);
    let rounding = match request.requested == request.rounded {
        true => String::new(),
        false => format!(" ({rounded} after rounding)"),
    };
    let site = match request.site.as_str() {
        "" => String::new(),
        site => format!(" at {site}"),
    };
    let class = request.class.name();
    format!("{class}: {requested}{rounding} requested{site}")
}

/// Why a request failed, with the numbers.
pub(in crate::report) fn explanation(request: &FailedRequest, summary: &Summary) -> String {
    let at = &request.at;
    let cached = Bytes::new(at.reserved.get().saturating_sub(at.active.get()));
    let pending = Bytes::new(at.active.get().saturating_sub(at.allocated.get()));
    let free = request.device_free;
    match request.class {
        // Pages that nothing wrote to are free still.
        OomClass::Exhausted if summary.policy == "lazy" => format!(
            "addresses for {} are given out, and the device's {} could not back this request beside them; {free} is free as long as nothing is written",
            at.reserved, summary.device_total
        ),
        OomClass::Exhausted => format!(
            "the device has {free} of {} free, and the code holds {}",
            summary.device_total, at.allocated
        ),
        OomClass::Fragmented => format!(
            "{cached} is free in what the policy holds and {free} on the device, but the largest hole is {}",
            request.largest_free
        ),
        OomClass::Budget => {
            let budget = match summary.budget {
                Some(budget) => format!("the budget of {budget}"),
                None => limit(summary).map_or_else(
                    || "the policy's limit".to_owned(),
                    |limit| format!("the policy's limit of {limit}"),
                ),
            };
            let left = left_of_budget(request, summary).map_or_else(String::new, |left| {
                format!("; the {left} left is too little for a whole segment")
            });
            format!(
                "{} is reserved of {budget}, the code holds {}{left}; without it the device had room",
                at.reserved, at.allocated
            )
        }
        OomClass::CachedElsewhere => format!(
            "{cached} is free in what the policy holds, but for another stream or pool; this request could have had {}",
            request.largest_free
        ),
        OomClass::FreesPending => format!(
            "{pending} is freed, but a stream may still use it; this request could have had {}",
            request.largest_free
        ),
        OomClass::OutsideProcess => {
            let theirs = match request.held_by_others {
                Some(bytes) => format!("{bytes} of the device's {}", summary.device_total),
                None => format!("most of the device's {}", summary.device_total),
            };
            format!(
                "other processes hold {theirs}, their contexts included; {free} is free, and this test reserved only {}",
                at.reserved
            )
        }
    }
}

/// What the policy's own settings allow it to hold.
fn limit(summary: &Summary) -> Option<Bytes> {
    let setting = summary.settings.iter().find(|setting| {
        // Of `bfc` and of `async`.
        matches!(setting.name.as_str(), "memory_limit" | "max_size")
    })?;
    setting.value.parse().ok()
}

/// What was left of the budget, where the request alone would have fitted: the policy takes memory
/// in larger pieces.
fn left_of_budget(request: &FailedRequest, summary: &Summary) -> Option<Bytes> {
    let unreserved = (summary.budget?.get()).saturating_sub(request.at.reserved.get());
    // Memory that no policy serves is charged too, and only the device knows it here.
    let left = Bytes::new(unreserved.min(request.device_free.get()));
    (left >= request.rounded).then_some(left)
}

/// What can be done about a request that failed.
pub(super) fn help(
    finding: &Finding,
    summary: &Summary,
    others_were_tried: bool,
) -> Option<String> {
    let Place::OutOfMemory(index) = finding.place else {
        return None;
    };
    let request = summary
        .devices
        .get(finding.device)?
        .out_of_memories
        .get(index)?;
    let first = match request.class {
        OomClass::Fragmented => match expandable(summary) {
            Some(policy) if !others_were_tried => {
                return Some(format!("{policy} joins such holes; {ALLOW}"));
            }
            _ => "free the blocks that lie between the holes",
        },
        // A request to the policy would have been served: this one went beside it.
        OomClass::Exhausted | OomClass::Budget if request.at.largest_free >= request.rounded => {
            "the policy does not serve this call, and holds as much free: have it take less (bfc: allow_growth=true, caching: empty_cache)"
        }
        OomClass::Exhausted => "hold less at once, or run on a larger device",
        OomClass::Budget if summary.budget.is_none() => {
            "hold less at once, or raise the policy's limit"
        }
        OomClass::Budget => "hold less at once, or raise budget",
        // What could be given back whole was, before the request failed: no trim helps.
        OomClass::CachedElsewhere => {
            "request it on the stream or pool that has the memory, or free the blocks that keep its segments there"
        }
        OomClass::FreesPending => {
            "wait for the stream that uses it, by stream.synchronize() or gpu.synchronize(), before this request"
        }
        OomClass::OutsideProcess => {
            "start this process first, or have the others take less (TensorFlow: allow_growth or per_process_gpu_memory_fraction, JAX: XLA_PYTHON_CLIENT_MEM_FRACTION)"
        }
    };
    Some(format!("{first}; {ALLOW}"))
}

/// The policy with expandable segments turned on, as a test would write it; none where they are
/// on already or there are none.
pub(super) fn expandable(summary: &Summary) -> Option<String> {
    let on = summary
        .settings
        .iter()
        .any(|setting| setting.name == "expandable_segments" && setting.value == "True");
    if on || !summary.policy.starts_with("caching") {
        return None;
    }
    let separator = if summary.policy.contains(':') {
        ','
    } else {
        ':'
    };
    Some(format!(
        "policy = \"{}{separator}expandable_segments:True\"",
        summary.policy
    ))
}
