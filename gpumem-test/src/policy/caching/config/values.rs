//! The values of options, the separators between them, and what is said about both.

use super::MIB;
use super::number::{self, Number, NumberError};
use super::parse::{OPTIONS, Parser};
use crate::bytes::Bytes;
use crate::error::Error;

/// The most MiB whose bytes fit in 64 bits.
const MOST_MIB: u64 = u64::MAX / MIB;

impl Parser<'_> {
    /// The size of the option at `place`, which the large segment size bounds from below, and the
    /// place of its last token.
    pub(super) fn at_least_large_segment(&mut self, place: usize) -> Result<(usize, Bytes), Error> {
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

    pub(super) fn unsigned(&mut self, place: usize) -> Result<(usize, u64), Error> {
        let end = self.value(place)?;
        Ok((end, self.number(end, number::unsigned, "stoull")?))
    }

    pub(super) fn real(&mut self, place: usize) -> Result<(usize, f64), Error> {
        let end = self.value(place)?;
        Ok((end, self.number(end, number::real, "stod")?))
    }

    /// The number at `place`; `original` is the C++ function that would read it.
    pub(super) fn number<T: Copy + std::fmt::Display>(
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

    pub(super) fn boolean(&mut self, place: usize) -> Result<(usize, bool), Error> {
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
    pub(super) fn value(&mut self, place: usize) -> Result<usize, Error> {
        self.separator(place + 1, ":")?;
        Ok(place + 2)
    }

    /// The place of the last token of the option at `place`, whose value is not wanted.
    pub(super) fn skip(&mut self, place: usize) -> Result<usize, Error> {
        let value = self.value(place)?;
        if self.tokens.at(value)? != "[" {
            return Ok(value);
        }
        (value + 1..self.tokens.len())
            .find(|&end| self.tokens.is(end, "]"))
            .ok_or_else(|| self.unclosed(place))
    }

    /// Passes over a separator. The original does not look which one it is.
    pub(super) fn separator(&mut self, place: usize, expected: &str) -> Result<(), Error> {
        let found = self.tokens.at(place)?;
        if found != expected {
            self.warn(format!(
                "`{found}` at token {place} was taken for `{expected}`"
            ));
        }
        Ok(())
    }

    pub(super) fn unclosed(&self, place: usize) -> Error {
        self.refused(
            place,
            "Expected closing bracket ']' in ConfigTokenizer but reached end of config",
        )
    }

    /// An error with the original's message, and the option that it is about.
    pub(super) fn refused(&self, place: usize, original: &str) -> Error {
        let name = self.tokens.at(place).unwrap_or_default();
        let value = self.tokens.at(place + 2).unwrap_or_default();
        Error::configuration(format!("`{name}:{value}`: {original}"))
    }

    pub(super) fn note_repetitions(&mut self) {
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

    pub(super) fn without_effect(&mut self, name: &str) {
        self.warn(format!("`{name}` has no effect here"));
    }

    pub(super) fn warn(&mut self, warning: String) {
        // Two passes see the same separators.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A size in MiB, capped at what 64 bits of bytes hold.
pub(super) fn mebibytes(count: u64) -> Bytes {
    Bytes::mib(count.min(MOST_MIB))
}
