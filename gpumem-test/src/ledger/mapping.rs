//! A file, or anonymous memory, as a slice of atomic words.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapMut, MmapOptions};

use crate::error::Error;

/// A mapping that stays where it is until it is dropped.
pub(super) struct Mapping {
    map: MmapMut,
}

impl Mapping {
    /// `bytes` of zeros in memory.
    pub(super) fn anonymous(bytes: u64) -> Result<Self, Error> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let map = MmapOptions::new()
            .len(length)
            .map_anon()
            .map_err(|error| Error::io(format!("cannot map {bytes} B for a ledger"), error))?;
        Ok(Self { map })
    }

    /// A new file of `bytes` zeros, sparse where the file system can.
    pub(super) fn create(path: &Path, bytes: u64) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|error| io("create", path, error))?;
        file.set_len(bytes)
            .map_err(|error| io("extend", path, error))?;
        Self::of(&file, path)
    }

    /// An existing file.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| io("open", path, error))?;
        Self::of(&file, path)
    }

    fn of(file: &File, path: &Path) -> Result<Self, Error> {
        // SAFETY: the file is only ever accessed through atomic words (`words`), by us and by the
        // other process of the same test, so changes from outside are ordinary data races of
        // atomics. It is never truncated while mapped: nobody else knows its name.
        let map = unsafe { MmapMut::map_mut(file) }.map_err(|error| io("map", path, error))?;
        // PERF: most tests touch a page or two of a sparse file; the kernel would read, and make
        // pages of zeros for, as much of the hole behind them as it reads ahead. Refused, it is
        // only slower.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Self { map })
    }

    /// Makes `count` words from `first` on present, so that writing them does not fault page by
    /// page. Only a hint: refused, or on a system without it, the writes are slower.
    #[cold]
    #[inline(never)]
    pub(super) fn prepare(&self, first: usize, count: usize) {
        let word = size_of::<AtomicU64>();
        let end = ((first + count) * word).min(self.map.len());
        #[cfg(target_os = "linux")]
        if let Some(bytes) = end.checked_sub(first * word) {
            let _ = self
                .map
                .advise_range(memmap2::Advice::PopulateWrite, first * word, bytes);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = end;
    }

    /// All whole words.
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        let length = self.map.len() / size_of::<AtomicU64>();
        // SAFETY: a mapping is aligned to a page, `AtomicU64` has the size and alignment of `u64`
        // and any bits are a valid one, `length` words lie inside the mapping, and the mapping
        // lives as long as `self`. All access, here and in the other process, is atomic.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast::<AtomicU64>(), length) }
    }
}

fn io(verb: &str, path: &Path, error: std::io::Error) -> Error {
    Error::io(
        format!("cannot {verb} the ledger {}", path.display()),
        error,
    )
}
