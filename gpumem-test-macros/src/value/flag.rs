//! Options that may stand alone: flags, and flags that may carry a string.

use proc_macro2::{Ident, TokenStream};
use syn::Error;

use super::Value;
use super::text::{Text, name_in};

/// An option that is there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag;

impl Value for Flag {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let Some(tokens) = written else {
            return Ok(Self);
        };
        let sentence =
            format!("option `{name}` takes no value: write `{name}` alone, or leave it out");
        Err(if tokens.is_empty() {
            Error::new(name.span(), sentence)
        } else {
            Error::new_spanned(tokens, sentence)
        })
    }
}

/// `snapshot`, alone or with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotName(pub(crate) Option<String>);

impl Value for SnapshotName {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        alone_or_text::<FileName>(name, written).map(|text| Self(text.map(|FileName(text)| text)))
    }
}

/// `ignore`, alone or with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) Option<String>);

impl Value for Reason {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        alone_or_text::<Why>(name, written).map(|text| Self(text.map(|Why(text)| text)))
    }
}

fn alone_or_text<T: Text>(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Option<T>> {
    match written {
        None => Ok(None),
        Some(tokens) if matches!(tokens.to_string().as_str(), "true" | "false") => {
            let sentence = format!(
                "option `{name}` takes no `{tokens}`: write `{name}` alone, leave it out, or give it a string, as in `{name} = \"{}\"`",
                T::EXAMPLE
            );
            Err(Error::new_spanned(tokens, sentence))
        }
        Some(_) => T::parse(name, written).map(Some),
    }
}

/// A name that becomes part of a file's name.
struct FileName(String);

impl Text for FileName {
    const EXAMPLE: &'static str = "decode";
    const UNIT: &'static str = "";

    fn from_text(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_alphanumeric() || "_-.=+".contains(c);
        if text.is_empty() {
            return Err("the name is empty: write `snapshot` alone for the test's own name".into());
        }
        if let Some(other) = text.chars().find(|c| !is_plain(*c)) {
            let other = match other {
                '\\' => other.to_string(),
                other => other.escape_debug().to_string(),
            };
            return Err(format!(
                "`{text}` becomes a file's name, which cannot hold `{other}`: use letters, digits, `_`, `-` and `.`"
            ));
        }
        if text.contains("..") || text.starts_with('.') {
            return Err(format!(
                "`{text}` becomes a file's name, which cannot begin with `.` or hold `..`"
            ));
        }
        if text.ends_with(".snap") {
            return Err(format!(
                "`{text}` gets its ending `.snap` from insta: leave it out"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn meant(text: &str) -> Option<String> {
        name_in(text).filter(|text| Self::from_text(text).is_ok())
    }
}

/// A reason for people.
struct Why(String);

impl Text for Why {
    const EXAMPLE: &'static str = "needs 80 GiB";
    const UNIT: &'static str = "";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the reason is empty: write one, or `ignore` alone".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    fn meant(_: &str) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Flag, Reason, SnapshotName, Value};
    use crate::value::{parse, refuses};
    use proc_macro2::{Ident, Span};

    #[test]
    fn flags_stand_alone() {
        let name = Ident::new("snapshot", Span::call_site());
        assert_eq!(Flag::parse(&name, None).unwrap(), Flag);
        assert_eq!(SnapshotName::parse(&name, None).unwrap().0, None);
        assert_eq!(Reason::parse(&name, None).unwrap().0, None);
        refuses::<Flag>("should_oom", &[("true", "takes no value"), ("", "alone")]);
    }

    #[test]
    fn some_flags_carry_a_string() {
        let named = parse("snapshot", "\"prefill-24.layers\"");
        assert_eq!(named, Ok(SnapshotName(Some("prefill-24.layers".into()))));
        let why = parse("ignore", "\"needs 80 GiB\"");
        assert_eq!(why, Ok(Reason(Some("needs 80 GiB".into()))));
    }

    #[test]
    fn a_name_that_is_no_files_name_is_refused() {
        refuses::<SnapshotName>(
            "snapshot",
            &[
                ("\"\"", "is empty"),
                ("\"a/b\"", "cannot hold `/`"),
                ("r\"a\\b\"", "cannot hold `\\`"),
                ("\"a b\"", "cannot hold ` `"),
                ("\"a\\n\"", "cannot hold `\\n`"),
                ("\"..\"", "hold `..`"),
                ("\".hidden\"", "begin with `.`"),
                ("\"a.snap\"", "leave it out"),
                ("true", "takes no `true`"),
                ("decode", "write `snapshot = \"decode\"`"),
                ("", "needs a value"),
            ],
        );
        refuses::<Reason>("ignore", &[("\"\"", "is empty"), ("why", "string literal")]);
    }
}
