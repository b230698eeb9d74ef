//! Integers and floats in their several spellings.

use super::value::Value;

/// A signed little-endian integer of any length (`LONG1`, `LONG4`).
pub(super) fn from_bytes(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let mut low = [fill; 16];
    let kept = bytes.len().min(16);
    low[..kept].copy_from_slice(&bytes[..kept]);
    if bytes[kept..].iter().any(|&byte| byte != fill) {
        return Value::Huge;
    }
    let number = i128::from_le_bytes(low);
    // A positive number of 17 bytes or more may have its top bit in byte 15.
    if negative != (number < 0) {
        return Value::Huge;
    }
    from_wide(number)
}

/// A decimal integer of protocol 0; `None` if it is none.
pub(super) fn from_decimal(line: &[u8]) -> Option<Value> {
    let text = str::from_utf8(line).ok()?.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().map_or(Value::Huge, from_wide))
}

/// A decimal float of protocol 0; `None` if it is none.
pub(super) fn float(line: &[u8]) -> Option<f64> {
    str::from_utf8(line).ok()?.trim().parse().ok()
}

fn from_wide(number: i128) -> Value {
    if let Ok(number) = i64::try_from(number) {
        Value::Int(number)
    } else if let Ok(number) = u64::try_from(number) {
        Value::Large(number)
    } else {
        Value::Huge
    }
}
