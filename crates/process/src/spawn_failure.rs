//! Why a command could not be started, and what helps.

use std::ffi::c_int;
use std::io;

use punctual_diagnostic::Diagnostic;

use crate::command_spec::CommandSpec;
use crate::exec::Step;

/// The step that failed, and its error number.
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: c_int,
}

impl Failure {
    /// Explains it for the command of this name.
    pub(crate) fn explain(&self, name: &str, spec: &CommandSpec) -> Diagnostic {
        let why = io::Error::from_raw_os_error(self.errno);
        let refused = |cause: String, help: &str| Diagnostic::command(cause, help, self.errno);
        match (self.step, self.errno) {
            (Step::Exec, libc::ENOENT)
                if name.contains('/') && std::path::Path::new(name).exists() =>
            {
                refused(
                    format!("cannot start {name}: the interpreter it names does not exist"),
                    "correct its first line (#!), or install that interpreter or loader",
                )
            }
            (Step::Exec, libc::ENOENT) => refused(
                format!("there is no program {name}"),
                "correct its name, install it, or give its whole path",
            ),
            (Step::Exec, libc::EACCES) => refused(
                format!("{name} may not be executed"),
                "chmod +x it, or name a program and not a directory",
            ),
            (Step::Exec, libc::ENOEXEC) => refused(
                format!("{name} is no program for this machine"),
                "a script needs a first line such as #!/bin/sh",
            ),
            (Step::Exec, _) => refused(
                format!("cannot start {name}: {why}"),
                "check the program and its arguments",
            ),
            (Step::Directory, _) => {
                let dir = spec.directory.clone().unwrap_or_default();
                refused(
                    format!("cannot start {name} in {}: {why}", dir.display()),
                    "give a directory that exists",
                )
            }
            (Step::Cgroup, _) => Diagnostic::refused(
                format!("{name} cannot join its cgroup"),
                why,
                "run as root, or in a group of your own: systemd-run --user --scope -p \
                 Delegate=yes punctual ...",
            ),
            (step, _) => Diagnostic::refused(
                format!("cannot start {name} ({step:?})"),
                why,
                "raise the limits on processes and open files (ulimit -u, ulimit -n)",
            ),
        }
    }
}
