//! The bytes of an image of which only a pointer is known.

use std::ffi::CStr;
use std::slice;

use super::{elf, fatbin};

/// The bytes of the image at `start`.
///
/// # Safety
/// A whole image lies there: text that ends in a zero byte, an ELF file, a fat binary, or a fat
/// binary's wrapper. It stays unchanged while the result is used.
pub(super) unsafe fn bytes<'a>(start: *const u8) -> &'a [u8] {
    // SAFETY: an image of any form has four bytes: the shortest text that is taken for PTX is
    // longer, and shorter text ends in a zero byte, before which reading stops.
    let magic = unsafe { prefix(start) };
    if magic == fatbin::WRAPPER_MAGIC {
        // SAFETY: a wrapper is two numbers of four bytes and a pointer to its container.
        let container = unsafe { start.add(8).cast::<*const u8>().read_unaligned() };
        if container.is_null() {
            return &[];
        }
        // SAFETY: the caller's, for what the wrapper points at.
        return unsafe { fat_binary(container) };
    }
    if magic == fatbin::MAGIC {
        // SAFETY: the caller's.
        return unsafe { fat_binary(start) };
    }
    if magic == elf::MAGIC {
        // SAFETY: the caller's.
        return unsafe { elf_file(start) };
    }
    // SAFETY: anything else is text, which ends in a zero byte.
    unsafe { CStr::from_ptr(start.cast()) }.to_bytes()
}

/// The first four bytes, with zeros from a zero byte on.
///
/// # Safety
/// `start` points at four bytes, or fewer that end in a zero byte.
unsafe fn prefix(start: *const u8) -> [u8; 4] {
    let mut prefix = [0; 4];
    for (index, byte) in prefix.iter_mut().enumerate() {
        // SAFETY: no zero byte came before, so this byte is there.
        *byte = unsafe { start.add(index).read() };
        if *byte == 0 {
            break;
        }
    }
    prefix
}

/// # Safety
/// A fat binary lies at `start`.
unsafe fn fat_binary<'a>(start: *const u8) -> &'a [u8] {
    // SAFETY: a fat binary has its header.
    let header = unsafe { slice::from_raw_parts(start, fatbin::HEADER as usize) };
    let length = fatbin::length(header).and_then(|length| usize::try_from(length).ok());
    // SAFETY: the header says how long the whole is.
    unsafe { slice::from_raw_parts(start, length.unwrap_or(fatbin::HEADER as usize)) }
}

/// # Safety
/// An ELF file lies at `start`.
unsafe fn elf_file<'a>(start: *const u8) -> &'a [u8] {
    let whole = |length: Option<u64>| length.and_then(|length| usize::try_from(length).ok());
    // SAFETY: an ELF file has its header.
    let header = unsafe { slice::from_raw_parts(start, elf::HEADER as usize) };
    let tables = whole(elf::table_ends(header)).unwrap_or(header.len());
    // SAFETY: the header says where the tables lie, which belong to the file.
    let file = unsafe { slice::from_raw_parts(start, tables) };
    let length = whole(elf::content_end(file)).unwrap_or(tables);
    // SAFETY: the section table says where the sections lie, which belong to the file.
    unsafe { slice::from_raw_parts(start, length) }
}
