//! A worker above every runaway task whose own execution is bounded.
//!
//! ```text
//!   guardian, SCHED_FIFO 99 ── fork ──> worker, SCHED_RR 99: reads /proc, kills, restores
//!     │ sleeps, reads the worker's clock  │
//!     │ SLICE executed: ordinary class for a PAUSE, then SCHED_RR 99 again
//!     └ returns how the worker ended
//! ```
//!
//! The worker looks up names in /proc while their processes die, and removes cgroups. Inside the
//! kernel such a call may retry until a thread that was preempted in the middle of freeing the same
//! entry has continued (`demote`). At SCHED_FIFO 99 no other thread of that CPU would ever
//! continue; in the pauses all do. The guardian only sleeps and makes calls that look up no names
//! in /proc, so that nothing blocks it.

use punctual_sys::clock::CpuClock;
use punctual_sys::{sched, thread_name};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use rustix::process::{pidfd_open, waitpid, Pid, PidfdFlags, WaitOptions};

/// What the worker may execute at its level in one go, ns: as much as a whole restoration takes.
const SLICE: u64 = 20_000_000;
/// How long it is then an ordinary process, ns: twice as long each time, since on a busy machine it
/// may take long until the threads that it waits for run.
const PAUSES: std::ops::RangeInclusive<i64> = 10_000_000..=160_000_000;
/// How often its clock is read.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// How long a killed child may take to end before it is left to itself: ten slices.
const END: Timespec = Timespec { tv_sec: 0, tv_nsec: 10 * SLICE as i64 };

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// By itself, with this answer.
    Done(bool),
    /// It was killed, or panicked.
    Died,
}

/// Does `work` in a forked process. For a process of one thread whose signals are all blocked (the
/// guardian). Where none can be forked, it is done here. With `real_time`, the caller is at
/// SCHED_FIFO 99, and is again afterwards.
pub(crate) fn supervised(real_time: bool, work: impl Fn() -> bool) -> Outcome {
    // SAFETY: one thread, so that the child has all that we have, and every lock is free; it never
    // returns.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        be_worker(real_time, &work);
    }
    match Pid::from_raw(pid).filter(|p| p.as_raw_pid() > 0) {
        Some(worker) => {
            stand_above(worker, real_time);
            let ended = status_of(worker);
            if real_time {
                let _ = sched::set_fifo(0, 99);
            }
            ended
        }
        None => Outcome::Done(work()),
    }
}

/// Kills an ordinary child of this process, and waits for its end, for [`END`] at most. Tasks may
/// have preempted it: it gets the CPU at the worker's priority. Its zombie stays, for reaping it
/// frees its entries of /proc.
pub(crate) fn kill(child: Pid, real_time: bool) {
    let pid = child.as_raw_pid();
    let Ok(fd) = pidfd_open(child, PidfdFlags::empty()) else { return };
    if real_time {
        let _ = sched::set_round_robin(pid, 99);
    }
    let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    if !matches!(retry_on_intr(|| poll(&mut fds, Some(&END))), Ok(n) if n > 0) {
        // It waits inside the kernel.
        let _ = sched::set_other(pid);
    }
}

fn be_worker(real_time: bool, work: &dyn Fn() -> bool) -> ! {
    thread_name::set(thread_name::WORKER);
    if real_time {
        let _ = sched::set_round_robin(0, 99);
    }
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    // Its own end frees entries of /proc too.
    let _ = sched::set_other(0);
    // SAFETY: ends this process at once, without the program's exit handlers.
    unsafe { libc::_exit(answer.map_or(2, i32::from)) }
}

/// Until the worker has ended.
fn stand_above(worker: Pid, real_time: bool) {
    let pid = worker.as_raw_pid();
    let Ok(fd) = pidfd_open(worker, PidfdFlags::empty()) else { return };
    let ended_within = |time: &Timespec| {
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(time)), Ok(n) if n > 0)
    };
    let (mut mark, mut pause) = (0, *PAUSES.start());
    while !ended_within(&LOOK_EVERY) {
        let ran = CpuClock::of_process(pid).read().unwrap_or(0);
        if real_time && ran.saturating_sub(mark) >= SLICE {
            let _ = sched::set_other(pid);
            let _ = ended_within(&Timespec { tv_sec: 0, tv_nsec: pause });
            pause = (2 * pause).min(*PAUSES.end());
            let _ = sched::set_round_robin(pid, 99);
            mark = CpuClock::of_process(pid).read().unwrap_or(ran);
        }
    }
}

/// Waits for it; as an ordinary process, for that frees its entries of /proc.
fn status_of(worker: Pid) -> Outcome {
    let _ = sched::set_other(0);
    let ended = retry_on_intr(|| waitpid(Some(worker), WaitOptions::empty()));
    match ended.ok().flatten().and_then(|(_, status)| status.exit_status()) {
        Some(answer @ 0..=1) => Outcome::Done(answer == 1),
        _ => Outcome::Died,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// In a process of one thread, as the guardian is; its exit code is the answer.
    fn in_guardian(life: impl Fn() -> bool) -> bool {
        // SAFETY: the child makes system calls and uses the allocator alone, which glibc makes
        // usable there.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = i32::from(!life());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let ended = waitpid(Pid::from_raw(pid), WaitOptions::empty());
        matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0))
    }

    #[test]
    fn the_answer_of_the_work_comes_back_and_its_death_is_reported() {
        // SAFETY: passes no memory.
        let die = || unsafe { libc::raise(libc::SIGKILL) } == 0;
        assert!(in_guardian(|| supervised(false, || true) == Outcome::Done(true)));
        assert!(in_guardian(|| supervised(false, || false) == Outcome::Done(false)));
        assert!(in_guardian(|| supervised(false, die) == Outcome::Died));
    }

    #[test]
    fn work_that_never_sleeps_is_an_ordinary_process_now_and_then() {
        let ordinary_once = || {
            let end = Instant::now() + Duration::from_secs(4);
            // SAFETY: reads only.
            let ordinary = || unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
            while Instant::now() < end {
                if ordinary() {
                    return true;
                }
            }
            false
        };
        let permitted = in_guardian(|| sched::set_fifo(0, 99).is_ok());
        if !permitted {
            return punctual_test_support::missing("SCHED_FIFO 99 is refused");
        }
        assert!(in_guardian(|| sched::set_fifo(0, 99).is_ok()
            && supervised(true, ordinary_once) == Outcome::Done(true)));
    }
}
