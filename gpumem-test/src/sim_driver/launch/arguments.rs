//! What a launch hands to its kernel: the words that may be addresses.
//!
//! Kernels do not run, so that nobody knows what they write. Where memory comes at the first write
//! (policy `lazy`) a kernel is taken to write all of every block whose address it was handed, also
//! inside a structure: an upper bound, but for addresses that it finds in memory. A kernel of whose
//! parameters nothing is known, such as a library's, may write everything.

use std::ffi::c_void;
use std::sync::Arc;

use crate::abi::{Handle, Status};
use crate::device::Refusal;
use crate::device::sim::SimDevice;
use crate::sim_driver::modules::kernel_function;
use crate::sim_driver::{Host, opened};

/// Bytes of an address.
const WORD: usize = size_of::<u64>();

// What the array of extra options holds: names, each but the last with a value.
const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// The arguments of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sim_driver) enum Arguments {
    /// Nothing is known of them, or nobody wants to know.
    #[default]
    Unknown,
    /// Every aligned word of each of them.
    Words(Arc<[u64]>),
}

impl Arguments {
    /// Reads the arguments of a launch, if somebody wants to know.
    ///
    /// # Safety
    /// `parameters` and `extra` are null or what C's contract of a launch of `function` says.
    pub(in crate::sim_driver) unsafe fn read(
        function: Handle,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) -> Self {
        let is_wanted = opened().is_ok_and(|host| host.devices.has_first_writes());
        let Some(function) = is_wanted.then(|| kernel_function(function).ok()).flatten() else {
            return Self::Unknown;
        };
        let known = &function.kernel.parameters;
        let mut words = Vec::new();
        if !extra.is_null() {
            // SAFETY: the caller's.
            let Some((buffer, bytes)) = (unsafe { buffer_of(extra) }) else {
                return Self::Unknown;
            };
            // SAFETY: the caller's: the buffer has so many bytes.
            unsafe { add_words(buffer, bytes, &mut words) };
        } else if !parameters.is_null() {
            if known.is_empty() {
                return Self::Unknown;
            }
            for (index, (_, bytes)) in known.iter().enumerate() {
                // SAFETY: the caller's: there is a pointer to each parameter.
                unsafe { add_words((*parameters.add(index)).cast(), *bytes, &mut words) };
            }
        }
        Self::Words(words.into())
    }

    /// Lets devices take account of what the kernel may write, where that gives memory to pages.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if there is none for them.
    pub(in crate::sim_driver) fn touch(&self, host: &Host) -> Result<(), Status> {
        if !host.devices.has_first_writes() {
            return Ok(());
        }
        let touch = |device: &mut SimDevice| -> Result<(), Refusal> {
            match self {
                Self::Unknown => device.touch_everything(),
                Self::Words(words) => device.touch_words(words),
            }
        };
        (0..host.devices.count()).try_for_each(|ordinal| Ok(host.device(ordinal, touch)?))
    }
}

/// The buffer of all arguments that extra options name.
///
/// # Safety
/// `extra` is such an array.
unsafe fn buffer_of(extra: *const *const c_void) -> Option<(*const u8, usize)> {
    let (mut buffer, mut bytes, mut place) = (None, None, extra);
    loop {
        // SAFETY: the caller's: names and values follow each other until the end.
        let name = unsafe { *place } as usize;
        if name == END {
            return buffer.zip(bytes);
        }
        // SAFETY: as above.
        let value = unsafe { *place.add(1) };
        match name {
            BUFFER_POINTER => buffer = Some(value.cast::<u8>()),
            // SAFETY: the value of this option points at a size.
            BUFFER_SIZE => bytes = Some(unsafe { value.cast::<usize>().read_unaligned() }),
            _ => return None,
        }
        // SAFETY: as above.
        place = unsafe { place.add(2) };
    }
}

/// # Safety
/// `from` is null or valid for reads of `bytes`.
unsafe fn add_words(from: *const u8, bytes: usize, words: &mut Vec<u64>) {
    if from.is_null() {
        return;
    }
    for offset in (0..bytes.saturating_sub(WORD - 1)).step_by(WORD) {
        // SAFETY: the caller's, and a whole word is left.
        let word = unsafe { from.add(offset).cast::<u64>().read_unaligned() };
        if word != 0 {
            words.push(word);
        }
    }
}
