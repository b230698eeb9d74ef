//! What a test may take: `&Gpu` first, then at most one argument.

use quote::ToTokens;
use syn::{Error, FnArg, Ident, Pat, PatType, Type};

use crate::mistakes::Mistakes;

/// The parameters, and whether the first is the GPU.
pub(crate) fn parameters(
    signature: &syn::Signature,
    mistakes: &mut Mistakes,
) -> Option<(Vec<PatType>, bool)> {
    let name = &signature.ident;
    let mut typed = Vec::new();
    for parameter in &signature.inputs {
        match parameter {
            FnArg::Typed(parameter) => typed.push(parameter.clone()),
            FnArg::Receiver(receiver) => {
                let sentence = format!(
                    "a test is not a method: write `fn {name}(gpu: &Gpu)` outside of any `impl`"
                );
                mistakes.add(Error::new_spanned(receiver, sentence));
                return None;
            }
        }
    }
    for surplus in typed.iter().skip(2) {
        let sentence = format!(
            "a test takes `&Gpu` and at most one argument: pass several values as a tuple, as in `args = [(1, 8), (2, 64)]` for `fn {name}(gpu: &Gpu, (a, b): (usize, usize))`"
        );
        mistakes.add(Error::new_spanned(surplus, sentence));
    }
    let mut gpu_is_first = true;
    if let Some(first) = typed.first() {
        let is_right = mistakes.keep(check_gpu(name, first, &typed)).is_some();
        gpu_is_first = is_right || is_any_gpu(&first.ty);
    }
    Some((typed, gpu_is_first))
}

/// Refuses a first parameter that is not `&Gpu`. A reference to a name that we do not know may be
/// another name for it: the compiler decides.
fn check_gpu(function: &Ident, first: &PatType, all: &[PatType]) -> syn::Result<()> {
    let written = first.ty.to_token_stream();
    let wrong = |sentence: String| Err(Error::new_spanned(&written, sentence));
    match visible(&first.ty) {
        Type::Reference(reference) => {
            let is_gpu = is_gpu(&reference.elem);
            if !is_gpu && is_plainly_something_else(&reference.elem) {
                return wrong(gpu_first(function, all));
            }
            if let Some(word) = &reference.mutability {
                let sentence = "a test shares the GPU: write `&Gpu`, whose methods need no `mut`";
                return Err(Error::new_spanned(word, sentence));
            }
            match &reference.lifetime {
                Some(lifetime) if lifetime.ident == "static" => Err(Error::new_spanned(
                    lifetime,
                    "the GPU is lent for one test, not for `'static`: write `&Gpu`",
                )),
                _ => Ok(()),
            }
        }
        ty if is_gpu(ty) => wrong("a test is lent the GPU: write `&Gpu`".to_owned()),
        _ => wrong(gpu_first(function, all)),
    }
}

fn gpu_first(function: &Ident, all: &[PatType]) -> String {
    if all.iter().skip(1).any(|later| is_any_gpu(&later.ty)) {
        return "`&Gpu` comes first, the argument second".to_owned();
    }
    let argument = match &all[0] {
        PatType { pat, ty, .. } if matches!(**pat, Pat::Ident(_)) => format!(
            "{}: {}",
            pat.to_token_stream(),
            ty.to_token_stream().to_string().replace("& ", "&")
        ),
        _ => "value: usize".to_owned(),
    };
    format!("the first parameter of a test is `&Gpu`: write `fn {function}(gpu: &Gpu, {argument})`")
}

/// The type out of the invisible groups and parentheses around it.
pub(crate) fn visible(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => visible(&group.elem),
        Type::Paren(group) => visible(&group.elem),
        other => other,
    }
}

/// `Gpu`, by value or by any reference.
fn is_any_gpu(ty: &Type) -> bool {
    match visible(ty) {
        Type::Reference(reference) => is_gpu(&reference.elem),
        other => is_gpu(other),
    }
}

fn is_gpu(ty: &Type) -> bool {
    match visible(ty) {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "Gpu"),
        _ => false,
    }
}

fn is_plainly_something_else(ty: &Type) -> bool {
    const KNOWN: [&str; 21] = [
        "bool", "char", "str", "f32", "f64", "u8", "u16", "u32", "u64", "u128", "usize", "i8",
        "i16", "i32", "i64", "i128", "isize", "String", "Vec", "Path", "PathBuf",
    ];
    match visible(ty) {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| KNOWN.contains(&last.ident.to_string().as_str())),
        _ => true,
    }
}
