//! "Did you mean": the nearest of a list of names.

/// The candidate nearest to `name`, if one is near enough to be meant.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// The sentence for an unknown name: ``unknown policy `x`, did you mean `y`? (policies: …)``.
///
/// `what` is the singular, `list` the plural word; `candidates` are printed in the order given.
pub fn one_of(what: &str, list: &str, name: &str, candidates: &[&str]) -> String {
    let hint = did_you_mean(name, candidates.iter().copied())
        .map(|near| format!(", did you mean `{near}`?"))
        .unwrap_or_default();
    format!(
        "unknown {what} `{name}`{hint} ({list}: {})",
        candidates.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, one_of};

    #[test]
    fn a_slip_finds_its_name() {
        assert_eq!(
            did_you_mean("cachng", ["driver", "caching"]),
            Some("caching")
        );
        assert_eq!(did_you_mean("zzz", ["driver", "caching"]), None);
    }

    #[test]
    fn the_sentence_lists_what_is_valid() {
        assert_eq!(
            one_of("policy", "policies", "drivr", &["driver", "caching"]),
            "unknown policy `drivr`, did you mean `driver`? (policies: driver, caching)"
        );
    }
}
