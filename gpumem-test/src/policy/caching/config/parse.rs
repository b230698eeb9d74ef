//! From tokens to settings, in the order in which the original applies them.
//!
//! The large segment size comes first, wherever it stands; then one pass over the general options,
//! in which unknown names are found; then one over the options of the device. An error leaves what
//! came before it applied.

use super::number;
use super::tokens::Tokens;
use super::values::mebibytes;
use super::{CachingConfig, ROUNDUP_INTERVALS};
use crate::error::Error;

/// Every option that the original knows, in the order of the documentation.
pub(super) const OPTIONS: [&str; 14] = [
    "large_segment_size_mb",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "expandable_segments",
    "pinned_use_background_threads",
    "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register",
    "graph_capture_record_stream_reuse",
    "per_process_memory_fraction",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "backend",
];

/// Source: torch 2.11 `CUDAAllocatorConfig.h` `pinned_max_register_threads`.
const MOST_REGISTER_THREADS: u64 = 128;

pub(super) fn update(config: &mut CachingConfig, text: &str) -> Result<Vec<String>, Error> {
    config.max_split_size = None;
    config.roundup_power2_divisions = [0; ROUNDUP_INTERVALS];
    config.garbage_collection_threshold = 0.0;

    let tokens = Tokens::new(text);
    let mut parser = Parser {
        config,
        tokens: &tokens,
        warnings: Vec::new(),
    };
    for word in &tokens.glued {
        parser.warn(format!(
            "white space inside a word is dropped: it was read as `{word}`"
        ));
    }
    parser.large_segment_size()?;
    parser.config.max_non_split_rounding = parser.config.large_segment_size;
    parser.note_repetitions();
    parser.pass(Parser::general_option)?;
    parser.pass(Parser::device_option)?;
    Ok(parser.warnings)
}

/// The state of reading one string.
pub(super) struct Parser<'a> {
    pub(super) config: &'a mut CachingConfig,
    pub(super) tokens: &'a Tokens,
    pub(super) warnings: Vec<String>,
}

impl Parser<'_> {
    /// Hands each option's place to `option`, which returns the place of its last token. What
    /// follows it is taken for a separator, whatever it is.
    fn pass(&mut self, option: fn(&mut Self, usize) -> Result<usize, Error>) -> Result<(), Error> {
        let mut place = 0;
        while place < self.tokens.len() {
            place = option(self, place)? + 1;
            if place < self.tokens.len() {
                self.separator(place, ",")?;
                place += 1;
            }
        }
        Ok(())
    }

    fn large_segment_size(&mut self) -> Result<(), Error> {
        for place in 0..self.tokens.len() {
            if self.tokens.is(place, "large_segment_size_mb") {
                let (_, number) = self.unsigned(place)?;
                if number <= 10 {
                    return Err(self.refused(
                        place,
                        "CachingAllocator option large_segment_size_mb must be > 10 MB",
                    ));
                }
                self.config.large_segment_size = mebibytes(number);
            }
        }
        Ok(())
    }

    fn general_option(&mut self, place: usize) -> Result<usize, Error> {
        match self.tokens.at(place)? {
            "max_split_size_mb" => {
                let (end, size) = self.at_least_large_segment(place)?;
                self.config.max_split_size = Some(size);
                Ok(end)
            }
            "max_non_split_rounding_mb" => {
                let (end, size) = self.at_least_large_segment(place)?;
                self.config.max_non_split_rounding = size;
                Ok(end)
            }
            "garbage_collection_threshold" => {
                let (end, threshold) = self.real(place)?;
                // Written so that `nan` is refused.
                if !(threshold > 0.0 && threshold < 1.0) {
                    return Err(self.refused(
                        place,
                        "garbage_collect_threshold is invalid, set it in (0.0, 1.0)",
                    ));
                }
                self.config.garbage_collection_threshold = threshold;
                Ok(end)
            }
            "roundup_power2_divisions" => self.roundup_power2_divisions(place),
            "expandable_segments" => {
                let (end, value) = self.boolean(place)?;
                self.config.expandable_segments = value;
                Ok(end)
            }
            "pinned_use_background_threads" => {
                let (end, _) = self.boolean(place)?;
                self.without_effect("pinned_use_background_threads");
                Ok(end)
            }
            name if OPTIONS.contains(&name) => self.skip(place),
            name => {
                let error = Error::configuration(format!(
                    "Unrecognized key '{name}' in Accelerator allocator config."
                ));
                let near = gpumem_test_syntax::did_you_mean(name, OPTIONS)
                    .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
                Err(error.with_help(format!("{near}the options are {}", OPTIONS.join(", "))))
            }
        }
    }

    fn device_option(&mut self, place: usize) -> Result<usize, Error> {
        match self.tokens.at(place)? {
            name @ ("release_lock_on_cudamalloc"
            | "pinned_use_cuda_host_register"
            | "graph_capture_record_stream_reuse") => {
                let name = name.to_owned();
                let (end, _) = self.boolean(place)?;
                self.without_effect(&name);
                Ok(end)
            }
            "per_process_memory_fraction" => {
                let (end, fraction) = self.real(place)?;
                if !(0.0..=1.0).contains(&fraction) {
                    return Err(self.refused(
                        place,
                        "per_process_memory_fraction is invalid, set it in [0.0, 1.0]",
                    ));
                }
                self.config.per_process_memory_fraction = fraction;
                Ok(end)
            }
            "pinned_num_register_threads" => {
                let (end, threads) = self.unsigned(place)?;
                if !threads.is_power_of_two() {
                    return Err(self.refused(
                        place,
                        &format!("Number of register threads has to be power of 2, got {threads}"),
                    ));
                }
                if threads > MOST_REGISTER_THREADS {
                    return Err(self.refused(
                        place,
                        &format!(
                            "Number of register threads should be less than or equal to \
                             {MOST_REGISTER_THREADS}, got {threads}"
                        ),
                    ));
                }
                self.without_effect("pinned_num_register_threads");
                Ok(end)
            }
            "pinned_reserve_segment_size_mb" => {
                let (end, size) = self.unsigned(place)?;
                if size == 0 {
                    return Err(self.refused(
                        place,
                        "Pinned reserve segment size has to be greater than 0",
                    ));
                }
                self.without_effect("pinned_reserve_segment_size_mb");
                Ok(end)
            }
            "backend" => {
                let end = self.value(place)?;
                match self.tokens.at(end)? {
                    "native" => {}
                    "cudaMallocAsync" => self.warn(
                        "`backend:cudaMallocAsync` names another allocator: \
                         this policy stays the native one"
                            .to_owned(),
                    ),
                    _ => {
                        return Err(self.refused(
                            place,
                            "Unknown allocator backend, options are native and cudaMallocAsync",
                        ));
                    }
                }
                Ok(end)
            }
            _ => self.skip(place),
        }
    }

    /// One number for all intervals, or a list of `interval:number`.
    ///
    /// Each pair of a list sets its own interval only; the first also all below, `>` all above the
    /// last one named.
    fn roundup_power2_divisions(&mut self, place: usize) -> Result<usize, Error> {
        let mut at = self.value(place)?;
        self.tokens.at(at)?;
        if !self.tokens.is(at, "[") {
            let divisions = self.number(at, number::unsigned, "stoull")?;
            if !divisions.is_power_of_two() {
                return Err(
                    self.refused(place, "For roundups, the divisions has to be power of 2 ")
                );
            }
            self.config.roundup_power2_divisions = [divisions; ROUNDUP_INTERVALS];
            return Ok(at);
        }
        let mut last_interval = 0;
        let mut is_first = true;
        loop {
            at += 1;
            if at >= self.tokens.len() {
                return Err(self.unclosed(place));
            }
            if self.tokens.is(at, "]") {
                return Ok(at);
            }
            let boundary = at;
            self.separator(at + 1, ":")?;
            at += 2;
            let divisions = self.number(at, number::unsigned, "stoull")?;
            if divisions != 0 && !divisions.is_power_of_two() {
                return Err(self.refused(
                    place,
                    "For roundups, the divisions has to be power of 2 or 0 to disable roundup ",
                ));
            }
            let intervals = &mut self.config.roundup_power2_divisions;
            if self.tokens.is(boundary, ">") {
                intervals[last_interval + 1..].fill(divisions);
            } else {
                let mebibytes = self.number(boundary, number::unsigned, "stoull")?;
                if !mebibytes.is_power_of_two() {
                    return Err(
                        self.refused(place, "For roundups, the intervals have to be power of 2 ")
                    );
                }
                let interval = (mebibytes.ilog2() as usize).min(ROUNDUP_INTERVALS - 1);
                let intervals = &mut self.config.roundup_power2_divisions;
                if is_first {
                    intervals[..interval].fill(divisions);
                    is_first = false;
                }
                intervals[interval] = divisions;
                last_interval = interval;
            }
            if self.tokens.at(at + 1)? != "]" {
                at += 1;
                self.separator(at, ",")?;
            }
        }
    }
}
