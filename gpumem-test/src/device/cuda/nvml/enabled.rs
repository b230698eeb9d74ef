//! NVML through nvml-wrapper.

use std::ffi::OsStr;
use std::sync::OnceLock;

use nvml_wrapper::enums::device::UsedGpuMemory;

use super::CardUse;
use super::identity::{name_of, own_figure};
use crate::error::Error;

/// The library's names: the driver's installer makes the first, a development package the second.
#[cfg(windows)]
const NAMES: [&str; 1] = ["nvml.dll"];
#[cfg(not(windows))]
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// What NVML calls cards, and parts of them.
const KINDS: [&str; 2] = ["GPU", "MIG"];

/// NVML's view of one card.
#[derive(Debug)]
pub struct Nvml {
    device: nvml_wrapper::Device<'static>,
}

fn library() -> Result<&'static nvml_wrapper::Nvml, Error> {
    static LIBRARY: OnceLock<nvml_wrapper::Nvml> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let mut cause = None;
    for name in NAMES {
        match nvml_wrapper::Nvml::builder()
            .lib_path(OsStr::new(name))
            .init()
        {
            Ok(library) => return Ok(LIBRARY.get_or_init(|| library)),
            Err(error) => _ = cause.get_or_insert(error),
        }
    }
    let error = Error::device("failed to load NVML, which says what the whole device holds")
        .with_help("install `libnvidia-ml`, which comes with the driver (in a container: the driver capability `utility`)");
    Err(match cause {
        Some(cause) => error.caused_by(cause),
        None => error,
    })
}

impl Nvml {
    /// The card of that identity, as the driver says it.
    ///
    /// # Errors
    /// If NVML cannot be loaded or does not know the card.
    pub fn open(uuid: [u8; 16]) -> Result<Self, Error> {
        let library = library()?;
        let mut cause = None;
        for kind in KINDS {
            match library.device_by_uuid(name_of(kind, uuid)) {
                Ok(device) => return Ok(Self { device }),
                Err(error) => _ = cause.get_or_insert(error),
            }
        }
        let error = Error::device(format!(
            "NVML does not know the card {}",
            name_of("GPU", uuid)
        ));
        Err(match cause {
            Some(cause) => error.caused_by(cause),
            None => error,
        })
    }

    /// The driver's version, as its installer names it: `580.159.03`.
    pub fn driver_version(&self) -> Option<String> {
        library().ok()?.sys_driver_version().ok()
    }

    /// What the card says of itself.
    pub fn card(&self) -> Option<CardUse> {
        let memory = self.device.memory_info().ok()?;
        Some(CardUse {
            total: memory.total,
            used: memory.used,
            reserved: memory.reserved,
            free: memory.free,
        })
    }

    /// Bytes of this process on the card, its contexts included, where that is certain. `held` is
    /// what it is known to hold at least.
    pub fn process(&self, held: u64) -> Option<u64> {
        let listed = self.device.running_compute_processes().ok()?;
        let listed: Vec<(u32, Option<u64>)> = (listed.into_iter())
            .map(|process| match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => (process.pid, Some(bytes)),
                UsedGpuMemory::Unavailable => (process.pid, None),
            })
            .collect();
        own_figure(&listed, std::process::id(), held)
    }
}
