//! A number of bytes, and how sizes are printed.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes.
///
/// Prints in binary units with two decimals (`1.25 GiB`); below 1 KiB in plain bytes (`512 B`).
/// Parses `"2GiB"`, `"512 MiB"`, `"2GB"` (decimal).
///
/// ```
/// # use gpumem_test::Bytes;
/// assert_eq!("1.5GiB".parse::<Bytes>()?, Bytes::new(1_610_612_736));
/// assert_eq!(Bytes::mib(20).to_string(), "20.00 MiB");
/// # Ok::<(), gpumem_test::Error>(())
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` · 2^10 bytes.
    ///
    /// # Panics
    /// If that does not fit in 64 bits (debug builds).
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// `count` · 2^20 bytes.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// `count` · 2^30 bytes.
    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }

    /// The plain number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The plain number, in full and with its thousands apart: `1 610 612 736 B`.
    pub fn exact(self) -> String {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3 + 2);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(' ');
            }
            text.push(digit);
        }
        text.push_str(" B");
        text
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1 << 10 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.995 would print as "1024.00": the next unit says it better.
        while value >= 1023.995 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.2} {}", UNITS[unit]))
    }
}

impl FromStr for Bytes {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        gpumem_test_syntax::parse_size(text)
            .map(Self)
            .map_err(crate::Error::configuration)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        Self(items.map(|item| item.0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn sizes_print_binary_with_two_decimals() {
        for (count, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1 << 10, "1.00 KiB"),
            (1_610_612_736, "1.50 GiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (u64::MAX, "16384.00 PiB"),
        ] {
            assert_eq!(Bytes::new(count).to_string(), text);
        }
        assert_eq!(Bytes::new(1_610_612_736).exact(), "1 610 612 736 B");
        assert_eq!(format!("{:>10}", Bytes::mib(2)), "  2.00 MiB");
    }
}
