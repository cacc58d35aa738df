//! Programs in C, compiled and linked as users do it, and run on the user host.

#[path = "../common/figures.rs"]
mod figures;
mod gsi;
#[path = "../../../punctual/tests/common/traced_jobs.rs"]
mod traced_jobs;

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_daemon::{serve, HostKind, ServeOptions, ServiceEnd};
use punctual_test_support::{comes_true, missing, LIVENESS};
// Has cargo build the archive.
use punctual_capi as _;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What a C program returns when the machine lacks something; it prints what.
const MISSING: i32 = 77;
const WARNINGS: [&str; 6] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only"];

/// libpunctual.so in a folder of its own.
static LIBRARY: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
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
        name.starts_with("libpunctual_capi") && name.ends_with(".a")
    });
    let newest = archives.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo built the archive").path()
}

/// The names of all calls.
fn calls() -> Vec<String> {
    let map = std::fs::read_to_string(format!("{HERE}/libpunctual.map")).expect("it is there");
    let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| name.contains('_')).map(str::to_owned).collect()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {text}", output.status);
    output
}

/// Compiles a program with these warnings.
fn compile(compiler: &str, source: &Path, program: &Path, warnings: &[&str]) {
    let library = LIBRARY.path();
    let mut command = Command::new(compiler);
    command.args(warnings).args(["-g", "-O1", "-pthread", "-I"]);
    command.arg(format!("{HERE}/include")).arg(source).arg("-o").arg(program);
    command.arg("-L").arg(library).arg("-lpunctual");
    run(command.arg(format!("-Wl,-rpath,{}", library.display())));
}

/// Compiles and runs a program of tests/c, one at a time: they use the same CPU.
fn passes(compiler: &str, source: &str) {
    passes_with(compiler, source, &|| None);
}

/// The same with what `beside` starts, once it is its turn.
fn passes_with(compiler: &str, source: &str, beside: &dyn Fn() -> Option<Service>) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    compile(compiler, &Path::new(HERE).join("tests/c").join(source), &program, &WARNINGS[..5]);
    let _turn = turn();
    let service = beside();
    let socket = service.iter().map(|service| ("PUNCTUAL_SOCKET", service.socket()));
    passed(source, Command::new(program).envs(socket), folder.path());
}

/// Programs take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program, with objects and output in this folder; false: the machine lacks something.
fn passed(name: impl AsRef<OsStr>, program: &mut Command, folder: &Path) -> bool {
    // FIFOs of their own.
    program.env("PUNCTUAL_SHM_DIR", folder.join("objects"));
    let until = Instant::now() + LIVENESS;
    loop {
        let (code, text) = end_of(program, &folder.join("log"));
        match code {
            Some(0) => return true,
            // For a while, such as other tests on this machine.
            Some(MISSING)
                if text.contains("already has a dispatcher") && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            Some(MISSING) => {
                missing(text.trim());
                return false;
            }
            code => panic!("{}: {code:?}: {text}", name.as_ref().to_string_lossy()),
        }
    }
}

/// Runs a program; the code with which it exits in time, and its output.
fn end_of(program: &mut Command, log: &Path) -> (Option<i32>, String) {
    drop(std::fs::remove_file(log));
    // No pipe, which a child that the program leaves would keep open.
    let file = || File::options().create(true).append(true).open(log).expect("it can be made");
    let mut child = program.stdout(file()).stderr(file()).spawn().expect("it runs");
    let mut ended = None;
    if !comes_true(|| {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    }) {
        child.kill().expect("it is alive");
    }
    let text = std::fs::read_to_string(log).expect("it was made");
    (ended.and_then(|status| status.code()), text)
}

/// Has the folder of the service in the environment of its process.
const SERVICE_FOLDER: &str = "PUNCTUAL_TEST_SERVICE";

/// A service in a process of its own, by the user host.
struct Service {
    process: Child,
    folder: tempfile::TempDir,
}

impl Service {
    fn start() -> Service {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("service.toml"), "").expect("it is written");
        let mut process = Command::new(std::env::current_exe().expect("/proc is mounted"));
        process.args(["--exact", "serves", "--ignored"]).env(SERVICE_FOLDER, folder.path());
        let process = process.stdout(Stdio::null()).spawn().expect("it starts");
        let service = Service { process, folder };
        assert!(comes_true(|| UnixStream::connect(service.socket()).is_ok()), "it listens");
        service
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // SAFETY: a system call; the process is a child that was not waited for.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        let ended = self.process.wait();
        assert!(ended.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// The process of a [`Service`]; else nothing.
#[test]
#[ignore = "it is no test by itself"]
fn serves() {
    let Some(folder) = std::env::var_os(SERVICE_FOLDER).map(PathBuf::from) else { return };
    let options = ServeOptions {
        socket: folder.join("socket"),
        config: folder.join("service.toml"),
        cpus: (0..std::thread::available_parallelism().map_or(1, |n| n.get()) as u32).collect(),
        host: Some(HostKind::User),
        replace: false,
    };
    let ended = serve(&options, |_, _, _| {}).expect("it serves");
    assert_eq!(ended, ServiceEnd::Stopped);
}

#[test]
fn a_service_has_tasks_of_programs() {
    // SAFETY: a system call without memory.
    if unsafe { libc::geteuid() } != 0 {
        return missing("a service with dispatchers needs root");
    }
    passes_with("cc", "by_service.c", &|| Some(Service::start()));
}

#[test]
fn threads_are_tasks() {
    passes("cc", "tasks.c");
}

#[test]
fn programs_are_tasks_and_tasks_change() {
    passes("cc", "programs.c");
}

#[test]
fn groups_limit_their_tasks() {
    passes("cc", "groups.c");
}

#[test]
fn an_observer_is_called_with_each_period_and_end_in_order() {
    passes("cc", "observer.c");
}

#[test]
fn a_program_adds_the_jobs_of_its_tasks() {
    passes("cc", "jobs.c");
}

#[test]
fn fifos_pass_bytes_and_messages() {
    passes("cc", "fifos.c");
}

#[test]
fn locks_lend_wait_time_out_and_outlive_their_holders() {
    passes("cc", "locks.c");
}

#[test]
fn programs_share_locks_that_outlive_their_holders() {
    passes("cc", "shared_locks.c");
}

#[test]
fn handles_of_locks_that_are_bad_are_refused() {
    passes("cc", "lock_handles.c");
}

#[test]
fn locks_that_lend_are_of_one_cpu() {
    passes("cc", "locks_of_two_cpus.c");
}

#[test]
fn bad_input_is_refused() {
    passes("cc", "refused.c");
}

#[test]
fn a_program_in_cpp_links() {
    passes("c++", "cplusplus.cc");
}

#[test]
fn the_header_is_clean_in_every_version_of_c_and_cpp() {
    let languages = ["c99", "c11", "c17", "c++11", "c++14", "c++17", "c++20"];
    for language in languages {
        let (compiler, kind) = match language.starts_with("c++") {
            true => ("c++", "c++"),
            false => ("cc", "c"),
        };
        // Beside the header for policies, too.
        let source = "#include <punctual.h>\n#include <punctual_policy.h>\n#include <punctual.h>\n\
                      struct punctual_attr attr = PUNCTUAL_ATTR_INIT;\n\
                      struct punctual_task_attr task_attr = PUNCTUAL_TASK_ATTR_INIT;\n\
                      struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;\n\
                      struct punctual_task_stats task_stats = PUNCTUAL_TASK_STATS_INIT;\n\
                      struct punctual_fifo_attr fifo_attr = PUNCTUAL_FIFO_ATTR_INIT;\n\
                      struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;\n\
                      struct punctual_mutex_attr mutex_attr = PUNCTUAL_MUTEX_ATTR_INIT;\n\
                      struct punctual_sem_attr sem_attr = PUNCTUAL_SEM_ATTR_INIT;\n\
                      struct punctual_stats stats = PUNCTUAL_STATS_INIT;\n";
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("header");
        std::fs::write(&file, source).expect("it is written");
        let mut command = Command::new(compiler);
        command.arg(format!("-std={language}")).args(WARNINGS).args(["-x", kind]);
        command.args(["-Wstrict-prototypes"].iter().filter(|_| kind == "c"));
        command.arg("-I").arg(format!("{HERE}/include"));
        command.arg("-I").arg(format!("{HERE}/../plugin/include"));
        run(command.arg(&file));
    }
}

#[test]
fn the_library_exports_its_calls_with_a_version_and_nothing_else() {
    let library = LIBRARY.path().join("libpunctual.so");
    let mut calls: Vec<String> =
        calls().iter().map(|name| format!("T {name}@@LIBPUNCTUAL_0.1")).collect();
    calls.push("A LIBPUNCTUAL_0.1".to_owned());
    calls.sort();
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library)).stdout;
    let symbols = String::from_utf8(symbols).expect("text");
    let mut symbols: Vec<&str> =
        symbols.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    symbols.sort_unstable();
    assert_eq!(symbols, calls);
}

#[test]
fn every_call_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    for header in ["punctual.h", "gsi.h"] {
        let mut man3 = Command::new(Path::new(HERE).join("man3"));
        run(man3.arg(format!("{HERE}/include/{header}")).arg("0.1").arg(folder.path()));
    }
    let mut pages: Vec<String> = calls().iter().map(|name| format!("{name}.3")).collect();
    pages.sort();
    let written = std::fs::read_dir(folder.path()).expect("it is there").flatten();
    let mut written: Vec<String> =
        written.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    written.sort();
    assert_eq!(written, pages);
    if Command::new("groff").arg("-v").output().is_err() {
        return missing("groff is not installed");
    }
    for page in pages {
        let mut groff = Command::new("groff");
        let output = run(groff.args(["-man", "-ww", "-Tutf8"]).arg(folder.path().join(&page)));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{page}");
    }
}

/// Runs a command of make in the crate's folder.
fn make(target: &str, build: &Path, destination: &Path) {
    let mut make = Command::new("make");
    make.args(["--silent", "-C", HERE, target, "PREFIX=/usr"]);
    make.arg(format!("ARCHIVE={}", archive().display()));
    make.arg(format!("BUILD={}", build.display()));
    run(make.arg(format!("DESTDIR={}", destination.display())));
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    let within = entries.flat_map(|entry| match entry.file_type().is_ok_and(|t| t.is_dir()) {
        true => files_in(&entry.path()),
        false => vec![entry.path()],
    });
    within.collect()
}

#[test]
fn an_installed_library_is_found_by_pkg_config_and_uninstalled_without_a_rest() {
    let [build, folder] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    make("install", build.path(), folder.path());
    let lib = folder.path().join("usr/lib");
    let version = env!("CARGO_PKG_VERSION");
    let installed = [
        format!("lib/libpunctual.so.{version}"),
        "lib/libpunctual.so".to_owned(),
        "lib/libpunctual.a".to_owned(),
        "include/punctual.h".to_owned(),
        "include/gsi.h".to_owned(),
        "share/man/man3/punctual_wait_period.3".to_owned(),
        "share/man/man3/GSI_addjob.3".to_owned(),
    ];
    for file in installed {
        assert!(folder.path().join("usr").join(&file).exists(), "{file}");
    }
    let flags = |mode: &[&str]| {
        let mut config = Command::new("pkg-config");
        config.args(["--cflags", "--libs"]).args(mode).arg("punctual");
        config.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        config.env("PKG_CONFIG_SYSROOT_DIR", folder.path());
        config.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
        config.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
        String::from_utf8(run(&mut config).stdout).expect("text")
    };
    let compiler = |source: &str, flags: &str| {
        let program = folder.path().join("program");
        let mut command = Command::new("cc");
        command.args(&WARNINGS[..5]).arg("-O2").arg(format!("{HERE}/{source}"));
        run(command.args(flags.split_whitespace()).arg("-o").arg(&program));
        program
    };
    compiler("examples/pathfinder.c", &flags(&[]));
    let example = compiler("examples/servo.c", &flags(&[]));
    let soname = format!("libpunctual.so.{}", &version[..version.rfind('.').expect("a patch")]);
    let needed = run(Command::new("readelf").arg("-d").arg(&example)).stdout;
    assert!(String::from_utf8_lossy(&needed).contains(&soname), "{soname}");
    // The same with the archive, and without the shared library.
    std::fs::remove_file(lib.join("libpunctual.so")).expect("it is there");
    let program = compiler("tests/c/version.c", &flags(&["--static"]));
    assert_eq!(String::from_utf8_lossy(&run(&mut Command::new(&program)).stdout), version);
    std::fs::remove_file(program).expect("it is there");
    make("uninstall", build.path(), folder.path());
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}
