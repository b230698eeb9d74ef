//! `policy`: one string or a list of them.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{Error, LitStr};

use super::text::{Text, bare, name_in, quoted, string};
use super::{Value, required};
use crate::mistakes::Mistakes;

/// Policies in the order written; the harness checks the strings when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policies(pub(crate) Vec<String>);

impl Value for Policies {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let tokens = bare(required(name, written, &quoted(Policy::EXAMPLE))?.clone());
        let mut all = tokens.clone().into_iter();
        let literals = match (all.next(), all.next()) {
            (Some(TokenTree::Group(list)), None) if list.delimiter() == Delimiter::Bracket => {
                if list.stream().is_empty() {
                    let sentence = format!(
                        "the list of `{name}` is empty: name a policy, as in `{name} = [\"driver\", \"caching\"]`, or leave the option out"
                    );
                    return Err(Error::new_spanned(&tokens, sentence));
                }
                elements(name, list.stream())?
            }
            _ => vec![string::<Policy>(name, &tokens)?],
        };
        let mut mistakes = Mistakes::default();
        let mut policies: Vec<String> = Vec::new();
        for literal in literals {
            let checked = Policy::from_text(&literal.value());
            let checked = checked.and_then(|Policy(text)| {
                if policies.contains(&text) {
                    Err(format!("policy `{text}` is in the list twice"))
                } else {
                    Ok(text)
                }
            });
            match checked {
                Ok(text) => policies.push(text),
                Err(reason) => {
                    let sentence = format!("option `{name}`: {reason}");
                    mistakes.add(Error::new(literal.span(), sentence));
                }
            }
        }
        mistakes.into_result().map(|()| Self(policies))
    }
}

/// The strings of a list, or a mistake for each that is none.
fn elements(name: &Ident, list: TokenStream) -> syn::Result<Vec<LitStr>> {
    let mut mistakes = Mistakes::default();
    let mut literals = Vec::new();
    let mut element = TokenStream::new();
    let mut tokens = list.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_comma = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
        if is_comma && element.is_empty() {
            let sentence = format!("there is no policy before this `,` in the list of `{name}`");
            mistakes.add(Error::new(token.span(), sentence));
            continue;
        }
        if !is_comma {
            element.extend([token]);
        }
        if is_comma || tokens.peek().is_none() {
            let complete = std::mem::take(&mut element);
            literals.extend(mistakes.keep(string::<Policy>(name, &complete)));
        }
    }
    mistakes.into_result().map(|()| literals)
}

/// One policy string, trimmed.
struct Policy(String);

impl Text for Policy {
    const EXAMPLE: &'static str = "caching";
    const UNIT: &'static str = "";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("the string is empty: write a policy, as in \"caching\"".to_owned()),
            // A comma behind a colon is the policy's own: `caching:a:1,b:2`.
            text if text.contains(',') && !text.contains(':') => {
                let names: Vec<_> = text.split(',').map(|name| quoted(name.trim())).collect();
                let names = names.join(", ");
                Err(format!("one string names one policy: write [{names}]"))
            }
            text => Ok(Self(text.to_owned())),
        }
    }

    fn meant(text: &str) -> Option<String> {
        name_in(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Policies;
    use crate::value::{parse, refuses};

    #[test]
    fn a_policy_is_a_string_or_a_list() {
        for (written, policies) in [
            ("\"caching\"", vec!["caching"]),
            ("[\"caching\"]", vec!["caching"]),
            (
                "[\"driver\", \"caching:max_split_size_mb:64\",]",
                vec!["driver", "caching:max_split_size_mb:64"],
            ),
        ] {
            let expected = policies.into_iter().map(str::to_owned).collect();
            assert_eq!(parse("policy", written), Ok(Policies(expected)));
        }
    }

    #[test]
    fn what_is_no_policy_is_named() {
        refuses::<Policies>(
            "policy",
            &[
                ("[]", "is empty"),
                ("\"\"", "is empty"),
                ("[\"driver\", \"\"]", "is empty"),
                ("[\"driver\", \" driver\"]", "twice"),
                ("caching", "write `policy = \"caching\"`"),
                ("[driver, \"caching\"]", "write `policy = \"driver\"`"),
                ("[\"driver\" \"caching\"]", "expected `,`"),
                ("[\"driver\",, \"caching\"]", "no policy before this"),
                ("[[\"driver\"]]", "not a list"),
                ("(\"driver\", \"caching\")", "string literal"),
                ("\"driver, caching\"", "write [\"driver\", \"caching\"]"),
                ("5", "string literal"),
                ("", "needs a value"),
            ],
        );
    }

    #[test]
    fn each_wrong_element_is_reported() {
        let wrong = parse::<Policies>("policy", "[driver, caching]").unwrap_err();
        assert_eq!(wrong.len(), 2);
    }
}
