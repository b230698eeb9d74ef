//! The attribute of gpumem-test, re-exported by that crate as `gpumem_test::gpu_mem_test`.
//!
//! The tokens between the parentheses are cut into options (`clause`), each is read by the sort of
//! value that it takes (`value`, listed in `options`), the function is read (`signature`, `parameters`), both are
//! compared (`check`), and what is left becomes one registered entry (`expand`). Mistakes of all
//! these steps are collected and reported at once (`mistakes`). No step reads the function's body.

mod check;
mod clause;
mod expand;
mod mistakes;
mod options;
mod parameters;
mod signature;
mod value;

use mistakes::Mistakes;
use options::Options;
use signature::Function;

/// Makes a function a test of the GPU memory that it needs.
///
/// The function takes `&Gpu`, nothing, or `&Gpu` and one argument; it returns `()` or a `Result`,
/// and may panic. It stays as it is and can still be called. The test target has
/// `harness = false` in `Cargo.toml` and one `gpumem_test::main!();`.
///
/// ```ignore
/// use gpumem_test::{Gpu, TestResult, gpu_mem_test};
///
/// #[gpu_mem_test(budget = "2GiB", policy = "caching", max_allocated = "1.2GiB", snapshot)]
/// fn decode_keeps_its_cache_small(gpu: &Gpu) -> TestResult {
///     // …
///     Ok(())
/// }
///
/// #[gpu_mem_test(args = [1, 8, 64], policy = ["driver", "caching"], timeout = "60s")]
/// fn a_batch_fits(gpu: &Gpu, batch: usize) {
///     // Six tests: a_batch_fits::driver::1, …, a_batch_fits::caching::64.
/// }
///
/// gpumem_test::main!();
/// ```
///
/// # Options
/// | option | value | meaning | without it |
/// |---|---|---|---|
/// | `budget` | `"2GiB"`, `"80%"` | hard cap on reserved bytes: the device refuses any byte beyond it, and the code sees it as the device's total | the device's own memory |
/// | `policy` | `"caching"`, `["driver", "caching"]` | the allocator and its options; a list makes one test each, and a table of their verdicts | `"driver"` |
/// | `device` | `"cuda:0"`, `"sim:rtx4090"`, `"sim:24GiB"`, `"sim:card.json"`, `"sim:h200*2"` | where the test runs; one that names a GPU is skipped, with the reason, where there is none | `"auto"`: a GPU where there is one, else `"sim"` |
/// | `neighbours` | `"10GiB"`, `["30%", "tensorflow"]` | other processes on the card, which take their share before the test begins: a size, a share of the card, or what a policy takes by itself (`bfc`, `tensorflow`, `xla`), each with a context of its own | the card is the test's alone |
/// | `max_allocated` | a size | highest peak of allocated bytes | no bound |
/// | `max_reserved` | a size | highest peak of reserved bytes | no bound |
/// | `max_process_memory` | a size | highest peak of the whole process on the GPU, as NVML counts it: context, modules and libraries too. On a simulated device the test is skipped, with the reason | no bound |
/// | `max_fragmentation` | a share | highest fragmentation, at the reserved peak and at each out-of-memory | no bound |
/// | `max_slack` | a share | highest (reserved − allocated) ÷ reserved, at the reserved peak | no bound |
/// | `max_waste` | a share | highest (allocated − requested) ÷ allocated, at the reserved peak | no bound |
/// | `max_leak` | a size, `"steady"` | bytes that may stay allocated after the test; `"steady"` runs the body twice and counts only what the second run adds | `"0B"` |
/// | `max_allocations` | a count | highest count of requests | no bound |
/// | `max_device_allocations` | a count | highest count of driver allocations | no bound |
/// | `should_oom` | | at least one out-of-memory must reach the code, which may then end as it will, short of a crash | one fails the test |
/// | `allow_oom` | | an out-of-memory that reaches the code does not fail the test | one fails the test |
/// | `snapshot` | none, `"name"` | compares the summary with the accepted one, by insta; of a list of policies their table too, as the test `…::verdicts` | no comparison |
/// | `tolerance` | a share | how far each byte figure of the summary may be from the accepted one (pinned free bytes: in shares of the reserved peak); counts and the budget are exact | equal |
/// | `args` | `[1, 8, 64]` | one test for each value, passed as the last parameter | one test |
/// | `timeout` | `"60s"` | how long the test may run | no limit |
/// | `ignore` | none, `"why"` | runs only when asked for, with `--ignored` | it runs |
///
/// - A **size** is a number and a unit in a string, `"512MiB"` or `"1.5 GiB"`: `B`, binary `KiB`,
///   `MiB`, `GiB`, `TiB`, decimal `KB`, `MB`, `GB`, `TB`.
/// - A **share** is a percentage in a string, from `"0%"` to `"100%"`.
/// - A **duration** is a whole number and a unit in a string, above zero: `ms`, `s`, `min`, `h`.
/// - A **count** is an integer literal, `1_000`.
/// - A **snapshot's name** is part of a file's name: letters, digits, `_`, `-`, `.`, `=`, `+`,
///   without `..`, a `.` in front or the ending `.snap`. Where the options make several tests,
///   each adds its policy and its argument to the name.
///
/// A bound (`max_…`) is judged after the test, which runs on beyond it; the budget is enforced
/// while it runs.
///
/// # Names
/// A test is called `module::function[::policy][::argument]`. The argument's part is the text of a
/// string or a character, else the tokens of the value; what is not a letter, a digit, `_`, `.` or
/// `-` in ASCII becomes `-`, several in a row one, none at the ends (`Mode::Fast` is `Mode-Fast`,
/// `""` is `empty`, `"ü"`, of which nothing is left, is `-`). Two values of one name are an error. A function called `r#try` is named `try`.
///
/// # Errors
/// Values are checked when the test is compiled, policy and device strings when the harness
/// starts; of a neighbour that is a policy its name, then its options. Errors are reported all at once, each at its own place: unknown options and wrong
/// values; bounds that could never fail; `tolerance` without `snapshot`, `should_oom` with
/// `allow_oom`; `args` without a parameter for it, or a parameter without `args`; `async`, `const`,
/// `unsafe`, `extern` and generic functions and methods; `#[test]`, `#[should_panic]` and
/// `#[ignore]` on the same function.
///
/// # Limits
/// - The generated code says `::gpumem_test`: the dependency must have that name.
/// - Write `#[gpu_mem_test]` above other attributes. A `#[test]` above it is not seen: the compiler
///   removes such a function, unread, from a target with `harness = false`.
/// - A plain `#[test]` in the same target is not run: `harness = false` has the compiler drop it.
/// - A value of `args` is an expression: it is evaluated in the test's own process, each time the
///   body runs.
#[proc_macro_attribute]
pub fn gpu_mem_test(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut output = item.clone();
    let added = match checked(options.into(), item.into()) {
        Ok((options, function)) => expand::expand(&options, &function),
        Err(mistakes) => mistakes.to_compile_error(),
    };
    output.extend(proc_macro::TokenStream::from(added));
    output
}

/// Reads and checks everything.
///
/// # Errors
/// All mistakes in one.
fn checked(
    options: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> syn::Result<(Options, Function)> {
    let mut mistakes = Mistakes::default();
    let options = Options::parse(options, &mut mistakes);
    check::check_options(&options, &mut mistakes);
    let function = Function::parse(item, &mut mistakes);
    if let Some(function) = &function {
        check::check_function(&options, function, &mut mistakes);
    }
    mistakes.into_result()?;
    let function =
        function.unwrap_or_else(|| unreachable!("a function that cannot be read is a mistake"));
    Ok((options, function))
}
