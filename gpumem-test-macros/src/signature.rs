//! The function under the attribute: its name, what it takes, what it returns.
//!
//! The body is not read: it goes to the compiler as the user wrote it.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, PatType, ReturnType, Token, Type, Visibility};

use crate::mistakes::Mistakes;
use crate::parameters::{parameters, visible};

/// What the attribute needs to know of its function.
pub(crate) struct Function {
    /// The attributes beside ours.
    pub(crate) attributes: Vec<Attribute>,
    /// Its name, as written.
    pub(crate) name: Ident,
    /// Where its first parameter says `Gpu`, if it has one.
    pub(crate) gpu: Option<Span>,
    /// Its second parameter, if it has one.
    pub(crate) argument: Option<PatType>,
    /// Whether the first parameter is the GPU, or there is none.
    gpu_is_first: bool,
    /// What it returns: the type, or the name if there is none.
    pub(crate) returned: Span,
}

impl Function {
    /// Reads the item under the attribute. `None` if it is no function, or one that no check
    /// beyond this makes sense of.
    pub(crate) fn parse(item: TokenStream, mistakes: &mut Mistakes) -> Option<Self> {
        let (attributes, signature) = mistakes.keep(header.parse2(item))?;
        refuse_qualifiers(&signature, mistakes);
        refuse_return(&signature.output, mistakes);
        let (parameters, gpu_is_first) = parameters(&signature, mistakes)?;
        let returned = match &signature.output {
            ReturnType::Default => signature.ident.span(),
            ReturnType::Type(_, returned) => returned.span(),
        };
        let mut parameters = parameters.into_iter();
        Some(Self {
            attributes,
            name: signature.ident,
            gpu: parameters.next().map(|first| match visible(&first.ty) {
                Type::Reference(reference) => reference.elem.span(),
                other => other.span(),
            }),
            argument: parameters.next(),
            gpu_is_first,
            returned,
        })
    }

    /// Whether the function has no parameter for an argument. One that has an argument where the
    /// GPU should be is another mistake, reported already.
    pub(crate) fn lacks_argument(&self) -> bool {
        self.argument.is_none() && self.gpu_is_first
    }

    /// The name without `r#`.
    pub(crate) fn plain_name(&self) -> String {
        self.name.unraw().to_string()
    }
}

/// Attributes, visibility and signature, and that a body follows.
fn header(input: ParseStream<'_>) -> syn::Result<(Vec<Attribute>, syn::Signature)> {
    let attributes = input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    if !begins_a_function(input) {
        let word: TokenStream = input.step(|cursor| {
            let (token, rest) = cursor
                .token_tree()
                .ok_or_else(|| cursor.error("there is no item under the attribute"))?;
            Ok((token.into(), rest))
        })?;
        let sentence = format!("`#[gpu_mem_test]` goes on a function, not on `{word}`");
        input.parse::<TokenStream>()?;
        return Err(Error::new_spanned(word, sentence));
    }
    let signature: syn::Signature = input.parse()?;
    if !input.peek(syn::token::Brace) {
        let sentence = format!("the function `{}` needs a body", signature.ident);
        return Err(Error::new(signature.ident.span(), sentence));
    }
    input.parse::<TokenStream>()?;
    Ok((attributes, signature))
}

fn begins_a_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    loop {
        if ahead.peek(Token![fn]) {
            return true;
        }
        let is_qualifier = ahead.peek(Token![const])
            || ahead.peek(Token![async])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern])
            || ahead.peek(syn::LitStr);
        if !is_qualifier || ahead.parse::<proc_macro2::TokenTree>().is_err() {
            return false;
        }
    }
}

fn refuse_qualifiers(signature: &syn::Signature, mistakes: &mut Mistakes) {
    let name = &signature.ident;
    let mut refuse = |tokens: &dyn ToTokens, sentence: String| {
        mistakes.add(Error::new_spanned(tokens.to_token_stream(), sentence));
    };
    if let Some(word) = &signature.constness {
        refuse(
            word,
            format!(
                "`const fn {name}` cannot be a GPU memory test: a test runs, it is not evaluated at compile time; write `fn {name}`"
            ),
        );
    }
    if let Some(word) = &signature.asyncness {
        refuse(
            word,
            format!(
                "`async fn {name}` cannot be a GPU memory test: write `fn {name}` and block on the future in its body"
            ),
        );
    }
    if let Some(word) = &signature.unsafety {
        refuse(
            word,
            format!(
                "`unsafe fn {name}` cannot be a GPU memory test: the harness calls it as safe code; write `fn {name}` and an unsafe block in its body"
            ),
        );
    }
    if let Some(abi) = &signature.abi {
        refuse(
            abi,
            format!(
                "`{}` cannot be a GPU memory test: a panic could not leave it; write `fn {name}`",
                in_words(abi, name)
            ),
        );
    }
    if !signature.generics.params.is_empty() {
        refuse(
            &signature.generics,
            format!(
                "`{name}` has generic parameters, but the harness has nothing to put in: write the types out"
            ),
        );
    } else if let Some(bounds) = &signature.generics.where_clause {
        refuse(
            bounds,
            format!("`{name}` has a `where` clause, but no generic parameters: take it out"),
        );
    }
    if let Some(dots) = &signature.variadic {
        refuse(
            dots,
            format!("`{name}` is variadic: a test takes `&Gpu` and at most one argument"),
        );
    }
}

fn in_words(abi: &syn::Abi, name: &Ident) -> String {
    match &abi.name {
        Some(kind) => format!("extern {} fn {name}", kind.token()),
        None => format!("extern fn {name}"),
    }
}

fn refuse_return(returned: &ReturnType, mistakes: &mut Mistakes) {
    if let ReturnType::Type(_, returned) = returned
        && let Type::Never(never) = &**returned
    {
        let sentence = "a test returns `()` or a `Result`, not `!`: leave the type out";
        mistakes.add(Error::new_spanned(never, sentence));
    }
}

#[cfg(test)]
mod tests {
    use super::Function;
    use crate::mistakes::{Mistakes, sentences};

    fn read(item: &str) -> (Option<Function>, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let function = Function::parse(item.parse().unwrap(), &mut mistakes);
        let wrong = mistakes
            .into_result()
            .map_or_else(sentences, |()| Vec::new());
        (function, wrong)
    }

    #[test]
    fn the_three_shapes_are_taken() {
        for (item, parameters) in [
            ("fn f() {}", 0),
            (
                "#[allow(dead_code)] pub(crate) fn f(_: &Gpu) -> TestResult { Ok(()) }",
                1,
            ),
            ("fn f(gpu: &gpumem_test::Gpu, (a, b): (u8, &str)) {}", 2),
            (
                "fn f(gpu: &'_ G) -> Result<(), String> { yeet!{} ; Ok(()) }",
                1,
            ),
        ] {
            let (function, wrong) = read(item);
            assert_eq!(wrong, [""; 0], "{item}");
            let function = function.unwrap();
            let found =
                usize::from(function.gpu.is_some()) + usize::from(function.argument.is_some());
            assert_eq!(found, parameters, "{item}");
        }
    }

    #[test]
    fn a_raw_name_loses_its_mark() {
        assert_eq!(read("fn r#try() {}").0.unwrap().plain_name(), "try");
    }

    #[test]
    fn what_is_no_test_is_named() {
        for (item, part) in [
            ("struct S;", "not on `struct`"),
            ("pub mod tests {}", "not on `mod`"),
            ("const X: u8 = 1;", "not on `const`"),
            ("fn f();", "needs a body"),
            ("async fn f() {}", "block on the future"),
            ("const fn f() {}", "not evaluated at compile time"),
            ("unsafe fn f() {}", "an unsafe block in its body"),
            ("extern \"C\" fn f() {}", "`extern \"C\" fn f` cannot"),
            ("fn f<T>() {}", "has generic parameters"),
            ("fn f() where u8: Copy {}", "`where` clause"),
            ("fn f(&self) {}", "is not a method"),
            ("fn f(gpu: &Gpu, ...) {}", "is variadic"),
            ("fn f(gpu: Gpu) {}", "is lent the GPU"),
            ("fn f(gpu: &mut Gpu) {}", "need no `mut`"),
            ("fn f(gpu: &'static Gpu) {}", "not for `'static`"),
            ("fn f(n: usize) {}", "write `fn f(gpu: &Gpu, n: usize)`"),
            ("fn f(s: &str) {}", "write `fn f(gpu: &Gpu, s: &str)`"),
            ("fn f(gpu: Arc<Gpu>) {}", "the first parameter"),
            ("fn f(n: usize, gpu: &Gpu) {}", "`&Gpu` comes first"),
            ("fn f(gpu: &Gpu, a: u8, b: u8) {}", "as a tuple"),
            ("fn f() -> ! { loop {} }", "not `!`"),
        ] {
            let (_, wrong) = read(item);
            assert_eq!(wrong.len(), 1, "{item}: {wrong:?}");
            assert!(wrong[0].contains(part), "{item}: {wrong:?}");
        }
    }

    #[test]
    fn all_that_is_wrong_with_a_signature_is_found() {
        let (_, wrong) = read("async unsafe fn f<T>(gpu: Gpu, a: T, b: T) -> ! { loop {} }");
        assert_eq!(wrong.len(), 6, "{wrong:?}");
    }
}
