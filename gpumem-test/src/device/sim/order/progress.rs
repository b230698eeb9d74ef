//! What the GPU has finished, and what keeps it from going on.

use super::{Mark, Order, Seen, Slot};

/// A host function that was launched on a stream and blocks it until it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostFunction(u64);

/// Something in a stream that keeps the work behind it from finishing.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    /// Grows over all streams; work of the same or a higher ticket is behind it.
    ticket: u64,
    kind: ObstacleKind,
}

#[derive(Clone, Debug)]
enum ObstacleKind {
    HostFunction {
        function: HostFunction,
        seen: Seen,
        reached: bool,
        returned: bool,
    },
    /// Another stream must get past a ticket.
    Wait { slot: Slot, ticket: u64 },
    /// The test keeps the stream from going on.
    Hold,
}

impl Order {
    pub(super) fn wait_behind(&mut self, slot: Slot, before: Slot, ticket: u64) {
        if self.is_finished(before, ticket) {
            return;
        }
        let waits_already = matches!(
            self.stream(slot).obstacles.back(),
            Some(Obstacle { kind: ObstacleKind::Wait { slot: other, ticket: until }, .. })
                if *other == before && *until >= ticket
        );
        if !waits_already {
            self.obstruct(
                slot,
                ObstacleKind::Wait {
                    slot: before,
                    ticket,
                },
            );
        }
    }

    fn obstruct(&mut self, slot: Slot, kind: ObstacleKind) {
        self.ticket += 1;
        let ticket = self.ticket;
        let obstacles = &mut self.stream_mut(slot).obstacles;
        obstacles.push_back(Obstacle { ticket, kind });
        if obstacles.len() == 1 {
            self.obstructed += 1;
        }
    }

    /// Launches a host function that blocks the stream.
    pub(in crate::device::sim) fn launch(&mut self, slot: Slot) -> HostFunction {
        let function = HostFunction(self.functions);
        self.functions += 1;
        let mut mark = Mark::default();
        self.mark(slot, &mut mark);
        self.obstruct(
            slot,
            ObstacleKind::HostFunction {
                function,
                seen: mark.seen,
                reached: false,
                returned: false,
            },
        );
        self.advance();
        function
    }

    /// Lets a host function return; one that has returned already is left alone.
    pub(in crate::device::sim) fn finish(&mut self, function: HostFunction) {
        for stream in self.streams.iter_mut().flatten() {
            for obstacle in &mut stream.obstacles {
                if let ObstacleKind::HostFunction {
                    function: other,
                    returned,
                    ..
                } = &mut obstacle.kind
                {
                    *returned |= *other == function;
                }
            }
        }
        self.advance();
    }

    /// Keeps everything issued from now on from finishing, until released or waited for.
    pub(in crate::device::sim) fn hold(&mut self, slot: Slot) {
        if !self.stream(slot).held {
            self.stream_mut(slot).held = true;
            self.obstruct(slot, ObstacleKind::Hold);
        }
    }

    /// Ends [`Order::hold`].
    pub(in crate::device::sim) fn release(&mut self, slot: Slot) {
        let stream = self.stream_mut(slot);
        stream.held = false;
        let before = stream.obstacles.len();
        stream
            .obstacles
            .retain(|obstacle| !matches!(obstacle.kind, ObstacleKind::Hold));
        if before > 0 && stream.obstacles.is_empty() {
            self.obstructed -= 1;
        }
        self.advance();
    }

    /// Whether everything on a stream is finished.
    pub(in crate::device::sim) fn is_idle(&self, slot: Slot) -> bool {
        self.stream(slot).obstacles.is_empty()
    }

    /// Whether the work of a ticket on a stream is finished. A destroyed stream's is.
    #[inline]
    pub(in crate::device::sim) fn is_finished(&self, slot: Slot, ticket: u64) -> bool {
        match &self.streams[slot as usize] {
            Some(stream) => stream
                .obstacles
                .front()
                .is_none_or(|first| first.ticket > ticket),
            None => true,
        }
    }

    /// Lets time pass until the work of a ticket on a stream is finished: host functions return,
    /// waits are waited for, a hold makes way (and holds what comes later).
    pub(in crate::device::sim) fn complete(&mut self, slot: Slot, ticket: u64) {
        let mut held = false;
        while !self.is_finished(slot, ticket) {
            let Some(first) = self.stream_mut(slot).obstacles.front_mut() else {
                break;
            };
            match &mut first.kind {
                ObstacleKind::HostFunction { returned, .. } => *returned = true,
                ObstacleKind::Wait { slot, ticket } => {
                    let (slot, ticket) = (*slot, *ticket);
                    self.complete(slot, ticket);
                }
                ObstacleKind::Hold => {
                    held = true;
                    self.pop(slot);
                }
            }
            self.advance();
        }
        if held {
            self.ticket = self.ticket.max(ticket + 1);
            let hold = Obstacle {
                ticket: ticket + 1,
                kind: ObstacleKind::Hold,
            };
            let obstacles = &mut self.stream_mut(slot).obstacles;
            obstacles.push_front(hold);
            if obstacles.len() == 1 {
                self.obstructed += 1;
            }
        }
    }

    /// Takes the next host function that had its turn since the last call, and what is known to
    /// come before it.
    pub(in crate::device::sim) fn take_reached(&mut self, into: &mut Vec<(HostFunction, Seen)>) {
        into.append(&mut self.reached);
    }

    pub(in crate::device::sim) fn has_reached(&self) -> bool {
        !self.reached.is_empty()
    }

    /// Moves every stream on to its first obstacle that stands.
    fn advance(&mut self) {
        let mut moved = self.obstructed > 0;
        while moved {
            moved = false;
            for slot in 0..self.streams.len() as Slot {
                while self.pass_first(slot) {
                    moved = true;
                }
            }
        }
    }

    /// Gets past the first obstacle of a stream, if it stands no more.
    fn pass_first(&mut self, slot: Slot) -> bool {
        let Some(stream) = &mut self.streams[slot as usize] else {
            return false;
        };
        let Some(first) = stream.obstacles.front_mut() else {
            return false;
        };
        let gone = match &mut first.kind {
            ObstacleKind::Hold => false,
            ObstacleKind::HostFunction {
                function,
                seen,
                reached,
                returned,
            } => {
                if !*reached {
                    *reached = true;
                    self.reached.push((*function, std::mem::take(seen)));
                }
                *returned
            }
            ObstacleKind::Wait { slot, ticket } => {
                let (slot, ticket) = (*slot, *ticket);
                self.is_finished(slot, ticket)
            }
        };
        if gone {
            self.pop(slot);
        }
        gone
    }

    fn pop(&mut self, slot: Slot) {
        let obstacles = &mut self.stream_mut(slot).obstacles;
        obstacles.pop_front();
        if obstacles.is_empty() {
            self.obstructed -= 1;
        }
    }
}
