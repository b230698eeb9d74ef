//! The segments and blocks at the end, checked: they overlap nowhere and blocks tile segments.

use crate::heap_map::Usage;
use crate::ids::{Address, StreamId};
use crate::trace::pickle::Value;

use super::fields::{Problem, Read, Reader, count, expected, flag, handle, lossy};
use super::frames::FramesId;
use super::{SnapshotBlock, SnapshotSegment, TorchSnapshot};

impl<'a> Reader<'a> {
    /// Reads the whole snapshot.
    pub(super) fn snapshot(mut self, value: Value, name: &str) -> Read<TorchSnapshot> {
        let root = self.dict(value).map_err(|_| {
            Problem::new(format!(
                "it is a pickle of a {}, not of a snapshot",
                value.type_name()
            ))
        })?;
        let mut segments = self.each(root, "segments", Self::segment)?;
        segments.sort_by_key(|segment| (segment.device, segment.address));
        for pair in segments.windows(2) {
            let end = pair[0].address.offset(pair[0].total_size);
            if pair[0].device == pair[1].device && end > pair[1].address {
                return Err(Problem::new(format!(
                    "the segments at {} and {} overlap",
                    pair[0].address, pair[1].address
                ))
                .under("segments"));
            }
        }
        let device_traces = self.each(root, "device_traces", Self::trace)?;
        let settings = self.settings(root)?;
        let annotations = self.annotations(root)?;
        Ok(TorchSnapshot {
            name: name.to_owned(),
            segments,
            device_traces,
            settings,
            annotations,
            frames: self.frames,
        })
    }

    fn segment(&mut self, value: Value) -> Read<SnapshotSegment> {
        self.spend()?;
        let dict = self.dict(value)?;
        let number = |key: &str| -> Read<u64> {
            count(self.required(dict, key)?).map_err(|problem| problem.under(key))
        };
        let device = match self.arena.get(dict, "device") {
            Some(value) => device(value).map_err(|problem| problem.under("device"))?,
            None => 0,
        };
        let address = number("address")?;
        let total_size = number("total_size")?;
        let stream =
            handle(self.required(dict, "stream")?).map_err(|problem| problem.under("stream"))?;
        let kind = self.required(dict, "segment_type")?;
        let small = match self
            .text(kind)
            .map_err(|problem| problem.under("segment_type"))?
        {
            b"small" => true,
            b"large" => false,
            other => {
                let what = format!("expected small or large, found {:?}", lossy(other));
                return Err(Problem::new(what).under("segment_type"));
            }
        };
        let pool = match self.arena.get(dict, "segment_pool_id") {
            Some(value) => self
                .pair(value)
                .map_err(|problem| problem.under("segment_pool_id"))?,
            None => (0, 0),
        };
        let expandable = match self.arena.get(dict, "is_expandable") {
            Some(value) => flag(value).map_err(|problem| problem.under("is_expandable"))?,
            None => false,
        };
        let end = address
            .checked_add(total_size)
            .ok_or_else(|| Problem::new("the segment goes beyond 64 bits"))?;
        let blocks = self.each(dict, "blocks", Self::block)?;
        check_tiling(address, end, &blocks)?;
        Ok(SnapshotSegment {
            device,
            address: Address(address),
            total_size,
            stream: StreamId(stream),
            small,
            pool,
            expandable,
            blocks,
        })
    }

    fn block(&mut self, value: Value) -> Read<SnapshotBlock> {
        self.spend()?;
        let dict = self.dict(value)?;
        let number = |key: &str| -> Read<u64> {
            count(self.required(dict, key)?).map_err(|problem| problem.under(key))
        };
        let address = number("address")?;
        let size = number("size")?;
        let requested_size = number("requested_size")?;
        let state = self.required(dict, "state")?;
        let usage = match self.text(state).map_err(|problem| problem.under("state"))? {
            b"active_allocated" => Usage::Allocated,
            // The second is the word of torch before 2.2.
            b"active_pending_free" | b"active_awaiting_free" => Usage::PendingFree,
            b"inactive" => Usage::Free,
            other => {
                let what = format!("unknown state {:?}", lossy(other));
                return Err(Problem::new(what).under("state"));
            }
        };
        let frames = match self.arena.get(dict, "frames") {
            Some(value) => self
                .frames(value)
                .map_err(|problem| problem.under("frames"))?,
            None => FramesId::NONE,
        };
        Ok(SnapshotBlock {
            address: Address(address),
            size,
            requested_size,
            usage,
            frames,
        })
    }

    fn pair(&self, value: Value) -> Read<(u64, u64)> {
        match *self.list(value)? {
            [first, second] => Ok((count(first)?, count(second)?)),
            _ => Err(expected("two numbers", value)),
        }
    }
}

pub(super) fn device(value: Value) -> Read<u32> {
    u32::try_from(count(value)?).map_err(|_| Problem::new("no number of a device"))
}

fn check_tiling(start: u64, end: u64, blocks: &[SnapshotBlock]) -> Read<()> {
    let mut at = start;
    for (index, block) in blocks.iter().enumerate() {
        let wrong = |what: String| Err(Problem::new(what).at(index).under("blocks"));
        if block.address.0 != at {
            return wrong(format!(
                "begins at {}, where the part before it ends at {}",
                block.address,
                Address(at)
            ));
        }
        match at.checked_add(block.size) {
            Some(next) if next <= end && block.size > 0 => at = next,
            _ => {
                return wrong(format!(
                    "has {} bytes, which do not fit its segment",
                    block.size
                ));
            }
        }
    }
    if at == end {
        return Ok(());
    }
    let what = format!("end at {}, the segment at {}", Address(at), Address(end));
    Err(Problem::new(what).under("blocks"))
}
