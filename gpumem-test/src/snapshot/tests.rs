//! The text under review.

use super::{Comparison, text};
use crate::event::{DriverMemory, EventKind, OomClass, SegmentKind};
use crate::summary::testing::{MIB, Script};

/// A program on caching whose blocks have `size` bytes, with all that a text can tell.
fn program(size: u64, first_address: u64, line: u32) -> Script {
    let mut script = Script::new("caching:max_split_size_mb:128");
    let about = script.about();
    about.budget = Some(64 * MIB);
    about.settings = vec![
        ("max_split_size_mb".to_owned(), "128".to_owned()),
        ("garbage_collection_threshold".to_owned(), "0".to_owned()),
    ];
    script
        .at(&format!("src/model.rs:{line}"))
        .run_begin(0)
        .segment(SegmentKind::Large, first_address, 20 * MIB)
        .alloc_rounded(first_address, size, size - 100)
        .checkpoint("forward")
        .alloc(first_address + 8 * MIB, 4 * MIB)
        .out_of_memory(OomClass::Budget, 512 * MIB)
        .out_of_memory(OomClass::Fragmented, 30 * MIB)
        .out_of_memory(OomClass::Budget, 512 * MIB)
        .free(first_address)
        .checkpoint("forward")
        .run_end(0);
    script
}

#[test]
fn the_text_tells_every_figure_on_a_line_of_its_own() {
    insta::assert_snapshot!(text(&program(4 * MIB, 0, 1).summary()));
}

#[test]
fn the_text_holds_nothing_that_varies_between_runs() {
    let mut moved = program(4 * MIB, 1 << 40, 99);
    moved.about().device = "sim:t4".to_owned();
    moved.about().device_total = 16 << 30;
    let text_of_moved = text(&moved.summary());
    assert_eq!(text_of_moved, text(&program(4 * MIB, 0, 1).summary()));
    for varying in ["sim:", "src/", "0x"] {
        assert!(!text_of_moved.contains(varying), "{varying}");
    }
}

#[test]
fn a_device_that_the_test_names_is_in_the_text() {
    let mut named = program(4 * MIB, 0, 1);
    named.about().device_named = true;
    assert!(text(&named.summary()).contains("device                          sim:h200\n"));
}

/// What they took is the device's, as its total is.
#[test]
fn neighbours_are_in_the_text_as_the_test_writes_them() {
    let mut shared = program(4 * MIB, 0, 1);
    shared.about().neighbours = vec![
        ("30%".to_owned(), Some(1 << 30)),
        ("tensorflow".to_owned(), None),
    ];
    let text_of_shared = text(&shared.summary());
    let lines = "neighbour                       30%\n\
                 neighbour                       tensorflow\n";
    assert!(text_of_shared.contains(lines), "{text_of_shared}");
    let alone = text(&program(4 * MIB, 0, 1).summary());
    assert_eq!(text_of_shared.replace(lines, ""), alone);
}

#[test]
fn figures_that_depend_on_timing_are_left_out() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .map(0, 32 * MIB, 32 * MIB)
        .stream(1)
        .alloc(0, MIB)
        .free_later(0)
        .stream(2)
        .alloc(MIB, MIB)
        .run_end(0)
        .run_begin(1)
        .run_end(1);
    insta::assert_snapshot!(text(&script.summary()));
}

#[test]
fn a_test_that_did_not_return_has_no_known_leak() {
    let mut script = Script::new("driver");
    script.run_begin(0);
    let text = text(&script.summary());
    assert!(
        text.contains("leaked                          unknown"),
        "{text}"
    );
}

/// What libraries launch and take, and what a device has used, differ between devices.
#[test]
fn passed_memory_is_in_the_text_and_what_depends_on_the_device_is_not() {
    let mut bare = program(4 * MIB, 0, 1);
    bare.run_begin(1).run_end(1);
    let mut script = program(4 * MIB, 0, 1);
    script
        .run_begin(1)
        .sample(MIB, Some(7))
        .sample(9 * MIB, Some(7))
        .not_simulated("cuTexRefCreate")
        .event(EventKind::Launches { count: 7 })
        .event(EventKind::ShadowDiffers {
            model: 1,
            driver: 2,
        })
        .run_end(1);
    assert_eq!(text(&script.summary()), text(&bare.summary()));
    let mut passing = program(4 * MIB, 0, 1);
    passing
        .run_begin(1)
        .take(DriverMemory::Array, 1, MIB)
        .take(DriverMemory::Managed, 2, 3 * MIB)
        .give_back(DriverMemory::Managed, 2, 3 * MIB)
        .take(DriverMemory::RegisteredHost, 3, 5 * MIB)
        .run_end(1);
    insta::assert_snapshot!(text(&passing.summary()));
}

#[test]
fn every_line_is_short() {
    let text = text(&program(4 * MIB, 0, 1).summary());
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

/// The accepted snapshot was made with blocks of 4 MiB; these are 1 % larger. Where insta passes,
/// the file stays as it is.
#[test]
fn a_comparison_within_its_tolerance_passes_and_leaves_the_accepted_text() {
    let larger = text(&program(4 * MIB + 40_960, 0, 1).summary());
    let comparison = Comparison::new("accepted_program".to_owned(), larger, Some(0.02));
    let _settings = comparison.bind();
    insta::assert_snapshot!(comparison.name(), comparison.text());
}

#[test]
fn a_comparison_hides_the_generated_expression() {
    let accepted = text(&program(4 * MIB, 0, 1).summary());
    let comparison = Comparison::new("accepted_program".to_owned(), accepted, None);
    let _settings = comparison.bind();
    assert!(!comparison.found_accepted(), "nothing was compared yet");
    insta::assert_snapshot!(comparison.name(), comparison.text());
    assert!(comparison.found_accepted());
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshot/snapshots");
    let file = folder.join("gpumem_test__snapshot__tests__accepted_program.snap");
    let stored = std::fs::read_to_string(file).unwrap();
    assert!(!stored.contains("expression:"), "{stored}");
    assert!(
        stored.contains("peak allocated                     8.00 MiB  (8388608)"),
        "{stored}"
    );
}

#[test]
fn a_checkpoints_name_stays_on_its_line() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .checkpoint("a\nleaked 0 B  (0)\u{1b}")
        .run_end(0);
    let text = text(&script.summary());
    let line = r#"until checkpoint "a\nleaked 0 B  (0)\u{1b}""#;
    assert!(text.lines().any(|found| found == line), "{text}");
}
