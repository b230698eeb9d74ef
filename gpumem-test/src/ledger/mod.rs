//! What happened: an append-only list of events that outlives a crash.
//!
//! A [`Ledger`] is a mapped file of 64-byte slots (`codec.rs` has the format). Threads append
//! without a lock: a slot is claimed by one atomic addition and written once. The process that
//! supervises a test maps the same file, so a test that aborts, is killed or calls `exit` leaves
//! everything it had recorded. The room knows no policy and no summary.

mod codec;
#[allow(unsafe_code)] // The mapping: two calls, argued there.
mod mapping;
mod recording;
mod sink;
mod site;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::event::Event;
use crate::ids::TextId;

use codec::{HEADER_WORDS, SLOT_WORDS};
use mapping::Mapping;
pub use recording::Recording;
pub use sink::LedgerSink;
pub(crate) use site::Sites;

/// Events that fit in a ledger unless the caller says otherwise: 4 194 304, in a sparse file.
pub(crate) const DEFAULT_CAPACITY: u64 = 1 << 22;

/// Slots that are made present together: 64 KiB.
const STRETCH: u64 = 1 << 10;

/// The most return addresses that are kept of a call site. Without optimisation 25 of them can be
/// ours, under the stand-in of a library.
pub(crate) const MAX_FRAMES: usize = 38;

/// Where in a ledger an event is.
#[derive(Clone, Copy, Debug)]
pub struct Slot(usize);

/// An append-only list of events and the texts they name.
pub struct Ledger {
    mapping: Mapping,
    slots: u64,
    texts: Mutex<Texts>,
}

/// The texts that are written.
#[derive(Default)]
struct Texts {
    by_text: HashMap<String, TextId>,
    /// The last id given out, to a text or to frames.
    last: u32,
}

impl Texts {
    fn next(&mut self) -> TextId {
        self.last = self.last.saturating_add(1);
        TextId(self.last)
    }
}

impl Ledger {
    /// A ledger in memory, for `slots` events; texts take slots too, one for each 64 bytes.
    ///
    /// # Errors
    /// If the memory cannot be mapped.
    pub fn in_memory(slots: u64) -> Result<Self, Error> {
        Mapping::anonymous(bytes_for(slots)).map(|mapping| Self::begin(mapping, slots))
    }

    /// Creates the file `path` (or empties it) for `slots` events.
    ///
    /// # Errors
    /// If the file cannot be made or mapped.
    pub fn create(path: &Path, slots: u64) -> Result<Self, Error> {
        Mapping::create(path, bytes_for(slots)).map(|mapping| Self::begin(mapping, slots))
    }

    /// Opens the ledger of another process to append to it.
    ///
    /// # Errors
    /// If the file is missing, or is no ledger of this version.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mapping = Mapping::open(path)?;
        let slots = codec::check_header(mapping.words(), path)?;
        Ok(Self {
            mapping,
            slots,
            texts: Mutex::default(),
        })
    }

    fn begin(mapping: Mapping, slots: u64) -> Self {
        codec::write_header(mapping.words(), slots);
        Self {
            mapping,
            slots,
            texts: Mutex::default(),
        }
    }

    /// Appends an event and says where. When the ledger is full the event is counted as lost; a
    /// summary of it says so instead of showing figures that are too low.
    #[inline]
    pub fn append(&self, event: Event) -> Option<Slot> {
        let words = codec::encode(event);
        let (slot, cells) = self.claim(1)?;
        // The first word says that the slot is written, so it comes last.
        for (cell, word) in cells[1..].iter().zip(&words[1..]) {
            cell.store(*word, Ordering::Relaxed);
        }
        cells[0].store(words[0], Ordering::Release);
        Some(slot)
    }

    /// Marks a free as complete the moment it was requested.
    #[inline]
    fn complete(&self, slot: Slot) {
        let cell = &self.mapping.words()[slot.0];
        cell.store(
            codec::completed(cell.load(Ordering::Relaxed)),
            Ordering::Release,
        );
    }

    /// The id of a text, which is written to the ledger when first seen.
    pub fn intern(&self, text: &str) -> TextId {
        let mut texts = self.texts();
        if let Some(id) = texts.by_text.get(text) {
            return *id;
        }
        let id = texts.next();
        let slots = 1 + text.len().div_ceil(SLOT_WORDS * 8) as u64;
        if let Some((_, cells)) = self.claim(slots) {
            codec::write_text(cells, id, text);
        }
        texts.by_text.insert(text.to_owned(), id);
        id
    }

    /// A new id for the call site with these frames, innermost first: a module's text and an
    /// offset in it. Frames beyond [`MAX_FRAMES`] are left out.
    pub(crate) fn intern_frames(&self, frames: &[(TextId, u64)]) -> TextId {
        let frames = &frames[..frames.len().min(MAX_FRAMES)];
        let id = self.texts().next();
        if let Some((_, cells)) = self.claim(codec::slots_of_frames(frames.len())) {
            codec::write_frames(cells, id, frames);
        }
        id
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything recorded so far.
    pub fn read(&self) -> Recording {
        codec::decode(self.mapping.words(), self.slots)
    }

    /// Claims `count` slots in a row; `None` when the ledger is full.
    #[inline]
    fn claim(&self, count: u64) -> Option<(Slot, &[AtomicU64])> {
        let words = self.mapping.words();
        let first = words[codec::NEXT].fetch_add(count, Ordering::Relaxed);
        if first + count > self.slots {
            words[codec::LOST].fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let start = HEADER_WORDS + first as usize * SLOT_WORDS;
        // PERF: a fault costs as much as fifty events, so stretches are made present as a whole.
        if first % STRETCH < count {
            self.mapping.prepare(start, STRETCH as usize * SLOT_WORDS);
        }
        Some((
            Slot(start),
            &words[start..start + count as usize * SLOT_WORDS],
        ))
    }
}

fn bytes_for(slots: u64) -> u64 {
    (HEADER_WORDS as u64 + slots * SLOT_WORDS as u64) * 8
}
