//! Compiles programs in C against the headers and liblxrt, and runs them.

#![allow(dead_code)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use punctual_test_support::{comes_true, missing};
// Has cargo build the archive.
use punctual_rtai as _;

pub const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What a C program returns when the machine lacks something; it prints what.
const MISSING: i32 = 77;
pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// liblxrt.so in a folder of its own.
pub static LIBRARY: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let mut link = Command::new(Path::new(HERE).join("link"));
    run(link.arg(archive()).arg(folder.path()));
    folder
});

/// Cargo puts it beside test programs, with or without a number in its name.
fn archive() -> PathBuf {
    let me = std::env::current_exe().expect("/proc is mounted");
    let folder = me.parent().expect("in a folder");
    let archives = std::fs::read_dir(folder).expect("it is there").flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libpunctual_rtai") && name.ends_with(".a")
    });
    let newest = archives.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo built the archive").path()
}

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {text}", output.status);
    output
}

/// Compiles a program of tests/c.
pub fn compile(source: &str, program: &Path) {
    let library = LIBRARY.path();
    let mut command = Command::new(if source.ends_with(".cpp") { "c++" } else { "cc" });
    // A thread's function is passed as a void *, as RTAI has it.
    command.args(WARNINGS).args(["-Wno-pedantic", "-g", "-pthread", "-D_GNU_SOURCE", "-I"]);
    command.arg(format!("{HERE}/include/rtai"));
    command.arg(format!("{HERE}/tests/c/{source}")).arg("-o").arg(program);
    command.arg("-L").arg(library).arg("-llxrt");
    run(command.arg(format!("-Wl,-rpath,{}", library.display())));
}

/// Compiles and runs a program of tests/c, with objects of its own.
pub fn passes(source: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    compile(source, &program);
    let objects = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    // No pipe, which a child that the program leaves would keep open.
    let log = folder.path().join("log");
    let file = || File::options().create(true).append(true).open(&log).expect("it can be made");
    let mut command = Command::new(&program);
    command.env("PUNCTUAL_SHM_DIR", objects.path().join("rtai"));
    // Whatever service the machine has.
    command.env("PUNCTUAL_RTAI_HOST", "user");
    let mut child = command.stdout(file()).stderr(file()).spawn().expect("it runs");
    let mut ended = None;
    if !comes_true(|| {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    }) {
        child.kill().expect("it is alive");
    }
    let text = std::fs::read_to_string(&log).expect("it was made");
    match ended.map(|status| status.code()) {
        Some(Some(0)) => {}
        Some(Some(MISSING)) => missing(text.trim()),
        _ => panic!("{source}: {ended:?}: {text}"),
    }
}

/// What a program with hard tasks prints; `None`: the machine does not permit it, or another
/// dispatcher has had the CPU for too long.
pub fn hard_output(program: &Path) -> Option<String> {
    let objects = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let mut soft = String::new();
    let got = comes_true(|| {
        let mut command = Command::new(program);
        command.env("PUNCTUAL_SHM_DIR", objects.path().join("rtai"));
        let output = run(command.env("PUNCTUAL_RTAI_HOST", "user"));
        soft = String::from_utf8_lossy(&output.stderr).into_owned();
        if soft.contains("tasks are soft") {
            return false;
        }
        soft = String::from_utf8_lossy(&output.stdout).into_owned();
        true
    });
    if !got {
        missing(soft.trim());
        return None;
    }
    Some(soft)
}

/// Runs a command of make in the crate's folder.
pub fn make(target: &str, build: &Path, prefix: &Path) {
    let mut make = Command::new("make");
    make.args(["--silent", "-C", HERE, target]).arg(format!("PREFIX={}", prefix.display()));
    make.arg(format!("ARCHIVE={}", archive().display()));
    run(make.arg(format!("BUILD={}", build.display())));
}
