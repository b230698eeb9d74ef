//! The settings that a recorded allocator ran with.

use crate::rounding::ROUNDUP_INTERVALS;
use crate::trace::pickle::ContainerIndex;

use super::fields::{Problem, Read, Reader, count, expected, flag, lossy};
use crate::trace::pickle::Value;

/// The settings that a recorded allocator ran with. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordedSettings {
    /// The text of `PYTORCH_CUDA_ALLOC_CONF`; empty if there was none.
    pub configuration: String,
    /// Blocks of this size or more are not split; `None` if every block may be.
    pub max_split_size: Option<u64>,
    /// Whether segments were expandable.
    pub expandable_segments: bool,
    /// Into how many steps each power of two is divided when a size is rounded, for the intervals
    /// from 1, 2, 4, … 32768 MiB; 0 for no such rounding.
    pub roundup_power2_divisions: [u64; ROUNDUP_INTERVALS],
}

impl<'a> Reader<'a> {
    /// The settings; a file without them counts as recorded with the defaults.
    pub(super) fn settings(&self, root: ContainerIndex) -> Read<RecordedSettings> {
        let Some(value) = self.arena.get(root, "allocator_settings") else {
            return Ok(RecordedSettings::default());
        };
        self.dict(value)
            .and_then(|dict| self.settings_in(dict))
            .map_err(|problem| problem.under("allocator_settings"))
    }

    fn settings_in(&self, dict: ContainerIndex) -> Read<RecordedSettings> {
        let mut settings = RecordedSettings::default();
        for (key, value) in self.arena.entries(dict) {
            let Some(key) = self.arena.text(key) else {
                continue;
            };
            let named = |problem: Problem| problem.under(&lossy(key));
            match key {
                // The key has the name of the variable that the settings came from.
                b"PYTORCH_CUDA_ALLOC_CONF" | b"PYTORCH_ALLOC_CONF" => {
                    settings.configuration = lossy(self.text(value).map_err(named)?);
                }
                b"max_split_size" => {
                    settings.max_split_size = match value {
                        Value::Int(-1) => None,
                        _ => Some(count(value).map_err(named)?),
                    };
                }
                b"expandable_segments" => {
                    settings.expandable_segments = flag(value).map_err(named)?;
                }
                b"roundup_power2_divisions" => {
                    settings.roundup_power2_divisions = self.divisions(value).map_err(named)?;
                }
                _ => {}
            }
        }
        Ok(settings)
    }

    fn divisions(&self, value: Value) -> Read<[u64; 16]> {
        let dict = self.dict(value)?;
        let mut divisions = [0; 16];
        for (key, value) in self.arena.entries(dict) {
            let text = self
                .arena
                .text(key)
                .ok_or_else(|| expected("a text", key))?;
            let interval = str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<u32>().ok())
                .filter(|mebibytes| mebibytes.is_power_of_two())
                .and_then(|mebibytes| divisions.get_mut(mebibytes.trailing_zeros() as usize));
            let Some(interval) = interval else {
                let what = format!("unknown interval {:?}", lossy(text));
                return Err(Problem::new(what));
            };
            let number = count(value).map_err(|problem| problem.under(&lossy(text)))?;
            if number != 0 && !number.is_power_of_two() {
                let what = format!("expected a power of two or 0, found {number}");
                return Err(Problem::new(what).under(&lossy(text)));
            }
            *interval = number;
        }
        Ok(divisions)
    }
}
