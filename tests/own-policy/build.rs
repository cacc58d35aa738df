//! Compiles the plugins of the tests. They are a part of the test programs, since a virtual machine
//! has neither a compiler nor these files.

use std::env;
use std::path::{Path, PathBuf};

/// The plugins that `faulty.c` becomes.
const FAULTS: [&str; 11] = [
    "NO_SYMBOL",
    "FUNCTION",
    "SMALL",
    "VERSION",
    "SIZE",
    "NO_NAME",
    "NAME",
    "NEITHER",
    "ORDER",
    "ADMISSION",
    "THREAD",
];

fn main() {
    let header = "../../crates/plugin/include";
    println!("cargo::rerun-if-changed=plugins");
    println!("cargo::rerun-if-changed={header}");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let compile = |source: &str, macro_of: Option<&str>, name: &str| {
        let mut command = cc::Build::new().opt_level(1).get_compiler().to_command();
        command.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", header]);
        // The later value of a member that is initialised twice is meant.
        command.arg("-Wno-override-init");
        command.args(macro_of.map(|word| format!("-D{word}")));
        command.arg("-o").arg(folder.join(name)).arg(Path::new("plugins").join(source));
        assert!(command.status().expect("the C compiler starts").success(), "{name}");
    };
    compile("halves.c", None, "halves.so");
    for fault in FAULTS {
        compile("faulty.c", Some(fault), &format!("{fault}.so"));
    }
}
