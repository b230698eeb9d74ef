//! The report of a failed test.

use crate::bytes::Bytes;
use crate::check::{self, Bound, Compared, Finding, Place};
use crate::summary::{DeviceSummary, Moment};

use super::messages;
use super::sparkline::sparkline;
use super::{Judged, Next};

/// Failed requests that are explained; the others are counted.
const EXPLAINED: usize = 3;

/// What a failed test broke, how it ended, and what to do next. Ends with a line break.
///
/// `output` is what the test printed.
pub(crate) fn failure(judged: &Judged<'_>, output: &str, next: &Next<'_>) -> String {
    let mut report = Report {
        judged,
        text: String::new(),
        shown: Vec::new(),
    };
    report.ended();
    for finding in judged.findings {
        report.finding(finding);
    }
    if let Some(text) = messages::compared(judged.snapshot) {
        report.gap();
        report.line(0, text);
    }
    if report.shown.is_empty() {
        report.moments_of_interest();
    }
    report.advice();
    report.setup();
    report.beside();
    report.output(output);
    report.next(next);
    report.text
}

struct Report<'a> {
    judged: &'a Judged<'a>,
    text: String,
    /// The moments that have been shown, with the indices of their devices.
    shown: Vec<(usize, &'a Moment)>,
}

impl<'a> Report<'a> {
    fn line(&mut self, indent: usize, text: &str) {
        for line in text.lines() {
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    fn ended(&mut self) {
        if let Some(text) = messages::ended(self.judged.ended) {
            self.line(0, &text);
            if !matches!(self.judged.ended, check::Ended::Failed { .. }) {
                self.line(2, messages::SO_FAR);
            }
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let (summary, bounds) = (self.judged.summary, self.judged.bounds);
        let tried = matches!(self.judged.advice, Some(Ok(_)));
        self.gap();
        self.line(0, &messages::finding(finding, summary, bounds));
        match (finding.bound, finding.place) {
            (Bound::OutOfMemory, _) => self.failed_requests(finding.device),
            (Bound::Misuse, _) => {
                for message in &summary.misuse {
                    self.line(2, message);
                }
            }
            (Bound::Door, _) => {
                for message in &summary.violations {
                    self.line(2, message);
                }
            }
            (Bound::NotSimulated, _) => {
                if let Some(names) = messages::not_simulated(summary) {
                    self.line(2, &names);
                }
            }
            (_, Place::End) => {
                let device = summary.devices.get(finding.device);
                if let Some(leak) = device.and_then(|device| check::leak(device, bounds.steady)) {
                    self.line(2, &messages::leak(leak));
                    for holder in messages::holders(&leak.holders, &leak.others) {
                        self.line(4, &holder);
                    }
                }
            }
            _ => {
                if let Some(moment) = finding.moment(summary) {
                    self.moment(finding.device, moment);
                    if finding.bound == Bound::MaxFragmentation
                        && let Some(text) = messages::hole(moment, None)
                    {
                        self.line(2, &text);
                    }
                }
            }
        }
        if let Some(help) = messages::help(finding, summary, tried) {
            self.line(2, &format!("help: {help}"));
        }
    }

    fn failed_requests(&mut self, device: usize) {
        let summary = self.judged.summary;
        let Some(requests) = summary.devices.get(device).map(|d| &d.out_of_memories) else {
            return;
        };
        for request in requests.iter().take(EXPLAINED) {
            self.line(2, &messages::failed_request(request));
            self.line(2, &messages::explanation(request, summary));
            self.moment(device, &request.at);
            if let Some(text) = messages::hole(&request.at, Some(request.rounded)) {
                self.line(2, &text);
            }
        }
        if requests.len() > EXPLAINED {
            self.line(2, &messages::more_failed(requests.len() - EXPLAINED));
        }
    }

    fn moment(&mut self, device: usize, moment: &'a Moment) {
        let summary = self.judged.summary;
        let shown = self
            .shown
            .iter()
            .find(|(other, shown)| *other == device && is_same_heap(moment, shown));
        if let Some((_, shown)) = shown {
            let text = messages::same_heap(moment, shown, summary);
            self.line(2, &text);
            return;
        }
        self.shown.push((device, moment));
        self.line(2, &messages::moment(moment, summary));
        for holder in messages::holders(&moment.holders, &moment.others) {
            self.line(4, &holder);
        }
        self.line(2, &messages::heap(moment));
    }

    /// A failure of which no other part shows the heap (a changed snapshot, a count, a leak, a
    /// panic): what was held at the allocated peak, and why requests failed.
    fn moments_of_interest(&mut self) {
        let summary = self.judged.summary;
        for (index, device) in summary.devices.iter().enumerate() {
            if device.at_allocated_peak.event > 0 {
                self.gap();
                self.line(0, &messages::peak(device.allocated.peak));
                self.moment(index, &device.at_allocated_peak);
            }
            if !device.out_of_memories.is_empty() {
                self.gap();
                self.line(0, messages::FAILED);
                self.failed_requests(index);
            }
        }
    }

    /// What would have helped, as replays have it.
    fn advice(&mut self) {
        let Judged {
            summary,
            bounds,
            findings,
            advice: Some(advice),
            ..
        } = *self.judged
        else {
            return;
        };
        let lines = messages::advice(advice, findings, summary, bounds);
        if !lines.is_empty() {
            self.gap();
        }
        for line in lines {
            self.line(0, &line);
        }
    }

    fn setup(&mut self) {
        let summary = self.judged.summary;
        self.gap();
        self.line(0, &messages::course(summary.events));
        for device in &summary.devices {
            if summary.devices.len() > 1 {
                self.line(2, &messages::device(device.device));
            }
            self.course(device);
        }
        self.line(2, &messages::setup(summary));
        for line in messages::settings(summary) {
            self.line(4, &line);
        }
        if let Some(line) = messages::neighbours(summary) {
            self.line(2, &line);
        }
        for device in &summary.devices {
            if !device.timing.is_empty() {
                self.line(2, &messages::timing(&device.timing));
            }
        }
    }

    /// What happened beside the heap, where something did.
    fn beside(&mut self) {
        let summary = self.judged.summary;
        for device in &summary.devices {
            for line in messages::passed(device) {
                self.line(2, &line);
            }
            for line in messages::beside(device) {
                self.line(2, &line);
            }
        }
        let is_found = |finding: &Finding| finding.bound == Bound::NotSimulated;
        if let Some(names) = messages::not_simulated(summary)
            && !self.judged.findings.iter().any(is_found)
        {
            self.line(2, &names);
            self.line(2, messages::ON_A_GPU);
        }
        if let Some(notes) = messages::taken_on_trust(summary) {
            self.line(2, &notes);
        }
    }

    fn course(&mut self, device: &DeviceSummary) {
        // One scale for both, so that the gap between them is the slack.
        let highest = device.reserved.peak.max(device.allocated.peak);
        let rows: [(&str, &[Bytes], _); 2] = [
            ("allocated", &device.timeline.allocated, device.allocated),
            ("reserved ", &device.timeline.reserved, device.reserved),
        ];
        for (name, values, level) in rows {
            let bars = sparkline(values, highest);
            let words = messages::level(level.peak, level.end);
            self.line(2, &format!("{name}  {bars}  {words}"));
        }
    }

    fn output(&mut self, output: &str) {
        let output = output.trim_end();
        if !output.is_empty() {
            self.gap();
            self.line(0, messages::OUTPUT);
            self.line(2, output);
        }
    }

    fn next(&mut self, next: &Next<'_>) {
        self.gap();
        self.line(0, &messages::run_alone(next));
        if self.judged.snapshot != Compared::Equal {
            self.line(0, &messages::accept(next));
        }
        if let Some(path) = next.json {
            self.line(0, &messages::figures(path));
        }
    }
}

/// Whether two moments show the same blocks in the same places, as far as a summary can tell.
fn is_same_heap(one: &Moment, other: &Moment) -> bool {
    let timeless = |moment: &Moment| Moment {
        event: 0,
        after: None,
        ..moment.clone()
    };
    timeless(one) == timeless(other)
}
