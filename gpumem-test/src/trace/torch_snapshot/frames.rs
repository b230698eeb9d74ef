//! Python stacks, each held once.

use rustc_hash::FxHashMap;

use crate::trace::pickle::{ContainerIndex, Value};

use super::fields::{Problem, Read, Reader, count, lossy};

/// Names a Python stack of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FramesId(pub(crate) u32);

impl FramesId {
    /// No stack was recorded, or the work came from no Python frame (autograd's threads).
    pub const NONE: Self = Self(0);
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The function.
    pub name: String,
    /// The file, as Python knew it.
    pub filename: String,
    /// The line, from 1.
    pub line: u64,
}

/// All stacks of a snapshot.
#[derive(Clone, Debug)]
pub(super) struct FrameTable {
    lists: Vec<Vec<Frame>>,
}

/// Stacks already read, by their list in the pickle: PyTorch shares one list among the entries of
/// one stack, and pickle keeps that.
pub(super) type KnownFrames = FxHashMap<ContainerIndex, FramesId>;

impl Default for FrameTable {
    fn default() -> Self {
        Self {
            lists: vec![Vec::new()],
        }
    }
}

impl FrameTable {
    pub(super) fn frames(&self, id: FramesId) -> &[Frame] {
        self.lists.get(id.0 as usize).map_or(&[], Vec::as_slice)
    }

    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    pub(super) fn site(&self, id: FramesId) -> Option<String> {
        let frames = self.frames(id);
        let frame = frames
            .iter()
            .find(|frame| frame.is_of_the_program())
            .or(frames.first())?;
        Some(format!("{}:{}", frame.filename, frame.line))
    }
}

impl Frame {
    fn is_of_the_program(&self) -> bool {
        let parts = || self.filename.split(['/', '\\']);
        let native = !self.filename.ends_with(".py") && !self.filename.starts_with("<ipython");
        !native && !parts().any(|part| part == "torch")
    }
}

impl<'a> Reader<'a> {
    /// The stack under `frames`, if the dict has one.
    pub(super) fn frames(&mut self, value: Value<'a>) -> Read<FramesId> {
        let (Value::List(list) | Value::Tuple(list)) = value else {
            return self.list(value).map(|_| FramesId::NONE);
        };
        if let Some(id) = self.known_frames.get(&list) {
            return Ok(*id);
        }
        let items = self.arena.items(list);
        let mut frames = Vec::new();
        for (index, &item) in items.iter().enumerate() {
            self.spend()?;
            frames.push(self.frame(item).map_err(|problem| problem.at(index))?);
        }
        let id = if frames.is_empty() {
            FramesId::NONE
        } else {
            self.frames.lists.push(frames);
            FramesId(self.frames.lists.len() as u32 - 1)
        };
        self.known_frames.insert(list, id);
        Ok(id)
    }

    fn frame(&self, value: Value<'a>) -> Read<Frame> {
        let dict = self.dict(value)?;
        let text = |key: &str| -> Read<String> {
            let value = self.required(dict, key)?;
            let text = self.text(value).map_err(|problem| problem.under(key))?;
            Ok(lossy(text))
        };
        Ok(Frame {
            name: text("name")?,
            filename: text("filename")?,
            line: count(self.required(dict, "line")?)
                .map_err(|problem: Problem| problem.under("line"))?,
        })
    }
}
