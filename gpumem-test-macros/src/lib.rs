//! The attribute of gpumem-test.
