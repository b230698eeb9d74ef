//! What `main!` knows of the program that it stands in.

use std::path::{Path, PathBuf};

/// Facts that only the user's own crate can give, at its compile time.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// `CARGO_PKG_NAME`: the package, as `cargo test -p` wants it.
    pub package: &'static str,
    /// `CARGO_CRATE_NAME`: the target, with `_` for `-`.
    pub crate_name: &'static str,
    /// `file!()` of the target's root.
    pub file: &'static str,
    /// `CARGO_TARGET_TMPDIR`, which cargo sets for test targets only.
    pub target_tmpdir: Option<&'static str>,
}

impl Program {
    /// The target as cargo calls it: a file or folder of the root's path, if one has the name of
    /// the crate but for `-` and `_`.
    pub(crate) fn target(&self) -> &'static str {
        self.file
            .split(['/', '\\'])
            .map(|part| part.strip_suffix(".rs").unwrap_or(part))
            .find(|part| part.replace('-', "_") == self.crate_name)
            .unwrap_or(self.crate_name)
    }

    /// The target, if `cargo test --test` runs it.
    pub(super) fn test_target(&self) -> Option<&'static str> {
        self.target_tmpdir.map(|_| self.target())
    }

    /// Where the reports of this program lie in the folder `gpumem`. Packages of one workspace may
    /// call their targets alike.
    pub(super) fn reports(&self, gpumem: &Path) -> PathBuf {
        gpumem.join(self.package).join(self.crate_name)
    }

    /// The folder that `file` is relative to, as the compiler was started there: this one or one
    /// above it. None if the sources are not here.
    pub(super) fn root(&self) -> Option<PathBuf> {
        let here = std::env::current_dir().ok()?;
        let mut folders = here.ancestors();
        let root = folders.find(|folder| folder.join(self.file).is_file())?;
        Some(root.to_owned())
    }

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
        package: "my-package",
        crate_name: "my_memory",
        file: "tests/my-memory.rs",
        target_tmpdir: None,
    };

    #[test]
    fn the_target_is_called_as_its_file_or_folder() {
        for (file, target) in [
            ("tests/my-memory.rs", "my-memory"),
            ("tests\\my-memory\\main.rs", "my-memory"),
            ("tests/my_memory.rs", "my_memory"),
            ("tests/other.rs", "my_memory"),
        ] {
            assert_eq!(Program { file, ..PROGRAM }.target(), target);
        }
    }

    #[test]
    fn reports_lie_in_the_target_folder_of_the_executable() {
        let executable = std::env::current_exe().unwrap();
        let folder = PROGRAM.gpumem_folder(&executable);
        assert!(folder.ends_with("gpumem"));
        assert!(executable.starts_with(folder.parent().unwrap()));
    }

    #[test]
    fn targets_called_alike_keep_their_reports_apart() {
        let other = Program {
            package: "other",
            ..PROGRAM
        };
        let gpumem = Path::new("gpumem");
        assert_ne!(PROGRAM.reports(gpumem), other.reports(gpumem));
    }

    #[test]
    fn a_program_outside_any_target_folder_writes_temporary_files() {
        let folder = PROGRAM.gpumem_folder(Path::new("/nowhere/program"));
        assert_eq!(folder, std::env::temp_dir().join("gpumem"));
    }
}
