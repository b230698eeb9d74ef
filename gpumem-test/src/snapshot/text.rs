//! The text form of a summary: what a reviewer reads.
//!
//! One figure a line and fixed columns, so that a change of one figure is a change of one line.
//! Nothing in it varies between runs of the same code: no address, time, process or thread, no
//! place in the code (a line moves when a comment is added), no device unless the test names it.
//! Figures that depend on when the device finishes are replaced by the word `timing`.

use crate::bytes::Bytes;
use crate::event::OomClass;
use crate::summary::{DeviceSummary, FailedRequest, PassedMemory, Summary, Window};

/// In place of a figure that depends on when the device finishes.
const TIMING: &str = "timing";

/// The summary, ready for review. Ends with a line break.
pub(crate) fn text(summary: &Summary) -> String {
    let mut text = Text(String::new());
    text.words("policy", &summary.policy);
    for setting in &summary.settings {
        text.words(&format!("  {}", setting.name), &setting.value);
    }
    if summary.device_named {
        text.words("device", &summary.device);
    }
    match summary.budget {
        Some(budget) => text.bytes("budget", budget),
        None => text.words("budget", "none"),
    }
    for neighbour in &summary.neighbours {
        text.words("neighbour", &neighbour.takes);
    }
    for device in &summary.devices {
        text.line("");
        if summary.devices.len() > 1 {
            text.words("device number", &device.device.0.to_string());
        }
        text.device(device, summary.runs);
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    fn words(&mut self, label: &str, value: &str) {
        self.line(&format!("{label:<31} {value}"));
    }

    fn bytes(&mut self, label: &str, bytes: Bytes) {
        self.line(&format!("{label:<31} {}", figure(bytes)));
    }

    fn count(&mut self, label: &str, count: u64) {
        self.line(&format!("{label:<31} {count:>11}"));
    }

    /// A byte figure that may depend on when the device finishes.
    fn level(&mut self, label: &str, bytes: Bytes, timing: bool) {
        match timing {
            true => self.words(label, TIMING),
            false => self.bytes(label, bytes),
        }
    }

    /// A count that may depend on when the device finishes.
    fn number(&mut self, label: &str, count: u64, timing: bool) {
        match timing {
            true => self.words(label, TIMING),
            false => self.count(label, count),
        }
    }

    fn device(&mut self, device: &DeviceSummary, runs: u32) {
        let timing = !device.timing.is_empty();
        self.bytes("peak requested", device.requested.peak);
        self.bytes("peak allocated", device.allocated.peak);
        self.level("peak active", device.active.peak, timing);
        self.level("peak reserved", device.reserved.peak, timing);
        self.bytes("end allocated", device.allocated.end);
        self.level("end active", device.active.end, timing);
        self.level("end reserved", device.reserved.end, timing);
        let counts = &device.counts;
        self.count("allocations", counts.allocations);
        self.count("frees", counts.frees);
        self.number("device allocations", counts.device_allocations, timing);
        self.number("device frees", counts.device_frees, timing);
        self.number("retries", counts.retries, timing);
        self.count("out of memory", counts.out_of_memories);
        self.failed(&device.out_of_memories);
        let peak = &device.at_reserved_peak;
        self.line("at the reserved peak");
        self.level("  requested", peak.requested, timing);
        self.level("  allocated", peak.allocated, timing);
        self.level("  pinned free", peak.pinned_free, timing);
        self.level("  largest pinned hole", peak.largest_pinned, timing);
        match &device.leaked {
            Some(leak) => {
                self.bytes("leaked", leak.bytes);
                self.count("  blocks", leak.blocks);
            }
            None => self.words("leaked", "unknown: the test did not return"),
        }
        if let Some(leak) = &device.leaked_by_last_run {
            self.bytes(&format!("  added by run {runs}"), leak.bytes);
        }
        for memory in &device.passed {
            self.line(&format!("passed to the driver: {}", memory.memory.name()));
            self.passed(memory);
        }
        for memory in &device.pinned {
            self.line(&format!("host memory: {}", memory.memory.name()));
            self.passed(memory);
        }
        if device.windows.len() > 1 {
            device
                .windows
                .iter()
                .for_each(|window| self.window(window, timing));
        }
    }

    fn passed(&mut self, memory: &PassedMemory) {
        self.bytes("  peak", memory.bytes.peak);
        self.bytes("  at the end", memory.bytes.end);
        self.count("  times taken", memory.calls);
    }

    fn window(&mut self, window: &Window, timing: bool) {
        self.line("");
        match &window.until {
            // Escaped, so that a line break in a name makes no line that looks like a figure.
            Some(name) => self.line(&format!("until checkpoint {name:?}")),
            None => self.line("until the end"),
        }
        self.bytes("  peak allocated", window.allocated.peak);
        self.level("  peak reserved", window.reserved.peak, timing);
        self.bytes("  end allocated", window.allocated.end);
        self.count("  allocations", window.counts.allocations);
    }

    /// The failed requests, equal ones together, in the order in which they first happened.
    fn failed(&mut self, requests: &[FailedRequest]) {
        let mut groups: Vec<(OomClass, Bytes, u64)> = Vec::new();
        for request in requests {
            let same = groups
                .iter_mut()
                .find(|group| (group.0, group.1) == (request.class, request.requested));
            match same {
                Some(group) => group.2 += 1,
                None => groups.push((request.class, request.requested, 1)),
            }
        }
        for (class, requested, times) in groups {
            let label = format!("  {} x {times}", class.name());
            self.bytes(&label, requested);
        }
    }
}

/// Both forms of a size. `tolerance.rs` reads it back.
pub(super) fn figure(bytes: Bytes) -> String {
    format!("{bytes:>11}  ({})", bytes.get())
}
