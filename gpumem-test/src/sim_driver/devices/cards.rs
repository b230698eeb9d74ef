//! What tells one simulated card from another, beside its memory.

use crate::device::sim::DeviceProfile;

/// A card. Sizes are bytes, clocks kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim_driver) struct Card {
    pub(in crate::sim_driver) name: &'static str,
    /// Major and minor.
    pub(in crate::sim_driver) capability: (i32, i32),
    pub(in crate::sim_driver) multiprocessors: i32,
    pub(super) threads_per_multiprocessor: i32,
    pub(super) blocks_per_multiprocessor: i32,
    pub(super) shared_per_multiprocessor: i32,
    /// What one block can have of it when it asks.
    pub(in crate::sim_driver) shared_per_block: i32,
    pub(super) clock: i32,
    pub(super) memory_clock: i32,
    /// Bits.
    pub(super) bus_width: i32,
    pub(super) l2_cache: i32,
    /// Whether it has NVLink, error correction and the rest of a data-centre card.
    pub(super) is_data_centre: bool,
}

const KIB: i32 = 1 << 10;
const MIB: i32 = 1 << 20;

/// The card that stands for sizes and for names that are not here.
///
/// Source: what driver 580.159 answers on one.
const H200: Card = Card {
    name: "h200",
    capability: (9, 0),
    multiprocessors: 132,
    threads_per_multiprocessor: 2048,
    blocks_per_multiprocessor: 32,
    shared_per_multiprocessor: 228 * KIB,
    shared_per_block: 227 * KIB,
    clock: 1_980_000,
    memory_clock: 3_201_000,
    bus_width: 6016,
    l2_cache: 60 * MIB,
    is_data_centre: true,
};

/// Source: as for the H200: the programming guide's table of capabilities, the data sheets.
const CARDS: [Card; 12] = [
    Card {
        name: "t4",
        capability: (7, 5),
        multiprocessors: 40,
        threads_per_multiprocessor: 1024,
        blocks_per_multiprocessor: 16,
        shared_per_multiprocessor: 64 * KIB,
        shared_per_block: 64 * KIB,
        clock: 1_590_000,
        memory_clock: 5_001_000,
        bus_width: 256,
        l2_cache: 4 * MIB,
        ..H200
    },
    Card {
        name: "l4",
        multiprocessors: 58,
        clock: 2_040_000,
        memory_clock: 6_251_000,
        bus_width: 192,
        l2_cache: 48 * MIB,
        ..ADA
    },
    Card {
        name: "l40s",
        multiprocessors: 142,
        clock: 2_520_000,
        memory_clock: 9_001_000,
        bus_width: 384,
        l2_cache: 96 * MIB,
        ..ADA
    },
    Card {
        name: "a10",
        multiprocessors: 72,
        clock: 1_695_000,
        memory_clock: 6_251_000,
        bus_width: 384,
        l2_cache: 6 * MIB,
        is_data_centre: true,
        ..AMPERE
    },
    Card {
        name: "rtx3090",
        multiprocessors: 82,
        clock: 1_695_000,
        memory_clock: 9_751_000,
        bus_width: 384,
        l2_cache: 6 * MIB,
        ..AMPERE
    },
    Card {
        name: "rtx4090",
        multiprocessors: 128,
        clock: 2_520_000,
        memory_clock: 10_501_000,
        bus_width: 384,
        l2_cache: 72 * MIB,
        is_data_centre: false,
        ..ADA
    },
    Card {
        name: "rtx5090",
        capability: (12, 0),
        multiprocessors: 170,
        clock: 2_407_000,
        memory_clock: 14_001_000,
        bus_width: 512,
        l2_cache: 96 * MIB,
        is_data_centre: false,
        ..ADA
    },
    Card {
        name: "a100-40",
        memory_clock: 1_215_000,
        ..A100
    },
    A100,
    Card {
        name: "h100",
        memory_clock: 2_619_000,
        bus_width: 5120,
        l2_cache: 50 * MIB,
        ..H200
    },
    H200,
    Card {
        name: "b200",
        capability: (10, 0),
        multiprocessors: 148,
        clock: 1_965_000,
        memory_clock: 3_996_000,
        bus_width: 8192,
        l2_cache: 126 * MIB,
        ..H200
    },
];

/// Of capability 8.9.
const ADA: Card = Card {
    name: "",
    capability: (8, 9),
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 24,
    shared_per_multiprocessor: 100 * KIB,
    shared_per_block: 99 * KIB,
    ..H200
};

/// Of capability 8.6.
const AMPERE: Card = Card {
    capability: (8, 6),
    blocks_per_multiprocessor: 16,
    is_data_centre: false,
    ..ADA
};

const A100: Card = Card {
    name: "a100-80",
    capability: (8, 0),
    multiprocessors: 108,
    shared_per_multiprocessor: 164 * KIB,
    shared_per_block: 163 * KIB,
    clock: 1_410_000,
    memory_clock: 1_593_000,
    bus_width: 5120,
    l2_cache: 40 * MIB,
    ..H200
};

/// The card of a profile; a size, and a file with a card that nobody knows, stand for an H200 with
/// that much memory and the profile's compute capability.
pub(in crate::sim_driver) fn card_of(profile: &DeviceProfile) -> Card {
    let known = profile.known_card();
    let found = CARDS.iter().find(|card| Some(card.name) == known);
    let (major, minor) = profile.compute_capability;
    Card {
        capability: (major as i32, minor as i32),
        ..*found.unwrap_or(&H200)
    }
}

/// How many threads a device can run at once.
pub(in crate::sim_driver) fn resident_threads(profile: &DeviceProfile) -> u64 {
    let card = card_of(profile);
    u64::from((card.multiprocessors * card.threads_per_multiprocessor).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::CARDS;
    use crate::device::sim::DeviceProfile;

    #[test]
    fn every_profile_has_its_card() {
        let names: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
        let profiles: Vec<&str> = DeviceProfile::names().collect();
        assert_eq!(names, profiles);
        for name in names {
            let profile = DeviceProfile::by_name(name).unwrap();
            let card = CARDS.iter().find(|card| card.name == name).unwrap();
            let (major, minor) = card.capability;
            assert_eq!(
                profile.compute_capability,
                (major as u32, minor as u32),
                "{name}"
            );
        }
    }
}
