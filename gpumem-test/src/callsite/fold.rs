//! Which line of a stack is the user's.

use std::path::Path;

use super::naming::Symbol;

/// Whose code a frame is, the most interesting last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// Ours, or nothing is known of it.
    Hidden,
    /// The standard library's, or the compiler's.
    Std,
    /// The crates that only bind to the driver.
    Binding,
    /// Another crate's, from a registry or a git repository.
    Library,
    /// The user's own.
    User,
}

/// Crates whose lines say only that the driver was called.
const BINDINGS: [&str; 3] = ["cudarc", "cust", "cudarse"];

/// Our own sources. An inlined function may have no more than the last part of its name.
const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");

/// Where cargo unpacks crates, and what rustc calls the standard library's sources.
const REGISTRY: &str = "/registry/src/";
const CHECKOUTS: &str = "/git/checkouts/";
const STD: [&str; 3] = ["/rustc/", "/rustlib/src/rust/", "/library/std/src/"];

/// The innermost line of the user's code as `file:line`; of a stack without such code the
/// innermost of another crate. None if no line is known.
pub(super) fn users_line(symbols: &[Symbol], root: Option<&Path>) -> Option<String> {
    let placed = symbols.iter().filter_map(|symbol| {
        let (file, line) = (symbol.file.as_deref()?, symbol.line?);
        let owner = owner(symbol.function.as_deref().unwrap_or(""), file);
        (owner > Owner::Hidden).then_some((owner, file, line))
    });
    // The first of the highest owner: `max_by_key` would give the last.
    let (_, file, line) = placed.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    Some(format!("{}:{line}", shortened(file, root)))
}

fn owner(function: &str, file: &str) -> Owner {
    let of_crate = |name: &str| {
        let path = function.trim_start_matches(['<', '&']);
        path.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with("::"))
    };
    if of_crate("gpumem_test") || of_crate("backtrace") || file.starts_with(OURS) {
        return Owner::Hidden;
    }
    if STD.iter().any(|part| file.contains(part)) {
        return Owner::Std;
    }
    if BINDINGS
        .iter()
        .any(|name| of_crate(name) || is_of_package(file, name))
    {
        return Owner::Binding;
    }
    if file.contains(REGISTRY) || file.contains(CHECKOUTS) {
        return Owner::Library;
    }
    Owner::User
}

/// Whether a file is one of a package as a registry unpacks it, `cudarc-0.19.10`.
fn is_of_package(file: &str, name: &str) -> bool {
    package_path(file).is_some_and(|path| {
        path.strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// A registry's file from its package on.
fn package_path(file: &str) -> Option<&str> {
    let (_, behind) = file.split_once(REGISTRY)?;
    // The registry's own folder comes first.
    behind.split_once('/').map(|(_, path)| path)
}

fn shortened<'a>(file: &'a str, root: Option<&Path>) -> &'a str {
    if let Some(path) = package_path(file) {
        return path;
    }
    if let Some((_, path)) = file.split_once(CHECKOUTS) {
        return path;
    }
    root.and_then(|root| file.strip_prefix(root.to_str()?))
        .map_or(file, |path| path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::users_line;
    use crate::callsite::naming::Symbol;

    const CUDARC: &str = "/home/u/.cargo/registry/src/index-1/cudarc-0.19.10/src/driver/result.rs";
    const CUBECL: &str = "/home/u/.cargo/registry/src/index-1/cubecl-cuda-0.10.0/src/storage.rs";
    const STD: &str = "/rustc/59807616e/library/core/src/ops/function.rs";

    fn line(frames: &[(&str, &str, u32)]) -> Option<String> {
        let symbols: Vec<_> = frames
            .iter()
            .map(|(function, file, line)| Symbol {
                function: Some((*function).to_owned()),
                file: Some((*file).to_owned()),
                line: Some(*line),
            })
            .collect();
        users_line(&symbols, Some(Path::new("/home/u/project")))
    }

    #[test]
    fn the_users_line_shows_through_bindings_std_and_other_crates() {
        let frames = [
            ("gpumem_test::intercept::hooks::alloc", "/x/hooks.rs", 1),
            ("cudarc::driver::result::malloc_async", CUDARC, 2),
            ("core::ops::function::FnOnce::call_once", STD, 3),
            ("cubecl_cuda::storage::alloc", CUBECL, 4),
            ("model::Layer::new", "/home/u/project/src/model.rs", 88),
            ("model::main", "/home/u/project/src/main.rs", 9),
        ];
        assert_eq!(line(&frames).unwrap(), "src/model.rs:88");
    }

    #[test]
    fn a_stack_without_the_users_code_shows_the_crate_that_called() {
        let frames = [
            ("<gpumem_test::X as Y>::z", "/x/hooks.rs", 1),
            ("cudarc::driver::result::malloc_async", CUDARC, 2),
            ("cubecl_cuda::storage::alloc", CUBECL, 4),
            ("cubecl_cuda::server::run", CUBECL, 40),
            ("std::thread::spawn", STD, 3),
        ];
        assert_eq!(
            line(&frames).unwrap(),
            "cubecl-cuda-0.10.0/src/storage.rs:4"
        );
        assert_eq!(
            line(&frames[..2]).unwrap(),
            "cudarc-0.19.10/src/driver/result.rs:2"
        );
        assert_eq!(line(&frames[..1]), None);
    }

    #[test]
    fn a_vendored_binding_is_folded_by_its_functions_names() {
        let frames = [
            (
                "<cudarc::driver::X as Y>::z",
                "/home/u/project/vendor/cudarc/src/x.rs",
                1,
            ),
            ("model::new", "/home/u/project/src/model.rs", 2),
            ("other", "/elsewhere/lib.c", 3),
        ];
        assert_eq!(line(&frames).unwrap(), "src/model.rs:2");
        assert_eq!(line(&frames[2..]).unwrap(), "/elsewhere/lib.c:3");
        // A crate whose name only begins alike is the user's.
        let alike = [("cudarc_tools::x", "/home/u/project/src/a.rs", 7)];
        assert_eq!(line(&alike).unwrap(), "src/a.rs:7");
    }
}
