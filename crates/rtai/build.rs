//! Compiles the functions that have to be C.

fn main() {
    let files = ["src/period.c", "src/print.c", "src/stack.c"];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    cc::Build::new().files(files).warnings(true).compile("punctual_rtai_c");
}
