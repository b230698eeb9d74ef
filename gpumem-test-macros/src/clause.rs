//! One option as written: a name, alone or with what stands behind `=`.
//!
//! The tokens are cut at the commas before any of them is understood, so that a mistake in one
//! option hides no mistake in the next.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use syn::Error;

use crate::mistakes::Mistakes;

/// One option as written.
pub(crate) struct Clause {
    /// The option's name.
    pub(crate) name: Ident,
    /// What stands behind `=`, possibly nothing; `None` if there is no `=`.
    pub(crate) value: Option<TokenStream>,
}

/// Cuts the attribute's tokens into options.
pub(crate) fn clauses(tokens: TokenStream, mistakes: &mut Mistakes) -> Vec<Clause> {
    pieces(tokens, mistakes)
        .into_iter()
        .filter_map(|piece| mistakes.keep(clause(piece)))
        .collect()
}

/// The runs of tokens between the commas, none of them empty.
fn pieces(tokens: TokenStream, mistakes: &mut Mistakes) -> Vec<Vec<TokenTree>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let separator = match &token {
            TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | ';') => {
                Some(punct.as_char())
            }
            _ => None,
        };
        if let Some(separator) = separator {
            if separator == ';' {
                let sentence = "options are separated by `,`, not by `;`";
                mistakes.add(Error::new(token.span(), sentence));
            } else if piece.is_empty() {
                let sentence = "there is no option before this `,`: take it out";
                mistakes.add(Error::new(token.span(), sentence));
            }
            pieces.push(std::mem::take(&mut piece));
            continue;
        }
        // `budget = "2GiB" policy = "caching"`: a second `name =` begins the next option.
        if let TokenTree::Ident(name) = &token
            && piece.len() > 2
            && is_equals(&piece[1])
            && tokens.peek().is_some_and(is_equals)
            && !is_equals(&piece[piece.len() - 1])
        {
            let sentence = format!("expected `,` before the option `{name}`");
            mistakes.add(Error::new(name.span(), sentence));
            pieces.push(std::mem::take(&mut piece));
        }
        piece.push(token);
    }
    pieces.push(piece);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn is_equals(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '=')
}

fn clause(piece: Vec<TokenTree>) -> syn::Result<Clause> {
    let mut rest = piece.into_iter();
    let name = match rest.next() {
        Some(TokenTree::Ident(name)) => name,
        Some(other) => return Err(no_name(&other)),
        None => unreachable!("pieces are not empty"),
    };
    let value = match rest.next() {
        None => None,
        Some(TokenTree::Punct(equals)) if equals.as_char() == '=' => {
            let value: TokenStream = rest.collect();
            match value.clone().into_iter().next() {
                Some(second) if is_equals(&second) && equals.spacing() == Spacing::Joint => {
                    let sentence = format!("write one `=` behind `{name}`, not `==`");
                    return Err(Error::new(second.span(), sentence));
                }
                _ => Some(value),
            }
        }
        Some(other) => return Err(no_equals(&name, &other, rest)),
    };
    Ok(Clause { name, value })
}

fn no_name(found: &TokenTree) -> Error {
    let sentence = match found {
        TokenTree::Literal(literal) if literal.to_string().starts_with('"') => format!(
            "expected an option, found the string {literal}: write `option = {literal}`, and several strings in brackets, as in `policy = [\"driver\", \"caching\"]`"
        ),
        TokenTree::Literal(literal) => format!(
            "expected an option, found `{literal}`: several values stand in brackets, as in `args = [1, 8, 64]`"
        ),
        other => format!("expected an option, found `{other}`"),
    };
    Error::new(found.span(), sentence)
}

fn no_equals(name: &Ident, found: &TokenTree, rest: impl Iterator<Item = TokenTree>) -> Error {
    let sentence = match found {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            format!("write `{name} = {}`, without parentheses", group.stream())
        }
        TokenTree::Punct(punct) if punct.as_char() == ':' => {
            format!("write `{name} = …`, with `=` in place of `:`")
        }
        TokenTree::Punct(punct) if punct.as_char() == '-' => {
            let name: String = rest
                .take_while(|token| !is_equals(token))
                .map(|token| token.to_string().replace('-', "_"))
                .fold(format!("{name}_"), |name, part| name + &part);
            format!("options are written with underscores: `{name}`")
        }
        other => format!("expected `=` or `,` behind the option `{name}`, found `{other}`"),
    };
    Error::new(found.span(), sentence)
}

#[cfg(test)]
mod tests {
    use super::clauses;
    use crate::mistakes::{Mistakes, sentences};

    fn cut(text: &str) -> (Vec<(String, Option<String>)>, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let found = clauses(text.parse().unwrap(), &mut mistakes)
            .into_iter()
            .map(|clause| {
                let value = clause.value.map(|value| value.to_string());
                (clause.name.to_string(), value)
            })
            .collect();
        let wrong = mistakes
            .into_result()
            .map_or_else(sentences, |()| Vec::new());
        (found, wrong)
    }

    #[test]
    fn options_are_cut_at_commas() {
        let (found, wrong) = cut("budget = \"2GiB\", snapshot, args = [1, 2],");
        let expected = [
            ("budget", Some("\"2GiB\"")),
            ("snapshot", None),
            ("args", Some("[1 , 2]")),
        ];
        assert_eq!(wrong, [""; 0]);
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
        );
        assert_eq!(cut(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_missing_comma_loses_no_option() {
        let (found, wrong) = cut("budget = \"2GiB\" policy = \"caching\" snapshot = \"x\"");
        assert_eq!(found.len(), 3);
        assert_eq!(
            wrong,
            [
                "expected `,` before the option `policy`",
                "expected `,` before the option `snapshot`"
            ]
        );
    }

    #[test]
    fn what_is_no_option_is_named() {
        for (text, sentence) in [
            ("snapshot,, allow_oom", "no option before this `,`"),
            ("budget = \"2GiB\"; snapshot", "not by `;`"),
            ("\"2GiB\"", "found the string \"2GiB\""),
            ("args = 1, 8", "found `8`: several values"),
            ("+", "found `+`"),
            ("budget(\"2GiB\")", "write `budget = \"2GiB\"`"),
            ("budget: \"2GiB\"", "in place of `:`"),
            ("max-device-allocations = 1", "`max_device_allocations`"),
            ("budget == \"2GiB\"", "not `==`"),
            ("budget \"2GiB\"", "found `\"2GiB\"`"),
        ] {
            let (_, wrong) = cut(text);
            assert_eq!(wrong.len(), 1, "{text}: {wrong:?}");
            assert!(wrong[0].contains(sentence), "{text}: {wrong:?}");
        }
    }
}
