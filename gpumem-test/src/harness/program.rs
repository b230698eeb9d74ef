//! What `main!` knows of the program that it stands in.

use std::path::{Path, PathBuf};

/// Facts that only the user's own crate can give, at its compile time.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// `CARGO_MANIFEST_DIR`.
    pub manifest_dir: &'static str,
    /// `CARGO_CRATE_NAME`: the target, with `_` for `-`.
    pub target: &'static str,
    /// `CARGO_TARGET_TMPDIR`, which cargo sets for test targets only.
    pub target_tmpdir: Option<&'static str>,
    /// `INSTA_WORKSPACE_ROOT`, where it was set when the program was built.
    pub workspace_root: Option<&'static str>,
}

impl Program {
    /// `target/gpumem` of the workspace that the program was built in, or a folder for temporary
    /// files where there is no such place (a program that was copied elsewhere).
    pub(super) fn gpumem_folder(&self, executable: &Path) -> PathBuf {
        let compiled = self.target_tmpdir.and_then(|tmp| Path::new(tmp).parent());
        // cargo tags the target folder, whatever its name.
        let tagged = executable
            .ancestors()
            .find(|folder| folder.join("CACHEDIR.TAG").is_file());
        tagged
            .or(compiled.filter(|folder| folder.is_dir()))
            .map_or_else(
                || std::env::temp_dir().join("gpumem"),
                |target| target.join("gpumem"),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::Program;
    use std::path::Path;

    const PROGRAM: Program = Program {
        manifest_dir: "/nowhere",
        target: "program",
        target_tmpdir: None,
        workspace_root: None,
    };

    #[test]
    fn reports_lie_in_the_target_folder_of_the_executable() {
        let executable = std::env::current_exe().unwrap();
        let folder = PROGRAM.gpumem_folder(&executable);
        assert!(folder.ends_with("gpumem"));
        assert!(executable.starts_with(folder.parent().unwrap()));
    }

    #[test]
    fn a_program_outside_any_target_folder_writes_temporary_files() {
        let folder = PROGRAM.gpumem_folder(Path::new("/nowhere/program"));
        assert_eq!(folder, std::env::temp_dir().join("gpumem"));
    }
}
