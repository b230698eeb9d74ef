//! The table as a text: at most 80 columns wide, unless its figures are wider.
//!
//! A cell that is too wide for its column becomes a number in parentheses, and what it says a line
//! below the table. The text under review holds nothing that varies between runs of the same code.

use crate::bytes::Bytes;
use crate::report::messages;

use super::{Figures, Ran, Row, State};

/// Characters of a line, where that can be had.
const WIDTH: usize = 80;
/// The most characters of a verdict that stand in the table itself.
const WIDEST_VERDICT: usize = 10;

const COLUMNS: usize = 9;
/// Columns from the left that words are in; they start where the column does.
const WORDS: usize = 2;
const HEAD: [[&str; COLUMNS]; 2] = [
    [
        "", "", "peak", "peak", "frag-", "", "device", "driver", "re-",
    ],
    [
        "policy",
        "verdict",
        "allocated",
        "reserved",
        "mented",
        "slack",
        "calls",
        "time*",
        "tries",
    ],
];

/// In place of a figure that depends on when the device finishes, as in a snapshot of one test.
const TIMING: &str = "timing";
/// In place of a figure that there is not.
const NONE: &str = "-";

/// Who reads the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Somebody at a terminal, who wants to see what there was.
    Terminal,
    /// A comparison with an accepted text: what may vary is left out.
    Review,
}

/// The table of `test` for a terminal. Ends with a line break.
pub(crate) fn terminal(test: &str, rows: &[Row]) -> String {
    let first = rows.iter().find_map(Row::ran);
    let title = messages::table_title(test, first);
    format!("{title}\n{}", table(rows, Reader::Terminal))
}

/// The table for a review, which every run of the same code makes alike. Ends with a line break.
pub(crate) fn review(rows: &[Row]) -> String {
    let mut text = String::new();
    if let Some(ran) = rows.iter().find_map(Row::ran) {
        text.push_str(&match ran.budget {
            Some(budget) => format!("budget  {budget}  ({})\n", budget.get()),
            None => "budget  none\n".to_owned(),
        });
        if ran.device_named {
            text.push_str(&format!("device  {}\n", ran.device));
        }
        text.push('\n');
    }
    text + &table(rows, Reader::Review)
}

impl Row {
    fn ran(&self) -> Option<&Ran> {
        match &self.state {
            State::Ran(ran) => Some(ran),
            _ => None,
        }
    }
}

/// A line of the table.
enum Line {
    /// A heading of the lines below it.
    Group(String),
    Cells([String; COLUMNS]),
}

fn table(rows: &[Row], reader: Reader) -> String {
    let mut notes = Notes(Vec::new());
    let mut lines = Vec::new();
    let mut group = None;
    for row in rows {
        if row.arg.is_some() && row.arg != group {
            group.clone_from(&row.arg);
            let arg = row.arg.as_deref().unwrap_or_default();
            lines.push(Line::Group(messages::argument(arg)));
        }
        lines.extend(lines_of(row, reader, &mut notes));
    }
    let mut text = set(&lines);
    text.push('\n');
    for (index, note) in notes.0.iter().enumerate() {
        wrap(&mut text, &format!("({})", index + 1), note);
    }
    wrap(&mut text, "*", messages::MODELLED);
    text
}

/// What cells of the table say that are too wide for it, each once.
struct Notes(Vec<String>);

impl Notes {
    fn mark(&mut self, words: &str, short: &str, widest: usize) -> String {
        if words.chars().count() <= widest {
            return words.to_owned();
        }
        let known = self.0.iter().position(|note| note == words);
        let index = known.unwrap_or_else(|| {
            self.0.push(words.to_owned());
            self.0.len() - 1
        });
        format!("{short} ({})", index + 1)
    }
}

/// One line for each device.
fn lines_of(row: &Row, reader: Reader, notes: &mut Notes) -> Vec<Line> {
    // The names of tests leave options out where the kind alone is clear; a reader who compares
    // policies has to see them.
    let policy = match row.policy.split_once(':') {
        Some((kind, _)) => notes.mark(&row.policy, kind, kind.len()),
        None => row.part.clone(),
    };
    let ran = row.ran();
    let compared = ran.filter(|_| reader == Reader::Terminal);
    let (short, words) = match &row.state {
        State::NotRun => messages::not_run(),
        State::Skipped(reason) => messages::skipped(reason),
        State::Ran(ran) => messages::verdict(&ran.outcome, compared.map(|ran| ran.snapshot)),
    };
    let verdict = notes.mark(&words, short, WIDEST_VERDICT);
    let Some(ran) = ran else {
        return vec![Line::Cells(cells([policy, verdict], None))];
    };
    let whole = ran.outcome.cause.is_none_or(|cause| cause.has_ended());
    let shown = reader == Reader::Terminal || whole;
    let mut lines = Vec::new();
    for (index, figures) in ran.devices.iter().enumerate() {
        let words = match index {
            0 => [policy.clone(), verdict.clone()],
            _ => [messages::on_device(figures.device), String::new()],
        };
        let figures = shown.then(|| of_device(figures, reader));
        lines.push(Line::Cells(cells(words, figures)));
    }
    lines
}

fn cells(words: [String; WORDS], figures: Option<[String; COLUMNS - WORDS]>) -> [String; COLUMNS] {
    let figures = figures.unwrap_or_else(|| std::array::from_fn(|_| NONE.to_owned()));
    let mut cells = words.into_iter().chain(figures);
    std::array::from_fn(|_| cells.next().unwrap_or_default())
}

fn of_device(figures: &Figures, reader: Reader) -> [String; COLUMNS - WORDS] {
    let varies = |figure: String| match figures.timing && reader == Reader::Review {
        true => TIMING.to_owned(),
        false => figure,
    };
    [
        size(figures.peak_allocated),
        varies(size(figures.peak_reserved)),
        varies(percent(figures.fragmentation)),
        varies(percent(figures.slack)),
        varies(figures.device_calls.to_string()),
        varies(time(figures.driver_time_ns)),
        varies(figures.retries.to_string()),
    ]
}

fn size(bytes: Bytes) -> String {
    bytes.to_string()
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A modelled time, in three digits: a model knows no more.
pub(super) fn time(nanoseconds: u64) -> String {
    const UNITS: [&str; 3] = ["µs", "ms", "s"];
    if nanoseconds < 1_000 {
        return format!("{nanoseconds} ns");
    }
    let mut value = nanoseconds as f64 / 1e3;
    let mut unit = 0;
    // 999.6 would print as "1000": the next unit says it better.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Sets the lines in columns, two spaces apart, or one between figures where that is too wide.
fn set(lines: &[Line]) -> String {
    let head = HEAD.map(|line| line.map(str::to_owned));
    let rows: Vec<&[String; COLUMNS]> = head
        .iter()
        .chain(lines.iter().filter_map(|line| match line {
            Line::Cells(cells) => Some(cells),
            Line::Group(_) => None,
        }))
        .collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    let wide = widths.iter().sum::<usize>() + 2 * (COLUMNS - 1) <= WIDTH;
    let mut text = String::new();
    let mut push = |cells: &[String; COLUMNS]| {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                line.push_str(if wide || column < WORDS { "  " } else { " " });
            }
            line.push_str(&match column < WORDS {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    for cells in &head {
        push(cells);
    }
    for line in lines {
        match line {
            Line::Cells(cells) => push(cells),
            Line::Group(words) => {
                let mut cells = [const { String::new() }; COLUMNS];
                cells[0].clone_from(words);
                push(&cells);
            }
        }
    }
    text
}

/// A mark and its words, broken between words where a line would be too long, and behind a comma
/// where a word alone would be.
fn wrap(text: &mut String, mark: &str, words: &str) {
    let indent = mark.chars().count() + 1;
    let mut line = mark.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        let too_long = indent + word.chars().count() > WIDTH;
        let pieces: Vec<&str> = match too_long {
            true => word.split_inclusive(',').collect(),
            false => vec![word],
        };
        for (index, piece) in pieces.into_iter().enumerate() {
            let space = usize::from(index == 0);
            if !is_empty && line.chars().count() + space + piece.chars().count() > WIDTH {
                text.push_str(&line);
                text.push('\n');
                line = " ".repeat(indent);
            } else if index == 0 {
                line.push(' ');
            }
            line.push_str(piece);
            is_empty = false;
        }
    }
    text.push_str(&line);
    text.push('\n');
}
