//! Runs a program and keeps what it said.

use std::path::Path;
use std::process::{Command, Output};

/// A fixture of this package, with arguments.
pub(crate) fn fixture(arguments: &[&str]) -> Command {
    program(env!("CARGO_BIN_EXE_fixture"), arguments)
}

/// A program in a clean environment, in the workspace's folder.
pub(crate) fn program(path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(workspace());
    scrub(&mut command);
    command
}

/// The folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
}

/// Removes what the outer cargo, a user or a service for integration set.
pub(crate) fn scrub(command: &mut Command) {
    const OURS: [&str; 6] = [
        "GPUMEM_", "INSTA_", "CARGO_", "NEXTEST", "RUST_", "CLICOLOR",
    ];
    // Where crates are and how they are fetched is the machine's affair.
    const KEPT: [&str; 2] = ["CARGO_HOME", "RUSTUP_HOME"];
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_ours = OURS.iter().any(|prefix| text.starts_with(prefix));
        if (is_ours || text == "CI" || text == "TF_BUILD") && !KEPT.contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command.env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
}

/// Runs a command and returns status, standard output and error as one text, what varies hidden.
pub(crate) fn told(command: &mut Command) -> String {
    let output = run(command);
    format!(
        "status: {}\n--- out ---\n{}\n--- err ---\n{}",
        output
            .status
            .code()
            .map_or("none".to_owned(), |code| code.to_string()),
        redact(&String::from_utf8_lossy(&output.stdout)).trim(),
        redact(&String::from_utf8_lossy(&output.stderr)).trim(),
    )
}

/// Runs a command.
pub(crate) fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"))
}

/// Hides process ids and times behind words, and the place of the workspace.
pub(crate) fn redact(text: &str) -> String {
    let workspace = workspace().display().to_string();
    let text = text.replace(&workspace, "[workspace]");
    let text = hide_number(&text, "process ", "[id]");
    let text = hide_number(&text, "thread 'main' (", "[id]");
    let text = hide_number(&text, "finished in ", "[time] ");
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Replaces the number (digits and points) behind each `before` by `word`.
fn hide_number(text: &str, before: &str, word: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(before) {
        let (head, tail) = rest.split_at(at + before.len());
        result.push_str(head);
        let number = tail
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(tail.len());
        if number > 0 {
            result.push_str(word);
        }
        rest = &tail[number..];
    }
    result + rest
}

#[test]
fn what_varies_is_hidden() {
    assert_eq!(
        redact("process 12 of process x\nfinished in 1.25s\n"),
        "process [id] of process x\nfinished in [time] s"
    );
}
