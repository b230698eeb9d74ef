//! Blocks that tile a range: each knows its neighbours by address.
//!
//! One arena serves many ranges. A block is cut at its start and joined with the next one; both
//! keep the tiling whole.

/// A block of a [`Tiling`].
pub(super) type NodeId = u32;

/// No block.
pub(super) const NIL: NodeId = u32::MAX;

/// One block. Addresses and lengths are in units of 512 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Where it starts.
    pub(super) start: u64,
    /// How long it is; at least 1.
    pub(super) length: u64,
    /// Bytes asked for, while the program holds it.
    pub(super) requested: u64,
    /// Its entry number in the free list that it is in.
    pub(super) number: u64,
    /// The clock of its free, while a stream's list has it.
    pub(super) stamp: u64,
    /// Whether all of its memory is there, for users that take memory in other portions.
    pub(super) is_backed: bool,
    /// Who has it; the user of the tiling says what the values mean.
    pub(super) owner: u32,
    /// The block before it in the range, or [`NIL`].
    pub(super) previous: NodeId,
    /// The block behind it in the range, or [`NIL`].
    pub(super) next: NodeId,
    /// The block freed next after it on the same stream, or [`NIL`].
    pub(super) newer: NodeId,
    /// The block freed last before it on the same stream, or [`NIL`].
    pub(super) older: NodeId,
}

impl Node {
    /// The first unit behind it.
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// The arena.
#[derive(Clone, Debug, Default)]
pub(super) struct Tiling {
    nodes: Vec<Node>,
    vacant: Vec<NodeId>,
}

impl Tiling {
    /// A new range of one block.
    pub(super) fn range(&mut self, start: u64, length: u64, owner: u32) -> NodeId {
        self.add(Node {
            start,
            length,
            requested: 0,
            number: 0,
            stamp: 0,
            is_backed: false,
            owner,
            previous: NIL,
            next: NIL,
            newer: NIL,
            older: NIL,
        })
    }

    /// Cuts the first `length` units off `node` into a new block, which gets `owner`. The rest
    /// stays `node`, with everything but its extent unchanged.
    #[inline]
    pub(super) fn cut_start(&mut self, node: NodeId, length: u64, owner: u32) -> NodeId {
        let rest = self[node];
        debug_assert!(length < rest.length);
        let start = self.add(Node {
            length,
            owner,
            next: node,
            newer: NIL,
            older: NIL,
            ..rest
        });
        if rest.previous != NIL {
            self[rest.previous].next = start;
        }
        let rest = &mut self[node];
        rest.start += length;
        rest.length -= length;
        rest.previous = start;
        start
    }

    /// Joins `node` with the block behind it, which is gone then.
    #[inline]
    pub(super) fn absorb_next(&mut self, node: NodeId) {
        let gone_id = self[node].next;
        let gone = self[gone_id];
        let kept = &mut self[node];
        debug_assert_eq!(kept.end(), gone.start);
        kept.length += gone.length;
        kept.next = gone.next;
        if gone.next != NIL {
            self[gone.next].previous = node;
        }
        self.vacant.push(gone_id);
    }

    /// Drops a range of one block.
    pub(super) fn drop_range(&mut self, node: NodeId) {
        debug_assert!(self[node].previous == NIL && self[node].next == NIL);
        self.vacant.push(node);
    }

    #[inline]
    fn add(&mut self, node: Node) -> NodeId {
        match self.vacant.pop() {
            Some(id) => {
                self[id] = node;
                id
            }
            None => {
                let id = NodeId::try_from(self.nodes.len()).expect("below 2^32 blocks");
                self.nodes.push(node);
                id
            }
        }
    }
}

impl std::ops::Index<NodeId> for Tiling {
    type Output = Node;
    #[inline]
    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

impl std::ops::IndexMut<NodeId> for Tiling {
    #[inline]
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }
}
