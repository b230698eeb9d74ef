//! What a good use of the attribute becomes: one registered `TestEntry` beside the function.
//!
//! The code names only `::gpumem_test::__private` and `::core`. It allows no lint, because a crate
//! that forbids the lint would then not compile.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::options::Options;
use crate::signature::Function;
use crate::value::{
    Arg, Args, Budget, Count, Leak, Neighbours, Policies, Reason, Share, Size, SnapshotName,
};

/// The registration of `function`.
pub(crate) fn expand(options: &Options, function: &Function) -> TokenStream {
    let name = function.plain_name();
    // The user's own place, so that `line!()` and the like say where the function is.
    let place = function.name.span();
    let position = quote_spanned! {place=>
        file: ::core::file!(),
        line: ::core::line!(),
        column: ::core::column!(),
    };
    let fields = fields(options);
    let arg_names = args(options).map(|arg| &arg.name);
    let run = run(options, function);
    let compare = compare(options, place);
    quote! {
        const _: () = {
            ::gpumem_test::__private::inventory::submit! {
                ::gpumem_test::__private::TestEntry {
                    module: ::core::module_path!(),
                    name: #name,
                    #position
                    options: ::gpumem_test::__private::Options {
                        #(#fields,)*
                        ..::gpumem_test::__private::Options::DEFAULT
                    },
                    args: &[#(#arg_names),*],
                    run: #run,
                    compare: #compare,
                }
            }
        };
    }
}

fn args(options: &Options) -> impl Iterator<Item = &Arg> {
    let args = options.args.iter();
    args.flat_map(|given| {
        let Args(args) = &given.value;
        args
    })
}

/// The closure that calls the function. Its own names are invisible to the user's code: a test may
/// be called `gpu`, an argument be a constant `index`.
fn run(options: &Options, function: &Function) -> TokenStream {
    let local = |name| Ident::new(name, Span::mixed_site());
    let index = local("index");
    let gpu = local(if function.gpu.is_some() {
        "gpu"
    } else {
        "_gpu"
    });
    let call = |argument: Option<&syn::Expr>| {
        let name = &function.name;
        // A handle of the wrong type is shown where the function asks for it, a wrong result where
        // the function states it.
        let handle = function.gpu.iter().map(|place| {
            let mut gpu = gpu.clone();
            gpu.set_span(gpu.span().located_at(*place));
            gpu.into_token_stream()
        });
        let parameters = handle.chain(argument.map(ToTokens::to_token_stream));
        let place = Span::call_site().located_at(function.returned);
        let call = quote_spanned!(place=> #name(#(#parameters),*));
        quote!(::gpumem_test::__private::finish(#call))
    };
    if options.args.is_none() {
        let call = call(None);
        return quote!(|#gpu, _| #call);
    }
    let arms = args(options).enumerate().map(|(index, arg)| {
        let call = call(Some(&arg.value));
        quote!(#index => #call)
    });
    quote! {
        |#gpu, #index| match #index {
            #(#arms,)*
            _ => ::core::unreachable!("there is no argument {}", #index),
        }
    }
}

/// The closure that compares with the accepted snapshot, by insta's macro in the user's file.
fn compare(options: &Options, place: Span) -> TokenStream {
    if options.snapshot.is_none() {
        return quote!(|_| ::core::unreachable!("there is no snapshot to compare with"));
    }
    quote_spanned! {place=>
        |comparison| {
            let _bound = comparison.bind();
            ::gpumem_test::__private::insta::assert_snapshot!(
                comparison.name(),
                comparison.text()
            );
        }
    }
}

/// The fields of `__private::Options` that the attribute sets.
fn fields(options: &Options) -> Vec<TokenStream> {
    let mut fields = Vec::new();
    let mut set = |field: &str, value: TokenStream| {
        let field = Ident::new(field, Span::call_site());
        fields.push(quote!(#field: #value));
    };
    if let Some(given) = &options.budget {
        let budget = match given.value {
            Budget::Bytes(bytes) => quote!(Bytes(#bytes)),
            Budget::Share(ratio) => quote!(Share(#ratio)),
        };
        set(
            "budget",
            some(&quote!(::gpumem_test::__private::Budget::#budget)),
        );
    }
    if let Some(given) = &options.policy {
        let Policies(policies) = &given.value;
        set("policies", quote!(&[#(#policies),*]));
    }
    if let Some(given) = &options.neighbours {
        let Neighbours(neighbours) = &given.value;
        set("neighbours", quote!(&[#(#neighbours),*]));
    }
    if let Some(given) = &options.device {
        set("device", some(&given.value.0));
    }
    for (field, given) in [
        ("max_allocated", &options.max_allocated),
        ("max_reserved", &options.max_reserved),
        ("max_process_memory", &options.max_process_memory),
    ] {
        if let Some(Size(bytes)) = given.as_ref().map(|given| given.value) {
            set(field, some(&bytes));
        }
    }
    for (field, given) in [
        ("max_fragmentation", &options.max_fragmentation),
        ("max_slack", &options.max_slack),
        ("max_waste", &options.max_waste),
        ("tolerance", &options.tolerance),
    ] {
        if let Some(Share(ratio)) = given.as_ref().map(|given| given.value) {
            set(field, some(&ratio));
        }
    }
    if let Some(given) = &options.max_leak {
        let leak = match given.value {
            Leak::Bytes(bytes) => quote!(Bytes(#bytes)),
            Leak::Steady => quote!(Steady),
        };
        set("max_leak", quote!(::gpumem_test::__private::MaxLeak::#leak));
    }
    for (field, given) in [
        ("max_allocations", &options.max_allocations),
        ("max_device_allocations", &options.max_device_allocations),
    ] {
        if let Some(Count(count)) = given.as_ref().map(|given| given.value) {
            set(field, some(&count));
        }
    }
    for (field, given) in [
        ("should_oom", &options.should_oom),
        ("allow_oom", &options.allow_oom),
    ] {
        if given.is_some() {
            set(field, quote!(true));
        }
    }
    if let Some(given) = &options.snapshot {
        let SnapshotName(name) = &given.value;
        let name = option(name.as_ref());
        let snapshot = quote!(::gpumem_test::__private::SnapshotOption { name: #name });
        set("snapshot", some(&snapshot));
    }
    if let Some(given) = &options.timeout {
        // The grammar has no unit below a millisecond, and no timeout that 64 bits cannot hold.
        let milliseconds = u64::try_from(given.value.0.as_millis()).unwrap_or(u64::MAX);
        let milliseconds = Literal::u64_suffixed(milliseconds);
        let duration = quote!(::gpumem_test::__private::Duration::from_millis(#milliseconds));
        set("timeout", some(&duration));
    }
    if let Some(given) = &options.ignore {
        let Reason(reason) = &given.value;
        set("ignore", some(&option(reason.as_ref())));
    }
    fields
}

fn some(value: &impl ToTokens) -> TokenStream {
    quote!(::core::option::Option::Some(#value))
}

fn option<T: ToTokens>(value: Option<&T>) -> TokenStream {
    value.map_or_else(|| quote!(::core::option::Option::None), some)
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    fn expand(options: &str, item: &str) -> String {
        let parse = |text: &str| text.parse::<TokenStream>().unwrap();
        let (options, function) = crate::checked(parse(options), parse(item)).unwrap();
        super::expand(&options, &function).to_string()
    }

    #[test]
    fn each_argument_has_the_index_of_its_name() {
        let text = expand("args = [8, LAST]", "fn f(gpu: &Gpu, n: usize) {}");
        for part in [
            "args : & [\"8\" , \"LAST\"] ,",
            "0usize => :: gpumem_test :: __private :: finish (f (gpu , 8))",
            "1usize => :: gpumem_test :: __private :: finish (f (gpu , LAST))",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_function_gets_what_it_asks_for() {
        assert!(expand("", "fn f() {}").contains("finish (f ())"));
        assert!(expand("", "fn f(_: &Gpu) {}").contains("finish (f (gpu))"));
    }

    #[test]
    fn the_code_names_only_the_private_module_and_core() {
        let text = expand(
            "budget = \"1GiB\", policy = \"caching\", max_leak = \"steady\", snapshot = \"x\", \
             timeout = \"1s\", ignore, args = [1]",
            "fn f(gpu: &Gpu, n: usize) {}",
        );
        for path in text.split(":: gpumem_test").skip(1) {
            assert!(path.starts_with(" :: __private :: "), "{path}");
        }
        assert!(
            !text.contains("allow") && !text.contains("unsafe"),
            "{text}"
        );
    }

    #[test]
    fn only_a_test_with_a_snapshot_brings_insta() {
        assert!(expand("snapshot", "fn f() {}").contains("insta"));
        assert!(!expand("", "fn f() {}").contains("insta"));
    }
}
