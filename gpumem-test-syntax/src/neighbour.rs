//! Neighbours: `"10GiB"`, `"30%"`, `"bfc:per_process_gpu_memory_fraction=0.45"`.

use crate::{one_of, parse_share, parse_size};

/// The names of policies that take their memory with their first request, whatever its size.
pub const TAKES_ALL: [&str; 5] = ["bfc", "tensorflow", "tf", "xla", "jax"];

/// The names of policies that take memory as they are asked for it.
pub const TAKES_AS_ASKED: [&str; 10] = [
    "driver",
    "cuda",
    "native",
    "eager",
    "direct",
    "lazy",
    "async",
    "stream-ordered",
    "caching",
    "pytorch",
];

/// What another process on the card takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neighbour<'a> {
    /// So many bytes.
    Bytes(u64),
    /// A ratio of the card's total.
    Share(f64),
    /// What this policy, with its options, takes by itself.
    Policy(&'a str),
}

/// Parses what another process on the card takes: a size, a share of the card, or a policy that
/// takes memory before it is asked for it. The options of a policy are not read.
///
/// # Errors
/// A sentence that names the text and the valid forms: an amount that is none or nothing, an
/// unknown policy, a policy that takes nothing by itself.
///
/// ```
/// # use gpumem_test_syntax::{Neighbour, parse_neighbour};
/// assert_eq!(parse_neighbour("10GiB"), Ok(Neighbour::Bytes(10 << 30)));
/// assert_eq!(parse_neighbour("30%"), Ok(Neighbour::Share(0.3)));
/// assert_eq!(parse_neighbour("tensorflow"), Ok(Neighbour::Policy("tensorflow")));
/// assert!(parse_neighbour("caching").unwrap_err().contains("name bytes"));
/// ```
pub fn parse_neighbour(text: &str) -> Result<Neighbour<'_>, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(
            "the string is empty: write what the other process takes, as in \"10GiB\"".to_owned(),
        );
    }
    if trimmed.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        let amount = if trimmed.ends_with('%') {
            parse_share(text).map(Neighbour::Share)
        } else {
            parse_size(text).map(Neighbour::Bytes)
        }?;
        if matches!(amount, Neighbour::Bytes(0) | Neighbour::Share(0.0)) {
            return Err(format!(
                "a neighbour of `{text}` takes nothing: write what it takes, as in \"10GiB\""
            ));
        }
        return Ok(amount);
    }
    let name = trimmed
        .split_once(':')
        .map_or(trimmed, |(name, _)| name)
        .trim();
    if TAKES_ALL.contains(&name) {
        return Ok(Neighbour::Policy(trimmed));
    }
    if TAKES_AS_ASKED.contains(&name) {
        return Err(takes_nothing(name));
    }
    Err(format!(
        "{}; or write a size or a share of the card, as in \"10GiB\" or \"30%\"",
        one_of("neighbour", "policies that take memory", name, &TAKES_ALL)
    ))
}

/// The sentence for a policy that takes memory only as it is asked for it.
pub fn takes_nothing(policy: &str) -> String {
    format!(
        "`{policy}` takes nothing until it is asked for memory, and nobody asks in a neighbour: name bytes, as in \"10GiB\" or \"30%\""
    )
}

#[cfg(test)]
mod tests {
    use super::{Neighbour, parse_neighbour};

    #[test]
    fn an_amount_or_a_policy_is_a_neighbour() {
        for (text, neighbour) in [
            (" 1.5 GiB", Neighbour::Bytes(3 << 29)),
            ("45%", Neighbour::Share(0.45)),
            ("jax", Neighbour::Policy("jax")),
            (
                " bfc:per_process_gpu_memory_fraction=0.45 ",
                Neighbour::Policy("bfc:per_process_gpu_memory_fraction=0.45"),
            ),
        ] {
            assert_eq!(parse_neighbour(text), Ok(neighbour), "{text}");
        }
    }

    #[test]
    fn what_is_no_neighbour_is_told_with_what_would_be() {
        for (text, part) in [
            ("", "the string is empty"),
            ("10", "has no unit"),
            ("10gib", "did you mean `GiB`?"),
            ("120%", "not between 0% and 100%"),
            ("-1GiB", "is not a size"),
            ("0B", "a neighbour of `0B` takes nothing"),
            ("0%", "a neighbour of `0%` takes nothing"),
            (
                "pytorch:max_split_size_mb:64",
                "`pytorch` takes nothing until",
            ),
            ("tensorflo", "did you mean `tensorflow`?"),
            ("notebook", "write a size or a share of the card"),
        ] {
            let sentence = parse_neighbour(text).unwrap_err();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
