//! From what the allocator did to what the program did.

use rustc_hash::FxHashMap;

use crate::ids::{Address, StreamId};
use crate::trace::build::TraceBuilder;
use crate::trace::torch_snapshot::{Action, FramesId, TorchSnapshot, TraceEntry};
use crate::trace::{HeldBlock, SiteId, Trace, TraceBlock, TraceOp};

use super::capture::Captures;
use super::layout::{Start, StartBlock};
use super::queues::{FreeRequest, LateFree, stand_ins};

/// Entries after memory was given back among which the request is looked for that gave it back.
const LOOK_AHEAD: usize = 4096;

/// The operations, forward. The error says which entry is impossible.
pub(super) fn forward(
    snapshot: &TorchSnapshot,
    entries: &[TraceEntry],
    start: Start,
    captures: &Captures,
) -> Result<Trace, String> {
    let mut builder = Trace::builder(snapshot.name.clone());
    let mut state = start.state;
    let stand_ins = stand_ins(entries, late_frees(entries, &start.blocks));
    let mut walk = Walk {
        entries,
        captures,
        snapshot,
        sites: vec![None; snapshot.frame_lists()],
        held: FxHashMap::default(),
        stand_ins,
        capture: None,
    };
    for block in start.blocks {
        let name = builder.new_block();
        walk.held.insert(block.address, name);
        let waits_for = walk.stand_ins.get(&FreeRequest::Before(block.address));
        state.held.push(HeldBlock {
            block: name,
            address: Address(block.address),
            requested: block.requested,
            stream: block.stream,
            pending: block.pending,
            waits_for: waits_for.copied().unwrap_or(StreamId::DEFAULT),
            site: walk.site(&mut builder, block.frames),
        });
    }
    for index in 0..entries.len() {
        walk.step(&mut builder, index)?;
    }
    Ok(builder.finish_rewound(state, snapshot.settings.clone()))
}

struct Walk<'a> {
    entries: &'a [TraceEntry],
    captures: &'a Captures,
    snapshot: &'a TorchSnapshot,
    /// Sites by stack, once they are known.
    sites: Vec<Option<SiteId>>,
    /// Blocks held or pending, by address.
    held: FxHashMap<u64, TraceBlock>,
    /// What the free requested by an entry waited for, unless it was completed directly.
    stand_ins: FxHashMap<FreeRequest, StreamId>,
    /// The capture under way: its private pool and the stream that it takes requests of.
    capture: Option<((u64, u64), StreamId)>,
}

impl Walk<'_> {
    fn step(&mut self, builder: &mut TraceBuilder, index: usize) -> Result<(), String> {
        let entry = &self.entries[index];
        match entry.action {
            Action::Alloc => {
                let pool = self.captures.pool_of(entry, index);
                self.route(builder, index, pool);
                let site = self.site(builder, entry.frames);
                builder.at_site(site);
                let block = builder.alloc_on(entry.size, entry.stream);
                self.held.insert(entry.address, block);
                if let Some(pool) = pool.filter(|pool| self.captures.ends_at(index, *pool)) {
                    builder.push(TraceOp::EndCapture { pool });
                    self.capture = None;
                }
            }
            Action::FreeRequested => {
                let block = self.block_at(index)?;
                if let Some(&stream) = self.stand_ins.get(&FreeRequest::Entry(index)) {
                    builder.record_stream(block, stream);
                }
                let site = self.site(builder, entry.frames);
                builder.at_site(site);
                builder.free(block);
            }
            Action::FreeCompleted => {
                let block = self.block_at(index)?;
                self.held.remove(&entry.address);
                if !follows_its_request(self.entries, index) {
                    builder.push(TraceOp::Complete { block });
                    if self.is_seen_by_trim(index) {
                        builder.trim();
                    }
                }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                if self.is_trim(index) {
                    builder.trim();
                }
            }
            Action::OutOfMemory => {
                let site = self.site(builder, entry.frames);
                builder.at_site(site);
                let block = builder.alloc_on(entry.size, entry.stream);
                builder.free(block);
            }
            Action::SegmentAlloc | Action::SegmentMap => {}
            Action::Snapshot | Action::UserDefined => {}
        }
        Ok(())
    }

    fn block_at(&self, index: usize) -> Result<TraceBlock, String> {
        let address = self.entries[index].address;
        self.held.get(&address).copied().ok_or_else(|| {
            format!(
                "entry {index} frees {}, where no block is",
                Address(address)
            )
        })
    }

    /// Begins and ends captures so that the request goes to `pool`.
    fn route(&mut self, builder: &mut TraceBuilder, index: usize, pool: Option<(u64, u64)>) {
        let stream = self.entries[index].stream;
        let wanted = pool.map(|pool| (pool, stream));
        match (self.capture, wanted) {
            (under_way, wanted) if under_way == wanted => return,
            (None, None) => return,
            // Another stream's request passes a capture by.
            (Some((_, captured)), None) if captured != stream => return,
            (Some((pool, _)), _) => {
                builder.push(TraceOp::EndCapture { pool });
                self.capture = None;
            }
            (None, Some(_)) => {}
        }
        if let Some((pool, stream)) = wanted {
            if self.captures.is_trimmed_before(index, pool) {
                builder.trim();
            }
            builder.push(TraceOp::BeginCapture { pool, stream });
            self.capture = wanted;
        }
    }

    fn site(&mut self, builder: &mut TraceBuilder, frames: FramesId) -> SiteId {
        let known = &mut self.sites[frames.0 as usize];
        *known.get_or_insert_with(|| match self.snapshot.site(frames) {
            Some(site) => builder.intern(&site),
            None => SiteId::UNKNOWN,
        })
    }

    /// Whether a late completion is the last that emptying the cache saw: neither a request that
    /// would have seen it nor more of the same follows.
    fn is_seen_by_trim(&self, index: usize) -> bool {
        let next = self.entries.get(index + 1).map(|next| next.action);
        matches!(
            next,
            None | Some(Action::FreeRequested | Action::Snapshot | Action::UserDefined)
        )
    }

    /// Whether memory given back at the entry is the first of what emptying the cache gave back,
    /// and not what a request gave back to make room for itself.
    fn is_trim(&self, index: usize) -> bool {
        let given_back = |entry: &&TraceEntry| {
            matches!(entry.action, Action::SegmentFree | Action::SegmentUnmap)
        };
        let entry = &self.entries[index];
        let before = index.checked_sub(1).map(|before| &self.entries[before]);
        if before.is_some_and(|before| given_back(&before)) {
            return false;
        }
        // Memory taken and not yet handed out: the request is still looking.
        let looking = before.is_some_and(|before| {
            matches!(before.action, Action::SegmentAlloc | Action::SegmentMap)
        });
        let rest = &self.entries[index + 1..];
        let after = rest.iter().find(|next| !given_back(next));
        let next_request = match after.map(|next| next.action) {
            Some(Action::OutOfMemory) => return false,
            Some(Action::Alloc) => after,
            Some(Action::SegmentAlloc | Action::SegmentMap) => rest
                .iter()
                .take(LOOK_AHEAD)
                .find(|next| matches!(next.action, Action::Alloc | Action::OutOfMemory)),
            _ => return true,
        };
        // The request and what it gave back come from one call, so from one stack.
        let same_call = entry.frames != FramesId::NONE
            && next_request.is_some_and(|request| request.frames == entry.frames);
        !looking && !same_call
    }
}

/// The frees that are completed later than directly after their request, or not at all; `held` is
/// what was in use at the start.
fn late_frees(entries: &[TraceEntry], held: &[StartBlock]) -> Vec<LateFree> {
    let pending = held.iter().filter(|block| block.pending);
    let mut requested: FxHashMap<u64, (FreeRequest, StreamId)> = pending
        .map(|block| {
            let request = FreeRequest::Before(block.address);
            (block.address, (request, block.stream))
        })
        .collect();
    let mut late = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match entry.action {
            Action::FreeRequested => {
                requested.insert(entry.address, (FreeRequest::Entry(index), entry.stream));
            }
            Action::FreeCompleted => {
                if let Some((request, owner)) = requested.remove(&entry.address)
                    && !follows_its_request(entries, index)
                {
                    late.push(LateFree {
                        completed: index,
                        request,
                        owner,
                    });
                }
            }
            _ => {}
        }
    }
    late.extend(requested.into_values().map(|(request, owner)| LateFree {
        completed: usize::MAX,
        request,
        owner,
    }));
    late
}

fn follows_its_request(entries: &[TraceEntry], index: usize) -> bool {
    index.checked_sub(1).is_some_and(|before| {
        let before = &entries[before];
        before.action == Action::FreeRequested && before.address == entries[index].address
    })
}
