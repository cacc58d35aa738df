//! Compiles the scheduler and the self-test as BPF; natively the self-test, and the numbers of the
//! headers for Rust.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../dispatcher/numbers.rs"]
mod numbers;

const DISPATCHER: &str = "../../dispatcher";

fn main() {
    println!("cargo:rerun-if-changed={DISPATCHER}");
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=../dispatcher/numbers.rs");
    println!("cargo:rerun-if-env-changed=PUNCTUAL_CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let table = numbers::table(Path::new("bpf"), &["commands.h"], "punctual_numbers");
    let table = format!("#include \"punctual_dispatcher.h\"\n{table}");
    std::fs::write(out.join("numbers.c"), table).expect("cargo made OUT_DIR");
    cc::Build::new()
        .file("bpf/selftest/native.c")
        .file("bpf/abi.c")
        .file(out.join("numbers.c"))
        .include(DISPATCHER)
        .include("bpf")
        .std("gnu11")
        .opt_level(3)
        .flag("-ffreestanding")
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .flag("-Wno-unused-function")
        .compile("punctual_host_kernel");
    // libbpf's own headers, from the version that is linked.
    let headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    for source in ["selftest/dispatcher", "probe", "scheduler"] {
        let object = Path::new(source).file_name().expect("a file").to_str().expect("plain");
        let object = out.join(format!("{object}.bpf.o"));
        compile_bpf(Path::new(&headers), &format!("bpf/{source}.bpf.c"), &object);
    }
}

/// The versions that are known to do; the newest that is there is taken.
fn clang() -> String {
    if let Ok(named) = env::var("PUNCTUAL_CLANG") {
        return named;
    }
    for name in ["clang-19", "clang-20", "clang-21", "clang"] {
        let found = Command::new(name).arg("--version").output();
        if found.is_ok_and(|o| o.status.success()) {
            return name.to_owned();
        }
    }
    panic!(
        "no clang for the BPF build: install clang-19 (apt-get install clang-19), or name one in \
         PUNCTUAL_CLANG"
    );
}

fn compile_bpf(headers: &Path, source: &str, object: &Path) {
    let clang = clang();
    // Its line information names sources, which are not to be this machine's.
    let here = env::current_dir().expect("cargo starts it in the package's folder");
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11"])
        // memset and memcpy forget the arena's address space.
        .arg("-fno-builtin")
        .arg(format!("-ffile-prefix-map={}=.", here.display()))
        .arg(format!("-ffile-prefix-map={}=libbpf", headers.display()))
        .args(["-Wall", "-Wextra", "-Wno-unused-parameter"])
        .arg("-I")
        .arg(headers)
        .args(["-I", DISPATCHER, "-I", "bpf", "-c", source, "-o"])
        .arg(object)
        .status()
        .unwrap_or_else(|e| panic!("{clang}: {e}"));
    assert!(
        status.success(),
        "{clang} could not compile the dispatcher as BPF; version 19 or later is needed"
    );
}
