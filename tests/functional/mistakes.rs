//! What is found before any test runs.

use super::program::{program, run, told};

#[test]
fn mistakes_of_all_tests_are_named_before_any_runs() {
    let mut command = program(env!("CARGO_BIN_EXE_fixture-mistakes"), &[]);
    insta::assert_snapshot!(told(&mut command));
}

#[test]
fn a_list_with_mistakes_is_no_list() {
    let arguments = ["--list", "--format", "terse"];
    let output = run(&mut program(
        env!("CARGO_BIN_EXE_fixture-mistakes"),
        &arguments,
    ));
    assert_eq!(
        output.status.code(),
        Some(i32::from(gpumem_test::exit_code::NOT_STARTED))
    );
    assert_eq!(output.stdout, b"");
}
