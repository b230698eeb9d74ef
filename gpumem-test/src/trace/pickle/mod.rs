//! Reads a pickle of plain data, protocols 0 to 5. It never executes anything.
//!
//! Known: `None`, `bool`, `int`, `float`, `str`, `bytes`, `list`, `tuple`, `dict`, and the memo.
//! Whatever names a class or calls one is refused with its name and offset. The file is taken for
//! hostile: no recursion, containers shared by index, no length believed before its bytes are
//! there, so the memory needed is a small multiple of the input's length.
//!
//! Source: the operations as documented in CPython 3.14, `Lib/pickletools.py`.

mod error;
mod input;
mod machine;
mod memo;
mod number;
mod opcode;
#[cfg(test)]
mod tests;
mod text;
mod value;

pub(crate) use error::PickleError;
pub(crate) use value::{Arena, ContainerIndex, Value};

/// Reads the first pickle of `bytes`: its value, and the arena that holds the value's parts.
///
/// # Errors
/// Any deviation from a complete pickle of plain data, with its offset.
///
/// # Panics
/// If there are 1 GiB of `bytes` or more: places in them have 32 bits.
pub(crate) fn read(bytes: &[u8]) -> Result<(Value, Arena<'_>), PickleError> {
    assert!(bytes.len() < 1 << 30, "a pickle of {} bytes", bytes.len());
    machine::Machine::new(bytes).run()
}
