//! Sizes as the original prints them.

use std::fmt;

/// A number of bytes in the original's short form: `1.0KiB`, `2.80GiB`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short(pub(super) u64);

impl fmt::Display for Short {
    /// Divides without rounding until what is left is below 1 MiB; one decimal for KiB, two for
    /// the others.
    ///
    /// Source: XLA of August 2026, `tsl::strings::HumanReadableNumBytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0;
        if bytes < 1024 {
            return f.pad(&format!("{bytes}B"));
        }
        let mut units = ["K", "M", "G", "T", "P", "E"].into_iter();
        let mut unit = units.next().unwrap_or_default();
        while bytes >= 1 << 20 {
            bytes /= 1024;
            unit = units.next().unwrap_or(unit);
        }
        let scaled = bytes as f64 / 1024.0;
        let decimals = if unit == "K" { 1 } else { 2 };
        f.pad(&format!("{scaled:.decimals$}{unit}iB"))
    }
}

#[cfg(test)]
mod tests {
    use super::Short;

    #[test]
    fn sizes_print_as_the_original_prints_them() {
        for (bytes, text) in [
            (0, "0B"),
            (1_023, "1023B"),
            (1_024, "1.0KiB"),
            (39_936, "39.0KiB"),
            (3_003_121_664, "2.80GiB"),
            ((1 << 20) - 1, "1024.0KiB"),
            (1 << 20, "1.00MiB"),
            (u64::MAX, "16.00EiB"),
        ] {
            assert_eq!(Short(bytes).to_string(), text, "{bytes}");
        }
        assert_eq!(format!("{:>8}", Short(5)), "      5B");
    }
}
