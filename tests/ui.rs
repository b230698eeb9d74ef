//! What the attribute says to each mistake, and where. What it takes is in `attribute/`.
//!
//! `TRYBUILD=overwrite cargo test -p gpumem-tests --test ui` accepts new texts; review the diff. A
//! few cases show the compiler's own words (`returns_*`, `*_of_another_type`, `variadic_fn`): they
//! follow the stable compiler of the day.

// One call with no case that is run: trybuild then checks all of them in one go.
#[test]
fn each_mistake_has_its_message() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
