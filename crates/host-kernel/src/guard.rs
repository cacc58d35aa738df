//! A process that lets the kernel unregister a scheduler, before Linux 7: those kernels may not
//! complete it by themselves.
//!
//! ```text
//!   loader ── fork ──> SCHED_FIFO 1 ──> sleeps ──> RCU's threads over the normal class ──> restored
//!     │                                    ^ the scheduler ends otherwise: polled each second
//!     └ detaches or dies: the pipe closes ─┘
//! ```
//!
//! To unregister a scheduler the kernel waits for RCU: for its thread, and for each thread that was
//! preempted in a read-side critical section. They are in the scheduler's class until then; a
//! program that forks or changes its policy meanwhile is in the normal class, above them, and may
//! keep them off the CPU for as long as it computes. So the guard raises RCU's threads first, and
//! moves all ordinary threads into the normal class if that is not enough. From Linux 7 on the
//! lower class is never starved.
//!
//! A process and no thread of ours: a loader that is killed cannot help any more. After the fork it
//! makes system calls only.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use punctual_process::is_kernel_thread;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::process::reap;
use punctual_sys::{sched, thread_name};

use crate::machine;
use crate::start_barrier::pipe;
use crate::timer_process::close_all_but;

/// Above all ordinary ones, below whatever else is real-time.
const PRIORITY: i32 = 1;
const LOOK_MS: i32 = 1_000;
/// For the end of the process.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between looks at a scheduler that is going.
const NAP: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// While it is 1, the kernel expedites grace periods. The guard sets it from 0 to 1 only while a
/// scheduler is being unregistered, and back.
const HURRY: &str = "/sys/kernel/rcu_expedited";
/// A scheduler that is still there so long after the loader went, ns, is another one.
const GOING_MOST: u64 = 2_000_000_000;
/// A scheduler that takes longer to go, ns, waits for a thread that does not execute. Most take a
/// tenth of it.
const GOING_LONG: u64 = 20_000_000;
/// Thread ids to look through where the kernel does not say how many there are: the most that Linux
/// has.
const MOST_THREADS: i32 = 1 << 22;

/// The process; ended when dropped, which is to be when the scheduler is gone.
#[derive(Debug)]
pub(crate) struct Guard {
    pid: i32,
    alert: Option<OwnedFd>,
    hurry: File,
    threads: Vec<i32>,
}

impl Guard {
    /// Before the scheduler is attached: the process is not to hold what keeps it so. `None` where
    /// the kernel needs none, or permits none.
    pub fn start() -> Option<Guard> {
        if !machine::starves() {
            return None;
        }
        let threads = rcu_threads();
        let state = File::open(machine::STATE_FILE).ok()?;
        let write = |path| File::options().write(true).open(path);
        let hurries = std::fs::read_to_string(HURRY).is_ok_and(|on| on.trim() != "0");
        let hurry = Some(HURRY).filter(|_| !hurries).and_then(|path| write(path).ok());
        let hurry = hurry.or_else(|| write("/dev/null").ok())?;
        let (watch, alert) = pipe().ok()?;
        // SAFETY: takes nothing; the child makes system calls only.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => live(
                watch.as_raw_fd(),
                &Going {
                    state: state.as_raw_fd(),
                    hurry: hurry.as_raw_fd(),
                    threads: &threads,
                    most: most_threads(),
                },
            ),
            pid => Some(Guard { pid, alert: Some(alert), hurry, threads }),
        }
    }

    /// The scheduler is about to go.
    pub fn alert(&mut self) {
        // The guard process may have been killed.
        raise(&self.threads);
        self.alert = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.alert();
        if !reap(self.pid, PATIENCE) {
            // The guard process was stopped.
            // SAFETY: a child of ours that was not waited for.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            reap(self.pid, PATIENCE);
        }
        hurry(self.hurry.as_raw_fd(), b"0");
        lower(&self.threads);
    }
}

/// Above all thread ids of this machine.
fn most_threads() -> i32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(MOST_THREADS)
}

/// Kernel threads of RCU's that are ordinary ones.
fn rcu_threads() -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_rcu = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with("rcu")
            && is_kernel_thread(*pid)
            && sched::policy(*pid) == Some(libc::SCHED_OTHER)
    };
    all.filter(is_rcu).collect()
}

/// Kernel threads of this kind do not end.
fn raise(threads: &[i32]) {
    for &thread in threads {
        drop(sched::set_fifo(thread, PRIORITY));
    }
}

fn lower(threads: &[i32]) {
    for &thread in threads {
        if sched::policy(thread) == Some(libc::SCHED_FIFO) {
            drop(sched::set_other(thread));
        }
    }
}

#[derive(PartialEq)]
enum State {
    Gone,
    Going,
    There,
}

/// What sched_ext's state file says: `disabled`, `disabling`, or another word.
fn state(file: i32) -> State {
    let mut text = [0u8; 16];
    // SAFETY: room for what is read.
    let got = unsafe { libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0) };
    match text.get(..got.max(0) as usize) {
        Some(b"disabled\n") => State::Gone,
        Some(b"disabling\n") => State::Going,
        _ => State::There,
    }
}

/// What it needs when a scheduler goes: two files, RCU's threads, and how many threads there can
/// be.
struct Going<'a> {
    state: i32,
    hurry: i32,
    threads: &'a [i32],
    most: i32,
}

/// Puts all ordinary threads into the normal class, where they have their turns. While a scheduler
/// goes the kernel does so at each change of policy, so each gets another ordinary policy and its
/// own again. Only system calls that take no lock which an ordinary thread may hold: /proc has such
/// locks.
fn level(most: i32) {
    for thread in 1..most {
        let Some(own) = sched::policy(thread) else { continue };
        let reset = own & libc::SCHED_RESET_ON_FORK;
        let other = match own & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => libc::SCHED_BATCH,
            libc::SCHED_BATCH | libc::SCHED_IDLE => libc::SCHED_OTHER,
            _ => continue,
        };
        // A thread that may not be changed is left as it is.
        if sched::set(thread, other | reset, 0).is_ok() {
            drop(sched::set(thread, own, 0));
        }
    }
}

/// The process's whole life.
fn live(watch: i32, going: &Going<'_>) -> ! {
    thread_name::set(thread_name::DETACH);
    // SAFETY: all zero is a value of these; the calls get valid pointers. _exit runs no destructor
    // of what was inherited.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        close_all_but([watch, going.state, going.hurry]);
        if sched::set_fifo(0, PRIORITY).is_err() {
            libc::_exit(1);
        }
    }
    loop {
        let mut pipe = libc::pollfd { fd: watch, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, valid for the call.
        let over = unsafe { libc::poll(&mut pipe, 1, LOOK_MS) } > 0;
        if over || state(going.state) == State::Going {
            see_it_off(over, going);
        }
        if over {
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
    }
}

/// Until the scheduler is gone. `over`: the loader is, or detaches; then it may be a moment until
/// the scheduler begins to go.
fn see_it_off(over: bool, going: &Going<'_>) {
    let begun = monotonic_ns();
    let mut long = begun + GOING_LONG;
    raise(going.threads);
    hurry(going.hurry, b"1");
    loop {
        match state(going.state) {
            State::Gone => break,
            State::Going if monotonic_ns() > long => {
                level(going.most);
                long = monotonic_ns() + GOING_LONG;
            }
            State::Going => {}
            State::There if over && monotonic_ns() < begun + GOING_MOST => {}
            State::There => break,
        }
        // SAFETY: a valid time.
        unsafe { libc::nanosleep(&NAP, std::ptr::null_mut()) };
    }
    hurry(going.hurry, b"0");
    lower(going.threads);
}

fn hurry(file: i32, on: &[u8; 1]) {
    // SAFETY: one byte.
    unsafe { libc::pwrite(file, on.as_ptr().cast(), 1, 0) };
}

/// While it lives this thread goes before all ordinary ones, if it may. A thread that attaches a
/// scheduler is handed to it in the middle of that, and under those kernels would wait for all
/// threads that are not yet. A thread that detaches one wakes the thread that does so in a
/// read-side critical section of RCU, where it is preempted by it, and is itself waited for.
pub(crate) struct Ahead(bool);

impl Ahead {
    pub fn of_others() -> Ahead {
        let may = machine::starves()
            && sched::policy(0) == Some(libc::SCHED_OTHER)
            && sched::set_fifo(0, PRIORITY).is_ok();
        Ahead(may)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if self.0 {
            drop(sched::set_other(0));
        }
    }
}
