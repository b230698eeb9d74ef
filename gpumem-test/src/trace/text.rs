//! Lists of operations as text: `a ID BYTES` asks, `f ID` frees, one a line.

use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::ids::StreamId;

use super::{Trace, TraceBlock};

/// Whether a file is more likely a list of operations than a pickle of protocol 0.
pub(super) fn is_likely(text: &str) -> bool {
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| matches!(line.as_bytes(), [b'a' | b'f', b' ', ..] | b"e"))
}

/// Reads a list of operations.
pub(super) fn parse(name: String, text: &str) -> Result<Trace, Error> {
    let mut trace = Trace::builder(name.clone());
    let mut held: FxHashMap<&str, TraceBlock> = FxHashMap::default();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = |what: String| {
            Error::recording(format!(
                "cannot read trace {name}: line {}: {what}",
                index + 1
            ))
            .with_help(
                "one operation a line: `a ID BYTES [STREAM]` asks for memory, `f ID` frees it, \
                     `e` empties the cache, `#` begins a comment",
            )
        };
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["a", id, size] | ["a", id, size, _] => {
                let size =
                    number(size).ok_or_else(|| wrong(format!("`{size}` is no number of bytes")))?;
                let stream = match words.get(3) {
                    Some(text) => number(text)
                        .ok_or_else(|| wrong(format!("`{text}` is no number of a stream")))?,
                    None => 0,
                };
                if held.contains_key(id) {
                    return Err(wrong(format!("block {id} is allocated twice")));
                }
                held.insert(id, trace.alloc_on(size, StreamId(stream)));
            }
            ["f", id] => {
                let block = held
                    .remove(id)
                    .ok_or_else(|| wrong(format!("block {id} is freed but not held")))?;
                trace.free(block);
            }
            ["e"] => {
                trace.trim();
            }
            _ => return Err(wrong(format!("`{}` is no operation", line.trim()))),
        }
    }
    Ok(trace.finish())
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

impl FromStr for Trace {
    type Err = Error;

    /// Reads a list of operations, one a line: `a ID BYTES [STREAM]` asks for memory, `f ID` frees
    /// it, `e` empties the cache. An id may be used again after its free.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse("text".to_owned(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Trace, TraceOp};

    #[test]
    fn a_list_of_operations_becomes_a_trace() {
        let trace: Trace = "# a comment\na x 512\n\na y 1024 7\nf x\na x 3\ne\n"
            .parse()
            .expect("a list");
        assert_eq!((trace.blocks(), trace.requests()), (3, 3));
        let operations = trace.operations();
        assert!(matches!(
            operations[1],
            TraceOp::Alloc { size: 1024, stream, .. } if stream.0 == 7
        ));
        assert!(matches!(operations[2], TraceOp::Free { block, .. } if block.index() == 0));
        assert_eq!(operations[4], TraceOp::Trim);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("a 0 512\na 0 512", "line 2: block 0 is allocated twice"),
            ("f 3", "line 1: block 3 is freed but not held"),
            ("a 0 lots", "line 1: `lots` is no number of bytes"),
            ("a 0 1 x", "line 1: `x` is no number of a stream"),
            ("a 0 512\nfree 0", "line 2: `free 0` is no operation"),
        ] {
            let error = text.parse::<Trace>().expect_err(text);
            assert!(error.is_recording());
            assert_eq!(
                error.to_string(),
                format!("cannot read trace text: {message}")
            );
        }
    }
}
