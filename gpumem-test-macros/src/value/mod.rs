//! What may stand behind an option's `=`: one type for each sort of value.

mod args;
mod count;
mod flag;
mod list;
mod measure;
mod text;

use proc_macro2::{Ident, TokenStream};

pub(crate) use args::{Arg, Args};
pub(crate) use count::Count;
pub(crate) use flag::{Flag, Reason, SnapshotName};
pub(crate) use list::{Neighbours, Policies};
pub(crate) use measure::{Budget, Device, Leak, Share, Size, Timeout};

/// A sort of value.
pub(crate) trait Value: Sized {
    /// Understands what stands behind the `=` of the option `name`; `None` if there is no `=`.
    ///
    /// # Errors
    /// Sentences that name the option, what was written, and what to write.
    fn parse(name: &Ident, written: Option<&TokenStream>) -> syn::Result<Self>;
}

/// The tokens behind `=`, or that there are none.
fn required<'a>(
    name: &Ident,
    written: Option<&'a TokenStream>,
    example: &str,
) -> syn::Result<&'a TokenStream> {
    written.filter(|tokens| !tokens.is_empty()).ok_or_else(|| {
        let sentence = format!("option `{name}` needs a value, as in `{name} = {example}`");
        syn::Error::new(name.span(), sentence)
    })
}

/// Parses a value for a unit test.
#[cfg(test)]
fn parse<T: Value>(option: &str, written: &str) -> Result<T, Vec<String>> {
    let name = Ident::new(option, proc_macro2::Span::call_site());
    let tokens: TokenStream = written.parse().unwrap();
    T::parse(&name, Some(&tokens)).map_err(crate::mistakes::sentences)
}

/// Asserts that each text is refused with one sentence that holds the part beside it.
#[cfg(test)]
fn refuses<T: Value>(option: &str, cases: &[(&str, &str)]) {
    for (written, part) in cases {
        let Err(wrong) = parse::<T>(option, written) else {
            panic!("`{written}` was taken");
        };
        assert_eq!(wrong.len(), 1, "{written}: {wrong:?}");
        assert!(wrong[0].contains(part), "{written}: {wrong:?}");
    }
}
