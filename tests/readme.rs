//! The tables in README.md are the accepted ones, to the letter.
//!
//! `UPDATE_README=1` writes them there instead.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands before a table, up to the file of its snapshot.
const BEGIN: &str = "<!-- table: ";
/// What stands behind it.
const END: &str = "<!-- end of table -->";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of an accepted snapshot, without insta's head.
fn accepted(file: &str) -> String {
    let text = fs::read_to_string(workspace().join(file))
        .unwrap_or_else(|error| panic!("README.md names {file}: {error}"));
    let mut parts = text.splitn(3, "---\n");
    parts.nth(2).expect(file).trim_end().to_owned()
}

/// The text with each table replaced by the accepted one, and how many there are.
fn with_tables(readme: &str, accepted: impl Fn(&str) -> String) -> (String, usize) {
    let mut result = String::new();
    let mut rest = readme;
    let mut tables = 0;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (file, after) = after.split_once(" -->\n").expect("the mark names a file");
        let (_, after) = after.split_once(END).expect("a table has an end");
        let table = accepted(file);
        result += &format!("{before}{BEGIN}{file} -->\n```text\n{table}\n```\n{END}");
        rest = after;
        tables += 1;
    }
    (result + rest, tables)
}

#[test]
fn its_tables_are_those_that_the_examples_make() {
    let path = workspace().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (current, tables) = with_tables(&readme, accepted);
    assert!(tables > 0, "README.md has a table between marks");
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(path, current).unwrap();
        return;
    }
    assert!(
        readme == current,
        "README.md has tables that are not those of its examples; write them anew with \
         `UPDATE_README=1 cargo test -p gpumem-tests --test readme`"
    );
}

#[test]
fn a_table_is_replaced_between_its_marks_and_nothing_else_is() {
    let text = "a\n<!-- table: x.snap -->\n```text\nold\n```\n<!-- end of table -->\nb\n";
    let (current, tables) = with_tables(text, |file| format!("of {file}"));
    assert_eq!(tables, 1);
    assert_eq!(current, text.replace("old", "of x.snap"));
    assert_eq!(with_tables("none", |_| unreachable!()).0, "none");
}
