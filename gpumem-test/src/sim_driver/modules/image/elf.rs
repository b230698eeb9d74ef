//! Reading cubins: 64-bit ELF files whose symbols name kernels and variables.
//!
//! Source: the ELF-64 object file format; for the mark of a kernel, the flags and the names of
//! sections, what `ptxas` 12.8.93 and 13.0.88 make for `sm_90`.

use super::{Fields, Image, Kernel, Variable};

pub(super) const MAGIC: &[u8] = b"\x7fELF";

/// Bytes of the file's, a section's and a symbol's header.
pub(super) const HEADER: u64 = 64;
const SECTION: u64 = 64;
const SYMBOL: u64 = 24;

const SYMBOL_TABLE: u32 = 2;
const NO_BITS: u32 = 8;
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const GLOBAL: u8 = 1;
/// Marks a kernel in a symbol's `st_other`.
const ENTRY: u8 = 0x10;

/// The length of the file that starts with this header, as far as its tables say.
pub(super) fn table_ends(header: &[u8]) -> Option<u64> {
    let fields = Fields(header);
    let programs = fields
        .u64(0x20)?
        .checked_add(u64::from(fields.u16(0x36)?) * u64::from(fields.u16(0x38)?))?;
    let sections = fields
        .u64(0x28)?
        .checked_add(u64::from(fields.u16(0x3a)?) * u64::from(fields.u16(0x3c)?))?;
    Some(programs.max(sections).max(HEADER))
}

/// Where the content of all sections ends, of a file that has its section table.
pub(super) fn content_end(file: &[u8]) -> Option<u64> {
    let mut end = table_ends(file)?;
    for section in sections(Fields(file))? {
        if section.kind != NO_BITS {
            end = end.max(section.offset.checked_add(section.size)?);
        }
    }
    Some(end)
}

struct Section {
    name: u64,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

fn sections(fields: Fields<'_>) -> Option<Vec<Section>> {
    let table = fields.u64(0x28)?;
    let count = u64::from(fields.u16(0x3c)?);
    let read = |index: u64| {
        let at = table.checked_add(index * SECTION)?;
        fields.part(at, SECTION)?;
        Some(Section {
            name: u64::from(fields.u32(at)?),
            kind: fields.u32(at + 4)?,
            offset: fields.u64(at + 0x18)?,
            size: fields.u64(at + 0x20)?,
            link: fields.u32(at + 0x28)?,
        })
    };
    (0..count).map(read).collect()
}

pub(super) fn read(file: &[u8]) -> Option<Image> {
    let fields = Fields(file);
    let is_64_bit_little_endian = file.get(4..6)? == [2, 1];
    if !is_64_bit_little_endian {
        return None;
    }
    let sections = sections(fields)?;
    let names = sections.get(usize::from(fields.u16(0x3e)?))?;
    let section_name = |index: u16| {
        let section = sections.get(usize::from(index))?;
        fields.text(names.offset.checked_add(section.name)?)
    };
    let mut image = Image {
        architecture: architecture(file[8], fields.u32(0x30)?),
        ..Image::default()
    };
    // Functions by name, and whether they are marked as entries.
    let mut functions: Vec<(&str, bool, bool)> = Vec::new();
    for table in sections
        .iter()
        .filter(|section| section.kind == SYMBOL_TABLE)
    {
        let strings = sections.get(usize::try_from(table.link).ok()?)?.offset;
        for index in 0..table.size / SYMBOL {
            let at = table.offset.checked_add(index * SYMBOL)?;
            let name = fields.text(strings.checked_add(u64::from(fields.u32(at)?))?)?;
            let &[info, other] = fields.part(at + 4, 2)? else {
                return None;
            };
            let place = fields.u16(at + 6)?;
            if place == 0 || name.is_empty() {
                continue; // defined elsewhere
            }
            let section = section_name(place).unwrap_or_default();
            match info & 0xf {
                FUNCTION => {
                    let is_own = section.strip_prefix(".text.") == Some(name);
                    functions.push((name, other & ENTRY != 0, info >> 4 == GLOBAL && is_own));
                }
                OBJECT if section.starts_with(".nv.global") || is_constant_bank(section) => {
                    image.variables.push(Variable {
                        name: name.to_owned(),
                        bytes: fields.u64(at + 16)?,
                        managed: false,
                    });
                }
                _ => {}
            }
        }
    }
    // Where no symbol has the mark, global functions with a section of their own are the kernels.
    let marked = functions.iter().any(|(_, entry, _)| *entry);
    for (name, entry, own) in functions {
        if if marked { entry } else { own } {
            image.kernels.push(Kernel {
                name: name.to_owned(),
                ..Kernel::default()
            });
        }
    }
    Some(image)
}

/// The architecture in the file's flags: their lowest byte, and the second from version 8 of the
/// binary interface (CUDA 13) on.
fn architecture(interface: u8, flags: u32) -> Option<u32> {
    let shift = if interface >= 8 { 8 } else { 0 };
    Some(flags >> shift & 0xff)
}

/// Whether variables lie there: `.nv.constant3`, not a kernel's own `.nv.constant0.name`.
fn is_constant_bank(section: &str) -> bool {
    let bank = section.strip_prefix(".nv.constant");
    bank.is_some_and(|bank| !bank.is_empty() && bank.bytes().all(|byte| byte.is_ascii_digit()))
}
