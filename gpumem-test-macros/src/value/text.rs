//! Values that are one string: how it is found among the tokens.

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

    /// The string that is meant by a text which stands without quotes, if that is plain.
    fn meant(text: &str) -> Option<String> {
        [text.to_owned(), format!("{text}{}", Self::UNIT)]
            .into_iter()
            .find(|text| Self::from_text(text).is_ok())
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
    if let Some(TokenTree::Literal(literal)) = &first
        && let Ok(string) = syn::parse2::<LitStr>(TokenTree::from(literal.clone()).into())
    {
        return match rest.next() {
            None => Ok(string),
            Some(other) => Err(Error::new(
                other.span(),
                format!("expected `,` behind `{name} = {literal}`, found `{other}`"),
            )),
        };
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
    let meant = if text.contains('"') {
        None
    } else {
        T::meant(&text)
    };
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

/// A text without quotes that reads as a name, rather than as a constant or an expression.
pub(super) fn name_in(text: &str) -> Option<String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.contains(['!', '(', '&'])
        && !text.contains("::");
    is_name.then(|| text.to_owned())
}
