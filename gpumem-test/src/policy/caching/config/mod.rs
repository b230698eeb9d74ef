//! The settings of the caching policy, and the string that sets them.
//!
//! The string is that of `PYTORCH_CUDA_ALLOC_CONF`, with the original's grammar and verdicts.
//! Where it comes from is not decided here.

mod number;
mod parse;
mod tokens;
mod values;

use crate::bytes::Bytes;
use crate::error::Error;
pub use crate::rounding::ROUNDUP_INTERVALS;

const MIB: u64 = 1 << 20;
const DEFAULT_LARGE_SEGMENT: Bytes = Bytes::mib(20);

/// The settings of a [`CachingPolicy`](crate::CachingPolicy).
///
/// ```
/// # use gpumem_test::{Bytes, CachingConfig};
/// let (config, warnings) = CachingConfig::parse("max_split_size_mb:64,expandable_segments:True")?;
/// assert_eq!(config.max_split_size, Some(Bytes::mib(64)));
/// assert!(config.expandable_segments && warnings.is_empty());
/// # Ok::<(), gpumem_test::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachingConfig {
    /// Size of a segment for medium requests, and of the pages of large expandable segments.
    pub large_segment_size: Bytes,
    /// Blocks of at least this size are not split, and serve no request below it.
    pub max_split_size: Option<Bytes>,
    /// By how much a block may exceed a request of at least `max_split_size`.
    pub max_non_split_rounding: Bytes,
    /// Share of the limit above which unused segments are collected; 0 for never.
    pub garbage_collection_threshold: f64,
    /// Per interval, into how many steps each power of two is divided when sizes are rounded;
    /// 0 and 1 for plain rounding to 512 bytes.
    pub roundup_power2_divisions: [u64; ROUNDUP_INTERVALS],
    /// Whether segments are address ranges that grow page by page.
    pub expandable_segments: bool,
    /// Share of the device's memory that the policy may hold when it starts; 1 for no limit.
    pub per_process_memory_fraction: f64,
}

impl Default for CachingConfig {
    fn default() -> Self {
        Self {
            large_segment_size: DEFAULT_LARGE_SEGMENT,
            max_split_size: None,
            max_non_split_rounding: DEFAULT_LARGE_SEGMENT,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; ROUNDUP_INTERVALS],
            expandable_segments: false,
            per_process_memory_fraction: 1.0,
        }
    }
}

impl CachingConfig {
    /// Reads a configuration string as the original does when it starts; `""` is the default.
    ///
    /// The second value lists what was accepted although it hardly says what was meant
    /// (`max_split_size_mb:64abc` is 64), and what has no effect here.
    ///
    /// # Errors
    /// A configuration error with the original's message.
    pub fn parse(text: &str) -> Result<(Self, Vec<String>), Error> {
        let mut config = Self::default();
        let warnings = config.update(text)?;
        Ok((config, warnings))
    }

    /// Reads a configuration string as the original does at run time.
    ///
    /// `max_split_size_mb`, `roundup_power2_divisions`, `garbage_collection_threshold` and
    /// `max_non_split_rounding_mb` fall back to their defaults where `text` does not name them;
    /// the others keep their value. Returns the warnings.
    ///
    /// # Errors
    /// A configuration error with the original's message. What preceded it stays applied.
    ///
    /// Source: torch 2.11 `c10/core/AllocatorConfig.cpp` `parseArgs`, and recordings.
    pub fn update(&mut self, text: &str) -> Result<Vec<String>, Error> {
        parse::update(self, text)
    }

    /// The settings as (option, value), in the order of the documentation; the values parse back.
    /// What is off says `unlimited` or `off`.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mib = |size: Bytes| (size.get() / MIB).to_string();
        vec![
            ("large_segment_size_mb", mib(self.large_segment_size)),
            (
                "max_split_size_mb",
                self.max_split_size
                    .map_or_else(|| "unlimited".to_owned(), mib),
            ),
            (
                "max_non_split_rounding_mb",
                mib(self.max_non_split_rounding),
            ),
            (
                "garbage_collection_threshold",
                match self.garbage_collection_threshold {
                    0.0 => "off".to_owned(),
                    threshold => threshold.to_string(),
                },
            ),
            (
                "roundup_power2_divisions",
                divisions_text(&self.roundup_power2_divisions),
            ),
            (
                "expandable_segments",
                if self.expandable_segments {
                    "True"
                } else {
                    "False"
                }
                .to_owned(),
            ),
            (
                "per_process_memory_fraction",
                self.per_process_memory_fraction.to_string(),
            ),
        ]
    }
}

/// The shortest list that sets all intervals: the first pair fills downwards, `>` upwards.
fn divisions_text(divisions: &[u64; ROUNDUP_INTERVALS]) -> String {
    let first = divisions[0];
    let last = divisions[ROUNDUP_INTERVALS - 1];
    let head = divisions
        .iter()
        .take_while(|&&division| division == first)
        .count();
    if head == ROUNDUP_INTERVALS {
        return if first == 0 {
            "off".to_owned()
        } else {
            first.to_string()
        };
    }
    let tail = divisions
        .iter()
        .rev()
        .take_while(|&&division| division == last)
        .count();
    let mut pairs: Vec<String> = (head - 1..ROUNDUP_INTERVALS - tail)
        .map(|interval| format!("{}:{}", 1_u64 << interval, divisions[interval]))
        .collect();
    pairs.push(format!(">:{last}"));
    format!("[{}]", pairs.join(","))
}

#[cfg(test)]
mod tests;
