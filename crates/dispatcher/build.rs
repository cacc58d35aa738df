//! Compiles the dispatcher's one translation unit, and its numbers for the tests.

fn main() {
    let folder = "../../dispatcher";
    println!("cargo:rerun-if-changed={folder}");
    println!("cargo:rerun-if-changed=src/numbers.c");
    cc::Build::new()
        .file(format!("{folder}/dispatcher.c"))
        .file("src/numbers.c")
        .include(folder)
        .std("gnu11")
        // The decisions' cost is part of what is promised, in debug builds too.
        .opt_level(3)
        .flag("-ffreestanding")
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .extra_warnings(true)
        .compile("punctual_dispatcher");
}
