//! Tests in modules, in functions, with raw names, without a prelude, from macros.
#![no_implicit_prelude]

mod outer {
    pub mod inner {
        #[::gpumem_test::gpu_mem_test(budget = "1GiB", max_leak = "steady", ignore, snapshot)]
        fn nested(_: &::gpumem_test::Gpu) {}

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

#[::gpumem_test::gpu_mem_test(snapshot)]
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

fn main() {
    #[::gpumem_test::gpu_mem_test]
    fn local() {}
}
