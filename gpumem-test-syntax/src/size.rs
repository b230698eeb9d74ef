//! Sizes: `"512B"`, `"1.5 GiB"`, `"2GB"`.

/// The units of a size, with the bytes that one of each stands for; decimal and binary as
/// everywhere in the field.
pub const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Parses a size into bytes.
///
/// A size is a decimal number, optional blanks and a unit of [`SIZE_UNITS`]; the number may have
/// a fraction and `_` between digits. A fraction of a byte is rounded down.
///
/// # Errors
/// A sentence that names the text and the valid forms: a missing or unknown unit, a number that
/// is none, a size of 2^64 bytes or more.
///
/// ```
/// # use gpumem_test_syntax::parse_size;
/// assert_eq!(parse_size("1.5 GiB"), Ok(1_610_612_736));
/// assert_eq!(parse_size("2GB"), Ok(2_000_000_000));
/// assert!(parse_size("2").unwrap_err().contains("unit"));
/// ```
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    if number.is_empty() {
        return Err(format!(
            "`{text}` is not a size: write a number and a unit, as in \"512MiB\""
        ));
    }
    if unit.is_empty() {
        return Err(format!(
            "the size `{text}` has no unit: write one of {}, as in \"{number}MiB\"",
            unit_names()
        ));
    }
    let Some(&(_, factor)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        let hint = SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|(name, _)| format!(", did you mean `{name}`?"))
            .unwrap_or_default();
        return Err(format!(
            "unknown unit `{unit}` in the size `{text}`{hint} (units: {})",
            unit_names()
        ));
    };
    scaled(number, factor).ok_or_else(|| {
        if well_formed(number) {
            format!("the size `{text}` is 2^64 bytes or more")
        } else {
            format!("`{number}` in the size `{text}` is not a number")
        }
    })
}

fn unit_names() -> String {
    SIZE_UNITS.map(|(name, _)| name).join(", ")
}

fn well_formed(number: &str) -> bool {
    let mut parts = number.split('.');
    let whole = parts.next().unwrap_or_default();
    let fraction = parts.next();
    let digits = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.ends_with(|c: char| c.is_ascii_digit())
    };
    digits(whole) && fraction.is_none_or(digits) && parts.next().is_none()
}

/// `number · factor` in integers, so that "1.2GiB" does not depend on floating point.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if !well_formed(number) {
        return None;
    }
    let plain: String = number.chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    // Beyond eighteen digits a fraction is far below one byte.
    let fraction = &fraction[..fraction.len().min(18)];
    let whole: u128 = whole.parse().ok()?;
    let part: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let bytes = whole.checked_mul(u128::from(factor))? + part * u128::from(factor) / scale;
    u64::try_from(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        assert_eq!(parse_size("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_size("0B"), Ok(0));
        assert_eq!(parse_size("1_024 KiB"), Ok(1 << 20));
    }

    #[test]
    fn fractions_are_exact_and_round_down() {
        assert_eq!(parse_size("1.2GiB"), Ok(1_288_490_188));
        assert_eq!(parse_size("0.0000001B"), Ok(0));
    }

    #[test]
    fn what_is_no_size_is_named() {
        for (text, part) in [
            ("2", "has no unit"),
            ("2gib", "did you mean `GiB`?"),
            ("2 G", "unknown unit `G`"),
            ("GiB", "is not a size"),
            ("-1GiB", "is not a size"),
            ("1.2.3GiB", "is not a number"),
            ("1.GiB", "is not a number"),
            ("", "is not a size"),
            ("99999999999TiB", "2^64 bytes or more"),
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
