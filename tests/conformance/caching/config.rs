//! Configuration strings: verdict, message, settings in force.

use gpumem_test::CachingConfig;
use serde::Deserialize;

use crate::case::CaseResult;

/// A configuration string and what came of it.
#[derive(Deserialize)]
pub(super) struct ConfigCase {
    text: String,
    error: Option<String>,
    message: Option<String>,
    after: ConfigAfter,
}

#[derive(Debug, Deserialize, PartialEq)]
struct ConfigAfter {
    large_segment_mb: i64,
    max_split_mb: i64,
    max_non_split_rounding_mb: i64,
    gc: f64,
    expandable: bool,
    fraction: f64,
    divisions: [u64; 16],
}

/// Parses one string, which is one step.
pub(super) fn config_case(case: &ConfigCase) -> CaseResult {
    let mut config = CachingConfig::default();
    let result = config.update(&case.text);
    let mib = |bytes: gpumem_test::Bytes| (bytes.get() >> 20) as i64;
    let after = ConfigAfter {
        large_segment_mb: mib(config.large_segment_size),
        max_split_mb: config.max_split_size.map_or(-1, mib),
        max_non_split_rounding_mb: mib(config.max_non_split_rounding),
        gc: config.garbage_collection_threshold,
        expandable: config.expandable_segments,
        fraction: config.per_process_memory_fraction,
        divisions: config.roundup_power2_divisions,
    };
    let verdict = match (&case.error, &result) {
        (None, Ok(_)) => Ok(()),
        (None, Err(error)) => Err(format!("refused: {error}")),
        (Some(kind), Ok(_)) => Err(format!("accepted, the original said {kind}")),
        (Some(_), Err(error)) => {
            let message = case.message.as_deref().unwrap_or_default();
            // What precedes it names a line of the original's source.
            let message = message
                .rsplit("please report a bug to PyTorch. ")
                .next()
                .unwrap_or_default();
            if error.to_string().contains(message) {
                Ok(())
            } else {
                Err(format!("said `{error}`, the original `{message}`"))
            }
        }
    };
    let difference = verdict.err().or_else(|| {
        (after != case.after).then(|| format!("settings {after:?}, recorded {:?}", case.after))
    });
    CaseResult {
        name: case.text.clone(),
        equal: usize::from(difference.is_none()),
        steps: 1,
        first_difference: difference,
    }
}
