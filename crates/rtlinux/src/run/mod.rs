//! rtlinux-run: executes a program of RT-Linux in user space. That is a shared object with
//! `init_module`, as a kernel module was, or a program for `RTload`.

mod elf;
mod module;
mod parameters;
mod signals;

use std::ffi::{c_char, c_int, CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::cancellation::NoCancellation;
use crate::loader;
use elf::Elf;
use signals::EndSignals;

/// Exit codes of its own failures, as those of env(1): the file is not there, or cannot be
/// executed; and what makes no sense.
const NO_FILE: c_int = 127;
const NOT_EXECUTABLE: c_int = 126;
const USAGE: c_int = 125;

const HELP: &str = "\
usage: rtlinux-run [--stay] FILE [PARAMETER=VALUE]...

FILE is a shared object with init_module, or a program.

A shared object is loaded and its parameters (MODULE_PARM) are set; init_module is called. When
all of its threads have ended, or at SIGINT (Ctrl-C), SIGTERM or SIGHUP, cleanup_module is called.
Another signal ends it at once. With --stay it is there until a signal, as a kernel module was:
what its threads have left in FIFOs can be read. The exit code is 0, or 1 if init_module returns
an error.

A program is loaded and started as by RTload and RTrun, and killed at these signals. The exit code
is its own; 128 and the signal by which it was killed.

docs/rtlinux.md describes the environment. Exit codes of rtlinux-run itself: 125 bad usage, 126
FILE cannot be executed, 127 there is no such file.
";

/// What keeps a file from being executed, with the exit code.
pub(super) struct Refusal {
    code: c_int,
    text: String,
}

impl Refusal {
    fn new(code: c_int, text: impl Into<String>) -> Refusal {
        Refusal { code, text: text.into() }
    }
}

#[no_mangle]
unsafe extern "C" fn rtl_main(argc: c_int, argv: *mut *mut c_char) -> c_int {
    let arguments: Vec<OsString> = (1..usize::try_from(argc).unwrap_or(0))
        .map_while(|n| {
            // SAFETY: the caller's arguments, as main has them.
            let argument = unsafe { *argv.add(n) };
            (!argument.is_null()).then(|| {
                // SAFETY: as above.
                OsStr::from_bytes(unsafe { CStr::from_ptr(argument) }.to_bytes()).to_owned()
            })
        })
        .collect();
    run(&arguments).unwrap_or_else(|refusal| {
        eprintln!("rtlinux-run: {}", refusal.text);
        refusal.code
    })
}

fn run(arguments: &[OsString]) -> Result<c_int, Refusal> {
    let stays = arguments.first().is_some_and(|first| first == "--stay");
    let arguments = &arguments[usize::from(stays)..];
    let Some((file, parameters)) = arguments.split_first() else {
        return Err(Refusal::new(USAGE, format!("no file is named\n\n{HELP}")));
    };
    if file == "--help" || file == "-h" {
        print!("{HELP}");
        return Ok(0);
    }
    if file.as_bytes().starts_with(b"-") {
        let file = file.to_string_lossy();
        return Err(Refusal::new(USAGE, format!("there is no option {file}\n\n{HELP}")));
    }
    let path = Path::new(file);
    let contents = std::fs::read(path)
        .map_err(|error| Refusal::new(NO_FILE, format!("{}: {error}", path.display())))?;
    match Elf::parse(&contents).filter(Elf::is_shared_object) {
        Some(elf) => module::run(path, &elf, parameters, stays),
        _ if stays => Err(Refusal::new(USAGE, "only a shared object stays (--stay)")),
        _ if !parameters.is_empty() => {
            let text = "only a shared object has parameters; a program is loaded without arguments";
            Err(Refusal::new(USAGE, text))
        }
        // Also a script; the kernel says what it cannot execute.
        _ => run_program(file),
    }
}

fn run_program(file: &OsStr) -> Result<c_int, Refusal> {
    let _not_here = NoCancellation::begin();
    let signals = EndSignals::block();
    let refused = |error: punctual::Error| {
        let code = match error.errno {
            Some(libc::ENOENT) => NO_FILE,
            _ => NOT_EXECUTABLE,
        };
        Refusal::new(code, error.to_string())
    };
    let pid = loader::load(file.to_owned()).map_err(refused)?;
    loader::run(pid).map_err(refused)?;
    signals.watch(move || drop(loader::kill_without_waiting(pid)));
    let status = loader::wait(pid).map_err(refused)?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
