//! Compiles the C sources of these tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the compiled libraries are.
pub(crate) struct Libraries {
    driver: PathBuf,
    client: PathBuf,
}

impl Libraries {
    /// A folder with the driver double under all its names, and the client.
    pub(crate) fn driver(&self) -> &Path {
        &self.driver
    }

    /// A folder with the client, and no driver.
    pub(crate) fn client(&self) -> &Path {
        &self.client
    }
}

/// The libraries, compiled once in a run; `None`, and a line that says so, without a C compiler.
pub(crate) fn libraries() -> Option<&'static Libraries> {
    static LIBRARIES: OnceLock<Option<Libraries>> = OnceLock::new();
    let libraries = LIBRARIES
        .get_or_init(|| has_compiler().then(compile))
        .as_ref();
    if libraries.is_none() {
        println!("skipped: there is no C compiler (`cc`)");
    }
    libraries
}

fn has_compiler() -> bool {
    Command::new("cc").arg("--version").output().is_ok()
}

fn compile() -> Libraries {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("door");
    let (driver, client) = (root.join("driver"), root.join("client"));
    for folder in [&driver, &client] {
        fs::create_dir_all(folder.join("inner")).unwrap();
        library(&["next.c"], &folder.join("libnext.so"), &[]);
        library(&["next.c"], &folder.join("inner/libinner.so"), &[]);
        let here = format!("-L{}", folder.display());
        let flags = [
            &here,
            "-Wl,--no-as-needed",
            "-lnext",
            "-ldl",
            "-Wl,-rpath,$ORIGIN/inner",
            "-Wl,--enable-new-dtags",
        ];
        library(&["client.c"], &folder.join("libclient.so"), &flags);
    }
    let soname = ["-Wl,-soname,libcuda.so.1"];
    library(&["driver.c"], &driver.join("libcuda.so.1"), &soname);
    for name in ["libcuda.so", "libcuda.so.580.159.03"] {
        fs::copy(driver.join("libcuda.so.1"), driver.join(name)).unwrap();
    }
    Libraries { driver, client }
}

/// Compiles without optimisation: a call of the loader must not become a jump, which would hide
/// from the loader who asks.
pub(crate) fn library(sources: &[&str], file: &Path, flags: &[&str]) {
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("door/c");
    let output = Command::new("cc")
        .args(["-O0", "-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(file)
        .args(sources.iter().map(|source| c.join(source)))
        .args(flags)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
