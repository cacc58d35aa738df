//! Compiles the dispatcher's one translation unit, and its numbers for the tests.

use std::path::{Path, PathBuf};

mod numbers;

fn main() {
    let folder = "../../dispatcher";
    println!("cargo:rerun-if-changed={folder}");
    println!("cargo:rerun-if-changed=numbers.rs");
    let numbers =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("numbers.c");
    let headers = ["punctual_dispatcher.h", "record.h", "late_wait.h", "errors.h"];
    std::fs::write(&numbers, numbers::table(Path::new(folder), &headers, "pd_numbers"))
        .expect("cargo made OUT_DIR");
    cc::Build::new()
        .file(format!("{folder}/dispatcher.c"))
        .file(numbers)
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
