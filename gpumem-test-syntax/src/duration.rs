//! Durations: `"60s"`, `"500ms"`, `"2min"`.

use std::time::Duration;

/// The units of a duration, with the milliseconds of one.
pub const DURATION_UNITS: [(&str, u64); 4] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];

/// Parses a duration: a whole number, optional blanks and a unit of [`DURATION_UNITS`].
///
/// # Errors
/// A sentence that names the text and the units.
///
/// ```
/// # use gpumem_test_syntax::parse_duration;
/// assert_eq!(parse_duration("60s").unwrap().as_secs(), 60);
/// assert!(parse_duration("60").unwrap_err().contains("unit"));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = DURATION_UNITS.map(|(name, _)| name).join(", ");
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    if number.is_empty() {
        return Err(format!(
            "`{text}` is not a duration: write a whole number and a unit, as in \"60s\""
        ));
    }
    if unit.is_empty() {
        return Err(format!(
            "the duration `{text}` has no unit: write one of {units}, as in \"{number}s\""
        ));
    }
    let Some(&(_, factor)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!(
            "unknown unit `{unit}` in the duration `{text}` (units: {units})"
        ));
    };
    let milliseconds = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    match milliseconds {
        Some(0) => Err(format!(
            "the duration `{text}` is zero: nothing could run in it"
        )),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => Err(format!("the duration `{text}` is too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_duration;
    use std::time::Duration;

    #[test]
    fn each_unit_counts() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_secs(3_600)));
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for (text, part) in [
            ("60", "has no unit"),
            ("s", "is not a duration"),
            ("1.5s", "unknown unit"),
            ("5m", "unknown unit `m`"),
            ("0s", "is zero"),
            ("99999999999999999999s", "too long"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
