//! A library for programs in C, linked of the archive that cargo builds, and programs that are
//! compiled against it as users do it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::process::{finish, has_succeeded, run, text_of};
use crate::Scratch;

/// The versions of C in which programs are compiled.
pub const VERSIONS_OF_C: [&str; 4] = ["c99", "c11", "c17", "c2x"];
/// The versions of C++.
const VERSIONS_OF_CPP: [&str; 4] = ["c++11", "c++14", "c++17", "c++20"];

/// The library of one crate, which has its script `link`, its Makefile and its `lib*.map`.
#[derive(Debug)]
pub struct CLibrary {
    /// The crate's folder (`CARGO_MANIFEST_DIR`), whose own name is that of the interface.
    pub folder: &'static str,
    /// The name after `-l`.
    pub name: &'static str,
    /// The folder of its headers, in the crate's.
    pub headers: &'static str,
    /// Warnings, as errors, of which headers and programs are free.
    pub warnings: &'static [&'static str],
    /// What else programs are compiled with.
    pub flags: &'static [&'static str],
    /// Where it is linked, from its first use on.
    pub linked: OnceLock<TempDir>,
}

/// A folder for objects in shared memory.
pub fn objects() -> TempDir {
    tempfile::tempdir_in("/dev/shm").expect("there is shared memory")
}

/// The files in a folder and in those in it.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    let within = entries.flat_map(|entry| match entry.file_type().is_ok_and(|t| t.is_dir()) {
        true => files_in(&entry.path()),
        false => vec![entry.path()],
    });
    within.collect()
}

/// The compiler of a language or of a file, by its name.
fn compiler(is_cpp: bool) -> Command {
    Command::new(if is_cpp { "c++" } else { "cc" })
}

impl CLibrary {
    /// A file of the crate.
    pub fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        Path::new(self.folder).join(file)
    }

    /// `rtai` for the crate of RTAI's interface.
    pub(crate) fn interface(&self) -> &'static str {
        let folder = Path::new(self.folder).file_name();
        folder.and_then(OsStr::to_str).expect("a crate has a folder")
    }

    /// The folder with the shared library, and what else `link` makes.
    pub fn linked(&self) -> &Path {
        let link = || {
            let folder = tempfile::tempdir().expect("a folder");
            run(Command::new(self.path("link")).arg(self.archive()).arg(folder.path()));
            folder
        };
        self.linked.get_or_init(link).path()
    }

    /// Cargo puts it beside test programs, with or without a number in its name.
    fn archive(&self) -> PathBuf {
        let me = std::env::current_exe().expect("/proc is mounted");
        let folder = me.parent().expect("in a folder");
        let begin = format!("libpunctual_{}", self.interface());
        let archives = std::fs::read_dir(folder).expect("it is there").flatten().filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(&begin) && name.ends_with(".a")
        });
        let newest = archives.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok());
        newest.expect("cargo built the archive").path()
    }

    /// The names of all its functions, as its map has them.
    pub fn functions(&self) -> Vec<String> {
        let map = self.path(format!("lib{}.map", self.name));
        let map = std::fs::read_to_string(map).expect("it is there");
        let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
        names.filter(|name| !name.contains([' ', '*', '}'])).map(str::to_owned).collect()
    }

    /// The folder of check.h.
    pub(crate) fn common(&self) -> PathBuf {
        self.path("../../tests/support/c")
    }

    /// Compiles a file of the crate, with arguments after the usual ones.
    pub fn compile(&self, source: impl AsRef<Path>, program: &Path, arguments: &[&str]) {
        let source = self.path(source);
        let library = self.linked();
        let mut command = compiler(source.extension().is_some_and(|end| end != "c"));
        command.args(self.warnings).args(self.flags).args(["-g", "-pthread", "-I"]);
        command.arg(self.path(self.headers)).arg("-I").arg(self.common());
        command.args(arguments).arg(source).arg("-o").arg(program);
        command.arg("-L").arg(library).arg(format!("-l{}", self.name));
        run(command.arg(format!("-Wl,-rpath,{}", library.display())));
    }

    /// A program with a dispatcher of its own, whatever service the machine has, and with objects
    /// in this folder.
    pub fn command(&self, program: impl AsRef<OsStr>, objects: &Path) -> Command {
        let mut command = Command::new(program);
        // A folder that only its owner may use, as the program makes it.
        command.env("PUNCTUAL_SHM_DIR", objects.join("objects"));
        command.env(format!("PUNCTUAL_{}_HOST", self.interface().to_uppercase()), "user");
        command
    }

    /// Compiles and runs a program of tests/c, with objects of its own.
    pub fn passes(&self, source: &str) {
        let folder = Scratch::new();
        let program = folder.folder().join(source).with_extension("");
        self.compile(format!("tests/c/{source}"), &program, &[]);
        let objects = objects();
        let mut command = self.command(program, objects.path());
        let (status, text) = finish(&mut command);
        has_succeeded(&command, status, &text);
    }

    /// Runs a command of make in the crate's folder, with these variables.
    pub fn make(&self, target: &str, build: &Path, variables: &[String]) {
        let mut make = Command::new("make");
        make.args(["--silent", "-C", self.folder, target]).args(variables);
        make.arg(format!("ARCHIVE={}", self.archive().display()));
        run(make.arg(format!("BUILD={}", build.display())));
    }

    /// Programs that include its headers: each one alone, and all of them.
    pub fn inclusions(&self) -> Vec<String> {
        let folder = self.path(self.headers);
        let mut headers: Vec<String> = Vec::new();
        for file in files_in(&folder) {
            let header = file.strip_prefix(&folder).expect("it is in it").display();
            headers.push(format!("#include <{header}>\n"));
        }
        headers.sort();
        headers.push(headers.concat());
        headers
    }

    /// Checks that each of these programs is compiled without a warning, in every version of C and
    /// of C++.
    pub fn is_clean(&self, programs: &[String], arguments: &[&str]) {
        let folder = Scratch::new();
        for version in VERSIONS_OF_C.iter().chain(&VERSIONS_OF_CPP) {
            let is_cpp = version.starts_with("c++");
            for program in programs {
                let mut command = compiler(is_cpp);
                command.arg(format!("-std={version}")).args(self.warnings).arg("-fsyntax-only");
                command.args(["-Wstrict-prototypes"].iter().filter(|_| !is_cpp));
                command.args(arguments).arg("-I").arg(self.path(self.headers));
                command.args(["-x", if is_cpp { "c++" } else { "c" }]);
                run(command.arg(folder.file("program", program)));
            }
        }
    }

    /// Checks that it exports its functions with a version, and nothing else.
    pub fn exports_its_functions(&self) {
        let version = format!("LIB{}_0.1", self.name.to_uppercase());
        let functions = self.functions();
        let mut expected: Vec<String> =
            functions.iter().map(|name| format!("T {name}@@{version}")).collect();
        expected.push(format!("A {version}"));
        expected.sort();
        let library = self.linked().join(format!("lib{}.so", self.name));
        let symbols = text_of(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
        let mut symbols: Vec<&str> =
            symbols.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        symbols.sort_unstable();
        assert_eq!(symbols, expected);
    }
}
