//! Variables that name an allocator: others than bfc are policies of their own.

use crate::error::Error;

/// What `XLA_PYTHON_CLIENT_ALLOCATOR` can name.
///
/// Source: JAX 0.11.2.
const OF_XLA: [&str; 6] = ["default", "bfc", "platform", "cuda_async", "vmm", "address"];

/// Checks the value of `XLA_PYTHON_CLIENT_ALLOCATOR`.
///
/// # Errors
/// If it names another allocator than bfc, or none.
pub(super) fn of_xla(name: &str, value: &str) -> Result<(), Error> {
    match value.to_ascii_lowercase().as_str() {
        "" | "default" | "bfc" => Ok(()),
        "platform" | "address" => Err(other(name, value, "eager")),
        "cuda_async" => Err(other(name, value, "async")),
        "vmm" => Err(Error::configuration(format!(
            "`{name}={value}`: the allocator `vmm` is not in this version"
        ))),
        _ => Err(Error::configuration(gpumem_test_syntax::one_of(
            "allocator",
            "allocators",
            value,
            &OF_XLA,
        ))),
    }
}

/// Checks the value of `TF_GPU_ALLOCATOR`; a text that TensorFlow does not know means bfc, and is
/// returned to warn of.
///
/// # Errors
/// If it names another allocator than bfc.
pub(super) fn of_tensorflow<'a>(name: &str, value: &'a str) -> Result<Option<&'a str>, Error> {
    match value {
        "cuda_malloc_async" => Err(other(name, value, "async")),
        "cuda_malloc" => Err(other(name, value, "eager")),
        "memory_guard" => Err(Error::configuration(format!(
            "`{name}={value}`: guard words are not in this version"
        ))),
        "" => Ok(None),
        unknown => Ok(Some(unknown)),
    }
}

fn other(name: &str, value: &str, policy: &str) -> Error {
    Error::configuration(format!(
        "`{name}={value}` replaces bfc by another allocator: use policy `{policy}`"
    ))
}
