//! The macro that users write once a test target.

/// The `main` function of a test target with `#[gpu_mem_test]` functions.
///
/// The target needs `harness = false` in Cargo.toml. Where that is forgotten, a test fails and says
/// so, instead of no test passing. The reverse goes unseen: a plain `#[test]` in a target with
/// `harness = false` is dropped by the compiler and never runs, so keep those in another target.
///
/// ```no_run
/// gpumem_test::main!();
/// ```
#[macro_export]
macro_rules! main {
    () => {
        fn main() -> ::std::process::ExitCode {
            $crate::__private::main($crate::__private::Program {
                package: ::std::env!("CARGO_PKG_NAME"),
                crate_name: ::std::env!("CARGO_CRATE_NAME"),
                file: ::std::file!(),
                target_tmpdir: ::std::option_env!("CARGO_TARGET_TMPDIR"),
            })
        }

        // Compiled by libtest's harness only, which must not be there.
        #[test]
        fn gpumem_test_needs_harness_false() {
            $crate::__private::harness_forgotten(::std::env!("CARGO_CRATE_NAME"), ::std::file!())
        }
    };
}
