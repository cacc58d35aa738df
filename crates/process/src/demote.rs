//! Taking real-time priority from what is to die, and following it until it is gone.
//!
//! A killed thread needs the CPU to die, and SIGKILL and freezer reach it only on its way out of
//! the kernel. Inside, it may wait for another thread by retrying: reaping a process removes its
//! entries of /proc (d_invalidate, shrink_dcache_parent, d_walk), and retries until no other thread
//! is freeing one of them. If that other thread was preempted in the middle, at a lower real-time
//! level on the same CPU, it never continues, and the first spins for ever, above every ordinary
//! process. Among ordinary threads both get the CPU. So a process that is to die loses its
//! real-time priority first (sched_setscheduler works in whatever state a thread is), and again in
//! each round, for what it made meanwhile.

use crate::cgroup;
use crate::proc::{self, Identity};
use punctual_sys::sched::{self, Attributes};
use rustix::process::{waitpid, Pid, WaitOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// Nice value of what is to die: before ordinary work on a busy machine, without starving it.
const NICE: i32 = -10;

/// Puts one thread into the ordinary class if it has real-time priority; whether it had. A thread
/// that is gone has none.
pub(crate) fn thread(tid: i32) -> bool {
    let mut ordinary = Attributes::ordinary();
    ordinary.nice = NICE;
    // A lower nice value takes a privilege.
    let demoted = || ordinary.give(tid).is_ok() || sched::set_other(tid).is_ok();
    Attributes::of(tid).is_ok_and(|a| a.is_real_time()) && demoted()
}

/// The pause after a round of polling that began at `round`: rounds take a quarter of the CPU at
/// most. The restoring thread may have a higher priority than all that it waits for.
pub(crate) fn pause_after(round: Instant) {
    std::thread::sleep(
        (round.elapsed() * 3).clamp(Duration::from_millis(1), Duration::from_millis(50)),
    );
}

/// The same for all threads of a process; how many had it.
pub(crate) fn process(pid: i32) -> usize {
    proc::threads_of(pid).into_iter().filter(|t| thread(*t)).count()
}

/// A process that can do nothing any more (see [`Identity::can_act`]): its dispatchers and tasks
/// need no level to die.
pub(crate) fn if_dying(owner: Identity) {
    if owner != Identity::own() && !owner.can_act() && Identity::of(owner.pid) == Some(owner) {
        process(owner.pid);
    }
}

/// Processes that are to die.
#[derive(Debug, Default)]
pub(crate) struct Dying {
    ids: Vec<Identity>,
}

impl Dying {
    /// Adds these processes; how many were new.
    pub fn add(&mut self, ids: impl IntoIterator<Item = Identity>) -> usize {
        let before = self.ids.len();
        for id in ids {
            if !self.ids.contains(&id) {
                self.ids.push(id);
            }
        }
        self.ids.len() - before
    }

    /// Adds what is in a group and in those below. Threads on their way out are in no list of a
    /// group any more: one that is not added before it is killed may be missed.
    pub fn add_group(&mut self, dir: &Path) -> usize {
        // By the group's own list first: it can be read while a look-up in /proc blocks.
        for tid in cgroup::list(dir, "cgroup.threads") {
            thread(tid);
        }
        self.add(cgroup::list(dir, "cgroup.procs").into_iter().filter_map(Identity::of))
    }

    /// Takes real-time priority from all threads of those that are left, ours among them are waited
    /// for. A zombie that another process is to wait for is not left.
    pub fn demote(&mut self) {
        self.ids.retain(|id| {
            if Identity::of(id.pid) != Some(*id) {
                return false;
            }
            process(id.pid);
            // An error: not our child. A stop: this process traces it.
            let waited = Pid::from_raw(id.pid).map(|p| waitpid(Some(p), WaitOptions::NOHANG));
            let ended = matches!(waited, Some(Ok(Some((_, s)))) if s.exited() || s.signaled());
            !ended && id.is_alive()
        });
    }

    /// Repeats that until none is left, `patience` at most; whether that was enough.
    pub fn await_end(&mut self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            let round = Instant::now();
            self.demote();
            if self.ids.is_empty() {
                return true;
            }
            if round >= end {
                return false;
            }
            pause_after(round);
        }
    }

    /// Those that are left, in words for people; empty when there are none.
    pub fn named(&self) -> String {
        let one = |id: &Identity| {
            let state = proc::Stat::of(id.pid).map_or('?', |s| s.state);
            format!("process {} ({}, state {state})", id.pid, proc::command_of(id.pid))
        };
        self.ids.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
