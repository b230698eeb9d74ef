//! What was still allocated when a run had ended.

use std::collections::{BTreeMap, HashMap};

use crate::bytes::Bytes;
use crate::event::EventKind;
use crate::ids::{TextId, ThreadIndex};
use crate::ledger::Recording;

use super::heap::{Heap, LiveBlock};
use super::moment::largest;
use super::passed::Passed;
use super::{Holder, Leak};

/// The threads that live after some events, but for the one that runs the body.
pub(super) struct Threads {
    names: HashMap<ThreadIndex, TextId>,
}

impl Threads {
    /// The threads that began in `recording.events[..events]` and did not end there.
    pub(super) fn alive(recording: &Recording, events: usize) -> Self {
        let mut names = HashMap::new();
        let mut main = None;
        for event in &recording.events[..events] {
            match event.kind {
                EventKind::ThreadBegin { name } => {
                    names.insert(event.thread, name);
                }
                EventKind::ThreadEnd => {
                    names.remove(&event.thread);
                }
                EventKind::RunBegin { .. } => main = Some(event.thread),
                _ => {}
            }
        }
        if let Some(main) = main {
            names.remove(&main);
        }
        Self { names }
    }
}

/// The test's blocks in `heap`, and what it holds of memory that was passed to the driver.
pub(super) fn blocks_of_test<'a>(
    heap: &'a Heap,
    passed: &'a Passed,
) -> impl Iterator<Item = &'a LiveBlock> {
    let served = heap.live.values().filter(|block| block.run.is_some());
    served.chain(passed.blocks_of_test())
}

/// The bytes of these.
pub(super) fn bytes_of_test(heap: &Heap, passed: &Passed) -> u64 {
    blocks_of_test(heap, passed).map(|block| block.size).sum()
}

impl Leak {
    /// A leak of those blocks.
    pub(super) fn of<'a>(
        blocks: impl Iterator<Item = &'a LiveBlock>,
        recording: &Recording,
        threads: &Threads,
    ) -> Self {
        let mut by_holder: BTreeMap<(TextId, Option<TextId>), (u64, u64)> = BTreeMap::new();
        for block in blocks {
            let thread = threads.names.get(&block.thread).copied();
            let sum = by_holder.entry((block.site, thread)).or_default();
            *sum = (sum.0 + block.size, sum.1 + 1);
        }
        let bytes = by_holder.values().map(|(bytes, _)| bytes).sum();
        let blocks = by_holder.values().map(|(_, blocks)| blocks).sum();
        let holders = by_holder
            .into_iter()
            .map(|((site, thread), (bytes, blocks))| Holder {
                site: recording.text(site).to_owned(),
                thread: thread.map(|name| recording.text(name).to_owned()),
                bytes: Bytes::new(bytes),
                blocks,
            })
            .collect();
        let (holders, others) = largest(holders);
        Self {
            bytes: Bytes::new(bytes),
            blocks,
            holders,
            others,
        }
    }
}
