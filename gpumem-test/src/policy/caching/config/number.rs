//! Numbers as C++ `stoull` and `stod` read them: the leading part counts.

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    /// No digits at the start.
    Invalid,
    /// The type cannot hold it.
    OutOfRange,
}

/// A number, and whether all of the text was a plain form of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number<T> {
    pub(super) value: T,
    pub(super) is_plain: bool,
}

/// Reads as `std::stoull(text)`: decimal, the leading part only, `-1` wraps to the maximum.
pub(super) fn unsigned(text: &str) -> Result<Number<u64>, NumberError> {
    let (negative, digits) = sign(text);
    let length = leading_digits(digits);
    if length == 0 {
        return Err(NumberError::Invalid);
    }
    let magnitude: u64 = digits[..length]
        .parse()
        .map_err(|_| NumberError::OutOfRange)?;
    Ok(Number {
        value: if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        },
        is_plain: length == text.len(),
    })
}

/// Reads as `std::stod(text)`: decimal or hexadecimal, infinities and `nan` included, the leading
/// part only.
pub(super) fn real(text: &str) -> Result<Number<f64>, NumberError> {
    let (negative, rest) = sign(text);
    let signed = |value: f64| if negative { -value } else { value };
    let lower = rest.to_ascii_lowercase();
    if lower.starts_with("inf") {
        return Ok(Number {
            value: signed(f64::INFINITY),
            is_plain: false,
        });
    }
    if lower.starts_with("nan") {
        return Ok(Number {
            value: f64::NAN,
            is_plain: false,
        });
    }
    if let Some(digits) = lower.strip_prefix("0x")
        && let Some((value, _)) = hexadecimal(digits)
    {
        return in_range(value, true).map(|value| Number {
            value: signed(value),
            is_plain: false,
        });
    }
    let length = decimal_length(rest);
    if length == 0 {
        return Err(NumberError::Invalid);
    }
    let number = &rest[..length];
    let value: f64 = number.parse().map_err(|_| NumberError::Invalid)?;
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let has_value = mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let value = in_range(value, has_value)?;
    Ok(Number {
        value: signed(value),
        is_plain: length == text.len(),
    })
}

/// `strtod` reports a range error for overflow, and for a result that lost precision by being tiny.
fn in_range(value: f64, has_value: bool) -> Result<f64, NumberError> {
    if value.is_infinite() || (has_value && value < f64::MIN_POSITIVE && value != 0.0) {
        return Err(NumberError::OutOfRange);
    }
    if has_value && value == 0.0 {
        return Err(NumberError::OutOfRange);
    }
    Ok(value)
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// How much of `text` is a decimal number without sign.
fn decimal_length(text: &str) -> usize {
    let whole = leading_digits(text);
    let mut length = whole;
    let mut fraction = 0;
    if text[length..].starts_with('.') {
        fraction = leading_digits(&text[length + 1..]);
        if whole + fraction > 0 {
            length += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return 0;
    }
    if text[length..].starts_with(['e', 'E']) {
        let (_, exponent) = sign(&text[length + 1..]);
        let digits = leading_digits(exponent);
        if digits > 0 {
            length = text.len() - exponent.len() + digits;
        }
    }
    length
}

/// A hexadecimal number after `0x`: its value and length. `None` if there is no digit.
fn hexadecimal(text: &str) -> Option<(f64, usize)> {
    let mut value = 0.0_f64;
    let mut scale = 0_i32;
    let mut digits = 0;
    let mut seen_point = false;
    let mut length = 0;
    for (index, byte) in text.bytes().enumerate() {
        if byte == b'.' && !seen_point {
            seen_point = true;
        } else if let Some(digit) = (byte as char).to_digit(16) {
            value = value * 16.0 + f64::from(digit);
            scale -= if seen_point { 4 } else { 0 };
            digits += 1;
        } else {
            break;
        }
        length = index + 1;
    }
    if digits == 0 {
        return None;
    }
    if text[length..].starts_with('p') {
        let (negative, exponent) = sign(&text[length + 1..]);
        let count = leading_digits(exponent);
        if count > 0 {
            let power: i32 = exponent[..count].parse().unwrap_or(i32::MAX / 2);
            scale = scale.saturating_add(if negative { -power } else { power });
        }
    }
    Some((value * f64::from(scale).exp2(), length))
}

#[cfg(test)]
mod tests {
    use super::{NumberError, real, unsigned};

    #[test]
    fn integers_are_read_as_by_stoull() {
        for (text, value) in [
            ("64", Ok(64)),
            ("64abc", Ok(64)),
            ("64.9", Ok(64)),
            ("0x40", Ok(0)),
            ("-1", Ok(u64::MAX)),
            ("+5", Ok(5)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(NumberError::OutOfRange)),
            ("abc", Err(NumberError::Invalid)),
            ("-", Err(NumberError::Invalid)),
        ] {
            assert_eq!(unsigned(text).map(|number| number.value), value, "{text}");
        }
        assert!(!unsigned("64abc").unwrap().is_plain);
        assert!(!unsigned("-1").unwrap().is_plain);
        assert!(unsigned("64").unwrap().is_plain);
    }

    #[test]
    fn reals_are_read_as_by_stod() {
        for (text, value) in [
            ("0.8", Ok(0.8)),
            ("5e-1", Ok(0.5)),
            (".5x", Ok(0.5)),
            ("1.", Ok(1.0)),
            ("1e", Ok(1.0)),
            ("-0.5", Ok(-0.5)),
            ("0x1p-1", Ok(0.5)),
            ("0x.8", Ok(0.5)),
            ("0xg", Ok(0.0)),
            ("inf", Ok(f64::INFINITY)),
            ("1e999", Err(NumberError::OutOfRange)),
            ("1e-999", Err(NumberError::OutOfRange)),
            (".", Err(NumberError::Invalid)),
            ("e5", Err(NumberError::Invalid)),
        ] {
            assert_eq!(real(text).map(|number| number.value), value, "{text}");
        }
        assert!(real("nan").unwrap().value.is_nan());
    }
}
