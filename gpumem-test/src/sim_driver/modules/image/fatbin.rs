//! Reading fat binaries: a container of PTX texts and cubins, one for each architecture.
//!
//! Compressed entries are not opened: the others name the same kernels (tools compress the PTX and
//! leave cubins as they are). An image of nothing else takes every name for a kernel's, and that
//! is noted.
//!
//! Source: what `fatbinary` 13.0.88 makes with and without `--compress-mode=none`; the layout is
//! not documented by its vendor.

use super::{Fields, Image, elf, ptx};
use crate::sim_driver::notes::note;

/// The container's first bytes.
pub(super) const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// The first bytes of the wrapper that programs pass (`__fatBinC_Wrapper_t`): magic, version,
/// pointer to the container.
pub(super) const WRAPPER_MAGIC: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();

/// Bytes of the container's header, of which the last eight say how much follows.
pub(super) const HEADER: u64 = 16;

/// Bytes of an entry's header, at least.
const ENTRY_HEADER: u64 = 64;
/// Where an entry says how long it is when uncompressed; 0 for one that is not compressed.
const UNCOMPRESSED: u64 = 56;

const PTX: u16 = 1;
const CUBIN: u16 = 2;

/// The length of the container that starts with this header.
pub(super) fn length(header: &[u8]) -> Option<u64> {
    let fields = Fields(header);
    u64::from(fields.u16(6)?).checked_add(fields.u64(8)?)
}

pub(super) fn read(file: &[u8]) -> Option<Image> {
    let fields = Fields(file);
    let mut image = Image::default();
    let mut readable = false;
    let mut at = u64::from(fields.u16(6)?);
    let end = length(file)?;
    while at < end {
        let kind = fields.u16(at)?;
        let header = u64::from(fields.u32(at.checked_add(4)?)?);
        let size = fields.u64(at.checked_add(8)?)?;
        if header < ENTRY_HEADER {
            return None;
        }
        let start = at.checked_add(header)?;
        let payload = fields.part(start, size)?;
        let is_compressed = fields.u64(at.checked_add(UNCOMPRESSED)?)? != 0;
        let entry = match kind {
            _ if is_compressed => None,
            PTX => {
                let text = payload.split(|byte| *byte == 0).next().unwrap_or_default();
                Some(ptx::read(&String::from_utf8_lossy(text))?)
            }
            CUBIN => Some(elf::read(payload)?),
            _ => None, // debugging data and what later tools add
        };
        if let Some(entry) = entry {
            readable = true;
            image.join(entry);
        }
        at = start.checked_add(size)?;
    }
    if !readable {
        note("a fat binary has compressed entries only: any name is taken for one of its kernels");
        image.opaque = true;
    }
    Some(image)
}
