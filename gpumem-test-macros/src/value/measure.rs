//! What one string can say: sizes, shares, durations, devices.

use std::time::Duration;

use gpumem_test_syntax::{did_you_mean, parse_duration, parse_share, parse_size};

use super::text::{Text, name_in};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Text for Size {
    const EXAMPLE: &'static str = "512MiB";
    const UNIT: &'static str = "MiB";

    fn from_text(text: &str) -> Result<Self, String> {
        if parse_share(text).is_ok() {
            return Err(format!(
                "`{text}` is a share, but a size is needed, as in \"512MiB\""
            ));
        }
        parse_size(text).map(Self)
    }
}

/// A ratio between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Text for Share {
    const EXAMPLE: &'static str = "20%";
    const UNIT: &'static str = "%";

    fn from_text(text: &str) -> Result<Self, String> {
        if parse_size(text).is_ok() {
            return Err(format!(
                "`{text}` is a size, but a share is needed, as in \"20%\""
            ));
        }
        parse_share(text).map(Self)
    }

    /// `0.2` is a ratio: one fifth, not one fifth of a percent.
    fn meant(text: &str) -> Option<String> {
        let ratio: Option<f64> = text.parse().ok().filter(|_| text.contains('.'));
        let ratio = ratio.filter(|ratio| *ratio <= 1.0);
        let percent = ratio.map(|ratio| (ratio * 1e8).round() / 1e6);
        percent
            .map(|percent| format!("{percent}%"))
            .or_else(|| Some(format!("{}%", text.trim_end_matches('%'))))
            .filter(|text| Self::from_text(text).is_ok())
    }
}

/// A cap on reserved bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// So many bytes.
    Bytes(u64),
    /// A ratio of the device's total.
    Share(f64),
}

impl Text for Budget {
    const EXAMPLE: &'static str = "2GiB";
    const UNIT: &'static str = "MiB";

    fn from_text(text: &str) -> Result<Self, String> {
        let budget = if text.trim().ends_with('%') {
            parse_share(text).map(Self::Share)
        } else {
            parse_size(text).map(Self::Bytes)
        }?;
        if matches!(budget, Self::Bytes(0) | Self::Share(0.0)) {
            return Err(format!(
                "a budget of `{text}` leaves room for no byte: write what the test may reserve, as in \"2GiB\""
            ));
        }
        Ok(budget)
    }
}

/// What may stay allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leak {
    /// So many bytes.
    Bytes(u64),
    /// Nothing that a second run of the body adds.
    Steady,
}

impl Text for Leak {
    const EXAMPLE: &'static str = "0B";
    const UNIT: &'static str = "B";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim() == "steady" {
            return Ok(Self::Steady);
        }
        if text.trim().starts_with(|c: char| c.is_ascii_digit()) {
            return Size::from_text(text).map(|Size(bytes)| Self::Bytes(bytes));
        }
        Err(match did_you_mean(&text.to_lowercase(), ["steady"]) {
            Some(near) => format!("`{text}` is not a size, did you mean \"{near}\"?"),
            None => format!("`{text}` is neither a size, as in \"64KiB\", nor \"steady\""),
        })
    }
}

/// How long a test may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout(pub(crate) Duration);

impl Text for Timeout {
    const EXAMPLE: &'static str = "60s";
    const UNIT: &'static str = "s";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self)
    }
}

/// A device, checked when the harness starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device(pub(crate) String);

impl Text for Device {
    const EXAMPLE: &'static str = "sim:rtx4090";
    const UNIT: &'static str = "";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the string is empty: write a device, as in \"sim:rtx4090\"".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    fn meant(text: &str) -> Option<String> {
        name_in(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Device, Leak, Share, Size, Timeout};
    use crate::value::{parse, refuses};
    use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
    use std::time::Duration;

    #[test]
    fn strings_become_numbers() {
        assert_eq!(parse("budget", "\"2GiB\""), Ok(Budget::Bytes(2 << 30)));
        assert_eq!(parse("budget", "\"80%\""), Ok(Budget::Share(0.8)));
        assert_eq!(parse("max_allocated", "r\"1.5 KiB\""), Ok(Size(1_536)));
        assert_eq!(parse("max_slack", "\"12.5%\""), Ok(Share(0.125)));
        assert_eq!(parse("max_leak", "\"0B\""), Ok(Leak::Bytes(0)));
        assert_eq!(parse("max_leak", "\"steady\""), Ok(Leak::Steady));
        assert_eq!(
            parse("timeout", "\"2min\""),
            Ok(Timeout(Duration::from_secs(120)))
        );
        assert_eq!(
            parse("device", "\"sim:h200\""),
            Ok(Device("sim:h200".into()))
        );
    }

    #[test]
    fn a_string_that_macro_rules_passes_is_a_string() {
        let string: TokenStream = "\"2GiB\"".parse().unwrap();
        let group = TokenTree::Group(Group::new(Delimiter::None, string));
        let name = Ident::new("budget", Span::call_site());
        let budget = <Budget as crate::value::Value>::parse(&name, Some(&group.into()));
        assert_eq!(budget.unwrap(), Budget::Bytes(2 << 30));
    }

    #[test]
    fn a_value_without_quotes_is_shown_with_them() {
        refuses::<Budget>(
            "budget",
            &[
                ("5", "write `budget = \"5MiB\"`"),
                ("2GiB", "write `budget = \"2GiB\"`"),
                ("2 GiB", "write `budget = \"2GiB\"`"),
                ("80%", "write `budget = \"80%\"`"),
                ("LIMIT", "checked at compile time"),
                ("concat!(\"2\", \"GiB\")", "checked at compile time"),
                ("[\"2GiB\"]", "not a list"),
                ("\"2GiB\" snapshot", "expected `,`"),
            ],
        );
        refuses::<Share>(
            "max_slack",
            &[
                ("20", "\"20%\""),
                ("0.2", "\"20%\""),
                ("12.5%", "\"12.5%\""),
                ("12.5", "\"12.5%\""),
                ("120", "literal"),
            ],
        );
        refuses::<Timeout>("timeout", &[("60", "\"60s\""), ("60s", "\"60s\"")]);
        refuses::<Device>(
            "device",
            &[("sim:rtx4090", "\"sim:rtx4090\""), ("DEVICE", "literal")],
        );
        refuses::<Leak>("max_leak", &[("steady", "\"steady\""), ("0", "\"0B\"")]);
    }

    #[test]
    fn a_wrong_string_is_named() {
        refuses::<Budget>(
            "budget",
            &[
                ("\"2\"", "has no unit"),
                ("\"2gib\"", "did you mean `GiB`?"),
                ("\"120%\"", "not between 0% and 100%"),
                ("\"0B\"", "leaves room for no byte"),
                ("\"0%\"", "leaves room for no byte"),
                ("\"\"", "not a size"),
            ],
        );
        refuses::<Size>("max_reserved", &[("\"80%\"", "a size is needed")]);
        refuses::<Share>("max_waste", &[("\"2GiB\"", "a share is needed")]);
        refuses::<Timeout>("timeout", &[("\"0s\"", "is zero")]);
        refuses::<Device>("device", &[("\" \"", "is empty")]);
        refuses::<Leak>(
            "max_leak",
            &[
                ("\"Steady\"", "did you mean \"steady\"?"),
                ("\"none\"", "nor \"steady\""),
                ("\"1\"", "has no unit"),
            ],
        );
    }
}
