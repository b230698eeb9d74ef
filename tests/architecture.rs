//! The rooms of the crate and the allowed directions between them.
//!
//! Reads every `crate::` path of `gpumem-test/src` and fails on an arrow that the table lacks.
//! Code under `cfg(test)` is exempt.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

// `mutant` ships nothing: it is the constant `false` outside the crate's own tests.
const VOCABULARY: [&str; 10] = [
    "abi", "bytes", "config", "error", "event", "guard", "heap_map", "ids", "mutant", "rounding",
];

/// A room and the rooms that it may use besides the vocabulary.
const DIRECTIONS: [(&str, &[&str]); 18] = [
    ("device", &[]),
    ("doctor", &["device"]),
    ("ledger", &[]),
    ("callsite", &["ledger"]),
    ("policy", &["device"]),
    ("trace", &[]),
    ("summary", &["ledger"]),
    ("heap", &["device", "policy", "ledger"]),
    ("sim_driver", &["device"]),
    // What both front doors stand on: the heaps of a test, and who causes what.
    (
        "session",
        &["heap", "device", "policy", "ledger", "callsite"],
    ),
    (
        "intercept",
        &[
            "session",
            "heap",
            "device",
            "policy",
            "ledger",
            "callsite",
            "sim_driver",
        ],
    ),
    ("replay", &["device", "policy", "ledger", "trace"]),
    // A handle plays traces; a replay knows no handle.
    (
        "gpu",
        &[
            "session", "heap", "device", "policy", "ledger", "replay", "trace",
        ],
    ),
    ("check", &["summary"]),
    ("snapshot", &["summary"]),
    // Replays what a test asked for; the report has its types, to word them.
    (
        "advice",
        &["device", "policy", "ledger", "replay", "summary", "check"],
    ),
    ("report", &["summary", "check", "advice"]),
    (
        "harness",
        &[
            "device",
            "ledger",
            "callsite",
            "policy",
            "summary",
            "heap",
            "session",
            "gpu",
            "intercept",
            "replay",
            "check",
            "snapshot",
            "advice",
            "report",
        ],
    ),
];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The room of a file: the first part of its path below `src`.
fn room_of(file: &Path, root: &Path) -> String {
    let inside = file.strip_prefix(root).unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The code that ships: without comments and without what `cfg(test)` hides, which by our habit
/// ends a file.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// What follows each `crate::`: one name, or the names at the top of a `{…}`. `$crate` is the
/// user's view of us, not an arrow.
fn targets(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (index, _) in code.match_indices("crate::") {
        if code[..index].ends_with(|c: char| is_name(c) || c == '$') {
            continue;
        }
        let rest = &code[index + "crate::".len()..];
        if !rest.starts_with('{') {
            found.push(rest.chars().take_while(|c| is_name(*c)).collect());
            continue;
        }
        let mut depth = 0;
        let mut name = String::new();
        let mut naming = true;
        for character in rest.chars() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    found.push(std::mem::take(&mut name));
                    naming = true;
                }
                c if depth == 1 && naming && is_name(c) => name.push(c),
                c if depth == 1 && !c.is_whitespace() => naming = false,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        found.push(name);
    }
    found.retain(|name| name.chars().next().is_some_and(|c| c.is_ascii_lowercase()));
    found
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpumem-test/src");
    let allowed: BTreeMap<_, _> = DIRECTIONS.into_iter().collect();
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(
        files.len() > 30,
        "found only {} files under {}",
        files.len(),
        root.display()
    );
    let mut wrong = Vec::new();
    // Whole files that `cfg(test)` hides.
    let is_test = |file: &PathBuf| {
        file.components().any(|part| {
            ["tests.rs", "tests", "laws", "mutant.rs"]
                .iter()
                .any(|name| part.as_os_str() == *name)
        })
    };
    for file in files
        .iter()
        .filter(|file| !is_test(&file.strip_prefix(&root).unwrap().into()))
    {
        let room = room_of(file, &root);
        if ["lib", "macros", "prelude", "private"].contains(&room.as_str()) {
            continue;
        }
        let code = shipped(&fs::read_to_string(file).unwrap());
        let may: &[&str] = if VOCABULARY.contains(&room.as_str()) {
            &[]
        } else {
            allowed
                .get(room.as_str())
                .unwrap_or_else(|| panic!("`{room}` is not in the table"))
        };
        for target in targets(&code) {
            let fine = target == room
                || VOCABULARY.contains(&target.as_str())
                || may.contains(&target.as_str());
            if !fine {
                wrong.push(format!("{}: {room} may not use {target}", file.display()));
            }
        }
        if room == "policy" && (code.contains("device::sim") || code.contains("device::cuda")) {
            wrong.push(format!("{}: a policy knows the trait only", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_are_read_in_every_form() {
    assert_eq!(targets("use crate::ids::Address;"), ["ids"]);
    assert_eq!(
        targets("use crate::{bytes::Bytes, ids::{A, B}, heap};"),
        ["bytes", "ids", "heap"]
    );
    assert_eq!(
        targets("$crate::__private::x(); crate::Error"),
        Vec::<String>::new()
    );
    assert_eq!(
        shipped("a // crate::heap\n#[cfg(test)]\nmod tests {\ncrate::gpu").trim(),
        "a"
    );
}
