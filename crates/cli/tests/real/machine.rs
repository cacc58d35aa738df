//! What the machine must permit, and which test uses which CPU.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_sys::sched;
use punctual_test_support::{comes_true, missing, LIVENESS};

use crate::process::cgroup_mount;

/// What a test cannot do without.
#[derive(Clone, Copy)]
pub enum Need {
    Root,
    RealTime,
    Freezer,
    Tool(&'static str),
    /// A program that is not in PATH, and its package.
    Program(&'static str, &'static str),
    Cpus(usize),
}

impl Need {
    /// What is missing, with its help.
    fn missing(self) -> Option<String> {
        match self {
            Need::Root => {
                // SAFETY: a system call without arguments.
                (unsafe { libc::geteuid() } != 0).then(|| "run this test as root".to_owned())
            }
            Need::RealTime => real_time_refused().map(|e| {
                format!(
                    "SCHED_FIFO 99 is refused ({e}): run it as root, or in a cgroup with real-time \
                     time"
                )
            }),
            Need::Freezer => match cgroup_mount() {
                None => {
                    Some("no cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified".to_owned())
                }
                Some(_) => None,
            },
            Need::Tool(name) => {
                in_path(name).is_none().then(|| format!("the program {name}: apt-get install it"))
            }
            Need::Program(path, package) => (!Path::new(path).is_file())
                .then(|| format!("the program {path}: apt-get install {package}")),
            Need::Cpus(n) => {
                (online().len() < n).then(|| format!("{n} CPUs; there are {}", online().len()))
            }
        }
    }
}

/// Reports what is missing and returns `false`; fails where nothing may be missing (CI=true).
pub fn permitted(needs: &[Need]) -> bool {
    let lacks: Vec<String> = needs.iter().filter_map(|n| n.missing()).collect();
    if !lacks.is_empty() {
        missing(lacks.join("; "));
    }
    lacks.is_empty()
}

fn real_time_refused() -> Option<std::io::Error> {
    std::thread::spawn(|| sched::set_fifo(0, 99).err()).join().ok().flatten()
}

/// Where a program is.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file())
}

/// The CPUs that we may use.
pub fn online() -> Vec<u32> {
    sched::cpus(&sched::affinity(0).expect("it is this thread")).collect()
}

struct Pool {
    taken: Vec<u32>,
    turn: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { taken: Vec::new(), turn: 0 });
static FREED: Condvar = Condvar::new();

/// A CPU that no other test of this binary uses meanwhile.
pub struct Cpu(pub u32);

impl Drop for Cpu {
    fn drop(&mut self) {
        pool().taken.retain(|c| *c != self.0);
        FREED.notify_all();
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A CPU of our own. One that another Punctual on this machine has is waited for.
pub fn one_cpu() -> Cpu {
    let all = online();
    let mut patience = Instant::now() + LIVENESS;
    let mut pool = pool();
    loop {
        pool.turn += 1;
        let turn = pool.turn;
        let free: Vec<u32> = (0..all.len())
            .map(|i| all[(i + turn) % all.len()])
            .filter(|c| !pool.taken.contains(c))
            .collect();
        let chosen = free.iter().copied().find(|c| !has_dispatcher(*c));
        let chosen = chosen.or_else(|| free.first().copied().filter(|_| Instant::now() > patience));
        if let Some(cpu) = chosen {
            pool.taken.push(cpu);
            return Cpu(cpu);
        }
        if free.is_empty() {
            // Only other tests of ours are in the way; they end.
            patience = Instant::now() + LIVENESS;
        }
        pool = FREED
            .wait_timeout(pool, Duration::from_millis(50))
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

/// A CPU for a test that needs `needs`; `None` where they are missing, as [`permitted`] reports.
pub fn permitted_cpu(needs: &[Need]) -> Option<Cpu> {
    permitted(needs).then(one_cpu)
}

/// Waits until a CPU has no dispatcher: another Punctual on this machine may have it.
pub fn wait_for_cpu(cpu: u32) {
    assert!(
        comes_true(|| !has_dispatcher(cpu)),
        "CPU {cpu} does not become free; its owner: {:?}",
        named_owner(cpu)
    );
}

/// Whether a process holds the lock of a CPU's dispatcher.
pub fn has_dispatcher(cpu: u32) -> bool {
    lock_file(cpu).is_some_and(|file| {
        // SAFETY: a descriptor of ours, no memory; dropping the file lets the lock go.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) != 0 }
    })
}

fn lock_file(cpu: u32) -> Option<File> {
    [format!("/run/lock/punctual-cpu{cpu}.lock"), format!("/tmp/punctual-cpu{cpu}.lock")]
        .iter()
        .find_map(|p| File::open(p).ok())
}

/// The process that a CPU's lock file names as its last owner.
pub fn named_owner(cpu: u32) -> Option<i32> {
    let text = std::io::read_to_string(lock_file(cpu)?).ok()?;
    text.lines().find_map(|l| l.strip_prefix("pid "))?.parse().ok()
}

/// A number that follows from the seed: the same instants in each run, as far as instants go.
pub struct Random(u64);

impl Random {
    pub fn seeded(salt: u64) -> Random {
        let seed = std::env::var("PUNCTUAL_FAULT_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(20_261_121);
        Random(seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// From 0 to `n` - 1 (splitmix64).
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// This test's part, in hundredths, of all kills.
pub fn rounds(percent: u64) -> u64 {
    let all: u64 =
        std::env::var("PUNCTUAL_FAULT_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(200);
    (all * percent).div_ceil(100)
}
