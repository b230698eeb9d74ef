//! The training example as a user meets it: it passes, one line of it is changed, and the failure
//! names the bytes and the line.

use std::fs;

use super::program::{run, workspace};
use super::project::Project;

#[test]
fn a_removed_activation_checkpoint_changes_the_snapshot_and_breaks_the_bound() {
    let example = workspace().join("examples/training");
    let read = |file: &str| fs::read_to_string(example.join(file)).unwrap();
    let test =
        read("tests/memory.rs").replace("use training::Model;", "mod model;\nuse model::Model;");
    let project = Project::new("training", true, &test);
    for part in ["driver", "caching", "verdicts"] {
        let file = format!("tests/snapshots/memory__a_step_fits__{part}.snap");
        project.write(&file, &read(&file));
    }
    let model = read("src/lib.rs");
    project.write("tests/model.rs", &model);
    let output = run(&mut project.test());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "the example passes as it is: {text}"
    );

    // One checkpoint for all layers instead of one for every four.
    let line = "pub const CHECKPOINT_EVERY: usize = 4;";
    assert!(model.contains(line), "the line that a user would change");
    project.write(
        "tests/model.rs",
        &model.replace(line, &line.replace('4', "16")),
    );
    let output = run(&mut project.test());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{text}");
    for part in [
        "-peak allocated                     1.29 GiB  (1384120320)",
        "+peak allocated                     1.57 GiB  (1686110208)",
        "peak allocated 1.57 GiB exceeds max_allocated of 1.40 GiB by 174.40 MiB",
        "512.00 MiB  16 blocks  tests/model.rs:",
        "after checkpoint \"forward\"",
        "the summary differs from the accepted snapshot",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}
