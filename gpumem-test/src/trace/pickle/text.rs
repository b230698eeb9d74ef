//! Texts of protocol 0, which are escaped.

/// Resolves the escapes of `UNICODE`: `\uXXXX` and `\UXXXXXXXX`, every other byte being Latin-1.
/// `None` if an escape is incomplete.
///
/// Source: Python's codec `raw-unicode-escape`.
pub(super) fn raw_unicode_escape(line: &[u8]) -> Option<Vec<u8>> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let [first, tail @ ..] = rest {
        let digits = match tail.first() {
            Some(b'u') if *first == b'\\' => 4,
            Some(b'U') if *first == b'\\' => 8,
            _ => {
                text.push(char::from(*first));
                rest = tail;
                continue;
            }
        };
        let code = u32::from_str_radix(str::from_utf8(tail.get(1..=digits)?).ok()?, 16).ok()?;
        // Lone surrogates have no place in UTF-8; a path that has one is still worth reading.
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &tail[digits + 1..];
    }
    Some(text.into_bytes())
}

/// Resolves the quotes and escapes of `STRING`, which is a Python literal. `None` if it is none.
pub(super) fn quoted(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    let (quote, inner) = match line {
        [open @ (b'\'' | b'"'), inner @ .., close] if open == close => (*open, inner),
        _ => return None,
    };
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == quote {
            return None;
        }
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        text.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            same @ (b'\\' | b'\'' | b'"') => same,
            _ => return None,
        });
    }
    Some(text)
}
