//! From frames in a ledger to places that a person knows.

use std::collections::HashMap;
use std::path::Path;

use crate::ids::TextId;
use crate::ledger::Recording;

use super::fold;
use super::system;

/// What debug information says of a return address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// The function's name, without the compiler's hash.
    pub(crate) function: Option<String>,
    /// Its source file, absolute.
    pub(crate) file: Option<String>,
    /// The line of the call, from 1.
    pub(crate) line: Option<u32>,
}

/// Names every captured call site of `recording` by the user's line, `src/model.rs:88`. Paths
/// below `root` are relative to it. Sites with one name become one site.
pub(crate) fn name(recording: &mut Recording, root: Option<&Path>) {
    // Stacks share most of their frames.
    let mut known: HashMap<(TextId, u64), Vec<Symbol>> = HashMap::new();
    let names = places(recording, |recording, frames| {
        let mut symbols = Vec::new();
        for frame in frames {
            let found = known.entry(*frame).or_insert_with(|| {
                let mut found = Vec::new();
                let module = recording.text(frame.0);
                if !is_of_system(module) {
                    system::resolve(module, frame.1, &mut |symbol| found.push(symbol));
                }
                found
            });
            symbols.extend(found.iter().cloned());
        }
        fold::users_line(&symbols, root)
    });
    recording.name_sites(names);
}

/// Labels every captured call site of `recording` by module and offset, `libx.so+0x1f3c0`, which
/// costs nothing. [`name()`] can still name it.
pub(crate) fn name_by_module(recording: &mut Recording) {
    let labels = places(recording, |_, _| None);
    recording.label_sites(labels);
}

/// Modules that every stack ends in and that call no driver: the C library and the loader.
const SYSTEM: [&str; 4] = ["libc.so", "libpthread.so", "ld-linux", "ld-musl"];

fn is_of_system(module: &str) -> bool {
    let file = module.rsplit('/').next().unwrap_or(module);
    SYSTEM.iter().any(|name| file.starts_with(name))
}

/// Each captured call site with its place, or with what can be said where `place` has none.
fn places(
    recording: &Recording,
    mut place: impl FnMut(&Recording, &[(TextId, u64)]) -> Option<String>,
) -> Vec<(TextId, String)> {
    recording
        .framed()
        .map(|id| {
            let frames = recording.frames(id);
            let name = place(recording, frames);
            (id, name.unwrap_or_else(|| by_module(recording, frames)))
        })
        .collect()
}

/// What can be said without names: the innermost frame that is not in the module of our hook, else
/// the hook's own, as module and offset.
fn by_module(recording: &Recording, frames: &[(TextId, u64)]) -> String {
    let first = frames.first().copied().unwrap_or_default();
    let other = frames
        .iter()
        .find(|frame| frame.0 != first.0 && !is_of_system(recording.text(frame.0)));
    let (module, offset) = other.copied().unwrap_or(first);
    let path = recording.text(module);
    let file = path.rsplit('/').next().unwrap_or(path);
    format!("{file}+{offset:#x}")
}
