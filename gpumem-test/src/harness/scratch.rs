//! The folder for one run's files, emptied as the tests end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::error::Error;

use super::protocol::Scratch;

/// What a supervisor that was killed left behind is removed after a day.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The scratch folder of this process, removed with it.
pub(super) struct ScratchRoot {
    folder: PathBuf,
    /// Numbers the folders: names of tests may be longer than those of files.
    next: AtomicU32,
}

impl ScratchRoot {
    /// Makes the folder under `gpumem`, or among the temporary files if that cannot be written.
    ///
    /// # Errors
    /// If neither can.
    pub(super) fn create(gpumem: &Path) -> Result<Self, Error> {
        let name = std::process::id().to_string();
        let preferred = gpumem.join("running");
        if fs::create_dir_all(preferred.join(&name)).is_ok() {
            remove_stale(&preferred);
            return Ok(Self::at(preferred.join(name)));
        }
        let fallback = std::env::temp_dir().join("gpumem").join("running");
        let folder = fallback.join(name);
        fs::create_dir_all(&folder).map_err(|error| {
            Error::io(
                format!(
                    "cannot write {} nor {}",
                    preferred.display(),
                    folder.display()
                ),
                error,
            )
        })?;
        remove_stale(&fallback);
        Ok(Self::at(folder))
    }

    fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            next: AtomicU32::new(0),
        }
    }

    /// A new folder for the files of one test, removed when dropped.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn folder(&self) -> Result<CaseFolder, Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(number.to_string());
        fs::create_dir_all(&folder)
            .map_err(|error| Error::io(format!("cannot make {}", folder.display()), error))?;
        Ok(CaseFolder(Scratch(folder)))
    }
}

impl Drop for ScratchRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of one test.
pub(super) struct CaseFolder(Scratch);

impl std::ops::Deref for CaseFolder {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.0
    }
}

impl Drop for CaseFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.0);
    }
}

fn remove_stale(parent: &Path) {
    let Ok(folders) = fs::read_dir(parent) else {
        return;
    };
    for folder in folders.flatten() {
        let age = folder
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}
