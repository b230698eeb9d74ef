//! The one error of the crate.

use std::fmt;

use crate::event::{EventKind, OomClass, Origin};
use crate::ids::{DeviceId, StreamId};

/// What went wrong, on what, with the numbers.
///
/// [`Display`](fmt::Display) is one lower-case sentence; [`Debug`](fmt::Debug) adds the causes and
/// the help, so that a test that returns the error shows all of it.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// What the driver would return for it (`CUresult`), where it is the driver's.
    code: Option<i32>,
}

enum ErrorKind {
    OutOfMemory(OutOfMemory),
    Configuration,
    Misuse,
    Device,
    #[allow(dead_code)] // see `Error::unavailable`
    Unavailable,
    Recording,
    Io,
}

/// The facts of an out-of-memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// The device.
    pub device: DeviceId,
    /// The stream of the request.
    pub stream: StreamId,
    /// What the code asked for.
    pub requested: u64,
    /// The same after the policy's rounding.
    pub rounded: u64,
    /// What the policy asked the device for.
    pub segment: u64,
    /// Why it failed.
    pub class: OomClass,
    /// The most that the policy may hold, if it has a limit.
    pub limit: Option<u64>,
    /// Bytes that the code held.
    pub allocated: u64,
    /// Bytes that the policy held.
    pub reserved: u64,
    /// Bytes free on the device, as the code sees it.
    pub device_free: u64,
    /// All bytes of the device, as the code sees it.
    pub device_total: u64,
    /// The largest free block that this request could have used.
    pub largest_free: u64,
    /// Bytes that other processes held of the device, where that is known.
    pub held_by_others: Option<u64>,
}

impl OutOfMemory {
    /// What the ledger keeps of it; `origin` is the call that asked.
    pub(crate) fn event(&self, origin: Origin) -> EventKind {
        EventKind::OutOfMemory {
            requested: self.requested,
            rounded: self.rounded,
            stream: self.stream,
            origin,
            class: self.class,
            device_free: self.device_free,
            largest_free: self.largest_free,
            held_by_others: self.held_by_others,
        }
    }
}

impl Error {
    /// An out-of-memory with the sentence that the policy's original would print.
    pub(crate) fn out_of_memory(facts: OutOfMemory, message: String) -> Self {
        Self::build(ErrorKind::OutOfMemory(facts), message)
    }

    /// A setting that cannot be used: a string that does not parse, a value out of range.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::build(ErrorKind::Configuration, message.into())
    }

    /// A call that the caller should not have made: a double free, a foreign buffer.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::build(ErrorKind::Misuse, message.into())
    }

    /// A refusal of the device that is no out-of-memory.
    pub(crate) fn device(message: impl Into<String>) -> Self {
        Self::build(ErrorKind::Device, message.into())
    }

    /// What this machine has not, so that a test cannot be run on it; no fault of the test.
    // Nothing says it yet: the supervisor knows before whether there is a GPU.
    #[allow(dead_code)]
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::build(ErrorKind::Unavailable, message.into())
    }

    /// A file that is not what it should be.
    pub(crate) fn recording(message: impl Into<String>) -> Self {
        Self::build(ErrorKind::Recording, message.into())
    }

    /// A file that could not be read or written.
    pub(crate) fn io(message: impl Into<String>, source: std::io::Error) -> Self {
        Self::build(ErrorKind::Io, message.into()).caused_by(source)
    }

    fn build(kind: ErrorKind, message: String) -> Self {
        Self(Box::new(Inner {
            kind,
            message,
            help: None,
            source: None,
            code: None,
        }))
    }

    /// Adds what the reader can do about it.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Adds what the driver would return for it.
    pub(crate) fn with_code(mut self, code: i32) -> Self {
        self.0.code = Some(code);
        self
    }

    /// What the driver would return for it (`CUresult`), where it is the driver's.
    pub(crate) fn driver_code(&self) -> Option<i32> {
        self.0.code
    }

    /// Adds the cause.
    pub(crate) fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Whether memory ran out, the budget's refusals included.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.0.kind, ErrorKind::OutOfMemory(_))
    }

    /// The facts, if memory ran out.
    pub fn as_out_of_memory(&self) -> Option<&OutOfMemory> {
        match &self.0.kind {
            ErrorKind::OutOfMemory(facts) => Some(facts),
            _ => None,
        }
    }

    /// Whether a setting could not be used.
    pub fn is_configuration(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Configuration)
    }

    /// Whether the caller made a call it should not have made (a double free, say).
    pub fn is_misuse(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Misuse)
    }

    /// Whether the device refused for another reason than memory.
    pub fn is_device(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Device)
    }

    /// Whether this machine lacks what the test needs.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable)
    }

    /// Whether a recording could not be understood.
    pub fn is_recording(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Recording)
    }

    /// Whether a file could not be read or written.
    pub fn is_io(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Io)
    }

    /// What the reader can do about it, where there is something to say.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        match &self.0.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
