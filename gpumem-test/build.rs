//! Says where the door exists. The script must be there anyway: `links` in Cargo.toml, by which
//! cargo refuses two versions of this crate in one program, needs one. Two would both define
//! `dlopen`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(gpumem_door)");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_glibc = target("OS") == "linux" && target("ENV") == "gnu";
    let is_known = ["x86_64", "aarch64"].contains(&target("ARCH").as_str());
    if is_glibc && is_known && target("POINTER_WIDTH") == "64" {
        println!("cargo::rustc-cfg=gpumem_door");
    }
}
