//! `torch.cuda.memory_summary`, character by character.
//!
//! Source: torch 2.11 `torch/cuda/memory.py` `memory_summary`, and a recording.

use crate::policy::{Stat, Statistics, StatsByPool};

const WIDTH: usize = 75;

/// The table of the counters, as PyTorch prints it for `device`; `abbreviated` leaves out the rows
/// of the small and the large pools. Ends with a line break.
pub fn memory_summary(statistics: &Statistics, device: u32, abbreviated: bool) -> String {
    let mut table = Table {
        text: String::new(),
        abbreviated,
    };
    table.rule('=');
    table.line(&format!(
        " {:16} PyTorch CUDA memory summary, device ID {device:<17} ",
        ""
    ));
    table.rule('-');
    table.line(&format!(
        "  {:9} CUDA OOMs: {:<12} | {:6} cudaMalloc retries: {:<8}  ",
        "", statistics.num_ooms, "", statistics.num_alloc_retries
    ));
    table.rule('=');
    table.line("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ");
    for (name, stats, format) in [
        (
            "Allocated memory",
            &statistics.allocated_bytes,
            bytes as Format,
        ),
        ("Active memory", &statistics.active_bytes, bytes),
        ("Requested memory", &statistics.requested_bytes, bytes),
        ("GPU reserved memory", &statistics.reserved_bytes, bytes),
        (
            "Non-releasable memory",
            &statistics.inactive_split_bytes,
            bytes,
        ),
        ("Allocations", &statistics.allocation, count),
        ("Active allocs", &statistics.active, count),
        ("GPU reserved segments", &statistics.segment, count),
        ("Non-releasable allocs", &statistics.inactive_split, count),
    ] {
        table.group(name, stats, format);
    }
    for (name, stat) in [
        ("Oversize allocations", &statistics.oversize_allocations),
        ("Oversize GPU segments", &statistics.oversize_segments),
    ] {
        table.rule('-');
        table.row(name, stat, stat, count);
    }
    table.rule('=');
    table.text
}

/// Prints a value in the unit that suits the reference value. Signed, since a counter may be below
/// zero.
type Format = fn(i64, i64) -> String;

struct Table {
    text: String,
    abbreviated: bool,
}

impl Table {
    fn line(&mut self, body: &str) {
        debug_assert_eq!(body.len(), WIDTH);
        self.text.push('|');
        self.text.push_str(body);
        self.text.push_str("|\n");
    }

    fn rule(&mut self, character: char) {
        let body: String = std::iter::repeat_n(character, WIDTH).collect();
        self.line(&body);
    }

    fn group(&mut self, name: &str, stats: &StatsByPool, format: Format) {
        self.rule('-');
        self.row(name, &stats.all, &stats.all, format);
        if !self.abbreviated {
            self.row("      from large pool", &stats.large, &stats.all, format);
            self.row("      from small pool", &stats.small, &stats.all, format);
        }
    }

    fn row(&mut self, name: &str, stat: &Stat, reference: &Stat, format: Format) {
        let format = |value: u64, reference: u64| format(value as i64, reference as i64);
        self.line(&format!(
            " {name:<21} | {} | {} | {} | {} ",
            format(stat.current, reference.current),
            format(stat.peak, reference.peak),
            format(stat.allocated, reference.allocated),
            format(stat.freed, reference.freed),
        ));
    }
}

fn bytes(value: i64, reference: i64) -> String {
    let units = ["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (value, unit) = scaled(value, reference, 768 * 1024, 1024, &units);
    format!("{value:6} {unit}")
}

fn count(value: i64, reference: i64) -> String {
    let (value, unit) = scaled(value, reference, 750 * 1000, 1000, &[" ", "K", "M"]);
    format!("{value:7} {unit} ")
}

/// Divides both values until the reference is below the threshold or the units end.
fn scaled<'a>(
    mut value: i64,
    reference: i64,
    threshold: i64,
    divisor: i64,
    units: &[&'a str],
) -> (i64, &'a str) {
    let mut reference = reference as f64;
    let mut unit = units[0];
    for &larger in &units[1..] {
        if reference < threshold as f64 {
            break;
        }
        value = value.div_euclid(divisor);
        reference /= divisor as f64;
        unit = larger;
    }
    (value, unit)
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, memory_summary};
    use crate::policy::Statistics;

    #[test]
    fn values_take_the_unit_of_the_reference() {
        assert_eq!(bytes(786_431, 786_431), "786431 B  ");
        assert_eq!(bytes(786_432, 786_432), "   768 KiB");
        assert_eq!(bytes(100, 5 << 30), "     0 MiB");
        assert_eq!(count(749_999, 749_999), " 749999   ");
        assert_eq!(count(750_000, 750_000), "    750 K ");
    }

    #[test]
    fn counters_below_zero_keep_their_sign() {
        let mut statistics = Statistics::default();
        statistics.oversize_segments.decrease_signed();
        let text = memory_summary(&statistics, 0, true);
        let row = "| Oversize GPU segments |      -1    |       0    |       0    |       1    |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn every_line_is_77_characters_wide() {
        let text = memory_summary(&Statistics::default(), 12, false);
        assert!(text.lines().all(|line| line.len() == 77), "{text}");
        assert!(text.contains("device ID 12"));
    }
}
