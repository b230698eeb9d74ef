//! Values that are a whole number.

use proc_macro2::{Ident, TokenStream};
use syn::{Error, Lit};

use super::text::bare;
use super::{Value, required};

const EXAMPLE: &str = "1_000";
const TYPES: [&str; 13] = [
    "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
];

/// A count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl Value for Count {
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self> {
        let tokens = bare(required(name, written, EXAMPLE)?.clone());
        let text = tokens.to_string();
        let wrong = |sentence: String| Err(Error::new_spanned(&tokens, sentence));
        if text.starts_with('-') {
            return wrong(format!(
                "option `{name}` takes a count, which is not negative, as in `{name} = {EXAMPLE}`"
            ));
        }
        match syn::parse2::<Lit>(tokens.clone()) {
            Ok(Lit::Int(number)) if TYPES.contains(&number.suffix()) => {
                number.base10_parse().map(Self).or_else(|_| {
                    wrong(format!(
                        "`{text}` in option `{name}` does not fit in 64 bits"
                    ))
                })
            }
            Ok(Lit::Int(number)) => wrong(format!(
                "option `{name}` takes a count, which has no unit: write `{name} = {}`",
                number.base10_digits()
            )),
            Ok(Lit::Float(_)) => wrong(format!(
                "option `{name}` takes a count, which has no decimals, as in `{name} = {EXAMPLE}`"
            )),
            Ok(Lit::Str(string)) => {
                let value = string.value();
                let digits: String = value.chars().filter(|c| !c.is_whitespace()).collect();
                let number = if digits.parse::<u64>().is_ok() {
                    digits
                } else {
                    EXAMPLE.to_owned()
                };
                wrong(format!(
                    "option `{name}` takes a count without quotes: write `{name} = {number}`"
                ))
            }
            _ => wrong(format!(
                "option `{name}` takes a whole number, written out because it is checked at compile time, as in `{name} = {EXAMPLE}`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Count;
    use crate::value::{parse, refuses};

    #[test]
    fn a_count_is_any_integer_literal() {
        for (written, count) in [("0", 0), ("1_000", 1_000), ("12u64", 12), ("0x10", 16)] {
            assert_eq!(parse("max_allocations", written), Ok(Count(count)));
        }
    }

    #[test]
    fn what_is_no_count_is_named() {
        refuses::<Count>(
            "max_allocations",
            &[
                ("-1", "not negative"),
                ("1.5", "no decimals"),
                ("10MiB", "write `max_allocations = 10`"),
                ("\"10\"", "write `max_allocations = 10`"),
                ("\"ten\"", "write `max_allocations = 1_000`"),
                ("99999999999999999999", "does not fit in 64 bits"),
                ("LIMIT", "written out"),
                ("[1]", "written out"),
                ("", "needs a value"),
            ],
        );
    }
}
