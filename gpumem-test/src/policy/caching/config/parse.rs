//! From tokens to settings, in the order in which the original applies them.
//!
//! The large segment size comes first, wherever it stands; then one pass over the general options,
//! in which unknown names are found; then one over the options of the device. An error leaves what
//! came before it applied.

use super::number::{self, Number, NumberError};
use super::tokens::Tokens;
use super::{CachingConfig, MIB, ROUNDUP_INTERVALS};
use crate::bytes::Bytes;
use crate::error::Error;

/// Every option that the original knows, in the order of the documentation.
const OPTIONS: [&str; 14] = [
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

/// The most MiB whose bytes fit in 64 bits.
const MOST_MIB: u64 = u64::MAX / MIB;

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

struct Parser<'a> {
    config: &'a mut CachingConfig,
    tokens: &'a Tokens,
    warnings: Vec<String>,
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

    fn at_least_large_segment(&mut self, place: usize) -> Result<(usize, Bytes), Error> {
        let least = self.config.large_segment_size.get() / MIB;
        let (end, number) = self.unsigned(place)?;
        if number < least {
            let name = self.tokens.at(place)?;
            return Err(self.refused(
                place,
                &format!("CachingAllocator option {name} too small, must be >= {least}"),
            ));
        }
        if number > MOST_MIB {
            let name = self.tokens.at(place)?.to_owned();
            self.warn(format!("`{name}` is capped at {MOST_MIB} MiB"));
        }
        Ok((end, mebibytes(number)))
    }

    fn unsigned(&mut self, place: usize) -> Result<(usize, u64), Error> {
        let end = self.value(place)?;
        Ok((end, self.number(end, number::unsigned, "stoull")?))
    }

    fn real(&mut self, place: usize) -> Result<(usize, f64), Error> {
        let end = self.value(place)?;
        Ok((end, self.number(end, number::real, "stod")?))
    }

    fn number<T: Copy + std::fmt::Display>(
        &mut self,
        place: usize,
        read: fn(&str) -> Result<Number<T>, NumberError>,
        original: &str,
    ) -> Result<T, Error> {
        let token = self.tokens.at(place)?;
        match read(token) {
            Ok(number) => {
                if !number.is_plain {
                    self.warn(format!("`{token}` was read as the number {}", number.value));
                }
                Ok(number.value)
            }
            Err(NumberError::Invalid) => Err(Error::configuration(format!(
                "`{token}` at token {place} is not a number ({original}: invalid argument)"
            ))),
            Err(NumberError::OutOfRange) => Err(Error::configuration(format!(
                "`{token}` at token {place} is too large or too small ({original}: out of range)"
            ))),
        }
    }

    fn boolean(&mut self, place: usize) -> Result<(usize, bool), Error> {
        let end = self.value(place)?;
        match self.tokens.at(end)? {
            "True" => Ok((end, true)),
            "False" => Ok((end, false)),
            token => {
                let message = format!(
                    "Expected 'True' or 'False' at index {end} in ConfigTokenizer but got '{token}'"
                );
                Err(self.refused(place, &message))
            }
        }
    }

    /// The place of the value of the option at `place`.
    fn value(&mut self, place: usize) -> Result<usize, Error> {
        self.separator(place + 1, ":")?;
        Ok(place + 2)
    }

    /// The place of the last token of the option at `place`, whose value is not wanted.
    fn skip(&mut self, place: usize) -> Result<usize, Error> {
        let value = self.value(place)?;
        if self.tokens.at(value)? != "[" {
            return Ok(value);
        }
        (value + 1..self.tokens.len())
            .find(|&end| self.tokens.is(end, "]"))
            .ok_or_else(|| self.unclosed(place))
    }

    /// Passes over a separator. The original does not look which one it is.
    fn separator(&mut self, place: usize, expected: &str) -> Result<(), Error> {
        let found = self.tokens.at(place)?;
        if found != expected {
            self.warn(format!(
                "`{found}` at token {place} was taken for `{expected}`"
            ));
        }
        Ok(())
    }

    fn unclosed(&self, place: usize) -> Error {
        self.refused(
            place,
            "Expected closing bracket ']' in ConfigTokenizer but reached end of config",
        )
    }

    /// An error with the original's message, and the option that it is about.
    fn refused(&self, place: usize, original: &str) -> Error {
        let name = self.tokens.at(place).unwrap_or_default();
        let value = self.tokens.at(place + 2).unwrap_or_default();
        Error::configuration(format!("`{name}:{value}`: {original}"))
    }

    fn note_repetitions(&mut self) {
        for name in OPTIONS {
            let count = (0..self.tokens.len())
                .filter(|&place| self.tokens.is(place, name))
                .count();
            if count > 1 {
                self.warn(format!(
                    "`{name}` is given {count} times, the last one counts"
                ));
            }
        }
    }

    fn without_effect(&mut self, name: &str) {
        self.warn(format!("`{name}` has no effect here"));
    }

    fn warn(&mut self, warning: String) {
        // Two passes see the same separators.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn mebibytes(count: u64) -> Bytes {
    Bytes::mib(count.min(MOST_MIB))
}
