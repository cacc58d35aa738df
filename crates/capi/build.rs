//! Compiles the one function that has to be C.

fn main() {
    println!("cargo::rerun-if-changed=src/thread.c");
    cc::Build::new().file("src/thread.c").warnings(true).compile("punctual_thread");
}
