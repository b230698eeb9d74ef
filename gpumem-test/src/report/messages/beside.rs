//! What happened beside the policy's heap: memory that was passed to the driver, functions that
//! are not simulated, memory outside the allocator.

use crate::bytes::Bytes;
use crate::summary::{DeviceSummary, PassedMemory, Summary};

use super::{counted, level, sizes};

/// Names that a list shows; the others are counted.
const NAMED: usize = 8;

/// What policies serve, for the reader who finds memory that they do not.
const SERVED: &str = "help: a policy serves cuMemAlloc and cuMemAllocAsync from the default pool; \
                      the rest goes to the driver, and charged memory counts against budget";

/// Memory of a device that no policy served, a line each under a heading; no line if there is
/// none.
pub(in crate::report) fn passed(device: &DeviceSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if !device.passed.is_empty() {
        lines.push("passed to the driver:".to_owned());
        lines.extend(rows(&device.passed));
        lines.push(SERVED.to_owned());
    }
    if !device.pinned.is_empty() {
        lines.push("pinned host memory, which no budget counts:".to_owned());
        lines.extend(rows(&device.pinned));
    }
    lines
}

fn rows(list: &[PassedMemory]) -> impl Iterator<Item = String> {
    let names = list.iter().map(|memory| memory.memory.name().len());
    let width = names.max().unwrap_or(0);
    list.iter().map(move |memory| {
        let name = memory.memory.name();
        let figures = level(memory.bytes.peak, memory.bytes.end);
        let times = counted(memory.calls, "time");
        let charged = match memory.charged {
            true => ", charged",
            false => "",
        };
        format!("  {name:<width$}  {figures}, taken {times}{charged}")
    })
}

/// What the device says that the heap does not know, a line each; no line if there is nothing.
pub(in crate::report) fn device(device: &DeviceSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(committed) = device.committed {
        lines.push(format!(
            "committed by first writes: at most {}",
            level(committed.peak, committed.end)
        ));
    }
    if let Some(outside) = device.outside {
        lines.push(format!(
            "outside the allocator: {}",
            level(outside.peak, outside.end)
        ));
        lines.push(
            "help: context, modules, stacks, libraries and other processes; no budget counts them"
                .to_owned(),
        );
    }
    if let Some(process) = device.process {
        lines.push(format!(
            "process, as NVML counts it: {}",
            level(process.peak, process.end)
        ));
    }
    if device.unknown_frees > 0 {
        lines.push(format!(
            "{} of an address that nothing starts at",
            counted(device.unknown_frees, "free")
        ));
        lines.push("help: look for a double free, or for memory of another library".to_owned());
    }
    if let Some(shadow) = device.shadow {
        let [model, driver] = sizes([shadow.model, shadow.driver]);
        lines.push(format!(
            "the model of the driver's pools differed {}: at most, it said {model} reserved and the driver {driver}",
            counted(device.shadow_differences, "time")
        ));
        lines.push("help: the driver's figures are the ones shown; please report this".to_owned());
    }
    if device.retry_wait_modelled_ms > 0 {
        lines.push(format!(
            "the original would have waited {} s before it let requests fail; nothing was waited for here",
            device.retry_wait_modelled_ms / 1_000
        ));
    }
    if let Some(launches) = device.launches.filter(|launches| *launches > 0) {
        lines.push(match launches {
            1 => "1 launch".to_owned(),
            _ => format!("{launches} launches"),
        });
    }
    lines
}

/// The functions that the simulated driver lacks; none if it lacked nothing.
pub(in crate::report) fn not_simulated(summary: &Summary) -> Option<String> {
    let names = &summary.not_simulated;
    let (shown, rest) = names.split_at(names.len().min(NAMED));
    if shown.is_empty() {
        return None;
    }
    let more = match rest.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!("not simulated: {}{more}", shown.join(", ")))
}

/// What the simulated driver took on trust; none if there was nothing.
pub(in crate::report) fn taken_on_trust(summary: &Summary) -> Option<String> {
    let notes = &summary.taken_on_trust;
    (!notes.is_empty()).then(|| format!("taken on trust: {}", notes.join("; ")))
}

/// What to do where functions are not simulated.
pub(in crate::report) const ON_A_GPU: &str = "help: the code was told that they are not there; a GPU has them, and GPUMEM_UNSUPPORTED=error makes \
     them fail the test";

/// What a figure is that nobody could read.
pub(super) fn unmeasurable(option: &str, limit: Bytes) -> String {
    format!(
        "{option} of {limit} could not be judged: NVML does not know the memory of this process"
    )
}
