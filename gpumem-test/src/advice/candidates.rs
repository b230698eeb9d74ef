//! What to try instead of the policy in force, smallest change first.
//!
//! All of it stands in two tables. What this version does not have, or the options in force do not
//! go with, is left out when it cannot be made.

use crate::config::{PolicyKind, PolicySpec};

/// A policy to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) policy: PolicySpec,
    /// The options that it changes; the policy's name where it is another one. Where one of them
    /// helps already, more of it is no smaller change.
    pub(super) changes: Vec<&'static str>,
}

/// Options of a policy that are worth trying.
struct Knobs {
    kinds: &'static [PolicyKind],
    /// What stands between an option and its value.
    separator: char,
    /// An option and its values, from the one that is tried first on.
    options: &'static [(&'static str, &'static [&'static str])],
    /// Two options together.
    pairs: &'static [[(&'static str, &'static str); 2]],
}

const EXPANDABLE: (&str, &str) = ("expandable_segments", "True");
const COLLECT: (&str, &str) = ("garbage_collection_threshold", "0.8");
const ROUND: (&str, &str) = ("roundup_power2_divisions", "8");

const KNOBS: [Knobs; 3] = [
    Knobs {
        kinds: &[PolicyKind::Caching],
        separator: ':',
        options: &[
            ("expandable_segments", &["True", "False"]),
            ("max_split_size_mb", &["128", "256", "512"]),
            ("roundup_power2_divisions", &["4", "8", "16"]),
            ("garbage_collection_threshold", &["0.8", "0.6"]),
            ("large_segment_size_mb", &["64", "128"]),
        ],
        pairs: &[
            [EXPANDABLE, COLLECT],
            [EXPANDABLE, ROUND],
            [("max_split_size_mb", "128"), COLLECT],
            [("max_split_size_mb", "512"), COLLECT],
            [("max_split_size_mb", "256"), ROUND],
            [ROUND, COLLECT],
        ],
    },
    Knobs {
        kinds: &[PolicyKind::Bfc, PolicyKind::TensorFlow, PolicyKind::Xla],
        separator: '=',
        options: &[
            ("allow_growth", &["true", "false"]),
            ("garbage_collection", &["true", "false"]),
            ("fragmentation_fraction", &["0.01", "0.1"]),
        ],
        pairs: &[
            [("allow_growth", "true"), ("garbage_collection", "true")],
            [
                ("allow_growth", "false"),
                ("fragmentation_fraction", "0.01"),
            ],
        ],
    },
    Knobs {
        kinds: &[PolicyKind::Async],
        separator: '=',
        options: &[("release_threshold", &["0", "64MiB", "max"])],
        pairs: &[],
    },
];

/// Policies to try instead, from the nearest to the farthest. Not `lazy`: which blocks kernels touch
/// is in no ledger, so that nothing could be said of its pages.
const OTHERS: [&str; 7] = [
    "caching",
    "caching:expandable_segments:True",
    "driver",
    "async",
    "eager",
    "bfc",
    "bfc:allow_growth=true",
];

/// All that can be tried instead of `policy`: one option changed, an option left out, two options
/// changed, another policy.
pub(super) fn instead_of(policy: &PolicySpec) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |candidate: Candidate| {
        let is_new = |known: &Candidate| known.policy != candidate.policy;
        if candidate.policy != *policy && found.iter().all(is_new) {
            found.push(candidate);
        }
    };
    let with = |options: String, changes: Vec<&'static str>| Candidate {
        policy: PolicySpec {
            kind: policy.kind,
            options,
        },
        changes,
    };
    let knobs = KNOBS
        .iter()
        .find(|knobs| knobs.kinds.contains(&policy.kind));
    if let Some(knobs) = knobs {
        let set = |options: &str, (name, value)| set(options, knobs.separator, name, value);
        for (name, values) in knobs.options {
            for value in *values {
                add(with(set(&policy.options, (name, value)), vec![name]));
            }
            add(with(without(&policy.options, name), vec![name]));
        }
        for [first, second] in knobs.pairs {
            let options = set(&set(&policy.options, *first), *second);
            add(with(options, vec![first.0, second.0]));
        }
    }
    for text in OTHERS {
        let other: PolicySpec = text
            .parse()
            .unwrap_or_else(|error| unreachable!("the table names policies: {error}"));
        if other.kind != policy.kind {
            let changes = vec![other.kind.name()];
            add(Candidate {
                policy: other,
                changes,
            });
        }
    }
    found
}

/// `options` with one of them set, in its place if it stands there already.
fn set(options: &str, separator: char, name: &str, value: &str) -> String {
    let setting = format!("{name}{separator}{value}");
    let mut parts = parts(options);
    match parts.iter().position(|part| is_option(part, name)) {
        Some(place) => parts[place] = &setting,
        None => parts.push(&setting),
    }
    parts.join(",")
}

/// `options` without one of them.
fn without(options: &str, name: &str) -> String {
    let mut parts = parts(options);
    parts.retain(|part| !is_option(part, name));
    parts.join(",")
}

fn is_option(part: &str, name: &str) -> bool {
    part.split([':', '=']).next().map(str::trim) == Some(name)
}

/// The options of a text, which commas separate but for those in brackets.
fn parts(options: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    options
        .split(|character: char| {
            match character {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{instead_of, set, without};
    use crate::config::PolicySpec;

    #[test]
    fn an_option_is_set_in_its_place() {
        let options = "roundup_power2_divisions:[64:8,>:4], max_split_size_mb:64";
        assert_eq!(
            set(options, ':', "roundup_power2_divisions", "4"),
            "roundup_power2_divisions:4,max_split_size_mb:64"
        );
        assert_eq!(
            set(options, ':', "expandable_segments", "True"),
            "roundup_power2_divisions:[64:8,>:4],max_split_size_mb:64,expandable_segments:True"
        );
        assert_eq!(
            without(options, "max_split_size_mb"),
            "roundup_power2_divisions:[64:8,>:4]"
        );
        assert_eq!(set("", '=', "allow_growth", "true"), "allow_growth=true");
    }

    #[test]
    fn the_smallest_change_comes_first_and_nothing_twice() {
        let policy: PolicySpec = "caching:max_split_size_mb:128".parse().unwrap();
        let all = instead_of(&policy);
        let texts: Vec<String> = all.iter().map(|one| one.policy.to_string()).collect();
        assert_eq!(
            texts[0],
            "caching:max_split_size_mb:128,expandable_segments:True"
        );
        assert!(texts.contains(&"caching".to_owned()), "{texts:?}");
        assert!(!texts.contains(&policy.to_string()));
        let sorted: std::collections::BTreeSet<&String> = texts.iter().collect();
        assert_eq!(sorted.len(), texts.len());
        let sizes: Vec<usize> = all
            .iter()
            .take_while(|one| one.policy.kind == policy.kind)
            .map(|one| one.changes.len())
            .collect();
        assert!(sizes.is_sorted(), "{sizes:?}");
    }

    #[test]
    fn a_policy_without_options_is_told_of_the_others() {
        let texts: Vec<String> = instead_of(&PolicySpec::default())
            .iter()
            .map(|one| one.policy.to_string())
            .collect();
        assert_eq!(texts[0], "caching");
        assert!(!texts.contains(&"driver".to_owned()));
    }
}
