//! A throw-away package that uses gpumem-test as users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{redact, scrub, workspace};

/// A package in the target folder. Its files are written only where they differ, so that cargo
/// builds again only what changed.
pub(crate) struct Project {
    folder: PathBuf,
}

impl Project {
    /// A package with the test target `memory`, and `harness = false` for it or not.
    pub(crate) fn new(name: &str, own_harness: bool, test: &str) -> Self {
        let folder = projects().join(name);
        let project = Self { folder };
        let harness = if own_harness { "harness = false\n" } else { "" };
        let library = workspace().join("gpumem-test");
        project.write(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                 [dev-dependencies]\ngpumem-test = {{ path = {library:?} }}\n\n\
                 [[test]]\nname = \"memory\"\n{harness}\n[workspace]\n"
            ),
        );
        project.write("src/lib.rs", "");
        project.write("tests/memory.rs", test);
        let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
        if !project.folder.join("Cargo.lock").exists() {
            project.write("Cargo.lock", &lock);
        }
        project
    }

    /// Writes a file if it does not hold that text already.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Where a file of the package lies.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// `cargo` in the package, offline.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        scrub(&mut command);
        command
            .args(arguments)
            .arg("--offline")
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", projects().join("target"))
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("CARGO");
        command
    }

    /// `cargo test`, one test at a time, of the target `memory`.
    pub(crate) fn test(&self) -> Command {
        let mut command = self.cargo(&["test", "--quiet", "--test", "memory"]);
        command.args(["--", "--test-threads=1"]);
        command
    }

    /// Hides the place of the package too.
    pub(crate) fn redact(&self, text: &str) -> String {
        let folder = self.folder.display().to_string();
        redact(&text.replace(&folder, "[project]"))
    }
}

fn projects() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/projects"))
}
