//! The machine that a test has to itself: its scheduler, its kernel's log, its processes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_test_support::LIVENESS;

/// What the kernel says of a scheduler that its loader took away.
const TAKEN_AWAY: &str = "unregistered from user space";

/// What sched_ext is doing; `None` in a kernel without it.
pub fn state() -> Option<String> {
    std::fs::read_to_string("/sys/kernel/sched_ext/state").ok().map(|s| s.trim().to_owned())
}

pub fn preempt_rt() -> bool {
    // Not all of them have /sys/kernel/realtime.
    std::fs::read_to_string("/proc/version").is_ok_and(|s| s.contains("PREEMPT_RT"))
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Waits until it holds; the guest's time costs nothing while no task runs.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + LIVENESS;
    while !holds() {
        assert!(
            Instant::now() < limit,
            "never within {LIVENESS:?}: {what}; sched_ext is {:?}",
            state()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn scheduler_becomes(wanted: &str) {
    until(wanted, || state().as_deref() == Some(wanted));
}

/// One test at a time. At its end no scheduler is there, no task is in its class, and the kernel
/// has ended none that it was not asked to end.
pub struct Machine {
    log: Option<File>,
    ends: Vec<&'static str>,
    may_end: &'static str,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    /// `None` where the kernel has no sched_ext, which is said.
    pub fn with_sched_ext() -> Option<Machine> {
        let machine = Machine::any();
        let required = std::env::var("PUNCTUAL_SCHED_EXT").is_ok_and(|v| v == "required");
        assert!(state().is_some() || !required, "this kernel has no sched_ext, and it is required");
        if state().is_none() {
            eprintln!("not run: this kernel has no sched_ext");
            return None;
        }
        assert_eq!(state().as_deref(), Some("disabled"), "another scheduler is there");
        Some(machine)
    }

    /// With two CPUs or more; the machine that counts its clock has one.
    pub fn with_two_cpus() -> Option<Machine> {
        let machine = Machine::with_sched_ext()?;
        if cpus() < 2 {
            eprintln!("not run: one CPU");
            return None;
        }
        Some(machine)
    }

    pub fn any() -> Machine {
        static ONE: Mutex<()> = Mutex::new(());
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log =
            File::options().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok();
        if let Some(log) = &mut log {
            log.seek(SeekFrom::End(0)).expect("the log has an end");
        }
        Machine { log, ends: Vec::new(), may_end: TAKEN_AWAY, _alone: alone }
    }

    /// The kernel will end a scheduler in this test, and say this of it.
    pub fn expects(&mut self, reason: &'static str) {
        self.ends.push(reason);
    }

    /// The scheduler may end itself in this test, for the process that wakes it (PREEMPT_RT) died
    /// with the loader.
    pub fn may_end_itself(&mut self) {
        self.may_end = "unregistered from BPF";
    }

    /// What the kernel said of schedulers that ended since the test began.
    fn ended(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        let mut line = [0; 8192];
        while let Some(Ok(n)) =
            self.log.as_mut().map(|log| log.read(&mut line)).filter(|r| !matches!(r, Ok(0)))
        {
            let text = String::from_utf8_lossy(&line[..n]);
            if text.contains("BPF scheduler") && text.contains("disabled (") {
                said.push(text.lines().next().unwrap_or_default().to_owned());
            }
        }
        said
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() || state().is_none() {
            return;
        }
        scheduler_becomes("disabled");
        let mut expected = std::mem::take(&mut self.ends);
        for said in self.ended() {
            if let Some(at) = expected.iter().position(|reason| said.contains(reason)) {
                expected.remove(at);
            } else {
                assert!(
                    said.contains(TAKEN_AWAY) || said.contains(self.may_end),
                    "the kernel ended the scheduler: {said}"
                );
            }
        }
        assert!(expected.is_empty(), "the kernel was to say {expected:?}");
        let left: Vec<u32> = threads().into_iter().filter(|&thread| in_class(thread)).collect();
        assert!(left.is_empty(), "still in the scheduler's class: {left:?}");
    }
}

fn numbers(directory: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub fn pids() -> Vec<u32> {
    numbers("/proc")
}

/// Of one process.
pub fn threads_of(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn threads() -> Vec<u32> {
    pids().into_iter().flat_map(threads_of).collect()
}

/// Whether sched_ext has this thread.
pub fn in_class(thread: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{thread}/sched")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("ext.enabled"));
    line.is_some_and(|line| line.trim_end().ends_with('1'))
}

/// An ordinary program: policy, priority, and not in the scheduler's class.
pub fn is_ordinary(thread: u32) -> bool {
    // SAFETY: a system call without memory.
    let policy = unsafe { libc::sched_getscheduler(thread as i32) };
    policy == libc::SCHED_OTHER && !in_class(thread)
}

/// Of /proc/PID/stat what stands behind the name: the state first, then the parent.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(") ")?;
    Some(behind.split_whitespace().map(str::to_owned).collect())
}

/// Gone, or a zombie that was not waited for yet.
pub fn is_dead(pid: u32) -> bool {
    stat(pid).is_none_or(|fields| fields[0] == "Z" || fields[0] == "X")
}

/// By a signal.
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields[0] == "T")
}

/// What it calls itself.
pub fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

pub fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    pids()
        .into_iter()
        .filter(|&pid| stat(pid).is_some_and(|fields| fields.get(1) == Some(&parent)))
        .collect()
}

/// All that came of a process, itself among them.
pub fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() {
        all.extend(children(all[next]));
        next += 1;
    }
    all
}

/// The execution time of a process by the kernel's own count, ns: all threads that are alive. Not
/// from /proc/PID/stat, whose times come of the tick, which short periods are in step with.
pub fn executed(pid: u32) -> u64 {
    threads_of(pid).into_iter().map(executed_thread).sum()
}

/// The same of one thread; 0 where it is gone.
pub fn executed_thread(thread: u32) -> u64 {
    let path = format!("/proc/{thread}/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|figure| figure.parse().ok()).unwrap_or(0)
}

/// Of several processes.
pub fn executed_by(pids: &[u32]) -> u64 {
    pids.iter().map(|&pid| executed(pid)).sum()
}

/// Waits until the processes have executed for 10 ms more.
pub fn keep_executing(pids: &[u32]) {
    let before = executed_by(pids);
    until("they execute", || executed_by(pids) > before + 10_000_000);
}

/// 0: the calling thread.
pub fn set_affinity(thread: u32, cpus: &[u32]) {
    let mask = cpus.iter().fold(0, |mask, cpu| mask | 1 << cpu);
    punctual_sys::sched::set_affinity(thread as i32, &[mask]).expect("the CPUs are there");
}
