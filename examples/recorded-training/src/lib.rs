//! A GPT training with sentences of varying length, as PyTorch recorded it on an H200.
//!
//! `torch.cuda.memory._record_memory_history()` before the training and
//! `torch.cuda.memory._dump_snapshot("gpt.pickle")` after it made the file; nothing else is needed
//! to ask what the same training would have taken under another budget or allocator.

use gpumem_test::{Error, Trace};

/// The most bytes of blocks that PyTorch counted while it ran (`allocated_bytes.all.peak`).
pub const RECORDED_ALLOCATED_PEAK: u64 = 1_034_052_096;

/// How many tensors and scratch buffers the training asked for.
pub const RECORDED_REQUESTS: usize = 3_498;

/// The recorded training.
///
/// # Errors
/// The file is missing or damaged.
pub fn training() -> Result<Trace, Error> {
    Trace::open(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/gpt.pickle.gz"))
}
