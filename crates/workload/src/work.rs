//! What one synthetic task executes, job after job.

use std::sync::atomic::AtomicBool;

use punctual_taskset::{Body, Spin, Step};

use crate::draw::{Act, Demand, Script};
use crate::spinner::Spinner;
use punctual_sys::clock::{monotonic_ns, sleep_until_unless};

/// A synthetic task's execution.
#[derive(Debug, Clone)]
pub struct Work {
    script: Script,
    forever: bool,
}

impl Work {
    /// Work as a task-set file describes it; `None` for a program, which does its own.
    #[must_use]
    pub fn of(body: &Body) -> Option<Work> {
        let forever = match body {
            Body::Spin(spin) => *spin == Spin::Forever,
            Body::Steps(steps) => steps.contains(&Step::Spin(Spin::Forever)),
            Body::Command(_) | Body::Pid(_) => false,
        };
        Some(Work { script: Script::of(body)?, forever })
    }

    /// Whether its jobs never end.
    #[must_use]
    pub fn is_forever(&self) -> bool {
        self.forever
    }

    /// Executes the next job. Returns whether it was done; `false` means that `stop` became true.
    /// Allocates nothing.
    pub fn run_job(&mut self, spinner: &Spinner, stop: &AtomicBool) -> bool {
        loop {
            let done = match self.script.next() {
                Act::Execute(Demand::For(ns)) => spinner.spin_for_unless(ns, stop),
                Act::Execute(Demand::Forever) => {
                    spinner.spin_forever(stop);
                    false
                }
                Act::Sleep(ns) => sleep_until_unless(monotonic_ns().saturating_add(ns), stop),
                Act::Done => return true,
            };
            if !done {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_done_and_the_next_one_follows() {
        let mut work =
            Work::of(&Body::Steps(vec![Step::Spin(Spin::For(1_000)), Step::Sleep(1_000)]))
                .expect("synthetic");
        let spinner = Spinner::calibrate();
        let go = AtomicBool::new(false);
        assert!(work.run_job(&spinner, &go) && work.run_job(&spinner, &go));
        assert!(!work.is_forever());
    }

    #[test]
    fn a_stop_ends_execution_and_sleep() {
        let stop = AtomicBool::new(true);
        let spinner = Spinner::calibrate();
        for body in [Body::Spin(Spin::Forever), Body::Steps(vec![Step::Sleep(u64::MAX)])] {
            let mut work = Work::of(&body).expect("synthetic");
            assert!(!work.run_job(&spinner, &stop));
        }
        assert!(Work::of(&Body::Spin(Spin::Forever)).is_some_and(|w| w.is_forever()));
    }

    #[test]
    fn a_program_does_its_own() {
        assert!(Work::of(&Body::Command(vec!["true".to_owned()])).is_none());
    }
}
