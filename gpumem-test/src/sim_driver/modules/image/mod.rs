//! What a program image says: its kernels and its global variables.
//!
//! Three forms are read: PTX text, cubins (ELF) and fat binaries (a container of both). Machine
//! code is not looked at, and initial values of variables are not applied: device bytes of a
//! module start as zeros.

mod elf;
mod fatbin;
mod ptx;
mod raw;

use std::ffi::c_void;

use crate::abi::Status;

/// A kernel of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sim_driver) struct Kernel {
    pub(in crate::sim_driver) name: String,
    /// Offset and size of each parameter in bytes; empty where the image does not say.
    pub(in crate::sim_driver) parameters: Vec<(usize, usize)>,
    /// The largest block that it may be launched with (`.maxntid`), if it says.
    pub(in crate::sim_driver) max_threads: Option<u32>,
    /// Bytes of shared memory that it declares.
    pub(in crate::sim_driver) shared_bytes: u64,
}

/// A variable in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sim_driver) struct Variable {
    pub(in crate::sim_driver) name: String,
    pub(in crate::sim_driver) bytes: u64,
    pub(in crate::sim_driver) managed: bool,
}

/// What is known of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sim_driver) struct Image {
    /// In the order of the image, without repetition.
    pub(in crate::sim_driver) kernels: Vec<Kernel>,
    pub(in crate::sim_driver) variables: Vec<Variable>,
    /// The architecture that it is for, as in `sm_90`: 90.
    pub(in crate::sim_driver) architecture: Option<u32>,
    /// Whether parts could not be read (compressed ones): then every name is taken for a kernel.
    pub(in crate::sim_driver) opaque: bool,
    /// Kernels whose exact name the image does not say: any mangled name with this part is one.
    pub(in crate::sim_driver) mangled_parts: Vec<String>,
}

/// `CUDA_ERROR_INVALID_IMAGE`: no program that we know.
pub(in crate::sim_driver) const INVALID_IMAGE: Status = Status(200);
/// `CUDA_ERROR_INVALID_PTX`: it begins as PTX and is none.
pub(in crate::sim_driver) const INVALID_PTX: Status = Status(218);

impl Image {
    /// Reads an image whose length only its content says.
    ///
    /// # Errors
    /// `INVALID_VALUE` for null, [`INVALID_IMAGE`] and [`INVALID_PTX`].
    ///
    /// # Safety
    /// `image` is null or points at a whole image: text that ends in a zero byte, an ELF file, or
    /// a fat binary or its wrapper, as C's contract says.
    pub(in crate::sim_driver) unsafe fn from_pointer(image: *const c_void) -> Result<Self, Status> {
        if image.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        Self::parse(unsafe { raw::bytes(image.cast()) })
    }

    /// Bytes of all its variables in device memory.
    pub(in crate::sim_driver) fn variable_bytes(&self) -> u64 {
        let own = self.variables.iter().filter(|variable| !variable.managed);
        own.fold(0, |sum, variable| sum.saturating_add(variable.bytes))
    }

    /// Reads an image; text may end in a zero byte.
    pub(in crate::sim_driver) fn parse(bytes: &[u8]) -> Result<Self, Status> {
        if bytes.starts_with(elf::MAGIC) {
            return elf::read(bytes).ok_or(INVALID_IMAGE);
        }
        if bytes.starts_with(&fatbin::MAGIC) {
            return fatbin::read(bytes).ok_or(INVALID_IMAGE);
        }
        let text = match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => &bytes[..end],
            None => bytes,
        };
        // PTX is ASCII but for comments.
        let text = String::from_utf8_lossy(text);
        if !ptx::is_ptx(&text) {
            return Err(INVALID_IMAGE);
        }
        ptx::read(&text).ok_or(INVALID_PTX)
    }

    /// PTX that names the same kernels and variables.
    pub(in crate::sim_driver) fn to_ptx(&self) -> String {
        ptx::write(self)
    }

    /// The kernel of a name, as far as is known.
    pub(in crate::sim_driver) fn kernel(&self, name: &str) -> Option<Kernel> {
        if let Some(kernel) = self.kernels.iter().find(|kernel| kernel.name == name) {
            return Some(kernel.clone());
        }
        let mangled = name.starts_with("_Z")
            && self
                .mangled_parts
                .iter()
                .any(|part| name.contains(part.as_str()));
        (self.opaque || mangled).then(|| Kernel {
            name: name.to_owned(),
            ..Kernel::default()
        })
    }

    /// The variable of a name.
    pub(in crate::sim_driver) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// Adds what another image of the same program says.
    pub(in crate::sim_driver) fn join(&mut self, other: Self) {
        for kernel in other.kernels {
            if self.kernels.iter().all(|known| known.name != kernel.name) {
                self.kernels.push(kernel);
            }
        }
        for variable in other.variables {
            if self.variable(&variable.name).is_none() {
                self.variables.push(variable);
            }
        }
        self.architecture = self.architecture.max(other.architecture);
        self.opaque |= other.opaque;
        self.mangled_parts.extend(other.mangled_parts);
    }
}

/// Numbers of an image, little-endian, wherever they lie.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn part(self, offset: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        self.0.get(start..end)
    }

    fn u16(self, offset: u64) -> Option<u16> {
        Some(u16::from_le_bytes(self.part(offset, 2)?.try_into().ok()?))
    }

    fn u32(self, offset: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.part(offset, 4)?.try_into().ok()?))
    }

    fn u64(self, offset: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.part(offset, 8)?.try_into().ok()?))
    }

    fn text(self, offset: u64) -> Option<&'a str> {
        let rest = self.0.get(usize::try_from(offset).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

#[cfg(test)]
pub(in crate::sim_driver) mod tests;
