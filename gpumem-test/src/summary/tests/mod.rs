//! Summaries of recordings made by hand.

mod beside;
mod counters;
mod course;
mod pinned;

use super::testing::{MIB, Script};
use super::{DeviceSummary, Level, Summary};
use crate::bytes::Bytes;
use crate::event::SegmentKind;

const LARGE: SegmentKind = SegmentKind::Large;
const CHUNK: u64 = 32 * MIB;

fn of(script: &Script) -> DeviceSummary {
    script.summary().devices.remove(0)
}

fn level(peak: u64, end: u64) -> Level {
    Level {
        peak: Bytes::new(peak),
        end: Bytes::new(end),
    }
}
