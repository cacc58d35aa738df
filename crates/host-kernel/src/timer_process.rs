//! The timer process of a domain, where the kernel has no timer for BPF programs (PREEMPT_RT).
//!
//! ```text
//!   loader ── fork ──> SCHED_FIFO 99, on the domain's CPU, memory locked, one signal unblocked
//!     │                  ┌──────────────────────────────────────────────────────────────────┐
//!     │                  └> punctual_task_command decides ──────────> sleeps until the next ┘
//!     │                     (bpf/timer_process.h)                     event, or until a signal
//!     │                                                               (an earlier one)
//!     └ killed, ended: so is the scheduler, and with it this process
//! ```
//!
//! A process and no thread of ours: what stops the loader does not stop it. It never spins: each
//! turn ends in a sleep, and the program ends the scheduler when there are too many turns. If it is
//! killed or stopped, the scheduler ends. After the fork it makes system calls only, and never
//! returns into the program.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::abi::{Call, Command};
use crate::start_barrier::pipe;
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::sleep_until;
use punctual_sys::process::reap;
use punctual_sys::{memory, sched, thread_name};

const PRIORITY: i32 = 99;
/// For the end of the process.
const PATIENCE: Duration = Duration::from_secs(2);
/// As `TIMER_SIGNAL` (`bpf/timer_process.h`).
const WAKE: i32 = libc::SIGUSR1;
const RUN_PROGRAM: i32 = 10; // BPF_PROG_TEST_RUN
/// So long it continues without a loader, ns. It wakes at least once in a second.
const ORPHAN: u64 = 1_000_000_000;

/// How far it came, and the error there.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Report {
    stage: i32,
    error: i32,
}

const STAGES: [&str; 5] = [
    "",
    "it may not run on that CPU",
    "its memory may not be locked (CAP_IPC_LOCK)",
    "it may not run under SCHED_FIFO (CAP_SYS_NICE; or a cgroup without real-time runtime)",
    "its program does not run",
];
const READY: i32 = STAGES.len() as i32;

/// A domain's timer process; killed when dropped, which ends a scheduler that is still attached.
#[derive(Debug)]
pub(crate) struct TimerProcess {
    pid: i32,
}

impl TimerProcess {
    /// Starts it, and returns when it waits for the first time. Before the scheduler is attached:
    /// the process is not to hold what keeps it so.
    ///
    /// # Errors
    /// No process can be made, or it may not have what it needs.
    pub fn start(
        program: BorrowedFd<'_>,
        domain: u32,
        cpu: u32,
    ) -> Result<TimerProcess, Diagnostic> {
        let (read, write) = pipe().map_err(no_process)?;
        // SAFETY: getpid and fork take nothing; the child makes system calls only.
        let (loader, pid) = unsafe { (libc::getpid(), libc::fork()) };
        match pid {
            -1 => return Err(no_process(io::Error::last_os_error())),
            0 => live(loader, program.as_raw_fd(), write.as_raw_fd(), domain, cpu),
            _ => drop(write),
        }
        let timer = TimerProcess { pid };
        match read_report(&read) {
            Some(Report { stage: READY, .. }) => Ok(timer),
            Some(Report { stage, error }) => {
                let what = STAGES.get(stage as usize).copied().unwrap_or_default();
                let error = io::Error::from_raw_os_error(error);
                Err(Diagnostic::machine(
                    format!("the timer process of CPU {cpu}: {what}: {error}"),
                    "run it as root, outside of containers and CPU sets",
                ))
            }
            None => Err(Diagnostic::machine(
                format!("the timer process of CPU {cpu} was killed at once"),
                "see who kills it: an OOM killer (dmesg), or a limit on processes",
            )),
        }
    }
}

impl Drop for TimerProcess {
    fn drop(&mut self) {
        // Its exit frees the memory that it has of ours: not before all other threads.
        let _ = sched::set_other(self.pid);
        // SAFETY: a child of ours; no other thread waits for it.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        reap(self.pid, PATIENCE);
    }
}

fn no_process(e: io::Error) -> Diagnostic {
    Diagnostic::machine(
        format!("no timer process: {e}"),
        "raise the limits on processes and open files (ulimit -u, -n)",
    )
}

/// What it reports; `None` if it died before.
fn read_report(read: &OwnedFd) -> Option<Report> {
    let mut report = Report::default();
    loop {
        // SAFETY: a report is two numbers; as many bytes are written at once, or none.
        let got =
            unsafe { libc::read(read.as_raw_fd(), (&raw mut report).cast(), size_of::<Report>()) };
        if got != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return (got == size_of::<Report>() as isize).then_some(report);
        }
    }
}

extern "C" fn woken(_: i32) {}

/// The process's whole life.
fn live(loader: i32, program: i32, report: i32, domain: u32, cpu: u32) -> ! {
    let stage = |stage, failed: bool| {
        if failed || stage == READY {
            let error =
                if failed { io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 };
            let report_is = Report { stage, error };
            // SAFETY: a valid report and its size.
            unsafe { libc::write(report, (&raw const report_is).cast(), size_of::<Report>()) };
        }
        if failed {
            leave(stage);
        }
    };
    thread_name::set(thread_name::TIMER_PROCESS);
    // SAFETY: all zero is a value of these; the calls get valid pointers to them and their sizes.
    unsafe {
        wait_for_one_signal();
        close_all_but([program, report]);
    }
    // `stage` reads the error number that the refused call left.
    stage(1, sched::pin(0, cpu).is_err());
    // What its turns touch stays; the rest of the loader's memory is left alone.
    stage(2, memory::lock_touched().is_err());
    stage(3, sched::set_fifo(0, PRIORITY).is_err());
    let mut call = Call::new(domain, Command::TimerProcess);
    // SAFETY: all zero is a value of it, and `test` the part that this command reads.
    let mut run: libbpf_sys::bpf_attr = unsafe { std::mem::zeroed() };
    run.test.prog_fd = program as u32;
    run.test.ctx_in = &raw mut call as u64;
    run.test.ctx_size_in = size_of::<Call>() as u32;
    let (mut reported, mut orphan_since) = (false, None);
    loop {
        // SAFETY: the command with its attributes; the context is valid, and as long as is said.
        let failed = unsafe {
            libc::syscall(libc::SYS_bpf, RUN_PROGRAM, &raw mut run, size_of_val(&run)) != 0
        };
        // SAFETY: the program wrote to it behind the compiler's back.
        let result = unsafe { (&raw const call.result).read_volatile() };
        stage(4, failed || result < 0);
        if !reported {
            stage(READY, false);
            reported = true;
        }
        let next = result as u64;
        // A signal cannot come between the program and this: it is sent on this CPU, where no other
        // task runs until then.
        sleep_until(next);
        // A loader that dies takes the scheduler along, whose program refuses then. Of one that
        // died before it attached anything this process learns here; not by PR_SET_PDEATHSIG, lest
        // it be the one to end the scheduler. After the sleep: a system call between the program
        // and the sleep delays the release. SAFETY: getppid takes no memory.
        let orphan = unsafe { libc::getppid() } != loader;
        if orphan && next > *orphan_since.get_or_insert(next) + ORPHAN {
            leave(0);
        }
    }
}

/// Ends the process, as an ordinary one: its exit frees the memory that it has of the loader's.
fn leave(code: i32) -> ! {
    let _ = sched::set_other(0);
    // SAFETY: no destructor of what was inherited may run here.
    unsafe { libc::_exit(code) }
}

/// The terminal and whatever else the loader has open is none of its processes' business.
///
/// # Safety
/// In a child that uses no other descriptor any more.
pub(crate) unsafe fn close_all_but<const N: usize>(mut kept: [i32; N]) {
    let mut from = 0;
    kept.sort_unstable();
    // SAFETY: numbers only.
    unsafe {
        for kept in kept.map(|fd| fd as u32) {
            if from < kept {
                libc::syscall(libc::SYS_close_range, from, kept - 1, 0);
            }
            from = kept + 1;
        }
        libc::syscall(libc::SYS_close_range, from, u32::MAX, 0);
    }
}

/// Blocks all signals but the one that wakes it, which does nothing else.
///
/// # Safety
/// Only in a process of one thread: what handled that signal before is forgotten.
unsafe fn wait_for_one_signal() {
    // SAFETY: all zero is a value of both; valid pointers. The handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = woken as extern "C" fn(i32) as usize;
        libc::sigaction(WAKE, &action, std::ptr::null_mut());
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut blocked);
        libc::sigdelset(&mut blocked, WAKE);
        libc::sigprocmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
    }
}
