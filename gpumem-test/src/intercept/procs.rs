//! What `cuGetProcAddress(name, version)` stands for.

use std::sync::OnceLock;

use super::table::Symbol;

/// One function behind a name, from a version on.
struct Row {
    name: &'static str,
    /// The first CUDA version with this function: 1000 × major + 10 × minor.
    version: i32,
    function: Symbol,
    /// The variant on the calling thread's own null stream; itself where there is none.
    per_thread: Symbol,
}

/// What a look-up comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This function.
    Function(Symbol),
    /// The name is younger than the version asked for.
    TooYoung,
    /// There is no such name.
    Nothing,
}

/// Rows by name, then version, ascending.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| parse(include_str!("procs.tsv")).collect())
}

/// Reads the lines; what is no row (the two headings) is left out. A test holds the count.
fn parse(text: &'static str) -> impl Iterator<Item = Row> {
    text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let (name, version, function) = (fields.next()?, fields.next()?, fields.next()?);
        let suffix = fields.next().unwrap_or("");
        let per_thread = format!("{function}{suffix}");
        Some(Row {
            name,
            version: version.parse().ok()?,
            function: Symbol::find(function)?,
            per_thread: Symbol::find(&per_thread)?,
        })
    })
}

fn rows_of(name: &str) -> &'static [Row] {
    let rows = rows();
    let first = rows.partition_point(|row| row.name < name);
    let count = rows[first..].partition_point(|row| row.name == name);
    &rows[first..first + count]
}

/// The function that a program of that CUDA version means.
pub(super) fn find(name: &str, version: i32, per_thread: bool) -> Found {
    let rows = rows_of(name);
    match rows.iter().rev().find(|row| row.version <= version) {
        Some(row) if per_thread => Found::Function(row.per_thread),
        Some(row) => Found::Function(row.function),
        None if rows.is_empty() => Found::Nothing,
        None => Found::TooYoung,
    }
}

/// Every function that the name ever stood for.
pub(super) fn all(name: &str) -> impl Iterator<Item = Symbol> {
    rows_of(name)
        .iter()
        .flat_map(|row| [row.function, row.per_thread])
}

#[cfg(test)]
mod tests {
    use super::{Found, Symbol, find, rows};

    #[test]
    fn every_line_is_a_row_in_order() {
        let lines = include_str!("procs.tsv").lines().count();
        assert_eq!(rows().len(), lines - 2, "two headings");
        assert_eq!(rows().len(), 517);
        for pair in rows().windows(2) {
            let order = |row: &super::Row| (row.name, row.version);
            assert!(order(&pair[0]) < order(&pair[1]), "{}", pair[1].name);
        }
    }

    #[test]
    fn a_program_gets_the_newest_function_that_its_version_knows() {
        let found = |version| find("cuCtxCreate", version, false);
        assert_eq!(found(1999), Found::TooYoung);
        assert_eq!(found(2000), Found::Function(Symbol::cuCtxCreate));
        assert_eq!(found(11_039), Found::Function(Symbol::cuCtxCreate_v2));
        assert_eq!(found(11_040), Found::Function(Symbol::cuCtxCreate_v3));
        assert_eq!(found(99_000), Found::Function(Symbol::cuCtxCreate_v4));
        assert_eq!(find("cuCtxCreat", 13_000, false), Found::Nothing);
        // A name is what C programs write, not what the library exports.
        assert_eq!(find("cuMemAlloc_v2", 13_000, false), Found::Nothing);
    }

    #[test]
    fn per_thread_streams_have_functions_of_their_own_where_there_are_any() {
        let found = |name| find(name, 13_000, true);
        assert_eq!(
            found("cuMemAllocAsync"),
            Found::Function(Symbol::cuMemAllocAsync_ptsz)
        );
        assert_eq!(
            found("cuMemcpyHtoD"),
            Found::Function(Symbol::cuMemcpyHtoD_v2_ptds)
        );
        assert_eq!(found("cuMemAlloc"), Found::Function(Symbol::cuMemAlloc_v2));
    }
}
