//! The recordings of a real H200 (`tests/traces/facts/`), asked again of the simulated driver.
//!
//! Each test asks what a section of the recording program asks (`tests/traces/record/facts.py`),
//! in its order, and wants the recorded lines.

mod codes;
mod device;
mod graphs;
mod memory;
mod more;

use std::fmt::Display;
use std::fs;

use crate::sim_driver::bench::{Arguments, Bench, call, free_bytes};

const MIB: u64 = 1 << 20;

/// A recording's text.
fn recording(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/traces/facts/");
    fs::read_to_string(format!("{folder}{name}")).expect("the recording is there")
}

/// A section of `facts.py`, asked of one simulated H200.
struct Section {
    name: &'static str,
    bench: Bench,
    start: usize,
    said: Vec<String>,
}

impl Section {
    fn new(name: &'static str) -> Self {
        let bench = Bench::ready(1);
        Self {
            name,
            bench,
            start: free_bytes().0,
            said: Vec::new(),
        }
    }

    fn say(&mut self, what: impl Display, value: impl Display) {
        let what = what.to_string().replace(' ', "_");
        self.said.push(format!("{} {what} {value}", self.name));
    }

    /// Says what is gone from the free bytes since the section began.
    fn gone(&mut self, what: impl Display) {
        let gone = self.start - free_bytes().0;
        self.say(what, gone);
    }

    fn code(&mut self, what: &str, name: &str, arguments: impl Arguments) {
        let code = call(name, arguments);
        self.say(what, code);
    }

    /// Ends it: all that was said is what was recorded.
    #[track_caller]
    fn agree(self) {
        let text = recording("h200.txt");
        let prefix = format!("{} ", self.name);
        let lines = text.lines().filter(|line| line.starts_with(&prefix));
        same(&lines.collect::<Vec<_>>(), &self.said);
        self.bench.device(0, |device| device.check());
    }
}

/// Compares what was recorded with what the simulated driver says, line by line.
#[track_caller]
fn same(recorded: &[&str], said: &[String]) {
    assert!(!recorded.is_empty(), "nothing was recorded");
    let differ = |(recorded, said): (&&str, &String)| {
        (*recorded != said).then(|| format!("recorded  {recorded}\nsimulated {said}"))
    };
    let wrong: Vec<String> = recorded.iter().zip(said).filter_map(differ).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(recorded.len(), said.len(), "as many lines");
}
