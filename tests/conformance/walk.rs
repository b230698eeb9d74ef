//! The files of a folder, and patterns for their paths.

use std::io;
use std::path::Path;

/// The paths of all files below a folder, relative to it and with `/` between the parts.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    collect(folder, "", &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // Follows links: a recording may be one.
        if std::fs::metadata(entry.path())?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a path fits a pattern: `*` stands for any part of one name, and at the very end for any
/// number of names.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    if let Some(folder) = pattern.strip_suffix("/*") {
        return path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'));
    }
    let (mut patterns, mut names) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if fits_name(pattern, name) => {}
            _ => return false,
        }
    }
}

fn fits_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[test]
fn patterns_fit_what_they_say() {
    for (pattern, path, fitting) in [
        ("README.md", "README.md", true),
        ("README.md", "caching/README.md", false),
        ("caching/config*.jsonl.gz", "caching/config.jsonl.gz", true),
        ("caching/config*.jsonl.gz", "caching/config2.jsonl.gz", true),
        (
            "caching/config*.jsonl.gz",
            "caching/directed.jsonl.gz",
            false,
        ),
        (
            "caching/real/*/*.pickle.gz",
            "caching/real/default/gpt.pickle.gz",
            true,
        ),
        (
            "caching/real/*/*.pickle.gz",
            "caching/real/gpt.pickle.gz",
            false,
        ),
        (
            "caching/real/*/*.pickle.gz",
            "caching/real/default/gpt.stats.json",
            false,
        ),
        ("bfc/*", "bfc/extra.jsonl.gz", true),
        ("bfc/*", "bfc/more/extra.jsonl.gz", true),
        ("bfc/*", "bfcextra", false),
    ] {
        assert_eq!(fits(pattern, path), fitting, "{pattern} {path}");
    }
}
