//! Programs in C, compiled and linked as users do it, and run on the user host.

#[path = "../common/figures.rs"]
mod figures;
mod gsi;
#[path = "../../../punctual/tests/common/traced_jobs.rs"]
mod traced_jobs;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use punctual_daemon::{serve, HostKind, ServeOptions, ServiceEnd};
use punctual_test_support::c_library::{files_in, CLibrary};
use punctual_test_support::process::{finish, has_succeeded, ignored_test, run, text_of, MISSING};
use punctual_test_support::{comes_true, missing, LIVENESS};
// Has cargo build the archive.
use punctual_capi as _;

static LIBRARY: CLibrary = CLibrary {
    folder: env!("CARGO_MANIFEST_DIR"),
    name: "punctual",
    headers: "include",
    warnings: &["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"],
    flags: &["-O1", "-D_GNU_SOURCE"],
    linked: OnceLock::new(),
};

/// Compiles and runs a program of tests/c, one at a time: they use the same CPU.
fn passes(source: &str) {
    passes_with(source, &|| None);
}

/// The same with what `beside` starts, once it is its turn.
fn passes_with(source: &str, beside: &dyn Fn() -> Option<Service>) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(source).with_extension("");
    LIBRARY.compile(format!("tests/c/{source}"), &program, &[]);
    let _turn = turn();
    let service = beside();
    let socket = service.iter().map(|service| ("PUNCTUAL_SOCKET", service.socket()));
    passed(Command::new(program).envs(socket), folder.path());
}

/// Programs take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program, with objects in this folder; false: the machine lacks something.
fn passed(program: &mut Command, folder: &Path) -> bool {
    // FIFOs of their own.
    program.env("PUNCTUAL_SHM_DIR", folder.join("objects"));
    let until = Instant::now() + LIVENESS;
    loop {
        let (status, text) = finish(program);
        let is_taken = status.code() == Some(MISSING) && text.contains("already has a dispatcher");
        // For a while, such as other tests on this machine.
        if !is_taken || Instant::now() > until {
            return has_succeeded(program, status, &text);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
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
        let mut process = ignored_test("serves");
        process.env(SERVICE_FOLDER, folder.path());
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
    passes_with("by_service.c", &|| Some(Service::start()));
}

#[test]
fn threads_are_tasks() {
    passes("tasks.c");
}

#[test]
fn programs_are_tasks_and_tasks_change() {
    passes("programs.c");
}

#[test]
fn groups_limit_their_tasks() {
    passes("groups.c");
}

#[test]
fn an_observer_is_called_with_each_period_and_end_in_order() {
    passes("observer.c");
}

#[test]
fn a_program_adds_the_jobs_of_its_tasks() {
    passes("jobs.c");
}

#[test]
fn fifos_pass_bytes_and_messages() {
    passes("fifos.c");
}

#[test]
fn locks_lend_wait_time_out_and_outlive_their_holders() {
    passes("locks.c");
}

#[test]
fn programs_share_locks_that_outlive_their_holders() {
    passes("shared_locks.c");
}

#[test]
fn handles_of_locks_that_are_bad_are_refused() {
    passes("lock_handles.c");
}

#[test]
fn locks_that_lend_are_of_one_cpu() {
    passes("locks_of_two_cpus.c");
}

#[test]
fn bad_input_is_refused() {
    passes("refused.c");
}

#[test]
fn a_program_in_cpp_links() {
    passes("cplusplus.cc");
}

#[test]
fn the_header_is_clean_in_every_version_of_c_and_cpp() {
    // Beside the header for policies, too.
    let policies = LIBRARY.path("../plugin/include");
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
    LIBRARY.is_clean(&[source.to_owned()], &["-I", &policies.display().to_string()]);
}

#[test]
fn the_library_exports_its_calls_with_a_version_and_nothing_else() {
    LIBRARY.exports_its_functions();
}

#[test]
fn every_call_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    for header in ["punctual.h", "gsi.h"] {
        let mut man3 = Command::new(LIBRARY.path("man3"));
        run(man3.arg(LIBRARY.path("include").join(header)).arg("0.1").arg(folder.path()));
    }
    let mut pages: Vec<String> =
        LIBRARY.functions().iter().map(|name| format!("{name}.3")).collect();
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

#[test]
fn an_installed_library_is_found_by_pkg_config_and_uninstalled_without_a_rest() {
    let [build, folder] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let variables = ["PREFIX=/usr".to_owned(), format!("DESTDIR={}", folder.path().display())];
    LIBRARY.make("install", build.path(), &variables);
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
        text_of(&mut config)
    };
    let compiler = |source: &str, flags: &str| {
        let program = folder.path().join("program");
        let mut command = Command::new("cc");
        command.args(LIBRARY.warnings).arg("-O2").arg(LIBRARY.path(source));
        run(command.args(flags.split_whitespace()).arg("-o").arg(&program));
        program
    };
    compiler("examples/pathfinder.c", &flags(&[]));
    let example = compiler("examples/servo.c", &flags(&[]));
    let soname = format!("libpunctual.so.{}", &version[..version.rfind('.').expect("a patch")]);
    let needed = text_of(Command::new("readelf").arg("-d").arg(&example));
    assert!(needed.contains(&soname), "{soname}");
    // The same with the archive, and without the shared library.
    std::fs::remove_file(lib.join("libpunctual.so")).expect("it is there");
    let program = compiler("tests/c/version.c", &flags(&["--static"]));
    assert_eq!(text_of(&mut Command::new(&program)), version);
    std::fs::remove_file(program).expect("it is there");
    LIBRARY.make("uninstall", build.path(), &variables);
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}
