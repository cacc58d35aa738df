//! Compiles the dispatcher's one translation unit.

fn main() {
    let folder = "../../dispatcher";
    println!("cargo:rerun-if-changed={folder}");
    cc::Build::new()
        .file(format!("{folder}/dispatcher.c"))
        .std("gnu11")
        // The decisions' cost is part of what is promised, in debug builds too.
        .opt_level(3)
        .flag("-ffreestanding")
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .extra_warnings(true)
        .compile("punctual_dispatcher");
}
