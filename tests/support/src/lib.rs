//! What the tests of several crates share: how long a wait may take, where timing is judged, what
//! becomes of a test that cannot run, processes, and libraries for programs in C.
//!
//! A test on the machine at hand shows what happens, never how soon: other programs and a
//! hypervisor take the CPU at any instant. Where a clock counts instructions (docs/vm.md) the same
//! test repeats exactly, and its timing is judged there: `vm/tests`.

pub mod c_library;
pub mod header_page;
pub mod installed;
pub mod process;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long a test waits for an event that must come: far longer than any takes, so that a hang
/// becomes a failure.
pub const LIVENESS: Duration = Duration::from_secs(120);

/// The command `punctual`, which cargo builds beside the folder of the test programs. Found at run
/// time: no path of this machine is in a test program, so that the test-bed's images are the same
/// wherever they are built.
pub static PUNCTUAL: LazyLock<PathBuf> = LazyLock::new(|| {
    let me = std::env::current_exe().expect("/proc is mounted");
    me.ancestors().nth(2).expect("a test program is in target/PROFILE/deps").join("punctual")
});

/// Reports the test of this thread as ignored: the machine lacks what it needs, or a part of it
/// needs. Its harness can only report "ok" by then; scripts/run-test corrects that.
pub fn ignored(why: impl Display) {
    let thread = std::thread::current();
    let note = format!("{}\t{why}\n", thread.name().unwrap_or("main")).replace(['\r', '\x1b'], " ");
    if let Some(path) = std::env::var_os("PUNCTUAL_TEST_IGNORED") {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        // A test that became another user may not write it; the line below remains.
        let _ = file.and_then(|mut file| file.write_all(note.as_bytes()));
    }
    eprintln!("ignored: {why}");
}

/// As [`ignored`]; where nothing may be missing (CI=true) the test fails.
pub fn missing(why: impl Display) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing here, and CI=true: {why}");
    ignored(why);
}

/// Whether the kernel has sched_ext; if not, the test is reported as ignored, or fails where
/// PUNCTUAL_SCHED_EXT=required.
pub fn has_sched_ext() -> bool {
    let here = Path::new("/sys/kernel/sched_ext").is_dir();
    let required = std::env::var("PUNCTUAL_SCHED_EXT").is_ok_and(|v| v == "required");
    assert!(here || !required, "this kernel has no sched_ext, and it is required");
    if !here {
        ignored("this kernel has no sched_ext");
    }
    here
}

/// Whether this machine's clock counts instructions: the test-bed's emulated processor. With
/// several CPUs, which are emulated in turns, timing is not meaningful.
pub fn clock_is_counted() -> bool {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpus.contains("QEMU TCG CPU") && cpus.matches("processor\t:").count() == 1
}

/// Calls `judge`, which asserts figures of time, where they are the program's own and repeat.
pub fn judge_timing(judge: impl FnOnce()) {
    if clock_is_counted() {
        judge();
    } else {
        println!("timing is not judged here: this machine's clock does not count instructions");
    }
}

/// Where cgroup v2 is mounted.
pub fn cgroup_mount() -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mounts").ok()?;
    text.lines()
        .find(|l| l.split(' ').nth(2) == Some("cgroup2"))
        .and_then(|l| l.split(' ').nth(1))
        .map(PathBuf::from)
}

/// The cgroups that a Punctual with this pid made.
pub fn groups_of(pid: i32) -> Vec<PathBuf> {
    fn walk(dir: &Path, want: &str, out: &mut Vec<PathBuf>) {
        for e in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if e.file_type().is_ok_and(|t| t.is_dir()) {
                if e.file_name().to_string_lossy().starts_with(want) {
                    out.push(e.path());
                }
                walk(&e.path(), want, out);
            }
        }
    }
    let mut out = Vec::new();
    if let Some(m) = cgroup_mount() {
        walk(&m, &format!("punctual-{pid}-"), &mut out);
    }
    out
}

/// Executes some microseconds. For loops that burn CPU time: an emulated processor leaves its
/// translated code at each PAUSE (`spin_loop`) and at each reading of a clock, so that a loop of
/// these alone takes ten times as long outside of the guest.
pub fn execute_briefly() {
    for n in 0..1000 {
        std::hint::black_box(n);
    }
}

/// Whether `holds` comes true within [`LIVENESS`]. A slow call of `holds` counts as 100 ms:
/// real-time programs on all CPUs may block an ordinary thread, also inside a read of /proc.
pub fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
    const PAUSE: Duration = Duration::from_millis(2);
    const LONGEST: Duration = Duration::from_millis(100);
    let mut waited = Duration::ZERO;
    loop {
        let since = Instant::now();
        if holds() {
            return true;
        }
        if waited > LIVENESS {
            return false;
        }
        std::thread::sleep(PAUSE);
        waited += since.elapsed().min(LONGEST);
    }
}

/// A folder of one test's own, removed at its end. If the test fails in the test-bed, the guest
/// brings it back.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty one.
    #[allow(clippy::new_without_default)] // it creates a folder
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("room for a folder");
        Scratch(folder)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, which need not exist.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, contents: &(impl AsRef<[u8]> + ?Sized)) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("room for a small file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let results = Path::new("/job/results");
        if std::thread::panicking() && clock_is_counted() && results.is_dir() {
            let _ = std::process::Command::new("cp").arg("-R").args([&self.0, results]).status();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
