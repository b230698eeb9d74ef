//! What a tolerance lets pass.

use insta::{Comparator, Snapshot};

use super::texts_match;
use crate::bytes::Bytes;

/// The words of lines that a tolerance treats in their own way.
const RESERVED_PEAK: &str = "peak reserved";
const REMAINDERS: [&str; 2] = ["pinned free", "largest pinned hole"];
const BUDGET: &str = "budget";

/// Accepts a summary whose words and counts equal the accepted ones and whose every byte figure
/// differs from the accepted one by at most a ratio of it. The accepted text stays as it is.
///
/// What is left over of the reserved bytes (pinned free, the largest hole) may be next to nothing;
/// it may differ by the ratio of the accepted reserved peak. The budget is a setting, and exact.
#[derive(Clone)]
pub(super) struct WithinTolerance {
    ratio: f64,
}

impl WithinTolerance {
    pub(super) fn new(ratio: f64) -> Self {
        Self { ratio }
    }

    fn texts_match(&self, accepted: &str, new: &str) -> bool {
        let reserved = accepted
            .lines()
            .find(|line| line.starts_with(RESERVED_PEAK));
        let reserved = reserved.and_then(|line| split(line).1).unwrap_or(0);
        let (mut accepted, mut new) = (accepted.lines(), new.lines());
        loop {
            match (accepted.next(), new.next()) {
                (None, None) => return true,
                (Some(accepted), Some(new)) if self.lines_match(accepted, new, reserved) => {}
                _ => return false,
            }
        }
    }

    fn lines_match(&self, accepted: &str, new: &str, reserved: u64) -> bool {
        let ((accepted, expected), (new, actual)) = (split(accepted), split(new));
        let close = match (expected, actual) {
            (None, None) => true,
            (Some(expected), Some(actual)) => {
                let words = accepted.trim_start();
                let whole = match REMAINDERS.iter().any(|name| words.starts_with(name)) {
                    true => expected.max(reserved),
                    false if words.starts_with(BUDGET) => 0,
                    false => expected,
                };
                expected.abs_diff(actual) as f64 <= whole as f64 * self.ratio
            }
            _ => false,
        };
        close && accepted.split_whitespace().eq(new.split_whitespace())
    }
}

/// A line's words, and the byte figure that ends it: `1.25 GiB  (1342177280)`. What only looks
/// like one, in the name of a checkpoint say, is a word.
fn split(line: &str) -> (&str, Option<u64>) {
    let figure = || {
        let (before, exact) = line.trim_end().strip_suffix(')')?.rsplit_once('(')?;
        let exact: u64 = exact.parse().ok()?;
        let words = before
            .trim_end()
            .strip_suffix(&Bytes::new(exact).to_string())?;
        Some((words, exact))
    };
    match figure() {
        Some((words, exact)) => (words, Some(exact)),
        None => (line, None),
    }
}

impl Comparator for WithinTolerance {
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
    use super::{WithinTolerance, split};

    fn matches(accepted: &str, new: &str) -> bool {
        WithinTolerance::new(0.02).texts_match(accepted, new)
    }

    #[test]
    fn bytes_may_differ_by_the_tolerance_and_no_more() {
        let accepted = "peak reserved   1000 B  (1000)\nallocations   12";
        for (new, passes) in [
            ("peak reserved   1020 B  (1020)\nallocations   12", true),
            ("peak reserved    980 B  (980)\nallocations   12", true),
            ("peak reserved   1021 B  (1021)\nallocations   12", false),
            ("peak reserved    979 B  (979)\nallocations   12", false),
        ] {
            assert_eq!(matches(accepted, new), passes, "{new}");
        }
    }

    #[test]
    fn what_is_left_over_is_measured_by_the_reserved_peak() {
        let text = |pinned: u64| {
            format!("peak reserved   1000 B  (1000)\n  pinned free   {pinned} B  ({pinned})")
        };
        assert!(matches(&text(0), &text(20)));
        assert!(!matches(&text(0), &text(21)));
    }

    #[test]
    fn the_budget_is_exact() {
        assert!(matches(
            "budget   1000 B  (1000)",
            "budget   1000 B  (1000)"
        ));
        assert!(!matches(
            "budget   1000 B  (1000)",
            "budget   1001 B  (1001)"
        ));
    }

    #[test]
    fn the_unit_may_change_with_the_figure() {
        assert!(matches(
            "peak reserved     1020 B  (1020)",
            "peak reserved   1.01 KiB  (1030)"
        ));
    }

    #[test]
    fn counts_and_words_must_be_equal() {
        for new in [
            "allocations   1001",
            "frees   1000",
            "allocations   1000\nfrees   0",
            "allocations   1000 B  (1000)",
            "",
        ] {
            assert!(!matches("allocations   1000", new), "{new}");
        }
        assert!(!matches("leaked   0 B  (0)", "leaked   1 B  (1)"));
    }

    #[test]
    fn a_number_in_a_name_is_no_figure() {
        assert_eq!(split("until checkpoint \"step (5)\"").1, None);
        assert_eq!(split("until step (5)").1, None);
        assert_eq!(split("x   5 B  (5)"), ("x   ", Some(5)));
        assert!(!matches("until step (100)", "until step (101)"));
    }
}
