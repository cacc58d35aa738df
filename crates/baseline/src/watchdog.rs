//! Ends a run whatever happens. Above every task, on each CPU used and on one other, so that it
//! needs no help of the caller, which may never get the CPU again under a SCHED_FIFO runaway.

use crate::shared::{Control, SetupStep, TaskState};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::process::kill_group;

use crate::sys::{set_affinity, set_policy, KernelPolicy};
use std::sync::atomic::{AtomicBool, Ordering::*};

/// How often it looks, ns: the longest a stop can take.
const LOOK: u64 = 20_000_000;
/// How long after the end it leaves the observers to read the last boundary, ns.
const GRACE: u64 = 20_000_000;

/// One watchdog.
pub struct Watchdog<'a> {
    /// Its CPU.
    pub cpu: u32,
    /// All tasks, on whatever CPU.
    pub tasks: &'a [TaskState],
    /// Which of them are commands.
    pub commands: &'a [bool],
    /// The caller's wish.
    pub asked: &'a AtomicBool,
    /// The run.
    pub control: &'a Control,
}

impl Watchdog<'_> {
    /// The thread's life: until the run is over.
    pub fn live(self) {
        if let Err(errno) = set_affinity(Some(self.cpu)) {
            self.control.fail(SetupStep::ObserverAffinity, self.cpu, errno);
        } else if let Err(errno) = set_policy(0, KernelPolicy::Fifo(99), false) {
            self.control.fail(SetupStep::ObserverPolicy, self.cpu, errno);
        } else {
            self.control.ready.fetch_add(1, AcqRel);
            self.wait();
        }
        self.disarm();
    }

    fn wait(&self) {
        loop {
            let now = monotonic_ns();
            let end = self.control.end.load(Acquire).saturating_add(GRACE);
            if now >= end || self.asked.load(Acquire) || self.control.stop.load(Acquire) {
                return;
            }
            sleep_until(end.min(now + LOOK));
        }
    }

    /// Stops all tasks, and takes their priorities away. A task that is gone has id 0.
    fn disarm(&self) {
        self.control.stop.store(true, Release);
        for (task, &command) in self.tasks.iter().zip(self.commands) {
            match task.id.load(Acquire) {
                0 => {}
                // Killed, it needs the CPU to die; what it started is demoted by `restore`.
                pid if command => {
                    let _ = set_policy(pid, KernelPolicy::Other, false);
                    kill_group(pid);
                }
                tid => {
                    let _ = set_policy(tid, KernelPolicy::Other, false);
                }
            }
        }
    }
}
