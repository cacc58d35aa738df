//! rtlinux-run, which is `rtl_main`: modules and programs, executed as users do it.

mod common;

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use common::LIBRARY;
use punctual_test_support::c_library::objects;
use punctual_test_support::comes_true;
use punctual_test_support::process::{end_of, finish};

/// Far longer than a module takes to end.
const PAUSE: Duration = Duration::from_millis(500);

/// A module, with what it needs.
struct Module {
    _folder: tempfile::TempDir,
    objects: tempfile::TempDir,
    file: PathBuf,
}

impl Module {
    fn new(source: &str, arguments: &[&str]) -> Module {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("module.so");
        // As `rtlinux-config --module-cflags` says.
        let flags = ["-O2", "-fPIC", "-fno-toplevel-reorder", "-shared", "-Wl,-Bsymbolic"];
        let source = format!("tests/c/{source}");
        LIBRARY.compile(source, &file, &[&flags, arguments].concat());
        Module { file, _folder: folder, objects: objects() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = runner(self.objects.path());
        command.arg(&self.file).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> (ExitStatus, String) {
        finish(&mut self.command(arguments))
    }
}

fn runner(objects: &Path) -> Command {
    LIBRARY.command(LIBRARY.linked().join("rtlinux-run"), objects)
}

#[test]
fn a_module_has_its_parameters_and_ends_with_its_threads() {
    let module = Module::new("module.c", &[]);
    let (status, text) = module.run(&[]);
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("periods 5, text nothing, list 1 2 3 4\n"), "{text}");
    assert!(text.contains("its thread has periods\n"), "{text}");
    assert!(text.ends_with("removed\n"), "{text}");
    let (status, text) = module.run(&["periods=0x4", "text=a text, with commas", "list=7,8"]);
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("periods 4, text a text, with commas, list 7 8 3 4\n"), "{text}");
}

#[test]
fn wrong_parameters_are_refused_before_the_module_begins() {
    let module = Module::new("module.c", &[]);
    for (argument, why) in [
        ("periods=x", "periods=x is no int"),
        ("periods", "use PARAMETER=VALUE"),
        ("speed=3", "the parameters of the module are"),
        ("list=1,2,3,4,5", "list has 5 values; it takes 4"),
    ] {
        let (status, text) = module.run(&[argument]);
        assert_eq!(status.code(), Some(125), "{argument}: {text}");
        assert!(text.contains(why) && !text.contains("periods 5"), "{argument}: {text}");
    }
    let stripped = Module::new("module.c", &["-s"]);
    let (status, text) = stripped.run(&["periods=3"]);
    assert_eq!(status.code(), Some(125), "{text}");
    assert!(text.contains("do not strip the file"), "{text}");
    // One that is global is there in any case.
    let (status, text) = stripped.run(&["list=9"]);
    assert_eq!(status.code(), Some(0), "{text}");
}

#[test]
fn an_error_of_init_module_is_reported() {
    let module = Module::new("module.c", &[]);
    let (status, text) = module.run(&["result=-16"]);
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("init_module returned -16: Device or resource busy"), "{text}");
    assert!(!text.contains("removed"), "{text}");
}

/// Signals a command once it has printed `text`, and returns how it ended.
fn signalled(command: Command, text: &str, signal: i32) -> (ExitStatus, String) {
    signalled_after(command, text, Duration::ZERO, signal)
}

/// The same after a while.
fn signalled_after(
    mut command: Command,
    text: &str,
    pause: Duration,
    signal: i32,
) -> (ExitStatus, String) {
    let mut log = tempfile::tempfile().expect("a file");
    let file = |log: &File| log.try_clone().expect("there are descriptors");
    let mut child = command.stdout(file(&log)).stderr(file(&log)).spawn().expect("it runs");
    let mut printed = || {
        let mut text = String::new();
        log.rewind().expect("a file");
        log.read_to_string(&mut text).expect("text");
        text
    };
    assert!(comes_true(|| printed().contains(text)), "{}", printed());
    std::thread::sleep(pause);
    // SAFETY: our child, which was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    (end_of(&mut child).expect("it ends"), printed())
}

#[test]
fn a_signal_ends_a_module_by_its_cleanup() {
    let module = Module::new("module.c", &[]);
    for (argument, signal) in
        [("periods=0", libc::SIGTERM), ("periods=0", libc::SIGINT), ("periods=-1", libc::SIGHUP)]
    {
        let (status, text) = signalled(module.command(&[argument]), "list 1 2 3 4", signal);
        assert_eq!(status.code(), Some(0), "{argument}: {text}");
        assert!(text.ends_with("removed\n"), "{argument}: {text}");
    }
}

#[test]
fn a_module_stays_without_threads_if_it_is_to() {
    let module = Module::new("module.c", &[]);
    let mut command = runner(module.objects.path());
    command.arg("--stay").arg(&module.file).args(["periods=3"]);
    // Without threads after its third period: it would have ended by itself, and not be signalled.
    let (status, text) = signalled_after(command, "its thread has periods", PAUSE, libc::SIGUSR1);
    assert_eq!(status.signal(), Some(libc::SIGUSR1), "{text}");
    assert!(!text.contains("removed"), "{text}");
    let mut program = runner(module.objects.path());
    program.args(["--stay", "/bin/true"]);
    let (status, text) = finish(&mut program);
    assert_eq!(status.code(), Some(125), "{text}");
}

#[test]
fn all_that_a_module_lacks_is_named() {
    let module = Module::new("lacking.c", &[]);
    let (status, text) = module.run(&[]);
    assert_eq!(status.code(), Some(126), "{text}");
    assert!(text.contains("rtl_request_irq, no_such_function"), "{text}");
    assert!(text.contains("interrupts of devices are the kernel's"), "{text}");
    assert!(!text.contains("cleanup_nothing"), "what is weak may be missing: {text}");
    let (status, text) = Module::new("no_module.c", &[]).run(&[]);
    assert_eq!(status.code(), Some(126), "{text}");
    assert!(text.contains("has no init_module"), "{text}");
}

#[test]
fn a_program_is_loaded_and_its_exit_code_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = |name: &str| folder.path().join(name);
    LIBRARY.compile("tests/c/loaded.c", &program("exits"), &[]);
    for name in ["crashes", "spins"] {
        std::fs::copy(program("exits"), program(name)).expect("there is room");
    }
    let objects = objects();
    let command = |name: &str| {
        let mut command = runner(objects.path());
        command.arg(program(name));
        command
    };
    let (status, text) = finish(&mut command("exits"));
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("exits) has ended: exit status: 3"), "{text}");
    let (status, text) = finish(&mut command("crashes"));
    assert_eq!(status.code(), Some(128 + libc::SIGABRT), "{text}");
    let (status, text) = signalled(command("spins"), "", libc::SIGTERM);
    // The signal may come before the runner handles it.
    let ended = status.code() == Some(128 + libc::SIGKILL);
    assert!(ended || status.signal() == Some(libc::SIGTERM), "{status}: {text}");
    let mut with_arguments = command("exits");
    with_arguments.arg("a=b");
    let (status, text) = finish(&mut with_arguments);
    assert_eq!(status.code(), Some(125), "{text}");
}

#[test]
fn what_is_no_file_and_what_is_no_program_have_the_exit_codes_of_wrappers() {
    let objects = objects();
    let run = |arguments: &[&str]| {
        let mut command = runner(objects.path());
        command.args(arguments);
        finish(&mut command)
    };
    let (status, text) = run(&[]);
    assert_eq!(status.code(), Some(125), "{text}");
    assert!(text.contains("usage: rtlinux-run [--stay] FILE"), "{text}");
    let (status, text) = run(&["--what"]);
    assert_eq!(status.code(), Some(125), "{text}");
    let (status, text) = run(&["--help"]);
    assert_eq!(status.code(), Some(0), "{text}");
    let (status, text) = run(&["/no/such/file"]);
    assert_eq!(status.code(), Some(127), "{text}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (status, text) = run(&[file.path().to_str().expect("text")]);
    assert_eq!(status.code(), Some(126), "{text}");
}
