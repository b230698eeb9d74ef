//! `args`: the values that a test runs with, and their names.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Lit, Token};

use super::text::bare;
use super::{Value, required};
use crate::mistakes::Mistakes;

const EXAMPLE: &str = "[1, 8, 64]";

/// The values in the order written, each with its name.
pub(crate) struct Args(pub(crate) Vec<Arg>);

/// One value.
pub(crate) struct Arg {
    /// Its part of the test's name: only `A-Z a-z 0-9 _ . -`.
    pub(crate) name: String,
    /// The user's own tokens.
    pub(crate) value: Expr,
}

impl Value for Args {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let tokens = required(name, written, EXAMPLE)?;
        let Some(list) = brackets(tokens.clone()) else {
            let sentence =
                format!("option `{name}` takes a list in brackets, as in `{name} = {EXAMPLE}`");
            return Err(Error::new_spanned(tokens, sentence));
        };
        if list.is_empty() {
            let sentence = format!(
                "the list of `{name}` is empty, so that no test would run: write a value, as in `{name} = {EXAMPLE}`"
            );
            return Err(Error::new_spanned(tokens, sentence));
        }
        let is_semicolon =
            |token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        if list.clone().into_iter().any(is_semicolon) {
            let sentence = format!("write each value of `{name}`, as in `{name} = {EXAMPLE}`");
            return Err(Error::new_spanned(tokens, sentence));
        }
        let values = Punctuated::<Expr, Token![,]>::parse_terminated
            .parse2(list)
            .map_err(|error| {
                let sentence = format!("option `{name}`: {error} in the list of values");
                Error::new(error.span(), sentence)
            })?;
        let mut mistakes = Mistakes::default();
        let mut args: Vec<Arg> = Vec::new();
        for value in values {
            let arg = Arg {
                name: name_of(&value),
                value,
            };
            match args.iter().find(|other| other.name == arg.name) {
                Some(other) => mistakes.add(same_name(name, other, &arg)),
                None => args.push(arg),
            }
        }
        mistakes.into_result().map(|()| Self(args))
    }
}

fn same_name(option: &Ident, first: &Arg, second: &Arg) -> Error {
    let [one, two] = [first, second].map(|arg| compact(arg.value.to_token_stream()));
    let sentence = if one == two {
        format!("`{two}` is in the list of `{option}` twice")
    } else {
        format!(
            "`{two}` in the list of `{option}` gives the same test name as `{one}`: both become `{}`",
            second.name
        )
    };
    Error::new_spanned(&second.value, sentence)
}

/// What stands between the brackets of a list, if `tokens` are one list and nothing more.
fn brackets(tokens: TokenStream) -> Option<TokenStream> {
    let mut tokens = tokens.into_iter();
    match (tokens.next()?, tokens.next()) {
        (TokenTree::Group(group), None) => match group.delimiter() {
            Delimiter::Bracket => Some(group.stream()),
            Delimiter::None => brackets(group.stream()),
            _ => None,
        },
        _ => None,
    }
}

/// The expression out of the invisible groups in which `macro_rules` passes it.
fn visible(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => visible(*group.expr),
        other => other,
    }
}

/// What a value is called in the test's name: a string's text, else the tokens; each run of other
/// characters becomes one `-`.
fn name_of(value: &Expr) -> String {
    let text = match visible(value.clone()) {
        Expr::Lit(literal) => match literal.lit {
            Lit::Str(string) => string.value(),
            Lit::Char(character) => character.value().to_string(),
            other => compact(other.to_token_stream()),
        },
        other => compact(other.to_token_stream()),
    };
    if text.is_empty() {
        return "empty".to_owned();
    }
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || "_.-".contains(character) {
            name.push(character);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let mut trimmed = name.trim_end_matches('-');
    if !text.starts_with('-') {
        trimmed = trimmed.trim_start_matches('-');
    }
    if trimmed.is_empty() {
        name
    } else {
        trimmed.to_owned()
    }
}

/// Tokens as text, with blanks only where two words would run together.
fn compact(tokens: TokenStream) -> String {
    let mut text = String::new();
    for token in bare(tokens) {
        let piece = match token {
            TokenTree::Group(group) => {
                let around = group.to_string();
                let open = around.chars().next().filter(char::is_ascii_punctuation);
                let close = around.chars().last().filter(char::is_ascii_punctuation);
                let inner = compact(group.stream());
                open.into_iter().chain(inner.chars()).chain(close).collect()
            }
            other => other.to_string(),
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if text.ends_with(is_word) && piece.starts_with(is_word) {
            text.push(' ');
        }
        text.push_str(&piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Args;
    use crate::value::{parse, refuses};

    fn names(written: &str) -> Vec<String> {
        let args: Args = parse("args", written).unwrap();
        args.0.into_iter().map(|arg| arg.name).collect()
    }

    #[test]
    fn values_are_named_by_their_text() {
        assert_eq!(names("[1, 8, 64_000]"), ["1", "8", "64_000"]);
        assert_eq!(names("[-1, 1.5, 2u8]"), ["-1", "1.5", "2u8"]);
        assert_eq!(
            names("[\"f32\", \"a b\", \"\", 'x']"),
            ["f32", "a-b", "empty", "x"]
        );
        assert_eq!(
            names("[Mode::Fast, (1, true), 2 * N, f(3)]"),
            ["Mode-Fast", "1-true", "2-N", "f-3"]
        );
        assert_eq!(names("[\"/\", \"größe\"]"), ["-", "gr-e"]);
    }

    #[test]
    fn what_is_no_list_is_named() {
        refuses::<Args>(
            "args",
            &[
                ("[]", "is empty"),
                ("1", "a list in brackets"),
                ("(1, 2)", "a list in brackets"),
                ("1..4", "a list in brackets"),
                ("&[1, 2]", "a list in brackets"),
                ("vec![1, 2]", "a list in brackets"),
                ("[0; 3]", "write each value"),
                ("[1, 8, 1]", "`1` is in the list of `args` twice"),
                ("[\"a b\", \"a-b\"]", "both become `a-b`"),
                ("[1 2]", "expected `,` in the list"),
                ("[1, , 2]", "in the list of values"),
                ("", "needs a value, as in `args = [1, 8, 64]`"),
            ],
        );
    }
}
