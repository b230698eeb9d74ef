//! Attributes of devices, those of CUDA 13.0.

use std::ffi::c_int;

use super::cards::{Card, card_of};
use super::identity::place_on_bus;
use crate::abi::{Ordinal, Status};
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::put;
use crate::sim_driver::{Host, host};

/// What attributes depend on.
#[derive(Clone, Copy)]
struct Of {
    card: Card,
    ordinal: usize,
}

/// An attribute by its number.
///
/// Source: an H200's are measured (driver 580.159; `tests/traces/facts/h200.txt`). Of other cards:
/// the programming guide's table of limits by capability, the vendor's data sheets; what these do
/// not say is assumed to be an H200's.
fn value(of: Of, attribute: c_int) -> Option<c_int> {
    let Of { card, ordinal } = of;
    let (major, minor) = card.capability;
    let since = |version: i32| c_int::from(major >= version);
    let data_centre = c_int::from(card.is_data_centre);
    let if_so = |so: bool, value: c_int| if so { value } else { 0 };
    Some(match attribute {
        // Blocks, grids, shared memory, constants, warps, pitch, registers.
        1..=3 => 1024,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 65_535,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        11 => c_int::MAX,
        12 => 64 << 10,
        13 => card.clock,
        14 => 512,
        15 => 1,
        16 => card.multiprocessors,
        // No time limit, not integrated, maps host memory, default compute mode.
        17 | 18 => 0,
        19 => 1,
        20 => 0,
        21..=74 | 77 => return textures_and_bus(of, attribute),
        75 => major,
        76 => minor,
        // Stream priorities, caches.
        78..=80 => 1,
        81 => card.shared_per_multiprocessor,
        82 => 64 << 10,
        83 => 1,
        84 => 0,
        85 => ordinal as c_int,
        86 => 0,
        87 => double_ratio(card),
        // Pageable memory is not reached; managed memory is, by host and devices at once.
        88 => 0,
        89..=98 => match attribute {
            92..=94 | 98 => 0,
            97 => card.shared_per_block,
            _ => 1,
        },
        99 => 1,
        100 | 101 => 0,
        // Virtual memory, file descriptors; the handles of another operating system.
        102 | 103 => 1,
        104 | 105 => 0,
        106 => card.blocks_per_multiprocessor,
        107 => since(8),
        108 => if_so(major >= 8, persisting_l2(card)),
        109 => if_so(major >= 8, 128 << 20),
        110 => data_centre,
        111 => if_so(major >= 8, 1 << 10),
        112..=115 => 1,
        116 => data_centre,
        117 => data_centre,
        118 => if_so(card.is_data_centre, 100),
        // File descriptors, and handles of a fabric since Hopper.
        119 => 1 + if_so(major >= 9, 8),
        120 => since(9),
        121..=123 => 1,
        124 => data_centre,
        125 => 1,
        126 => 1 + if_so(major >= 9, 3),
        127 => since(9),
        128 | 129 => since(9),
        130 => 0,
        131 => -1,
        // Multicast needs a switch.
        132 | 133 => 0,
        134 => 0,
        135 | 138 => 0,
        // Decompression by the hardware.
        136 => if_so((major, minor) == (10, 0), 7),
        137 => if_so((major, minor) == (10, 0), 4 << 20),
        // The card's numbers at the vendor; of other cards they are not made up.
        139 => if_so(card.name == "h200", 0x2335_10de),
        140 => if_so(card.name == "h200", 0x18bf_10de),
        141 | 142 => 1,
        143 => 0,
        144 | 145 => 1,
        146 | 147 => 0,
        _ => return None,
    })
}

/// What of the second-level cache can be set aside for memory that is used again, in bytes.
///
/// Source: 39 321 600 of an H200's 62 914 560; assumed to be that part of other cards'.
pub(in crate::sim_driver) fn persisting_l2(card: Card) -> c_int {
    card.l2_cache / 8 * 5
}

/// How many times as fast single precision is as double precision.
fn double_ratio(card: Card) -> c_int {
    match card.capability {
        (7, 5) => 32,
        (8, 6 | 9) | (12, _) => 64,
        _ => 2,
    }
}

/// Textures, surfaces, the bus and the memory's clock.
fn textures_and_bus(of: Of, attribute: c_int) -> Option<c_int> {
    let card = of.card;
    Some(match attribute {
        21 | 22 => 131_072,
        23 => 65_536,
        24..=26 => 16_384,
        27 | 28 => 32_768,
        29 => 2048,
        30 => 512,
        31 => 1,
        32 => card.is_data_centre.into(),
        33 => place_on_bus(of.ordinal).0,
        34 => place_on_bus(of.ordinal).1,
        35 => 0,
        36 => card.memory_clock,
        37 => card.bus_width,
        38 => card.l2_cache,
        39 => card.threads_per_multiprocessor,
        40 => {
            if card.is_data_centre {
                3
            } else {
                2
            }
        }
        41 => 1,
        42 => 32_768,
        43 => 2048,
        44 => 1,
        45 | 46 => 32_768,
        47 | 48 => 8192,
        49 => 32_768,
        50 => 0,
        51 => 32,
        52 | 53 => 32_768,
        54 => 2046,
        55 => 32_768,
        56 => 131_072,
        57 => 65_536,
        58..=60 => 16_384,
        61 => 32_768,
        62 => 2048,
        63 | 64 => 32_768,
        65 => 2048,
        66 | 67 => 32_768,
        68 => 2046,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65_000,
        72 => 2_097_120,
        73 | 74 => 32_768,
        77 => 32_768,
        _ => return None,
    })
}

/// An attribute of a device by its number.
pub(in crate::sim_driver) fn attribute(
    host: &Host,
    ordinal: usize,
    number: c_int,
) -> Option<c_int> {
    let card = host.device(ordinal, |device| card_of(device.profile()));
    value(Of { card, ordinal }, number)
}

driver_functions! {
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        put(value, self::attribute(host, ordinal, attribute).ok_or(Status::INVALID_VALUE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{Of, value};
    use crate::device::sim::DeviceProfile;
    use crate::sim_driver::devices::cards::card_of;

    #[test]
    fn every_attribute_of_every_card_has_a_value() {
        for name in DeviceProfile::names() {
            let card = card_of(&DeviceProfile::by_name(name).unwrap());
            let of = Of { card, ordinal: 0 };
            for attribute in 1..=147 {
                assert!(
                    value(of, attribute).is_some(),
                    "{name}, attribute {attribute}"
                );
            }
            assert_eq!(value(of, 0), None);
            assert_eq!(value(of, 148), None);
        }
    }
}
