//! The operations of a pickle that this reader does not run.

/// Why an operation is refused, with its name in Python's `pickletools`, or `None` for a byte that
/// is no operation of protocols 0 to 5.
pub(super) fn refusal(opcode: u8) -> Option<(&'static str, Reason)> {
    use Reason::{Executes, NotPlain};
    Some(match opcode {
        b'c' => ("GLOBAL", Executes),
        0x93 => ("STACK_GLOBAL", Executes),
        b'R' => ("REDUCE", Executes),
        b'b' => ("BUILD", Executes),
        b'i' => ("INST", Executes),
        b'o' => ("OBJ", Executes),
        0x81 => ("NEWOBJ", Executes),
        0x92 => ("NEWOBJ_EX", Executes),
        b'P' => ("PERSID", Executes),
        b'Q' => ("BINPERSID", Executes),
        0x82 => ("EXT1", Executes),
        0x83 => ("EXT2", Executes),
        0x84 => ("EXT4", Executes),
        0x8f => ("EMPTY_SET", NotPlain),
        0x90 => ("ADDITEMS", NotPlain),
        0x91 => ("FROZENSET", NotPlain),
        0x97 => ("NEXT_BUFFER", NotPlain),
        0x98 => ("READONLY_BUFFER", NotPlain),
        _ => return None,
    })
}

/// Why an operation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It names or calls code: a pickle never executes anything here.
    Executes,
    /// It makes a value that no snapshot has.
    NotPlain,
}
