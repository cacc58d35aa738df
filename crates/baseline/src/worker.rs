//! A synthetic task under a baseline: spin, stamp, sleep to the next absolute release. Nothing here
//! allocates or panics.

use crate::shared::{Control, SetupStep, TaskState};
use crate::sys::{set_affinity, set_policy, KernelPolicy};
use punctual_sys::clock::{monotonic_ns, sleep_until_unless};
use punctual_sys::sched::thread_id;
use punctual_workload::{Spinner, Work};
use std::sync::atomic::Ordering::*;

/// What a worker needs.
pub struct Worker<'a> {
    /// Index in the set.
    pub task: u32,
    /// Its CPU; `None`: any.
    pub cpu: Option<u32>,
    /// Its policy.
    pub policy: KernelPolicy,
    /// First release after the start, ns.
    pub offset: u64,
    /// Time between releases, ns.
    pub period: u64,
    /// The work of its jobs.
    pub work: Work,
    /// By what.
    pub spinner: Spinner,
    /// Its face to the observer.
    pub state: &'a TaskState,
    /// The run.
    pub control: &'a Control,
}

impl Worker<'_> {
    /// The thread's life.
    pub fn live(mut self) {
        self.state.id.store(thread_id(), Release);
        if let Err(errno) = set_affinity(self.cpu) {
            self.control.fail(SetupStep::TaskAffinity, self.task, errno);
        } else if let Err(errno) = set_policy(0, self.policy, false) {
            self.control.fail(SetupStep::TaskPolicy, self.task, errno);
        } else if let Some(start) = self.control.wait_for_start() {
            self.execute(start.saturating_add(self.offset));
        }
        // An id that is no longer ours must not be demoted.
        self.state.id.store(0, Release);
    }

    fn execute(&mut self, first: u64) {
        let mut number = 0u64;
        loop {
            let release = first.saturating_add(number.saturating_mul(self.period));
            if !sleep_until_unless(release, &self.control.stop) {
                return;
            }
            self.state.begin(number, monotonic_ns());
            if !self.work.run_job(&self.spinner, &self.control.stop) {
                return;
            }
            self.state.done(number, monotonic_ns());
            number += 1;
        }
    }
}
