//! Makes traces, operation by operation.

use rustc_hash::FxHashMap;

use crate::ids::StreamId;

use super::operation::{SiteId, TraceBlock, TraceOp};
use super::torch_snapshot::RecordedSettings;
use super::{StartState, Trace};

/// Makes a [`Trace`], operation by operation.
///
/// ```
/// # use gpumem_test::Trace;
/// let mut trace = Trace::builder("two tensors");
/// let weights = trace.alloc(1 << 20);
/// let cache = trace.alloc(512);
/// trace.free(cache);
/// trace.free(weights);
/// assert_eq!(trace.finish().requests(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct TraceBuilder {
    trace: Trace,
    /// Whether each block is held.
    held: Vec<bool>,
    site: SiteId,
    known_sites: FxHashMap<String, SiteId>,
}

impl TraceBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            trace: Trace {
                name,
                operations: Vec::new(),
                blocks: 0,
                requests: 0,
                sites: Vec::new(),
                start: StartState::default(),
                settings: RecordedSettings::default(),
            },
            held: Vec::new(),
            site: SiteId::UNKNOWN,
            known_sites: FxHashMap::default(),
        }
    }

    /// Says that what follows comes from `site` (`file:line`); an empty text for an unknown place.
    pub fn at(&mut self, site: &str) -> &mut Self {
        self.site = self.intern(site);
        self
    }

    /// Asks for `size` bytes on the default stream.
    pub fn alloc(&mut self, size: u64) -> TraceBlock {
        self.alloc_on(size, StreamId::DEFAULT)
    }

    /// Asks for `size` bytes on `stream`.
    ///
    /// # Panics
    /// After 2^32 blocks.
    pub fn alloc_on(&mut self, size: u64, stream: StreamId) -> TraceBlock {
        let block = self.new_block();
        self.trace.requests += 1;
        self.trace.operations.push(TraceOp::Alloc {
            block,
            size,
            stream,
            site: self.site,
        });
        block
    }

    /// Frees a block.
    ///
    /// # Panics
    /// If the block is not held: freed already, or of another trace.
    pub fn free(&mut self, block: TraceBlock) -> &mut Self {
        self.check(block, "TraceBuilder::free");
        self.held[block.index()] = false;
        self.trace.operations.push(TraceOp::Free {
            block,
            site: self.site,
        });
        self
    }

    /// Says that `stream` uses the block too.
    ///
    /// # Panics
    /// If the block is not held.
    pub fn record_stream(&mut self, block: TraceBlock, stream: StreamId) -> &mut Self {
        self.check(block, "TraceBuilder::record_stream");
        self.push(TraceOp::RecordStream { block, stream })
    }

    /// Says that the streams that used a freed block are done with it. Without it they are not
    /// done before the policy waits for them.
    ///
    /// # Panics
    /// If the block is still held, or of another trace.
    pub fn complete(&mut self, block: TraceBlock) -> &mut Self {
        assert!(
            self.held.get(block.index()) == Some(&false),
            "TraceBuilder::complete: block {} is still held, or of another trace",
            block.0
        );
        self.push(TraceOp::Complete { block })
    }

    /// Gives back what nobody uses (`empty_cache`).
    pub fn trim(&mut self) -> &mut Self {
        self.push(TraceOp::Trim)
    }

    /// The trace.
    pub fn finish(self) -> Trace {
        self.trace
    }

    pub(super) fn push(&mut self, operation: TraceOp) -> &mut Self {
        self.trace.operations.push(operation);
        self
    }

    /// Names a block, allocated by no operation.
    pub(super) fn new_block(&mut self) -> TraceBlock {
        let block = TraceBlock(self.trace.blocks);
        self.trace.blocks = block.0.checked_add(1).expect("fewer than 2^32 blocks");
        self.held.push(true);
        block
    }

    /// Sets where what follows comes from to a place interned before.
    pub(super) fn at_site(&mut self, site: SiteId) {
        self.site = site;
    }

    pub(super) fn intern(&mut self, site: &str) -> SiteId {
        if site.is_empty() {
            return SiteId::UNKNOWN;
        }
        if let Some(known) = self.known_sites.get(site) {
            return *known;
        }
        self.trace.sites.push(site.to_owned());
        let id = SiteId(self.trace.sites.len() as u32);
        self.known_sites.insert(site.to_owned(), id);
        id
    }

    /// The trace, rewound from a snapshot.
    pub(super) fn finish_rewound(self, start: StartState, settings: RecordedSettings) -> Trace {
        Trace {
            start,
            settings,
            ..self.trace
        }
    }

    fn check(&self, block: TraceBlock, call: &str) {
        assert!(
            self.held.get(block.index()) == Some(&true),
            "{call}: block {} is not held: freed already, or of another trace",
            block.0
        );
    }
}
