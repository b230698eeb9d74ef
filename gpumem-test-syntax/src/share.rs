//! Shares: `"80%"`.

/// Parses a share into a ratio between 0 and 1.
///
/// # Errors
/// A sentence that names the text: no `%`, no number, or outside 0 to 100.
///
/// ```
/// # use gpumem_test_syntax::parse_share;
/// assert_eq!(parse_share("80%"), Ok(0.8));
/// assert!(parse_share("0.8").unwrap_err().contains('%'));
/// ```
pub fn parse_share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let Some(number) = trimmed.strip_suffix('%') else {
        return Err(format!(
            "`{text}` is not a share: write a percentage, as in \"20%\""
        ));
    };
    let number = number.trim();
    let plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    match number.parse::<f64>() {
        Ok(value) if plain && (0.0..=100.0).contains(&value) => Ok(value / 100.0),
        Ok(_) if plain => Err(format!("the share `{text}` is not between 0% and 100%")),
        _ => Err(format!("`{number}` in the share `{text}` is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_share;

    #[test]
    fn a_share_is_a_ratio() {
        assert_eq!(parse_share("0%"), Ok(0.0));
        assert_eq!(parse_share("12.5 %"), Ok(0.125));
        assert_eq!(parse_share("100%"), Ok(1.0));
    }

    #[test]
    fn what_is_no_share_is_named() {
        for (text, part) in [
            ("20", "write a percentage"),
            ("101%", "between 0% and 100%"),
            ("-1%", "is not a number"),
            ("x%", "is not a number"),
            ("inf%", "is not a number"),
        ] {
            let error = parse_share(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
