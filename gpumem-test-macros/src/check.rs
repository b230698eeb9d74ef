//! Options that are right alone and wrong together, or with the function under them.

use quote::ToTokens;
use syn::Error;

use crate::mistakes::Mistakes;
use crate::options::{Given, Options};
use crate::signature::Function;
use crate::value::{Budget, Leak, Share, Size};

/// Adds what is wrong with the options together.
pub(crate) fn check_options(options: &Options, mistakes: &mut Mistakes) {
    if let (Some(should), Some(allow)) = (&options.should_oom, &options.allow_oom) {
        let sentence = format!(
            "`{}` already lets an out-of-memory reach the code: take out `{}`, or keep it alone if none must occur",
            should.name, allow.name
        );
        mistakes.add(allow.mistake(sentence));
    }
    if let Some(tolerance) = &options.tolerance
        && !options.has("snapshot")
    {
        let sentence = "`tolerance` says how far a test may be from its snapshot, but there is none: add `snapshot`";
        mistakes.add(Error::new(tolerance.name.span(), sentence));
    }
    check_bytes(options, mistakes);
    for bound in [
        &options.max_fragmentation,
        &options.max_slack,
        &options.max_waste,
    ]
    .into_iter()
    .flatten()
    .filter(|bound| bound.value == Share(1.0))
    {
        let sentence = format!(
            "`{}` of {} can never fail, because a share is never more: lower it or take it out",
            bound.name,
            bound.text()
        );
        mistakes.add(bound.mistake(sentence));
    }
}

/// A limit in bytes, with what the user calls it.
struct Limit {
    bytes: u64,
    name: String,
    text: String,
}

impl Limit {
    fn new<T>(given: &Given<T>, bytes: u64) -> Self {
        Self {
            bytes,
            name: given.name.to_string(),
            text: given.text(),
        }
    }
}

/// Leaked bytes are a part of allocated ones, those of reserved ones, and those stay within the
/// budget: a bound above one further out could never fail first.
fn check_bytes(options: &Options, mistakes: &mut Mistakes) {
    let mut outer: Vec<Limit> = Vec::new();
    if let Some(budget) = &options.budget
        && let Budget::Bytes(bytes) = budget.value
    {
        outer.push(Limit::new(budget, bytes));
    }
    for bound in [&options.max_reserved, &options.max_allocated]
        .into_iter()
        .flatten()
    {
        let Size(bytes) = bound.value;
        check_inner(bound, bytes, &outer, mistakes);
        outer.push(Limit::new(bound, bytes));
    }
    if let Some(bound) = &options.max_leak
        && let Leak::Bytes(bytes) = bound.value
    {
        check_inner(bound, bytes, &outer, mistakes);
    }
}

fn check_inner<T>(bound: &Given<T>, bytes: u64, outer: &[Limit], mistakes: &mut Mistakes) {
    let Some(limit) = outer.iter().find(|limit| bytes > limit.bytes) else {
        return;
    };
    let figure = match bound.name.to_string().as_str() {
        "max_reserved" => "reserved bytes",
        "max_allocated" => "allocated bytes",
        _ => "leaked bytes",
    };
    let sentence = format!(
        "`{}` of {} can never fail, because `{}` keeps {figure} within {}: lower it or take it out",
        bound.name,
        bound.text(),
        limit.name,
        limit.text
    );
    mistakes.add(bound.mistake(sentence));
}

/// Adds what is wrong with the options for this function.
pub(crate) fn check_function(options: &Options, function: &Function, mistakes: &mut Mistakes) {
    let name = &function.name;
    match (&function.argument, &options.args) {
        (Some(argument), _) if !options.has("args") => {
            let sentence = format!(
                "nothing is passed as `{}`: add its values, as in `args = [1, 8, 64]`, or take the parameter out",
                argument.pat.to_token_stream()
            );
            mistakes.add(Error::new_spanned(argument, sentence));
        }
        (None, Some(args)) if function.lacks_argument() => {
            let sentence = format!(
                "`args` passes each value as the last parameter, but `{name}` has none for it: write `fn {name}(gpu: &Gpu, value: …)`"
            );
            mistakes.add(Error::new(args.name.span(), sentence));
        }
        _ => {}
    }
    for attribute in &function.attributes {
        mistakes.keep(check_attribute(attribute));
    }
}

/// Refuses an attribute of another harness, and says which option does what it did.
fn check_attribute(attribute: &syn::Attribute) -> syn::Result<()> {
    let path = attribute.path();
    let Some(last) = path.segments.last() else {
        return Ok(());
    };
    let written = path.to_token_stream().to_string().replace(' ', "");
    let sentence = match last.ident.to_string().as_str() {
        "test" | "bench" => format!(
            "`#[{written}]` beside `#[gpu_mem_test]`: take it out, the harness of gpumem-test runs this function"
        ),
        "should_panic" => "`#[should_panic]` beside `#[gpu_mem_test]`: a panic fails the test; write `#[gpu_mem_test(should_oom)]` for an out-of-memory, or catch the panic in the body".to_owned(),
        "ignore" => format!(
            "`#[ignore]` beside `#[gpu_mem_test]`: write `#[gpu_mem_test({})]`",
            attribute.meta.to_token_stream()
        ),
        "rstest" | "test_case" | "test_matrix" | "case" => format!(
            "`#[{written}]` beside `#[gpu_mem_test]`: one attribute makes the tests; write `#[gpu_mem_test(args = [1, 8, 64])]` for one test a value"
        ),
        "gpu_mem_test" => {
            "a second `#[gpu_mem_test]` on the same function: put all options in one".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(attribute, sentence))
}

#[cfg(test)]
mod tests {
    use super::{check_function, check_options};
    use crate::mistakes::{Mistakes, sentences};
    use crate::options::Options;
    use crate::signature::Function;

    fn wrong(options: &str, item: &str) -> Vec<String> {
        let mut mistakes = Mistakes::default();
        let options = Options::parse(options.parse().unwrap(), &mut mistakes);
        check_options(&options, &mut mistakes);
        if let Some(function) = Function::parse(item.parse().unwrap(), &mut mistakes) {
            check_function(&options, &function, &mut mistakes);
        }
        mistakes
            .into_result()
            .map_or_else(sentences, |()| Vec::new())
    }

    #[test]
    fn what_can_fail_is_taken() {
        for options in [
            "budget = \"2GiB\", max_reserved = \"2GiB\", max_allocated = \"2GiB\"",
            "budget = \"80%\", max_reserved = \"200GiB\"",
            "max_leak = \"steady\", max_allocated = \"0B\"",
            "max_slack = \"99.9%\", snapshot, tolerance = \"100%\"",
            "should_oom, budget = \"1MiB\"",
        ] {
            assert_eq!(wrong(options, "fn f() {}"), [""; 0], "{options}");
        }
    }

    #[test]
    fn what_can_never_fail_is_refused() {
        for (options, part) in [
            (
                "budget = \"2GiB\", max_reserved = \"3GiB\"",
                "`max_reserved` of 3GiB can never fail, because `budget` keeps reserved bytes within 2GiB",
            ),
            (
                "max_allocated = \"3GiB\", max_reserved = \"2 GiB\"",
                "`max_allocated` of 3GiB can never fail, because `max_reserved` keeps allocated bytes within 2 GiB",
            ),
            (
                "max_allocated = \"1MiB\", max_leak = \"1GB\"",
                "because `max_allocated` keeps leaked bytes within 1MiB",
            ),
            (
                "max_fragmentation = \"100%\"",
                "because a share is never more",
            ),
            ("allow_oom, should_oom", "take out `allow_oom`"),
            ("tolerance = \"2%\"", "add `snapshot`"),
        ] {
            let wrong = wrong(options, "fn f() {}");
            assert_eq!(wrong.len(), 1, "{options}: {wrong:?}");
            assert!(wrong[0].contains(part), "{options}: {wrong:?}");
        }
    }

    #[test]
    fn arguments_and_parameters_come_together() {
        let item = "fn f(gpu: &Gpu, n: usize) {}";
        assert_eq!(wrong("args = [1]", item), [""; 0]);
        assert!(wrong("", item)[0].contains("nothing is passed as `n`"));
        for item in ["fn f() {}", "fn f(gpu: &Gpu) {}"] {
            assert!(wrong("args = [1]", item)[0].contains("has none for it"));
        }
        // One sentence is enough where the list itself is wrong, or the first parameter.
        assert_eq!(wrong("args = []", item).len(), 1);
        assert_eq!(wrong("args = [1]", "fn f(n: usize) {}").len(), 1);
    }

    #[test]
    fn attributes_of_other_harnesses_are_refused() {
        for (attribute, part) in [
            ("#[test]", "`#[test]` beside"),
            ("#[tokio::test]", "`#[tokio::test]` beside"),
            ("#[should_panic(expected = \"x\")]", "should_oom"),
            ("#[ignore]", "write `#[gpu_mem_test(ignore)]`"),
            (
                "#[ignore = \"why\"]",
                "write `#[gpu_mem_test(ignore = \"why\")]`",
            ),
            ("#[test_case(1)]", "one test a value"),
            ("#[gpumem_test::gpu_mem_test]", "all options in one"),
        ] {
            let wrong = wrong("", &format!("{attribute} fn f() {{}}"));
            assert_eq!(wrong.len(), 1, "{attribute}: {wrong:?}");
            assert!(wrong[0].contains(part), "{attribute}: {wrong:?}");
        }
        let fine = "/// Docs.\n#[allow(unused)] #[cfg(unix)] fn f() {}";
        assert_eq!(wrong("", fine), [""; 0]);
    }
}
