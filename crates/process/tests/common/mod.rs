//! What the tests share: owners and victims are this very test binary, started again with a role in
//! the environment.
#![allow(dead_code)]

mod role;

pub use role::*;

use punctual_process::*;
use punctual_test_support::missing;
pub use punctual_test_support::{cgroup_mount, groups_of};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// These tests change the machine: one at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|e| e.into_inner());
    state_dir();
    guard
}

/// A state directory for this test run, so that a Punctual in earnest is neither seen nor
/// disturbed.
pub fn state_dir() -> PathBuf {
    let dir = match std::env::var_os("PUNCTUAL_STATE_DIR") {
        Some(d) => PathBuf::from(d),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("punctual-test-{}", std::process::id())),
    };
    std::fs::create_dir_all(&dir).unwrap();
    std::env::set_var("PUNCTUAL_STATE_DIR", &dir);
    dir
}

/// Reports what is missing and returns `false` where these promises cannot be tested.
pub fn permitted(need_cgroup: bool) -> bool {
    if let Err(e) = check_privileges(&[0]) {
        missing(e);
        return false;
    }
    if need_cgroup && cgroup_mount().is_none() {
        missing("no cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified");
        return false;
    }
    true
}

/// A process with threads of differing policy, nice value and affinity, one of which makes a new
/// thread now and then.
pub struct Victim {
    role: Role,
    _out: Lines,
}

impl Victim {
    pub fn start() -> Self {
        let (role, mut out) = role("victim", &[]);
        expect_line(&mut out, "READY");
        Self { role, _out: out }
    }

    pub fn pid(&self) -> i32 {
        self.role.id() as i32
    }
}

/// The victim's life. Bounded: it ends by itself after a minute.
pub fn be_victim() {
    let end = Instant::now() + Duration::from_secs(60);
    let (notify, notified) = std::sync::mpsc::channel();
    for n in 0..3 {
        let notify = notify.clone();
        std::thread::spawn(move || {
            // SAFETY: plain scheduling calls on the calling thread.
            unsafe {
                match n {
                    0 => {
                        libc::setpriority(libc::PRIO_PROCESS, 0, 5);
                    }
                    1 => {
                        let p = libc::sched_param { sched_priority: 7 };
                        libc::sched_setscheduler(0, libc::SCHED_RR | 0x4000_0000, &p);
                    }
                    _ => {
                        let mut set: libc::cpu_set_t = std::mem::zeroed();
                        libc::CPU_SET(0, &mut set);
                        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
                        let p = libc::sched_param { sched_priority: 0 };
                        libc::sched_setscheduler(0, libc::SCHED_BATCH, &p);
                    }
                }
            }
            let _ = notify.send(());
            while Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    }
    for _ in 0..3 {
        let _ = notified.recv_timeout(Duration::from_secs(20));
    }
    println!("READY");
    while Instant::now() < end {
        std::thread::spawn(|| std::thread::sleep(Duration::from_millis(15)));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A thread's policy (with reset-on-fork), priority, nice value and affinity.
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes(pub i32, pub i32, pub i32, pub Vec<u8>);

/// The policy of a thread at a level of its task.
pub fn policy(freezer: bool) -> i32 {
    libc::SCHED_FIFO | if freezer { 0 } else { libc::SCHED_RESET_ON_FORK }
}

pub fn attributes(tid: i32) -> Option<Attributes> {
    // SAFETY: each call writes one value that lives here.
    unsafe {
        let policy = libc::sched_getscheduler(tid);
        let mut p: libc::sched_param = std::mem::zeroed();
        let mut set = vec![0u8; 128];
        if policy < 0
            || libc::sched_getparam(tid, &mut p) != 0
            || libc::syscall(libc::SYS_sched_getaffinity, tid, 128, set.as_mut_ptr()) < 0
        {
            return None;
        }
        Some(Attributes(
            policy,
            p.sched_priority,
            libc::getpriority(libc::PRIO_PROCESS, tid as u32),
            set,
        ))
    }
}

pub fn cgroup_of(pid: i32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("").to_owned()
}

pub fn state_of(pid: i32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text[text.rfind(')')? + 2..].chars().next()
}

/// How a process is, as far as an owner may change it: the attributes of its long-lived threads,
/// and its cgroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub threads: Vec<(i32, Attributes)>,
    pub cgroup: String,
}

impl Snapshot {
    pub fn of(pid: i32) -> Self {
        let tids = oldest_threads(pid);
        Self {
            threads: tids.iter().filter_map(|t| Some((*t, attributes(*t)?))).collect(),
            cgroup: cgroup_of(pid),
        }
    }
}

/// The five threads that live as long as the victim: they started first. Thread ids wrap, so these
/// do not tell; of those of the same tick the kernel names the oldest first.
fn oldest_threads(pid: i32) -> Vec<i32> {
    let start = |t: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{t}/stat")).ok()?;
        text[text.rfind(')')?..].split(' ').nth(20)?.parse::<u64>().ok()
    };
    let mut tids: Vec<(u64, i32)> =
        threads_of(pid).iter().filter_map(|t| Some((start(t)?, *t))).collect();
    tids.sort_by_key(|(start, _)| *start);
    let mut oldest: Vec<i32> = tids.into_iter().map(|t| t.1).take(5).collect();
    oldest.sort_unstable();
    oldest
}

/// Waits until `holds`; fails with `what` if that never happens.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(punctual_test_support::comes_true(holds), "never: {what}");
}

/// Nothing of owner `owner` is left: no group, no journal, `victim` as it was and running,
/// `children` dead.
pub fn assert_restored(owner: i32, victim: i32, before: &Snapshot, children: &[i32]) {
    eventually("its cgroups are gone", || groups_of(owner).is_empty());
    eventually("its journal is gone", || journals_of(owner).is_empty());
    for c in children {
        eventually("its commands are dead", || matches!(state_of(*c), None | Some('Z')));
    }
    assert_eq!(&Snapshot::of(victim), before);
    assert_no_fifo(victim);
    assert!(!matches!(state_of(victim), Some('T') | Some('t')), "the victim is stopped");
    let ran = cpu_switches(victim);
    eventually("the victim runs", || cpu_switches(victim) > ran);
}

pub fn journals_of(pid: i32) -> Vec<PathBuf> {
    let files = std::fs::read_dir(state_dir()).unwrap().flatten().map(|e| e.path());
    files
        .filter(|p| {
            p.extension().is_some_and(|e| e == "journal")
                && p.file_name().unwrap().to_string_lossy().starts_with(&format!("{pid}-"))
        })
        .collect()
}

/// No thread, recorded or later, has SCHED_FIFO (the victim itself never uses it).
pub fn assert_no_fifo(pid: i32) {
    for t in threads_of(pid) {
        if let Some(a) = attributes(t) {
            assert_ne!(a.0 & 0xff, libc::SCHED_FIFO, "thread {t} is still SCHED_FIFO");
        }
    }
}

/// How often its long-lived threads went to sleep: grows while it runs.
pub fn cpu_switches(pid: i32) -> u64 {
    let tids = oldest_threads(pid);
    let of = |t: &i32| {
        let text =
            std::fs::read_to_string(format!("/proc/{pid}/task/{t}/status")).unwrap_or_default();
        text.lines()
            .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))
            .and_then(|v| v.trim().parse::<u64>().ok())
    };
    tids.iter().filter_map(of).sum()
}

/// A number from 0 to `n` - 1, different at each call.
pub fn random(n: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % n
}

/// What an owner has started and adopted, as the user host does.
pub struct Owner {
    pub journal: Journal,
    pub lock: CpuLock,
    pub guardian: Guardian,
    pub base: Option<CgroupBase>,
    pub adopted: Option<(Adopted, Park)>,
    pub command: (Spawned, Park),
    pub threads: Threads,
}

/// Adopts `victim` and starts a shell with children, with stop signals if `freezer` is false.
pub fn take_over(victim: i32, cpu: u32, freezer: bool) -> Owner {
    let lock = CpuLock::take(cpu, "test owner").unwrap();
    let journal = Journal::create().unwrap();
    let guardian = Guardian::start(&journal, std::slice::from_ref(&lock)).unwrap();
    println!("GUARDIAN {}", guardian.pid());
    let base = freezer.then(|| CgroupBase::create(&journal).unwrap());
    let park = Park::for_command(&journal, base.as_ref(), "shell").unwrap();
    let mut spec = CommandSpec::new(["sh", "-c", "sleep 50 & (sleep 51 &) ; sleep 52"]).on(cpu);
    spec.level = 20;
    spec.streams = [Stream::Null, Stream::Null, Stream::Null];
    let command = spawn(&journal, spec, &park).unwrap();
    println!("CHILD {}", command.id().pid);
    let park2 = Park::for_process(&journal, base.as_ref(), victim, "victim").unwrap();
    let threads = Threads::new(&park2, 256, cpu);
    let adopted = adopt(&journal, victim, &park2).unwrap();
    threads.rescan(&park2.threads()).unwrap();
    threads.set_level(30).unwrap();
    park2.set_level(30);
    Owner {
        journal,
        lock,
        guardian,
        base,
        adopted: Some((adopted, park2)),
        command: (command, park),
        threads,
    }
}

/// An owner's life, as the tests kill it: parks and resumes in turn, housekeeps. Bounded to a
/// minute.
pub fn be_owner() {
    let victim: i32 = std::env::var("VICTIM").unwrap().parse().unwrap();
    let freezer = std::env::var("FREEZER").unwrap() == "1";
    let mut o = take_over(victim, 1, freezer);
    println!("ADOPTED");
    if let Ok(program) = std::env::var("EXECUTES") {
        use std::os::unix::process::CommandExt;
        panic!("{}", std::process::Command::new(program).arg("60").exec());
    }
    let end = Instant::now() + Duration::from_secs(60);
    let mut n = 0u32;
    // "ENDS": it ends in good order after some turns, and may be killed in the middle of that too.
    let last = std::env::var("ENDS").map_or(u32::MAX, |n| n.parse().unwrap());
    while Instant::now() < end {
        n += 1;
        if n > last {
            restore(&o.journal);
            println!("RESTORED");
            return o.guardian.dismiss();
        }
        let (_, park2) = o.adopted.as_ref().unwrap();
        for park in [&o.command.1, park2] {
            if n % 2 == 0 {
                park.park().unwrap()
            } else {
                park.resume().unwrap()
            }
        }
        if n % 4 == 0 {
            let _ = o.command.1.rescan();
            let _ = park2.rescan();
            let _ = o.threads.rescan(&park2.threads());
        }
        if !o.guardian.is_alive() {
            o.guardian.restart().unwrap();
            println!("GUARDIAN {}", o.guardian.pid());
        }
        std::thread::sleep(Duration::from_micros(500 + random(2000)));
    }
}

/// The pids that `take_over` printed: guardian, then command.
pub fn started_processes(out: &mut Lines) -> (i32, i32) {
    let guardian = expect_line(out, "GUARDIAN ").parse().unwrap();
    (guardian, expect_line(out, "CHILD ").parse().unwrap())
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: passes no memory.
    unsafe { libc::kill(pid, signal) };
}

pub fn poll_in(fd: &impl AsFd, ms: i32) -> bool {
    let mut p = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, which lives here.
    unsafe { libc::poll(&mut p, 1, ms) > 0 }
}
