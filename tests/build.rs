//! Links one of the door's programs as it must not be linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bin=door-bypassed=-Wl,--exclude-libs,ALL");
    }
}
