//! The harness as its users meet it: real programs, real cargo.
fn main() {}
