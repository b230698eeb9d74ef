//! Recorded requests, to be run again: read from PyTorch's snapshots, from lists of operations, or
//! made by hand.

mod pickle;
