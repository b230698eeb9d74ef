//! From the bytes of a file to those of a pickle.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::bytes::Bytes;
use crate::error::Error;
use crate::trace::pickle::PickleError;

/// The most bytes that a snapshot may have, expanded: some five million events.
const EXPANDED_LIMIT: u64 = 512 << 20;

const GZIP: &[u8] = b"\x1f\x8b";

const RECORD_ANEW: &str = "make one with `torch.cuda.memory._record_memory_history()`, the work, \
    and `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")`";

/// The bytes of a file, expanded where they are compressed.
pub(super) fn expand<'a>(name: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
    if !bytes.starts_with(GZIP) {
        if bytes.len() as u64 > EXPANDED_LIMIT {
            return Err(too_large(name));
        }
        return Ok(Cow::Borrowed(bytes));
    }
    let mut expanded = Vec::new();
    let result = MultiGzDecoder::new(bytes)
        .take(EXPANDED_LIMIT + 1)
        .read_to_end(&mut expanded);
    if let Err(error) = result {
        let what = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "truncated",
            _ => "damaged",
        };
        return Err(Error::recording(format!(
            "cannot read snapshot {name}: the gzip stream is {what} after {} expanded bytes",
            expanded.len()
        ))
        .with_help("copy the file again, or record it anew")
        .caused_by(error));
    }
    if expanded.len() as u64 > EXPANDED_LIMIT {
        return Err(too_large(name));
    }
    Ok(Cow::Owned(expanded))
}

/// The error for a file that is not there, or cannot be read. A relative name counts from the
/// package's folder in `cargo test`, which is where it is most often looked for in vain.
pub(in crate::trace) fn missing(what: &str, name: &str, error: std::io::Error) -> Error {
    Error::io(format!("cannot read {what} {name}"), error).with_help(
        "name it from the package's folder, as by `concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/run.pickle\")`",
    )
}

fn too_large(name: &str) -> Error {
    Error::recording(format!(
        "cannot read snapshot {name}: it has more than {}",
        Bytes::new(EXPANDED_LIMIT)
    ))
    .with_help("record fewer events: `_record_memory_history(max_entries=100_000)`")
}

/// The error for bytes that are no pickle of plain data.
pub(super) fn not_readable(name: &str, bytes: &[u8], error: PickleError) -> Error {
    let message = |what: &dyn std::fmt::Display| format!("cannot read snapshot {name}: {what}");
    if bytes.is_empty() {
        return Error::recording(message(&"it is empty")).with_help(RECORD_ANEW);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Error::recording(message(&"it is a zip archive, as `torch.save` writes them"))
            .with_help(RECORD_ANEW);
    }
    let help = if error.is_truncation() {
        "copy the file again, or record it anew".to_owned()
    } else if error.is_hostile() {
        "a snapshot holds plain data only; do not open this file with Python either unless you \
         know where it comes from"
            .to_owned()
    } else {
        RECORD_ANEW.to_owned()
    };
    Error::recording(message(&error)).with_help(help)
}
