//! Typed reading of plain values; what is wrong is said with the path of keys to it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::trace::pickle::{Arena, ContainerIndex, Value};

use super::frames::{FrameTable, KnownFrames};

/// The longest name or path in bytes: Linux has none that is longer.
const LONGEST_TEXT: usize = 4096;

/// A value that is not what it should be.
pub(super) struct Problem {
    /// The keys that lead to the value, outermost first: `segments[3].blocks[0].size`.
    path: String,
    what: String,
}

pub(super) type Read<T> = Result<T, Problem>;

impl Problem {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
        }
    }

    /// The problem seen from a dict that has it under `key`.
    pub(super) fn under(mut self, key: &str) -> Self {
        let link = match self.path.chars().next() {
            None | Some('[') => "",
            Some(_) => ".",
        };
        self.path = format!("{key}{link}{}", self.path);
        self
    }

    /// The problem seen from a list that has it at `index`.
    pub(super) fn at(self, index: usize) -> Self {
        self.under(&format!("[{index}]"))
    }

    pub(super) fn into_error(self, name: &str) -> Error {
        let place = match self.path.as_str() {
            "" => String::new(),
            path => format!("{path}: "),
        };
        Error::recording(format!("cannot read snapshot {name}: {place}{}", self.what)).with_help(
            "the file must be a pickle of `torch.cuda.memory._snapshot()` as torch 2.11 makes it; \
             `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` writes one",
        )
    }
}

/// Reads a snapshot out of plain values.
pub(super) struct Reader<'a> {
    pub(super) arena: &'a Arena<'a>,
    pub(super) frames: FrameTable,
    pub(super) known_frames: KnownFrames,
    /// Texts by their place, so that one that is repeated by reference is held once.
    texts: FxHashMap<(u32, u32), Arc<str>>,
    /// Segments, blocks and entries that may still be read. Each takes more than a byte of the
    /// file; more can only come of a file that repeats the same one by reference.
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(arena: &'a Arena<'a>, file_bytes: usize) -> Self {
        Self {
            arena,
            frames: FrameTable::default(),
            known_frames: KnownFrames::default(),
            texts: FxHashMap::default(),
            left: file_bytes,
        }
    }

    /// Accounts for one segment, block or entry.
    pub(super) fn spend(&mut self) -> Read<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Problem::new("repeats the same parts more often than its length allows")
        })?;
        Ok(())
    }

    pub(super) fn dict(&self, value: Value) -> Read<ContainerIndex> {
        match value {
            Value::Dict(dict) => Ok(dict),
            other => Err(expected("a dict", other)),
        }
    }

    /// The items of a list or tuple.
    pub(super) fn list(&self, value: Value) -> Read<&'a [Value]> {
        match value {
            Value::List(list) | Value::Tuple(list) => Ok(self.arena.items(list)),
            other => Err(expected("a list", other)),
        }
    }

    pub(super) fn text(&self, value: Value) -> Read<&'a [u8]> {
        self.arena
            .text(value)
            .ok_or_else(|| expected("a text", value))
    }

    /// The text under `key`, held once however often it is repeated by reference.
    pub(super) fn shared_text(&mut self, dict: ContainerIndex, key: &str) -> Read<Arc<str>> {
        let value = self.required(dict, key)?;
        let text = self.text(value).map_err(|problem| problem.under(key))?;
        if text.len() > LONGEST_TEXT {
            let what = format!("has {} bytes, more than {LONGEST_TEXT}", text.len());
            return Err(Problem::new(what).under(key));
        }
        let place = value.text_place();
        let shared = self
            .texts
            .entry(place)
            .or_insert_with(|| String::from_utf8_lossy(text).into());
        Ok(Arc::clone(shared))
    }

    pub(super) fn required(&self, dict: ContainerIndex, key: &str) -> Read<Value> {
        self.arena
            .get(dict, key)
            .ok_or_else(|| Problem::new("missing").under(key))
    }

    /// Reads every item of the list under `key`.
    pub(super) fn each<T>(
        &mut self,
        dict: ContainerIndex,
        key: &str,
        mut read: impl FnMut(&mut Self, Value) -> Read<T>,
    ) -> Read<Vec<T>> {
        let value = self.required(dict, key)?;
        let items = self.list(value).map_err(|problem| problem.under(key))?;
        let mut all = Vec::new();
        for (index, &item) in items.iter().enumerate() {
            all.push(read(self, item).map_err(|problem| problem.at(index).under(key))?);
        }
        Ok(all)
    }
}

pub(super) fn expected(what: &str, found: Value) -> Problem {
    Problem::new(format!("expected {what}, found {}", found.type_name()))
}

/// A number that is not negative.
pub(super) fn count(value: Value) -> Read<u64> {
    match value {
        Value::Int(number) => u64::try_from(number)
            .map_err(|_| Problem::new(format!("expected a number of at least 0, found {number}"))),
        Value::Large(number) => Ok(number),
        Value::Huge => Err(Problem::new(
            "expected a number of 64 bits, found a larger one",
        )),
        other => Err(expected("an integer", other)),
    }
}

/// A handle: 64 bits, which Python may show as a negative number.
pub(super) fn handle(value: Value) -> Read<u64> {
    match value {
        Value::Int(number) => Ok(number as u64),
        other => count(other),
    }
}

pub(super) fn flag(value: Value) -> Read<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => Err(expected("True or False", other)),
    }
}

/// A text for a message or an owner, with what is no UTF-8 replaced.
pub(super) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
