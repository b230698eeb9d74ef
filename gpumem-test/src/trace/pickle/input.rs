//! The bytes of a pickle, read in order, never past their end.

use super::PickleError;
use super::value::Span;

/// The bytes of a pickle and how far they were read.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The offset of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn byte(&mut self) -> Result<u8, PickleError> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.truncated(1))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next `length` bytes. A length that the input only claims to have is an error before
    /// anything is set aside for it.
    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], PickleError> {
        self.has(length)?;
        let rest = &self.bytes[self.at..];
        self.at += length as usize;
        Ok(&rest[..length as usize])
    }

    /// The place of the next `length` bytes, which are passed over.
    pub(super) fn span(&mut self, length: u64) -> Result<Span, PickleError> {
        let start = self.at as u32;
        self.take(length)?;
        Ok(Span {
            start,
            length: length as u32,
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.try_into().expect("as many bytes as were asked for"))
    }

    pub(super) fn u16(&mut self) -> Result<u16, PickleError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, PickleError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, PickleError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, PickleError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A float of protocol 1 and later, which is big-endian.
    pub(super) fn f64(&mut self) -> Result<f64, PickleError> {
        self.array().map(f64::from_be_bytes)
    }

    /// The rest of a line of protocol 0, without its end.
    pub(super) fn line(&mut self) -> Result<&'a [u8], PickleError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
            return Err(self.truncated(rest.len() as u64 + 1));
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Says whether `length` bytes are left, without reading them.
    pub(super) fn has(&self, length: u64) -> Result<(), PickleError> {
        if length > (self.bytes.len() - self.at) as u64 {
            return Err(self.truncated(length));
        }
        Ok(())
    }

    fn truncated(&self, wanted: u64) -> PickleError {
        PickleError::Truncated {
            at: self.at,
            wanted,
            left: self.bytes.len() - self.at,
        }
    }
}
