//! A library for programs in C as `make install` leaves it, with the command that prints how
//! programs are built, such as `rtai-config`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::c_library::{files_in, CLibrary};
use crate::process::{run, text_of};
use crate::Scratch;

/// An installed library, in a folder of its own.
#[derive(Debug)]
pub struct Installed<'a> {
    library: &'a CLibrary,
    build: Scratch,
    folder: Scratch,
}

impl<'a> Installed<'a> {
    /// Installs it.
    pub fn new(library: &'a CLibrary) -> Self {
        let installed = Self { library, build: Scratch::new(), folder: Scratch::new() };
        installed.make("install");
        assert_eq!(installed.config("--version"), env!("CARGO_PKG_VERSION"));
        assert_eq!(Path::new(&installed.config("--prefix")), installed.prefix());
        installed
    }

    fn make(&self, target: &str) {
        let prefix = format!("PREFIX={}", self.prefix().display());
        self.library.make(target, self.build.folder(), &[prefix]);
    }

    fn prefix(&self) -> PathBuf {
        self.folder.folder().join("usr")
    }

    /// An installed program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.prefix().join("bin").join(name)
    }

    fn config_command(&self) -> Command {
        Command::new(self.program(&format!("{}-config", self.library.interface())))
    }

    /// What the library's command prints for an option.
    pub fn config(&self, option: &str) -> String {
        text_of(self.config_command().arg(option)).trim().to_owned()
    }

    /// Checks that the library's command refuses an option.
    pub fn refuses(&self, option: &str) {
        let output = self.config_command().arg(option).output().expect("it is there");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }

    /// Compiles a program of tests/c as these two options say, for compiler and linker.
    pub fn compile(&self, source: &str, [compiler, linker]: [&str; 2]) -> PathBuf {
        let file = self.folder.folder().join(source).with_extension("out");
        let mut command = Command::new("cc");
        command.args(self.config(compiler).split_whitespace());
        command.arg("-I").arg(self.library.common());
        command.arg(self.library.path("tests/c").join(source)).arg("-o").arg(&file);
        run(command.args(self.config(linker).split_whitespace()));
        file
    }

    /// Uninstalls it, and checks that nothing is left.
    pub fn uninstall(self) {
        self.make("uninstall");
        assert_eq!(files_in(&self.prefix()), Vec::<PathBuf>::new());
    }
}
