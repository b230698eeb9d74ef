//! Python stacks, each held once.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::trace::pickle::{ContainerIndex, Value};

use super::fields::{Problem, Read, Reader, count};

/// Names a Python stack of a snapshot. Equal stacks have equal names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FramesId(pub(crate) u32);

impl FramesId {
    /// No stack was recorded, or the work came from no Python frame (autograd's threads).
    pub const NONE: Self = Self(0);
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function.
    pub name: Arc<str>,
    /// The file, as Python knew it.
    pub filename: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

impl Frame {
    fn is_of_the_program(&self) -> bool {
        let parts = || self.filename.split(['/', '\\']);
        let native = !self.filename.ends_with(".py") && !self.filename.starts_with("<ipython");
        !native && !parts().any(|part| part == "torch")
    }
}

/// All stacks of a snapshot. Many entries share a stack, and many stacks a frame.
#[derive(Clone, Debug)]
pub(super) struct FrameTable {
    frames: Vec<Frame>,
    /// The frames of each stack, as a range of `links`.
    stacks: Vec<Range<u32>>,
    /// Indices of frames.
    links: Vec<u32>,
}

impl Default for FrameTable {
    fn default() -> Self {
        let nothing = 0..0;
        Self {
            frames: Vec::new(),
            stacks: vec![nothing],
            links: Vec::new(),
        }
    }
}

impl FrameTable {
    pub(super) fn frames(&self, id: FramesId) -> impl Iterator<Item = &Frame> {
        let stack = self.stacks.get(id.0 as usize).cloned().unwrap_or(0..0);
        let links = &self.links[stack.start as usize..stack.end as usize];
        links.iter().map(|&frame| &self.frames[frame as usize])
    }

    /// How many stacks there are.
    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }

    pub(super) fn site(&self, id: FramesId) -> Option<String> {
        let frame = self
            .frames(id)
            .find(|frame| frame.is_of_the_program())
            .or(self.frames(id).next())?;
        Some(format!("{}:{}", frame.filename, frame.line))
    }

    fn add_stack(&mut self, links: &[u32]) -> FramesId {
        let start = self.links.len() as u32;
        self.links.extend_from_slice(links);
        self.stacks.push(start..self.links.len() as u32);
        FramesId(self.stacks.len() as u32 - 1)
    }
}

/// What was read already.
#[derive(Default)]
pub(super) struct KnownFrames {
    /// Frames by their dict in the pickle: PyTorch makes one dict for all occurrences of a frame.
    by_dict: FxHashMap<ContainerIndex, u32>,
    frames: FxHashMap<Frame, u32>,
    stacks: FxHashMap<Box<[u32]>, FramesId>,
    /// The stack being read.
    stack: Vec<u32>,
}

impl<'a> Reader<'a> {
    /// Reads a stack: a list of frames.
    pub(super) fn frames(&mut self, value: Value) -> Read<FramesId> {
        self.known_frames.stack.clear();
        for (index, &item) in self.list(value)?.iter().enumerate() {
            self.spend()?;
            let frame = self.frame(item).map_err(|problem| problem.at(index))?;
            self.known_frames.stack.push(frame);
        }
        let known = &mut self.known_frames;
        if known.stack.is_empty() {
            return Ok(FramesId::NONE);
        }
        if let Some(id) = known.stacks.get(known.stack.as_slice()) {
            return Ok(*id);
        }
        let id = self.frames.add_stack(&known.stack);
        known.stacks.insert(known.stack.as_slice().into(), id);
        Ok(id)
    }

    fn frame(&mut self, value: Value) -> Read<u32> {
        let dict = self.dict(value)?;
        if let Some(index) = self.known_frames.by_dict.get(&dict) {
            return Ok(*index);
        }
        let frame = Frame {
            name: self.shared_text(dict, "name")?,
            filename: self.shared_text(dict, "filename")?,
            line: count(self.required(dict, "line")?)
                .map_err(|problem: Problem| problem.under("line"))?,
        };
        let next = self.frames.frames.len() as u32;
        let index = *self
            .known_frames
            .frames
            .entry(frame)
            .or_insert_with_key(|frame| {
                self.frames.frames.push(frame.clone());
                next
            });
        self.known_frames.by_dict.insert(dict, index);
        Ok(index)
    }
}
