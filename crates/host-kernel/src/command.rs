//! Commands: the child stands at the barrier until it is a member of its task, and executes the program on the task's own
//! budgets; nothing of it before its first release.

use std::ffi::{c_char, CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use punctual_process::child::{arrange_streams, ordinary_signals};
use punctual_process::Output;

use crate::start_barrier::{fork, pipe, StartBarrier};
use punctual_diagnostic::Diagnostic;

/// In the environment of commands and what they start: whose they are.
pub(crate) const MARK: &str = "PUNCTUAL_RUN";

/// A command that was started.
pub(crate) struct Started {
    pub pid: i32,
    /// Tells the error if the program could not be executed; at its end when it could.
    pub errors: File,
    pub name: String,
}

/// Starts one; it stands at the barrier.
///
/// # Errors
/// There is no such program, or it may not be executed (exit code 2); the system's.
pub(crate) fn start(
    barrier: &StartBarrier,
    argv: &[String],
    stdin: bool,
    output: Output,
    mark: &str,
) -> Result<Started, Diagnostic> {
    let name = argv.first().cloned().unwrap_or_default();
    let programs = programs(&name)?;
    let zero = |_| Diagnostic::command(format!("{name}: an argument has a zero byte"), HELP, libc::EINVAL);
    let argv = argv.iter().map(|a| CString::new(a.as_bytes())).collect::<Result<Vec<_>, _>>().map_err(zero)?;
    let environment = environment(mark);
    let pointers =
        |all: &[CString]| all.iter().map(|c| c.as_ptr()).chain([std::ptr::null()]).collect::<Vec<*const c_char>>();
    let (argv_at, environment_at) = (pointers(&argv), pointers(&environment));
    let broken = |e: std::io::Error| Diagnostic::machine(format!("cannot start {name}: {e}"), "raise RLIMIT_NOFILE");
    let null = File::options().read(true).write(true).open("/dev/null").map_err(broken)?;
    let null = null.as_raw_fd();
    let streams = match output {
        Output::Inherit => [if stdin { 0 } else { null }, 1, 2],
        Output::StandardError => [if stdin { 0 } else { null }, 2, 2],
        Output::Nowhere => [if stdin { 0 } else { null }, null, null],
    };
    let (errors, said) = pipe().map_err(broken)?;
    if let Some(pid) = fork()? {
        return Ok(Started { pid, errors: errors.into(), name });
    }
    // SAFETY: all pointers are of what lives in this function, and their lists end with null. System calls only.
    unsafe {
        ordinary_signals();
        libc::setpgid(0, 0);
        if arrange_streams(streams) {
            barrier.wait();
            for program in &programs {
                libc::execve(program.as_ptr(), argv_at.as_ptr(), environment_at.as_ptr());
            }
        }
        let bytes = (*libc::__errno_location()).to_ne_bytes();
        libc::write(said.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

impl Started {
    /// Why the program could not be executed; to be asked when the child has ended.
    pub fn failure(&mut self) -> Option<Diagnostic> {
        let mut bytes = [0; 4];
        self.errors.read_exact(&mut bytes).ok()?;
        let errno = i32::from_ne_bytes(bytes);
        let why = std::io::Error::from_raw_os_error(errno);
        Some(Diagnostic::command(format!("cannot start {}: {why}", self.name), HELP, errno))
    }
}

const HELP: &str = "check the program and its arguments; a script needs a first line such as #!/bin/sh";

/// The files that the name may mean, in PATH's order.
fn programs(name: &str) -> Result<Vec<CString>, Diagnostic> {
    let files: Vec<PathBuf> = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        std::env::split_paths(&path).map(|d| d.join(name)).collect()
    };
    let there: Vec<&PathBuf> = files.iter().filter(|f| f.exists()).collect();
    if name.is_empty() || there.is_empty() {
        let cause = format!("there is no program {name}");
        return Err(Diagnostic::command(cause, "correct its name, install it, or give its whole path", libc::ENOENT));
    }
    let found: Vec<CString> =
        there.into_iter().filter(|f| f.is_file() && executable(f)).filter_map(|f| cstring(f.as_os_str())).collect();
    if found.is_empty() {
        let help = "chmod +x it, or name a program and not a directory";
        return Err(Diagnostic::command(format!("{name} may not be executed"), help, libc::EACCES));
    }
    Ok(found)
}

fn executable(file: &Path) -> bool {
    // SAFETY: the path is terminated.
    cstring(file.as_os_str()).is_some_and(|f| unsafe { libc::access(f.as_ptr(), libc::X_OK) } == 0)
}

fn cstring(text: &OsStr) -> Option<CString> {
    CString::new(text.as_bytes()).ok()
}

/// Ours, and the mark.
fn environment(mark: &str) -> Vec<CString> {
    let ours = std::env::vars_os().filter(|(name, _)| name != MARK);
    let pairs = ours.chain([(MARK.into(), mark.into())]).map(|(name, value)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        pair
    });
    pairs.filter_map(|pair| CString::new(pair).ok()).collect()
}
