//! Two programs whose memory is hard on an allocator, each in its own way.
//!
//! [`training`] takes and gives back activations whose sizes change with every batch, over weights
//! that stay. [`serving`] holds the KV caches of many requests, which end in another order than they
//! came. Neither knows what serves it.

pub mod serving;
pub mod training;
