//! What the machine must permit, and who may have which CPU.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::cgroup_mount;
use crate::punctual::Ended;

/// What a test cannot do without.
#[derive(Clone, Copy)]
pub enum Need {
    Root,
    RealTime,
    Freezer,
    Tool(&'static str),
    Cpus(usize),
}

impl Need {
    /// What is missing, with its cure.
    fn missing(self) -> Option<String> {
        match self {
            // SAFETY: a system call without arguments.
            Need::Root => (unsafe { libc::geteuid() } != 0).then(|| "run this test as root".to_owned()),
            Need::RealTime => real_time_refused()
                .map(|e| format!("SCHED_FIFO 99 is refused ({e}): run it as root, or in a cgroup with real-time time")),
            Need::Freezer => match cgroup_mount() {
                None => Some("no cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified".to_owned()),
                Some(_) => None,
            },
            Need::Tool(name) => (!in_path(name)).then(|| format!("the program {name}: apt-get install it")),
            Need::Cpus(n) => (online().len() < n).then(|| format!("{n} CPUs; there are {}", online().len())),
        }
    }
}

/// Says what is missing and returns `false`; fails where nothing may be missing (CI=true).
pub fn permitted(needs: &[Need]) -> bool {
    let missing: Vec<String> = needs.iter().filter_map(|n| n.missing()).collect();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join("; ");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing here, and CI=true: {missing}");
    eprintln!("NOT TESTED, missing: {missing}");
    false
}

fn real_time_refused() -> Option<std::io::Error> {
    let tried = std::thread::spawn(|| {
        let p = libc::sched_param { sched_priority: 99 };
        // SAFETY: reads one value that lives here.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &p) } {
            0 => None,
            _ => Some(std::io::Error::last_os_error()),
        }
    });
    tried.join().ok().flatten()
}

fn in_path(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(name).is_file()))
}

/// The CPUs that we may use.
pub fn online() -> Vec<u32> {
    // SAFETY: the set lives here and is read within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as u32).filter(|c| libc::CPU_ISSET(*c as usize, &set)).collect()
    }
}

struct Pool {
    taken: Vec<u32>,
    turn: usize,
}

/// What is measured has the machine to itself: even a cgroup made on another CPU can hold a dispatcher back.
static ALONE: RwLock<()> = RwLock::new(());
static POOL: Mutex<Pool> = Mutex::new(Pool { taken: Vec::new(), turn: 0 });
static FREED: Condvar = Condvar::new();

/// A CPU that no other test of this binary uses meanwhile.
pub struct Cpu(pub u32, #[allow(dead_code)] Beside);

enum Beside {
    Others(#[allow(dead_code)] RwLockReadGuard<'static, ()>),
    Nobody(#[allow(dead_code)] RwLockWriteGuard<'static, ()>),
    Ourselves,
}

impl Drop for Cpu {
    fn drop(&mut self) {
        pool().taken.retain(|c| *c != self.0);
        FREED.notify_all();
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A CPU of our own; one that another Punctual on this machine has is waited for, 30 s at most.
pub fn one_cpu() -> Cpu {
    let beside = Beside::Others(ALONE.read().unwrap_or_else(PoisonError::into_inner));
    take(beside)
}

/// The same with no other test beside, for what is measured.
pub fn one_cpu_alone() -> Cpu {
    let beside = Beside::Nobody(ALONE.write().unwrap_or_else(PoisonError::into_inner));
    take(beside)
}

/// Two of them, with no other test beside.
pub fn two_cpus_alone() -> [Cpu; 2] {
    let first = one_cpu_alone();
    [first, take(Beside::Ourselves)]
}

fn take(beside: Beside) -> Cpu {
    let all = online();
    let mut patience = Instant::now() + Duration::from_secs(30);
    let mut pool = pool();
    loop {
        pool.turn += 1;
        let turn = pool.turn;
        let free: Vec<u32> =
            (0..all.len()).map(|i| all[(i + turn) % all.len()]).filter(|c| !pool.taken.contains(c)).collect();
        let chosen = free.iter().copied().find(|c| !has_dispatcher(*c));
        let chosen = chosen.or_else(|| free.first().copied().filter(|_| Instant::now() > patience));
        if let Some(cpu) = chosen {
            pool.taken.push(cpu);
            return Cpu(cpu, beside);
        }
        if free.is_empty() {
            // Only other tests of ours are in the way; they end.
            patience = Instant::now() + Duration::from_secs(30);
        }
        pool = FREED.wait_timeout(pool, Duration::from_millis(50)).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Waits until nobody dispatches a CPU: 40 s, for somebody else's Punctual may have it.
pub fn wait_for_cpu(cpu: u32) {
    let end = Instant::now() + Duration::from_secs(40);
    while has_dispatcher(cpu) {
        assert!(Instant::now() < end, "CPU {cpu} does not become free; its owner: {:?}", named_owner(cpu));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether somebody holds the lock of a CPU's dispatcher.
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
        let seed = std::env::var("PUNCTUAL_FAULT_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
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
    let all: u64 = std::env::var("PUNCTUAL_FAULT_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(200);
    (all * percent).div_ceil(100)
}

/// The longest time that a CPU stood still, as seen by a SCHED_FIFO 99 thread that does next to nothing there: what no
/// dispatcher could have helped (a virtual machine's host, other real-time programs of ours).
pub struct Witness {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Duration>,
}

impl Witness {
    pub fn on(cpu: u32) -> Witness {
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            // SAFETY: scheduling calls on this thread; the values live here.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu as usize, &mut set);
                libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
                let p = libc::sched_param { sched_priority: 99 };
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &p);
            }
            let (step, mut worst) = (Duration::from_millis(3), Duration::ZERO);
            while !until.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(step);
                worst = worst.max(before.elapsed().saturating_sub(step));
            }
            worst
        });
        Witness { over, thread }
    }

    pub fn worst(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Measures until the figures are as promised. Where something kept the CPU from a SCHED_FIFO 99 thread, or the dispatcher
/// inside the kernel (docs/faults.md, "What can still hold a dispatcher back"), figures that are off say nothing: up to six
/// times. Off for no such reason they may be twice: other real-time programs of this machine leave no other trace.
pub fn measured(cpus: &[u32], mut measure: impl FnMut() -> Ended, as_promised: impl Fn(&Ended)) -> Ended {
    const STALL: Duration = Duration::from_millis(1);
    let (mut disturbed, mut off) = (0, 0);
    loop {
        let watch: Vec<Witness> = cpus.iter().map(|c| Witness::on(*c)).collect();
        let result = measure();
        let worst = watch.into_iter().map(Witness::worst).max().unwrap_or_default();
        let document = serde_json::from_str(&result.out).ok();
        let inside = document.and_then(|r: Value| r["dispatcher"]["handler_max_ns"].as_u64());
        let inside = Duration::from_nanos(inside.unwrap_or(0));
        let tried = std::panic::catch_unwind(AssertUnwindSafe(|| as_promised(&result)));
        let Err(why) = tried else { return result };
        let cause = if worst.max(inside) >= STALL { &mut disturbed } else { &mut off };
        *cause += 1;
        if off > 2 || (disturbed > 6 && std::env::var("CI").as_deref() == Ok("true")) {
            std::panic::resume_unwind(why);
        }
        let held = format!("CPUs {cpus:?} were held for {worst:?}, a dispatcher in the kernel for {inside:?}");
        if disturbed > 6 {
            eprintln!("NOT TESTED, this machine is too busy: {held}");
            return result;
        }
        println!("{held}: measuring again");
    }
}
