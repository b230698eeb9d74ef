//! The calling thread's stack of contexts.
//!
//! Plain cells in a fixed place: destructors of other thread-locals may call the driver when one
//! with a destructor of its own would be gone.

use std::cell::Cell;

use crate::abi::{Handle, Status};

/// How deep a thread's stack can be. Programs push one or two.
const DEPTH: usize = 64;

struct Stack {
    depth: Cell<usize>,
    contexts: [Cell<Handle>; DEPTH],
}

thread_local! {
    static STACK: Stack = const {
        Stack { depth: Cell::new(0), contexts: [const { Cell::new(0) }; DEPTH] }
    };
}

/// The context that is current.
pub(super) fn top() -> Option<Handle> {
    STACK.with(|stack| {
        let depth = stack.depth.get();
        (depth > 0).then(|| stack.contexts[depth - 1].get())
    })
}

/// # Errors
/// `OUT_OF_MEMORY` if the stack is full.
pub(super) fn push(context: Handle) -> Result<(), Status> {
    STACK.with(|stack| {
        let depth = stack.depth.get();
        let place = stack.contexts.get(depth).ok_or(Status::OUT_OF_MEMORY)?;
        place.set(context);
        stack.depth.set(depth + 1);
        Ok(())
    })
}

pub(super) fn pop() -> Option<Handle> {
    let top = top();
    if top.is_some() {
        STACK.with(|stack| stack.depth.set(stack.depth.get() - 1));
    }
    top
}

/// Puts a context in the place of the current one, or on an empty stack.
pub(super) fn replace(context: Handle) -> Result<(), Status> {
    pop();
    push(context)
}

/// Leaves the thread without a context.
#[cfg(test)]
pub(in crate::sim_driver) fn forget_all() {
    while pop().is_some() {}
}
