//! The caching policy against recordings of PyTorch's allocator.

mod config;
mod recording;
mod replay;

use std::collections::BTreeMap;
use std::path::Path;

use gpumem_test::memory_summary;

use self::config::{ConfigCase, config_case};
use self::recording::{Case, Layout, read_cases};
use self::replay::Replay;
use crate::case::CaseResult;

/// Replays a file of `caching/synthetic`.
///
/// # Errors
/// If the file is not one.
pub(crate) fn synthetic(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_file(path, Layout::Synthetic)
}

/// Replays `caching/directed.jsonl.gz` or a file like it.
///
/// # Errors
/// If the file is not one.
pub(crate) fn directed(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_file(path, Layout::Directed)
}

/// Parses the strings of `caching/config.jsonl.gz`; each is one step.
///
/// # Errors
/// If the file is not one.
pub(crate) fn config(path: &Path) -> Result<Vec<CaseResult>, String> {
    read_cases::<ConfigCase>(path)?
        .into_iter()
        .map(|case| Ok(config_case(&case)))
        .collect()
}

/// Prints the statistics beside a table of `caching/summary` and compares, a line a step.
///
/// # Errors
/// If the statistics cannot be read.
pub(crate) fn summary(path: &Path) -> Result<Vec<CaseResult>, String> {
    let name = path.file_name().map_or_else(String::new, |name| {
        name.to_string_lossy().replace(".txt", "")
    });
    let beside = path.with_file_name("summary_stats.json");
    let text = std::fs::read_to_string(&beside)
        .map_err(|error| format!("cannot read its statistics {}: {error}", beside.display()))?;
    let recorded: BTreeMap<String, i64> =
        serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let statistics =
        gpumem_test::Statistics::from_by_name(&recorded).map_err(|error| error.to_string())?;
    let table = memory_summary(&statistics, 0, name.contains("abbreviated"));
    let expected = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let (mut equal, mut first_difference) = (0, None);
    let steps = table.lines().count().max(expected.lines().count());
    let (mut lines, mut wanted) = (table.lines(), expected.lines());
    for _ in 0..steps {
        let (line, wanted) = (lines.next(), wanted.next());
        if line == wanted {
            equal += 1;
        } else {
            first_difference.get_or_insert_with(|| format!("expected {wanted:?}, got {line:?}"));
        }
    }
    Ok(vec![CaseResult {
        name,
        equal,
        steps,
        first_difference,
    }])
}

fn replay_file(path: &Path, layout: Layout) -> Result<Vec<CaseResult>, String> {
    let cases: Vec<Case> = read_cases(path)?;
    Ok((0..)
        .zip(cases)
        .map(|(index, case)| {
            let name = case.name.clone().unwrap_or_else(|| index.to_string());
            let steps = case.ops.len();
            match Replay::new(case, layout) {
                Ok(replay) => replay.run(name),
                Err(error) => CaseResult {
                    name,
                    equal: 0,
                    steps,
                    first_difference: Some(error),
                },
            }
        })
        .collect())
}

#[test]
fn recorded_counters_are_read_and_named_alike() {
    let file = "traces/caching/summary/summary_stats.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let recorded: BTreeMap<String, i64> = serde_json::from_str(&text).unwrap();
    let statistics = gpumem_test::Statistics::from_by_name(&recorded).unwrap();
    assert_eq!(statistics.by_name(), recorded);
}
