//! Names that stand for what only a compiler could name.

use std::hash::{BuildHasher as _, BuildHasherDefault};

use rustc_hash::FxHasher;

/// The last name of an expression, without template arguments: `norm` of `&math::norm<float, 4>`.
pub(super) fn base_name(expression: &str) -> Option<&str> {
    let plain = expression.trim_start_matches(['&', '(', ' ']);
    let plain = plain.split(['<', ')']).next()?.trim_end();
    let base = plain.rsplit("::").next()?.trim_start();
    let is_name = !base.is_empty()
        && base
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
    is_name.then_some(base)
}

/// A name that looks mangled and is another for another expression.
pub(super) fn mangled(expression: &str, base: &str) -> String {
    let hash = BuildHasherDefault::<FxHasher>::default().hash_one(expression);
    format!("_Z{}{base}I{hash:016x}E", base.len())
}
