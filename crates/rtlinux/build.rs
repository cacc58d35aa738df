//! Compiles the functions that have to be C.

fn main() {
    let files = ["critical", "printf", "tasks", "threads", "waits"].map(|n| format!("src/c/{n}.c"));
    for folder in ["src/c", "include/rtlinux"] {
        println!("cargo::rerun-if-changed={folder}");
    }
    let mut build = cc::Build::new();
    build.files(files).include("include/rtlinux").warnings(true).compile("punctual_rtlinux_c");
}
