//! The root of the user's workspace, from which insta finds snapshot files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::program::Program;

/// The root, asked for once a process: each of the children that compare would ask cargo again
/// (25 ms each).
#[derive(Default)]
pub(super) struct WorkspaceRoot(OnceLock<Option<PathBuf>>);

impl WorkspaceRoot {
    /// The root that children are to be told; `None` where insta knows it or must ask itself.
    pub(super) fn find(&self, program: &Program) -> Option<&Path> {
        self.0.get_or_init(|| look_up(program)).as_deref()
    }
}

fn look_up(program: &Program) -> Option<PathBuf> {
    // A root given when the program was built, or in the environment, reaches insta by itself.
    if program.workspace_root.is_some() || std::env::var_os("INSTA_WORKSPACE_ROOT").is_some() {
        return None;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["locate-project", "--workspace", "--message-format=plain"])
        .current_dir(program.manifest_dir)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let manifest = String::from_utf8(output.stdout).ok()?;
    Path::new(manifest.trim_end())
        .parent()
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::WorkspaceRoot;
    use crate::harness::program::Program;

    #[test]
    fn the_root_is_the_folder_of_the_workspaces_manifest() {
        let program = Program {
            manifest_dir: env!("CARGO_MANIFEST_DIR"),
            target: "program",
            target_tmpdir: None,
            workspace_root: None,
        };
        let root = WorkspaceRoot::default();
        let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(root.find(&program), manifest.parent());
    }
}
