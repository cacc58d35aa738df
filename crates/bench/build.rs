//! Compiles what is measured in C.

fn main() {
    println!("cargo::rerun-if-changed=src/locks/calls.c");
    println!("cargo::rerun-if-changed=../capi/include/punctual.h");
    let mut build = cc::Build::new();
    build.include("../capi/include").file("src/locks/calls.c").warnings(true);
    build.compile("punctual_bench_calls");
}
