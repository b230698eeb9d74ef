//! The C library's functions, and a safe ring over them.

#![allow(unsafe_code)] // C functions.

use std::ffi::c_int;
use std::ptr::NonNull;

/// The library's `frame_ring`, which only C looks into.
#[repr(C)]
struct FrameRing {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn ring_open(ring: *mut *mut FrameRing, frame_bytes: usize, capacity: usize) -> c_int;
    fn ring_push(ring: *mut FrameRing, frame: *const u8) -> c_int;
    fn ring_frames(ring: *const FrameRing) -> usize;
    fn ring_latest(ring: *mut FrameRing, count: usize, frames: *mut u8) -> c_int;
    fn ring_grow(ring: *mut FrameRing, capacity: usize) -> c_int;
    fn ring_close(ring: *mut FrameRing) -> c_int;
}

/// A driver's code that is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

impl Code {
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub const OUT_OF_MEMORY: Self = Self(2);

    fn check(code: c_int) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            code => Err(Self(code)),
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the driver answers {}", self.0)
    }
}

impl std::error::Error for Code {}

/// The C library's ring.
pub struct Ring {
    ring: NonNull<FrameRing>,
    frame_bytes: usize,
}

impl Ring {
    /// A ring for `capacity` frames of `frame_bytes` each.
    ///
    /// # Errors
    /// The driver's code.
    pub fn open(frame_bytes: usize, capacity: usize) -> Result<Self, Code> {
        let mut ring = std::ptr::null_mut();
        // SAFETY: the pointer is to a place for the ring.
        Code::check(unsafe { ring_open(&raw mut ring, frame_bytes, capacity) })?;
        let ring = NonNull::new(ring).expect("an opened ring is somewhere");
        Ok(Self { ring, frame_bytes })
    }

    /// Copies a frame into the ring.
    ///
    /// # Errors
    /// The driver's code.
    ///
    /// # Panics
    /// If the frame has another size than the ring's.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), Code> {
        assert_eq!(frame.len(), self.frame_bytes, "a frame of the ring's size");
        // SAFETY: the ring is open, and the library reads one frame.
        Code::check(unsafe { ring_push(self.ring.as_ptr(), frame.as_ptr()) })
    }

    /// How many frames the ring holds.
    pub fn frames(&self) -> usize {
        // SAFETY: the ring is open.
        unsafe { ring_frames(self.ring.as_ptr()) }
    }

    /// The latest `count` frames, oldest first, one behind the other.
    ///
    /// # Errors
    /// The driver's code: out of memory for a copy of them on the card, or 1 if there are fewer.
    pub fn latest(&mut self, count: usize) -> Result<Vec<u8>, Code> {
        let mut frames = vec![0; count * self.frame_bytes];
        // SAFETY: the ring is open, and the library writes `count` frames.
        Code::check(unsafe { ring_latest(self.ring.as_ptr(), count, frames.as_mut_ptr()) })?;
        Ok(frames)
    }

    /// Makes room for `capacity` frames. The old and the new ring are on the card for a moment.
    ///
    /// # Errors
    /// The driver's code; the ring is as it was.
    pub fn grow(&mut self, capacity: usize) -> Result<(), Code> {
        // SAFETY: the ring is open.
        Code::check(unsafe { ring_grow(self.ring.as_ptr(), capacity) })
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The driver's code.
    pub fn close(self) -> Result<(), Code> {
        let ring = std::mem::ManuallyDrop::new(self);
        // SAFETY: the ring is open, and not closed again, since its `drop` does not run.
        Code::check(unsafe { ring_close(ring.ring.as_ptr()) })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the ring is open. Who wants the code calls `close`.
        unsafe { ring_close(self.ring.as_ptr()) };
    }
}
