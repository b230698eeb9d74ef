//! A graph: nodes, and what each comes after.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use super::exec::Exec;
use super::memory::Span;
use super::user_objects::References;
use super::{Block, GRAPHS, NODES, Operation, destroy, graph};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::Answer;
use crate::sim_driver::objects::lock;

/// A node of a graph.
#[derive(Debug)]
pub(super) struct Node {
    /// Nodes that it comes after, in the order in which they were named.
    pub(super) before: Vec<Handle>,
    pub(super) operation: Operation,
}

/// A graph.
#[derive(Debug, Default)]
pub(in crate::sim_driver) struct Graph {
    /// By handle: in the order in which they were added.
    pub(super) nodes: BTreeMap<Handle, Node>,
    /// Whether it belongs to a node of another graph.
    pub(super) is_child: bool,
    /// In a clone: its node for each of the original's.
    pub(super) clones: FxHashMap<Handle, Handle>,
    /// What it was made executable as, if it has memory: only one at a time may be.
    pub(super) executable: Weak<Exec>,
    pub(super) references: References,
    /// Where the memory of its nodes lies.
    pub(super) spans: Vec<Arc<Span>>,
}

/// What is left of a graph that is gone.
pub(super) struct Parts {
    operations: Vec<Operation>,
    references: References,
    /// They go with the last of it, with nothing locked.
    _spans: Vec<Arc<Span>>,
}

impl Parts {
    /// Ends them, with nothing locked.
    pub(super) fn end(self) -> Answer {
        for operation in &self.operations {
            if let Operation::Child(child) = operation {
                destroy(*child)?;
            }
        }
        self.references.release_all();
        Ok(())
    }
}

impl Graph {
    /// Adds a node behind others.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a node of another graph or the same one twice.
    pub(super) fn add(&mut self, node: Handle, before: &[Handle], operation: Operation) -> Answer {
        let distinct: FxHashSet<Handle> = before.iter().copied().collect();
        let known = before.iter().all(|node| self.nodes.contains_key(node));
        if distinct.len() < before.len() || !known {
            return Err(Status::INVALID_VALUE);
        }
        let before = before.to_vec();
        self.nodes.insert(node, Node { before, operation });
        Ok(())
    }

    pub(super) fn operation(&mut self, node: Handle) -> Result<&mut Operation, Status> {
        let node = self.nodes.get_mut(&node).ok_or(Status::INVALID_VALUE)?;
        Ok(&mut node.operation)
    }

    /// Whether all these are its nodes.
    pub(in crate::sim_driver) fn has_all(&self, nodes: &[Handle]) -> bool {
        nodes.iter().all(|node| self.nodes.contains_key(node))
    }

    /// Whether nodes allocate or free memory.
    pub(super) fn has_memory(&self) -> bool {
        self.nodes.values().any(|node| node.operation.is_memory())
    }

    /// Takes a node out, with what it does.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` in a graph with memory.
    pub(super) fn remove(&mut self, node: Handle) -> Result<Operation, Status> {
        if self.has_memory() {
            return Err(Status::NOT_SUPPORTED);
        }
        let gone = self.nodes.remove(&node).ok_or(Status::INVALID_VALUE)?;
        for other in self.nodes.values_mut() {
            other.before.retain(|before| *before != node);
        }
        Ok(gone.operation)
    }

    /// What comes after what: pairs of nodes.
    pub(super) fn edges(&self) -> Vec<(Handle, Handle)> {
        let edges = self
            .nodes
            .iter()
            .flat_map(|(node, entry)| entry.before.iter().map(|before| (*before, *node)));
        edges.collect()
    }

    /// Adds or removes edges, all or none.
    ///
    /// # Errors
    /// `INVALID_VALUE` for unknown nodes, an edge that is there already or none that is to go;
    /// `NOT_SUPPORTED` for removing some in a graph with memory.
    pub(super) fn change_edges(&mut self, edges: &[(Handle, Handle)], add: bool) -> Answer {
        if !add && self.has_memory() {
            return Err(Status::NOT_SUPPORTED);
        }
        let mut distinct = FxHashSet::default();
        for (before, node) in edges {
            let entry = self.nodes.get(node).ok_or(Status::INVALID_VALUE)?;
            let sound = self.nodes.contains_key(before)
                && before != node
                && entry.before.contains(before) != add
                && distinct.insert((before, node));
            if !sound {
                return Err(Status::INVALID_VALUE);
            }
        }
        for (before, node) in edges {
            if let Some(entry) = self.nodes.get_mut(node) {
                if add {
                    entry.before.push(*before);
                } else {
                    entry.before.retain(|other| other != before);
                }
            }
        }
        Ok(())
    }

    /// The nodes, each behind what it comes after; else by age.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is a cycle.
    pub(super) fn in_order(&self) -> Result<Vec<Handle>, Status> {
        let mut missing: FxHashMap<Handle, usize> = FxHashMap::default();
        let mut after: FxHashMap<Handle, Vec<Handle>> = FxHashMap::default();
        let mut ready = BTreeSet::new();
        for (node, entry) in &self.nodes {
            missing.insert(*node, entry.before.len());
            if entry.before.is_empty() {
                ready.insert(*node);
            }
            for before in &entry.before {
                after.entry(*before).or_default().push(*node);
            }
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for next in after.remove(&node).unwrap_or_default() {
                let left = missing.entry(next).or_default();
                *left -= 1;
                if *left == 0 {
                    ready.insert(next);
                }
            }
        }
        if order.len() == self.nodes.len() {
            Ok(order)
        } else {
            Err(Status::INVALID_VALUE)
        }
    }

    /// These nodes and all that they come after.
    pub(in crate::sim_driver) fn with_ancestors(&self, nodes: &[Handle]) -> FxHashSet<Handle> {
        let mut found: FxHashSet<Handle> = nodes.iter().copied().collect();
        let mut open: VecDeque<Handle> = nodes.iter().copied().collect();
        while let Some(node) = open.pop_front() {
            let before = self.nodes.get(&node).map(|entry| entry.before.as_slice());
            for before in before.unwrap_or_default() {
                if found.insert(*before) {
                    open.push_back(*before);
                }
            }
        }
        found
    }

    /// Memory that an allocation behind these nodes may use again: freed before them, not taken
    /// again since, large enough. The smallest such.
    pub(super) fn reusable(
        &self,
        before: &[Handle],
        ordinal: usize,
        bytes: u64,
    ) -> Option<Arc<Block>> {
        let earlier = self.with_ancestors(before);
        let mut free: BTreeMap<u64, Arc<Block>> = BTreeMap::new();
        let blocks = |address: u64| {
            self.nodes
                .values()
                .find_map(|entry| match &entry.operation {
                    Operation::Allocate(block, _) if block.address() == address => {
                        Some(block.clone())
                    }
                    _ => None,
                })
        };
        for node in self.nodes.keys() {
            match &self.nodes[node].operation {
                Operation::Free(address) if earlier.contains(node) => {
                    if let Some(block) = blocks(*address) {
                        free.insert(*address, block);
                    }
                }
                // Wherever it is in the graph: it may run at the same time.
                Operation::Allocate(block, _) => {
                    free.remove(&block.address());
                }
                _ => {}
            }
        }
        free.into_values()
            .filter(|block| block.ordinal() == ordinal && block.bytes() >= bytes)
            .min_by_key(|block| (block.bytes(), block.address()))
    }

    /// Leaves nothing: the operations, and what of the program's it refers to.
    pub(super) fn take_apart(&mut self) -> Parts {
        let nodes = std::mem::take(&mut self.nodes);
        for node in nodes.keys() {
            NODES.remove(*node);
        }
        Parts {
            operations: nodes.into_values().map(|node| node.operation).collect(),
            references: std::mem::take(&mut self.references),
            _spans: std::mem::take(&mut self.spans),
        }
    }

    /// A graph like another one, as a node has it: a clone's handle. An unknown one is empty.
    pub(super) fn duplicate(original: Handle) -> Handle {
        let clone = super::create();
        if let (Ok(original), Ok(clone_graph)) = (graph(original), graph(clone)) {
            let copied: Vec<(Handle, Vec<Handle>, Operation)> = {
                let original = lock(&original);
                let copy = |(handle, node): (&Handle, &Node)| {
                    (*handle, node.before.clone(), node.operation.duplicate())
                };
                original.nodes.iter().map(copy).collect()
            };
            let mut clones = FxHashMap::default();
            for (handle, ..) in &copied {
                clones.insert(*handle, NODES.add(clone));
            }
            let mut target = lock(&clone_graph);
            for (handle, before, operation) in copied {
                let before = before.iter().map(|node| clones[node]).collect();
                target
                    .nodes
                    .insert(clones[&handle], Node { before, operation });
            }
            target.clones = clones;
        }
        clone
    }

    /// Makes a graph one of a node.
    pub(super) fn adopt(child: Handle) {
        if let Some(child) = GRAPHS.get(child) {
            lock(&child).is_child = true;
        }
    }
}
