//! Compiles the C library.

fn main() {
    println!("cargo::rerun-if-changed=c");
    cc::Build::new()
        .file("c/library.c")
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .compile("frame_ring");
}
