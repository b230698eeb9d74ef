//! Values that are one string: sizes, shares, durations, devices.

use std::time::Duration;

use gpumem_test_syntax::{did_you_mean, parse_duration, parse_share, parse_size};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::{Error, LitStr};

use super::{Value, required};

/// A value that is written as one string.
pub(crate) trait Text: Sized {
    /// A string to show, without quotes.
    const EXAMPLE: &'static str;
    /// What a bare number most likely lacks.
    const UNIT: &'static str;

    /// Understands the string.
    ///
    /// # Errors
    /// A sentence that names the string and what to write.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Whether a text that stands without quotes is meant to be the string.
    fn is_meant(text: &str) -> bool {
        Self::from_text(text).is_ok()
    }
}

impl<T: Text> Value for T {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let tokens = required(name, written, &quoted(Self::EXAMPLE))?;
        let literal = string::<T>(name, tokens)?;
        Self::from_text(&literal.value())
            .map_err(|reason| Error::new(literal.span(), format!("option `{name}`: {reason}")))
    }
}

/// The one string of `tokens`.
pub(super) fn string<T: Text>(name: &Ident, tokens: &TokenStream) -> syn::Result<LitStr> {
    let mut rest = bare(tokens.clone()).into_iter();
    let first = rest.next();
    if let Some(TokenTree::Literal(literal)) = &first {
        if let Ok(string) = syn::parse2::<LitStr>(TokenTree::from(literal.clone()).into()) {
            return match rest.next() {
                None => Ok(string),
                Some(other) => Err(Error::new(
                    other.span(),
                    format!("expected `,` behind `{name} = {literal}`, found `{other}`"),
                )),
            };
        }
    }
    let sentence = match first {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => format!(
            "option `{name}` takes one string, not a list, as in `{name} = {}`",
            quoted(T::EXAMPLE)
        ),
        _ => unquoted::<T>(name, tokens),
    };
    Err(Error::new_spanned(tokens, sentence))
}

/// The sentence for a value without quotes: what it would be with them, if that is plain.
fn unquoted<T: Text>(name: &Ident, tokens: &TokenStream) -> String {
    let text: String = bare(tokens.clone())
        .into_iter()
        .map(|token| token.to_string())
        .collect();
    let with_unit = format!("{text}{}", T::UNIT);
    let meant = [text, with_unit]
        .into_iter()
        .find(|text| !text.contains('"') && T::is_meant(text));
    match meant {
        Some(text) => format!(
            "option `{name}` takes a string: write `{name} = {}`",
            quoted(&text)
        ),
        None => format!(
            "option `{name}` takes a string literal, because it is checked at compile time: write it as in `{name} = {}`",
            quoted(T::EXAMPLE)
        ),
    }
}

/// The tokens out of the invisible groups in which `macro_rules` passes them.
pub(super) fn bare(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => bare(group.stream()),
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), bare(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner).into()
            }
            other => other.into(),
        })
        .collect()
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

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
            return Err(format!("a budget of `{text}` leaves room for no byte"));
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
        let hint = did_you_mean(&text.to_lowercase(), ["steady"])
            .map(|near| format!(", did you mean `{near}`?"))
            .unwrap_or_default();
        Err(format!(
            "`{text}` is neither a size, as in \"64KiB\", nor \"steady\"{hint}"
        ))
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

    fn is_meant(text: &str) -> bool {
        looks_like_a_name(text)
    }
}

/// Whether a text without quotes reads as a name, rather than a constant or an expression.
pub(super) fn looks_like_a_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.contains(['!', '(', '&'])
        && !text.contains("::")
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
        refuses::<Share>("max_slack", &[("20", "\"20%\""), ("0.2", "\"0.2%\"")]);
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
                ("\"Steady\"", "did you mean `steady`?"),
                ("\"none\"", "nor \"steady\""),
                ("\"1\"", "has no unit"),
            ],
        );
    }
}
