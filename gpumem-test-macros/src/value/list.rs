//! `policy` and `neighbours`: one string or a list of them.

use gpumem_test_syntax::parse_neighbour;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{Error, LitStr};

use super::text::{Text, bare, name_in, quoted, string};
use super::{Value, required};
use crate::mistakes::Mistakes;

/// Policies in the order written; the harness checks the strings when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policies(pub(crate) Vec<String>);

/// What other processes take of the card, in the order in which they come; two may take alike. The
/// harness checks the options of policies when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours(pub(crate) Vec<String>);

/// What the elements of a list are, for its messages.
struct Elements {
    /// What an empty list should do, as `name a policy`.
    add: &'static str,
    /// A list to show.
    example: &'static str,
    /// One of them, as `policy`.
    one: &'static str,
}

impl Value for Policies {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let what = Elements {
            add: "name a policy",
            example: "[\"driver\", \"caching\"]",
            one: "policy",
        };
        let literals = one_or_more::<Policy>(name, written, &what)?;
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

impl Value for Neighbours {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let what = Elements {
            add: "say what another process takes",
            example: "[\"10GiB\", \"tensorflow\"]",
            one: "neighbour",
        };
        let mut mistakes = Mistakes::default();
        let mut neighbours = Vec::new();
        for literal in one_or_more::<Neighbour>(name, written, &what)? {
            let checked = Neighbour::from_text(&literal.value())
                .map_err(|reason| Error::new(literal.span(), format!("option `{name}`: {reason}")));
            neighbours.extend(mistakes.keep(checked).map(|Neighbour(text)| text));
        }
        mistakes.into_result().map(|()| Self(neighbours))
    }
}

/// The strings of a value that is one string or a list of them.
fn one_or_more<T: Text>(
    name: &Ident,
    written: Option<&TokenStream>,
    what: &Elements,
) -> syn::Result<Vec<LitStr>> {
    let tokens = bare(required(name, written, &quoted(T::EXAMPLE))?.clone());
    let mut all = tokens.clone().into_iter();
    match (all.next(), all.next()) {
        (Some(TokenTree::Group(list)), None) if list.delimiter() == Delimiter::Bracket => {
            if list.stream().is_empty() {
                let sentence = format!(
                    "the list of `{name}` is empty: {}, as in `{name} = {}`, or leave the option out",
                    what.add, what.example
                );
                return Err(Error::new_spanned(&tokens, sentence));
            }
            elements::<T>(name, list.stream(), what)
        }
        _ => Ok(vec![string::<T>(name, &tokens)?]),
    }
}

/// The strings of a list, or a mistake for each that is none.
fn elements<T: Text>(name: &Ident, list: TokenStream, what: &Elements) -> syn::Result<Vec<LitStr>> {
    let mut mistakes = Mistakes::default();
    let mut literals = Vec::new();
    let mut element = TokenStream::new();
    let mut tokens = list.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_comma = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
        if is_comma && element.is_empty() {
            let one = what.one;
            let sentence = format!("there is no {one} before this `,` in the list of `{name}`");
            mistakes.add(Error::new(token.span(), sentence));
            continue;
        }
        if !is_comma {
            element.extend([token]);
        }
        if is_comma || tokens.peek().is_none() {
            let complete = std::mem::take(&mut element);
            literals.extend(mistakes.keep(string::<T>(name, &complete)));
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

/// What one neighbour takes, trimmed.
struct Neighbour(String);

impl Text for Neighbour {
    const EXAMPLE: &'static str = "10GiB";
    const UNIT: &'static str = "GiB";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_neighbour(text)?;
        Ok(Self(text.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Neighbours, Policies};
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
    fn neighbours_are_amounts_and_policies_that_may_be_alike() {
        for (written, neighbours) in [
            ("\"10GiB\"", vec!["10GiB"]),
            ("[\"30%\", \" 30%\"]", vec!["30%", "30%"]),
            (
                "[\"tensorflow\", \"bfc:per_process_gpu_memory_fraction=0.45\",]",
                vec!["tensorflow", "bfc:per_process_gpu_memory_fraction=0.45"],
            ),
        ] {
            let expected = neighbours.into_iter().map(str::to_owned).collect();
            assert_eq!(parse("neighbours", written), Ok(Neighbours(expected)));
        }
    }

    #[test]
    fn what_is_no_neighbour_is_named() {
        refuses::<Neighbours>(
            "neighbours",
            &[
                ("[]", "say what another process takes"),
                ("\"\"", "is empty"),
                ("10GiB", "write `neighbours = \"10GiB\"`"),
                ("2", "write `neighbours = \"2GiB\"`"),
                ("tensorflow", "write `neighbours = \"tensorflow\"`"),
                ("[\"10GiB\", \"caching\"]", "takes nothing until"),
                ("[\"10GiB\" \"2GiB\"]", "expected `,`"),
                ("[\"10GiB\",, \"2GiB\"]", "no neighbour before this"),
                ("\"tensorflw\"", "did you mean `tensorflow`?"),
                ("\"10\"", "has no unit"),
                ("", "needs a value, as in `neighbours = \"10GiB\"`"),
            ],
        );
    }

    #[test]
    fn each_wrong_element_is_reported() {
        let wrong = parse::<Policies>("policy", "[driver, caching]").unwrap_err();
        assert_eq!(wrong.len(), 2);
    }
}
