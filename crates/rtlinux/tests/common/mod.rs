//! Compiles programs in C against the headers and librtlinux, and runs them.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::LazyLock;

use punctual_test_support::{comes_true, missing};
// Has cargo build the archive.
use punctual_rtlinux as _;

pub const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What a C program returns when the machine lacks something; it prints what.
const MISSING: i32 = 77;
pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// librtlinux.so and rtlinux-run in a folder of their own.
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
        name.starts_with("libpunctual_rtlinux") && name.ends_with(".a")
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

fn compiler(source: &str) -> Command {
    let mut command = Command::new("cc");
    command.args(WARNINGS).args(["-g", "-pthread", "-D_GNU_SOURCE", "-I"]);
    command.arg(format!("{HERE}/include/rtlinux")).arg(format!("{HERE}/tests/c/{source}"));
    command
}

fn link_arguments(command: &mut Command, to: &Path) {
    let library = LIBRARY.path();
    command.arg("-o").arg(to).arg("-L").arg(library).arg("-lrtlinux");
    run(command.arg(format!("-Wl,-rpath,{}", library.display())));
}

/// Compiles a program of tests/c.
pub fn compile(source: &str, program: &Path) {
    link_arguments(&mut compiler(source), program);
}

/// Compiles a module of tests/c, as `rtlinux-config --module-cflags` says.
pub fn compile_module(source: &str, module: &Path, arguments: &[&str]) {
    let mut command = compiler(source);
    command.args(["-O2", "-fPIC", "-fno-toplevel-reorder", "-shared", "-Wl,-Bsymbolic"]);
    command.args(arguments);
    link_arguments(&mut command, module);
}

/// A program with objects of its own, and a dispatcher of its own.
pub fn command(program: impl AsRef<OsStr>, objects: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("PUNCTUAL_SHM_DIR", objects);
    // Whatever service the machine has.
    command.env("PUNCTUAL_RTLINUX_HOST", "user");
    command
}

/// A folder for objects in shared memory.
pub fn objects() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.path(), mode).expect("it is ours");
    folder
}

/// Runs a command whose output goes to a file: no pipe, which a child that it leaves would keep
/// open. How it ended, and what it printed.
pub fn finish(mut command: Command) -> (ExitStatus, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let file = || File::options().create(true).append(true).open(&log).expect("it can be made");
    let mut child = command.stdout(file()).stderr(file()).spawn().expect("it runs");
    let mut ended = None;
    if !comes_true(|| {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    }) {
        child.kill().expect("it is alive");
        child.wait().expect("it is a child");
    }
    let text = std::fs::read_to_string(&log).expect("it was made");
    (ended.unwrap_or_else(|| panic!("{command:?} does not end: {text}")), text)
}

/// Compiles and runs a program of tests/c, with objects of its own.
pub fn passes(source: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    compile(source, &program);
    let objects = objects();
    let (status, text) = finish(command(&program, objects.path()));
    match status.code() {
        Some(0) => {}
        Some(MISSING) => missing(text.trim()),
        _ => panic!("{source}: {status}: {text}"),
    }
}

/// Runs a command of make in the crate's folder.
pub fn make(target: &str, build: &Path, prefix: &Path) {
    let mut make = Command::new("make");
    make.args(["--silent", "-C", HERE, target]).arg(format!("PREFIX={}", prefix.display()));
    make.arg(format!("ARCHIVE={}", archive().display()));
    run(make.arg(format!("BUILD={}", build.display())));
}
