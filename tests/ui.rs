//! What the attribute says to each mistake, and what it takes.
//!
//! `TRYBUILD=overwrite cargo test -p gpumem-tests --test ui` accepts new texts; review the diff.

/// Apart from `what_is_right_compiles`: trybuild checks all cases in one go only where none is run.
#[test]
fn each_mistake_has_its_message() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}

#[test]
fn what_is_right_compiles() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}
