//! A report for a person.

use std::fmt::{self, Write};

use super::beliefs::{BeliefBasis, BeliefVerdict};
use super::fact::Fact;
use super::report::{AllocationCourse, DeviceReport, ReportSource, SecondContext};
use crate::bytes::Bytes;

/// Bytes in binary units.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        u64::MAX => "no limit".to_owned(),
        bytes => Bytes::new(bytes).to_string(),
    }
}

/// Bytes that are gone, or with a minus came back.
pub(super) fn signed(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", Bytes::new(bytes.unsigned_abs()))
}

/// Bytes in binary units and in full.
fn in_full(bytes: &u64) -> String {
    format!("{} ({})", Bytes::new(*bytes), Bytes::new(*bytes).exact())
}

/// A figure in words, with how far it is known.
fn said<T>(fact: &Fact<T>, say: impl FnOnce(&T) -> String) -> String {
    match fact {
        Fact::Known(value) => say(value),
        Fact::Recorded(value) => format!("{}; not measured here, recorded on an H200", say(value)),
        Fact::Unknown(why) => format!("unknown: {why}"),
    }
}

impl DeviceReport {
    /// The report in plain words, without colours.
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = &self.identity;
        let (major, minor) = identity.compute_capability;
        write!(
            f,
            "{} ({}), compute capability {major}.{minor}",
            identity.name, identity.device
        )?;
        if let Some(version) = &identity.driver_version {
            write!(f, ", driver {version}")?;
        }
        if let Some((major, minor)) = identity.cuda_version {
            write!(f, ", CUDA {major}.{minor}")?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{}",
            match self.source {
                ReportSource::Measured => "measured on this card",
                ReportSource::SimulatedProfile =>
                    "measured on the simulated device: the facts are the profile's, not a card's",
            }
        )
    }

    fn sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = |context: &SecondContext| in_signed_full(context.bytes);
        let contexts = &self.contexts;
        for (what, figure) in [
            ("total", in_full(&self.profile.total)),
            ("gone with a context", said(&contexts.gone, in_full)),
            ("by NVML", said(&contexts.by_nvml, in_full)),
            ("NVML, this process", said(&contexts.process, in_full)),
            ("a second context", said(&contexts.second, context)),
            ("never to be had", said(&self.unusable_tail, in_full)),
            ("granularity", in_full(&self.granularity)),
        ] {
            writeln!(f, "  {what:<22}{figure}")?;
        }
        let nvml = said(&self.nvml, |nvml| {
            format!(
                "total {}, the driver keeps {}, {} in use before",
                Bytes::new(nvml.total),
                Bytes::new(nvml.reserved),
                Bytes::new(nvml.used_before)
            )
        });
        writeln!(f, "  {:<22}{nvml}", "NVML")
    }

    fn commitments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(
            f,
            "",
            [
                "at the call",
                "first write",
                "after free",
                "after sync",
                "NVML grew by",
            ],
        )?;
        for (call, fact) in [
            ("cuMemAlloc", &self.plain),
            ("cuMemAllocAsync", &self.stream_ordered),
            ("cuMemAllocManaged", &self.managed),
        ] {
            match fact.value() {
                Some(course) => course_row(f, call, course, fact)?,
                None => writeln!(f, "  {call:<22}{}", said(fact, |_| String::new()))?,
            }
        }
        if let Some(memory) = self.virtual_memory.value() {
            let pages = AllocationCourse {
                size: memory.size,
                at_call: memory.at_create,
                at_first_write: memory.at_first_write,
                after_free: memory.after_release,
                after_synchronize: None,
                seen_by_nvml: memory.seen_by_nvml,
            };
            course_row(f, "cuMemCreate", &pages, &self.virtual_memory)?;
        }
        let address = said(&self.virtual_memory, |memory| {
            format!(
                "{} at the reservation, {} when pages are mapped",
                signed(memory.at_reserve),
                signed(memory.at_map)
            )
        });
        writeln!(f, "  {:<22}{address}", "its addresses")?;
        let kept = said(&self.kept_for_managed, |bytes| signed(*bytes));
        writeln!(f, "  {:<22}{kept}", "kept after managed")
    }

    fn pieces(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = said(&self.pages, |rule| {
            let mut text = format!(
                "pages of {}, shared in units of {} by requests up to {}",
                Bytes::new(rule.page),
                Bytes::new(rule.unit),
                Bytes::new(rule.largest_shared).exact()
            );
            for cost in &rule.costs {
                let requested = Bytes::new(cost.requested).exact();
                let committed = signed(cost.committed);
                // A string takes everything.
                let _ = write!(text, "\n  {:<22}{requested} cost {committed}", "");
            }
            text
        });
        writeln!(f, "  {:<22}{pages}", "cuMemAlloc")?;
        let pool = said(&self.pool, |rule| {
            format!(
                "grows by {}, keeps {} at a synchronisation",
                size(rule.chunk),
                size(rule.release_threshold)
            )
        });
        writeln!(f, "  {:<22}{pool}", "default pool")
    }

    fn judgements(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for belief in &self.beliefs {
            let verdict = match belief.verdict {
                BeliefVerdict::Holds => "holds",
                BeliefVerdict::Wrong => "wrong",
                BeliefVerdict::Partly => "partly",
                BeliefVerdict::Unknown => "unknown",
            };
            let basis = match belief.basis {
                BeliefBasis::Recorded => " [recorded on an H200]",
                BeliefBasis::SimulatedProfile => " [simulated profile]",
                BeliefBasis::Measured | BeliefBasis::Nothing => "",
            };
            writeln!(f, "  {verdict:<8}\"{}\"{basis}", belief.belief)?;
            writeln!(f, "          {}", belief.because)?;
        }
        Ok(())
    }
}

fn in_signed_full(bytes: i64) -> String {
    match u64::try_from(bytes) {
        Ok(bytes) => in_full(&bytes),
        Err(_) => signed(bytes),
    }
}

/// A line of the table of allocations.
fn row(f: &mut fmt::Formatter<'_>, what: &str, columns: [&str; 5]) -> fmt::Result {
    let mut line = format!("  {what:<22}");
    for column in columns {
        // A string takes everything.
        let _ = write!(line, "{column:<14}");
    }
    writeln!(f, "{}", line.trim_end())
}

fn course_row<T>(
    f: &mut fmt::Formatter<'_>,
    call: &str,
    course: &AllocationCourse,
    fact: &Fact<T>,
) -> fmt::Result {
    let after_synchronize = course.after_synchronize.map_or_else(String::new, signed);
    let mut by_nvml = (course.seen_by_nvml).map_or_else(|| "unknown".to_owned(), signed);
    if fact.known().is_none() {
        by_nvml += "; not measured here, recorded on an H200";
    }
    let columns = [
        &signed(course.at_call),
        &signed(course.at_first_write),
        &signed(course.after_free),
        &after_synchronize,
        &by_nvml,
    ];
    row(f, call, columns.map(String::as_str))
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        writeln!(f, "\nmemory")?;
        self.sizes(f)?;
        let size = self.plain.value().map_or_else(String::new, |course| {
            format!(": of {}, what the device has less free", size(course.size))
        });
        writeln!(f, "\nwhen memory is committed{size}")?;
        self.commitments(f)?;
        writeln!(f, "\nin which pieces")?;
        self.pieces(f)?;
        writeln!(f, "\ncommon beliefs")?;
        self.judgements(f)?;
        if !self.notes.is_empty() {
            writeln!(f, "\nnotes")?;
        }
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        Ok(())
    }
}
