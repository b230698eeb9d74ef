//! What a tolerance lets pass in a table of verdicts.

use insta::{Comparator, Snapshot};

use super::texts_match;

/// The word of the line that is exact in any case.
const BUDGET: &str = "budget";

/// Units of sizes and times, in what of the smallest: bytes, and nanoseconds.
const UNITS: [(&str, f64); 10] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("ns", 1.0),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// Accepts a table whose words and counts equal the accepted ones, whose every size and modelled
/// time differs from the accepted one by at most a ratio of it, and whose every share by as many
/// percentage points. The accepted text stays as it is. The budget is a setting, and exact.
#[derive(Clone)]
pub(super) struct TableWithinTolerance {
    ratio: f64,
}

/// What stands in a table, spaces apart.
#[derive(Debug, PartialEq)]
enum Cell<'a> {
    Word(&'a str),
    /// A size or a time, in the smallest unit, and whether it is a time.
    Quantity(f64, bool),
    /// In percent.
    Share(f64),
}

impl TableWithinTolerance {
    pub(super) fn new(ratio: f64) -> Self {
        Self { ratio }
    }

    fn texts_match(&self, accepted: &str, new: &str) -> bool {
        let (mut accepted, mut new) = (accepted.lines(), new.lines());
        loop {
            match (accepted.next(), new.next()) {
                (None, None) => return true,
                (Some(accepted), Some(new)) if self.lines_match(accepted, new) => {}
                _ => return false,
            }
        }
    }

    fn lines_match(&self, accepted: &str, new: &str) -> bool {
        if accepted.starts_with(BUDGET) {
            return accepted == new;
        }
        let (accepted, new) = (cells(accepted), cells(new));
        let pairs = accepted.iter().zip(&new);
        accepted.len() == new.len() && pairs.into_iter().all(|(a, b)| self.cells_match(a, b))
    }

    fn cells_match(&self, accepted: &Cell<'_>, new: &Cell<'_>) -> bool {
        match (accepted, new) {
            (Cell::Quantity(expected, time), Cell::Quantity(actual, other)) => {
                time == other && (expected - actual).abs() <= expected * self.ratio
            }
            // In thousandths of a point, as the shares themselves are exact to a tenth.
            (Cell::Share(expected), Cell::Share(actual)) => {
                (expected - actual).abs() <= self.ratio * 100.0 + 0.001
            }
            (accepted, new) => accepted == new,
        }
    }
}

fn cells(line: &str) -> Vec<Cell<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut cells = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let quantity = words.get(at + 1).and_then(|unit| quantity(word, unit));
        let share = word.strip_suffix('%').and_then(|share| share.parse().ok());
        at += if quantity.is_some() { 2 } else { 1 };
        cells.push(match (quantity, share) {
            (Some(quantity), _) => quantity,
            (None, Some(share)) => Cell::Share(share),
            (None, None) => Cell::Word(word),
        });
    }
    cells
}

fn quantity(number: &str, unit: &str) -> Option<Cell<'static>> {
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.parse().ok()?;
    Some(Cell::Quantity(number * factor, unit.ends_with('s')))
}

impl Comparator for TableWithinTolerance {
    fn matches(&self, reference: &Snapshot, test: &Snapshot) -> bool {
        texts_match(reference, test, |accepted, new| {
            self.texts_match(accepted, new)
        })
    }

    fn dyn_clone(&self) -> Box<dyn Comparator> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::TableWithinTolerance;

    fn matches(accepted: &str, new: &str) -> bool {
        TableWithinTolerance::new(0.02).texts_match(accepted, new)
    }

    #[test]
    fn sizes_and_times_may_differ_by_the_tolerance_and_no_more() {
        let accepted = "driver  ok  100.00 MiB  1.00 ms  7";
        for (new, passes) in [
            ("driver  ok   102.00 MiB  1.00 ms  7", true),
            ("driver  ok  102.01 MiB  1.00 ms  7", false),
            ("driver  ok  100.00 MiB  980 µs  7", true),
            ("driver  ok  100.00 MiB  979 µs  7", false),
            ("driver  ok  100.00 GiB  1.00 ms  7", false),
            ("driver  ok  100.00 MiB  1.00 ms  8", false),
            ("driver  oom  100.00 MiB  1.00 ms  7", false),
            ("driver  ok  100.00 MiB  1.00 MiB  7", false),
            ("driver  ok  100.00 MiB  1.00 ms", false),
        ] {
            assert_eq!(matches(accepted, new), passes, "{new}");
        }
    }

    #[test]
    fn shares_may_differ_by_so_many_points() {
        assert!(matches("ok  12.5%", "ok  14.5%"));
        assert!(!matches("ok  12.5%", "ok  14.6%"));
        assert!(!matches("ok  0.0%", "ok  -"));
    }

    #[test]
    fn the_budget_is_exact_and_no_line_may_come_or_go() {
        let budget = "budget  1000 B  (1000)";
        assert!(matches(budget, budget));
        assert!(!matches(budget, "budget  1001 B  (1001)"));
        assert!(!matches("driver  ok", "driver  ok\ncaching  ok"));
    }
}
