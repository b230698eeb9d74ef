//! Tests in modules, in functions, with raw names, without a prelude, from macros.
#![no_implicit_prelude]

mod outer {
    mod inner {
        #[::gpumem_test::gpu_mem_test(budget = "1GiB", max_leak = "steady", ignore)]
        fn nested(_: &::gpumem_test::Gpu) {}

        const INDEX: u8 = 2;

        #[::gpumem_test::gpu_mem_test(args = [1, INDEX])]
        fn index(_: &::gpumem_test::Gpu, _: u8) {}

        // The same name as elsewhere, and names that the expansion might be thought to use.
        #[::gpumem_test::gpu_mem_test(args = [Some, None])]
        fn gpu(_gpu: &::gpumem_test::Gpu, _: Kind) {}

        #[derive(Clone, Copy)]
        enum Kind {
            Some,
            None,
        }
        use Kind::{None, Some};
    }
}

#[::gpumem_test::gpu_mem_test]
fn nested() {}

#[::gpumem_test::gpu_mem_test(ignore = "why")]
fn r#try(_: &::gpumem_test::Gpu) {}

macro_rules! tests {
    ($($name:ident: $budget:literal, $values:expr, $value:ty;)*) => {$(
        #[::gpumem_test::gpu_mem_test(budget = $budget, args = $values)]
        fn $name(_: &::gpumem_test::Gpu, _: $value) {}
    )*};
}
tests! {
    small: "1MiB", [1, 2], u8;
    large: "50%", ["a", "b"], &str;
}

fn outside() {
    #[::gpumem_test::gpu_mem_test]
    fn local() {}
}

#[::core::prelude::v1::test]
fn a_test_is_named_by_its_module_and_its_name_without_marks() {
    outside();
    for (module, name) in [
        ("attribute::places", "try"),
        ("attribute::places", "local"),
        ("attribute::places", "small"),
        ("attribute::places::outer::inner", "gpu"),
        ("attribute::places::outer::inner", "index"),
    ] {
        ::std::assert_eq!(super::entry(name).module, module, "{name}");
    }
    ::std::assert_eq!(super::entry("gpu").args, ["Some", "None"]);
    ::std::assert_eq!(super::entry("large").args, ["a", "b"]);
}
