//! What happened: the entries of the device traces, and the annotations.

use crate::ids::StreamId;
use crate::trace::pickle::{ContainerIndex, Value};

use super::fields::{Problem, Read, Reader, count, handle, lossy};
use super::frames::FramesId;
use super::{Action, Annotation, TraceEntry};

impl<'a> Reader<'a> {
    /// The trace of one device.
    pub(super) fn trace(&mut self, value: Value) -> Read<Vec<TraceEntry>> {
        let items = self.list(value)?;
        let mut entries = Vec::new();
        for (index, &item) in items.iter().enumerate() {
            entries.push(self.entry(item).map_err(|problem| problem.at(index))?);
        }
        Ok(entries)
    }

    fn entry(&mut self, value: Value) -> Read<TraceEntry> {
        self.spend()?;
        let dict = self.dict(value)?;
        let mut found = Found::default();
        // PERF: one walk over the keys instead of a search for each; large files have millions.
        for (key, value) in self.arena.entries(dict) {
            match self.arena.text(key) {
                Some(b"action") => found.action = Some(value),
                Some(b"addr") => found.address = Some(value),
                Some(b"device_free") => found.device_free = Some(value),
                Some(b"size") => found.size = Some(value),
                Some(b"stream") => found.stream = Some(value),
                Some(b"time_us") => found.time_us = Some(value),
                Some(b"frames") => found.frames = Some(value),
                _ => {}
            }
        }
        let action = self.action(found.action)?;
        let address = match action {
            Action::OutOfMemory => number(found.device_free, "device_free")?,
            Action::Snapshot | Action::UserDefined => 0,
            _ => number(found.address, "addr")?,
        };
        let (size, stream) = match action {
            Action::Snapshot | Action::UserDefined => (0, 0),
            _ => (
                number(found.size, "size")?,
                required(found.stream, "stream")
                    .and_then(|value| handle(value).map_err(|problem| problem.under("stream")))?,
            ),
        };
        if address.checked_add(size).is_none() {
            return Err(Problem::new(format!(
                "{size} bytes at {address:#x} go beyond 64 bits"
            )));
        }
        Ok(TraceEntry {
            action,
            address,
            size,
            stream: StreamId(stream),
            time_us: match found.time_us {
                Some(value) => count(value).map_err(|problem| problem.under("time_us"))?,
                None => 0,
            },
            frames: match found.frames {
                Some(value) => self
                    .frames(value)
                    .map_err(|problem| problem.under("frames"))?,
                None => FramesId::NONE,
            },
        })
    }

    fn action(&self, value: Option<Value>) -> Read<Action> {
        let value = required(value, "action")?;
        let text = self
            .text(value)
            .map_err(|problem| problem.under("action"))?;
        Ok(match text {
            b"alloc" => Action::Alloc,
            b"free_requested" => Action::FreeRequested,
            b"free_completed" => Action::FreeCompleted,
            b"segment_alloc" => Action::SegmentAlloc,
            b"segment_free" => Action::SegmentFree,
            b"segment_map" => Action::SegmentMap,
            b"segment_unmap" => Action::SegmentUnmap,
            b"oom" => Action::OutOfMemory,
            b"snapshot" => Action::Snapshot,
            b"user_defined" => Action::UserDefined,
            other => {
                let what = format!("unknown action {:?}", lossy(other));
                return Err(Problem::new(what).under("action"));
            }
        })
    }

    /// The annotations; older files have none.
    pub(super) fn annotations(&mut self, root: ContainerIndex) -> Read<Vec<Annotation>> {
        if self.arena.get(root, "external_annotations").is_none() {
            return Ok(Vec::new());
        }
        self.each(root, "external_annotations", |reader, value| {
            reader.spend()?;
            let dict = reader.dict(value)?;
            let stage = reader.required(dict, "stage")?;
            Ok(Annotation {
                name: reader.shared_text(dict, "name")?,
                begins: reader
                    .text(stage)
                    .map_err(|problem| problem.under("stage"))?
                    == b"START",
                time_us: count(reader.required(dict, "time_us")?)
                    .map_err(|problem| problem.under("time_us"))?,
            })
        })
    }
}

#[derive(Default)]
struct Found {
    action: Option<Value>,
    address: Option<Value>,
    device_free: Option<Value>,
    size: Option<Value>,
    stream: Option<Value>,
    time_us: Option<Value>,
    frames: Option<Value>,
}

fn required(value: Option<Value>, key: &str) -> Read<Value> {
    value.ok_or_else(|| Problem::new("missing").under(key))
}

fn number(value: Option<Value>, key: &str) -> Read<u64> {
    count(required(value, key)?).map_err(|problem| problem.under(key))
}
