//! What a reservation would do for the program: the recorded jobs, replayed in the simulator under
//! it, with what the host takes for itself.
//!
//! Under Punctual an unmodified program is not released: it wakes when it likes, in any phase of
//! its reservation. So each replay is made for several phases, and the worst counts. *Beside a
//! full CPU*, another task has all of the CPU that may be promised beyond this reservation, in the
//! same periods and always first: what the reservation then gets comes as late as a CPU in use by
//! reservations of that period lets it.

use std::sync::Arc;

use punctual_analysis::Capacity;
use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{Options, ProgramStep, RecordedProgram, Simulation, Watcher};
use punctual_taskset::{Body, DomainSpec, PolicySpec, Spin, TaskSet, TaskSpec};
use punctual_trace::Interval;

use crate::activity::Burst;
use crate::jobs::RecordedJob;

/// Phases of a program against its reservation, evenly distributed over the period.
pub const PHASES: u64 = 8;

/// What else is on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Ordinary programs: nothing that comes before the reservation.
    Nothing,
    /// Reservations, as much as the host admits.
    Reservations,
}

/// Recorded jobs, ready to be replayed.
pub struct Replay {
    steps: Arc<[ProgramStep]>,
    /// Of each job: its release, ns, and what all jobs up to it executed.
    jobs: Vec<(u64, u64)>,
    deadline: u64,
    capacity: Capacity,
    policy: PolicySpec,
}

impl Replay {
    /// Of jobs, each of which has to be done `deadline` ns after its release.
    #[must_use]
    pub fn new(
        jobs: &[RecordedJob],
        bursts: &[Burst],
        deadline: u64,
        capacity: Capacity,
        policy: &str,
    ) -> Replay {
        let origin = jobs.first().map_or(0, |job| job.release);
        let (mut steps, mut releases, mut sum) = (Vec::new(), Vec::new(), 0);
        for job in jobs {
            for n in job.bursts.clone() {
                steps.push(match n == job.bursts.start {
                    true => ProgramStep::Until(job.release - origin),
                    false => ProgramStep::Pause(bursts[n].wake - bursts[n - 1].end),
                });
                steps.push(ProgramStep::Execute(bursts[n].executed));
            }
            sum += job.executed;
            releases.push((job.release - origin, sum));
        }
        let policy = PolicySpec::named(policy);
        Replay { steps: steps.into(), jobs: releases, deadline, capacity, policy }
    }

    /// How many jobs there are.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.jobs.len() as u64
    }

    /// How many jobs meet their deadline with this reservation, in the worst phase; `None` if that
    /// is fewer than `least`.
    ///
    /// # Errors
    /// The simulator does not have the policy.
    pub fn met(
        &self,
        period: u64,
        budget: u64,
        beside: Beside,
        least: u64,
    ) -> Result<Option<u64>, Diagnostic> {
        let set = self.set(period, budget, beside);
        let mut worst = self.jobs();
        for phase in 0..PHASES {
            let shift = period * phase / PHASES;
            let late = self.late(&set, shift, self.jobs() - least.min(self.jobs()))?;
            worst = worst.min(self.jobs() - late);
            if worst < least {
                return Ok(None);
            }
        }
        Ok(Some(worst))
    }

    /// The reservation, after what comes before it.
    fn set(&self, period: u64, budget: u64, beside: Beside) -> TaskSet {
        let rest = u128::from(period) * u128::from(self.capacity.limit.0) / 1_000_000;
        let rest = u64::try_from(rest).unwrap_or(u64::MAX).saturating_sub(budget);
        let others = TaskSpec::new("others", period, rest, Body::Spin(Spin::Forever));
        let program = TaskSpec::new("program", period, budget, Body::Command(Vec::new()));
        // Of tasks that are equal to the policy, the first in the set is served first.
        let tasks = match beside == Beside::Reservations && rest > 0 {
            true => vec![others, program],
            false => vec![program],
        };
        TaskSet {
            domains: vec![DomainSpec::of_cpu(0)],
            policy: self.policy.clone(),
            duration: None,
            tasks,
            groups: Vec::new(),
            budget_groups: Vec::new(),
        }
    }

    /// How many jobs are late; once they are more than `most`, at least that many.
    fn late(&self, set: &TaskSet, shift: u64, most: u64) -> Result<u64, Diagnostic> {
        let task = set.tasks.len() - 1;
        let program = RecordedProgram { task, steps: self.steps.clone(), shift };
        let options =
            Options { costs: self.capacity.costs, programs: vec![program], ..Options::default() };
        let last = self.jobs.last().map_or(0, |&(release, _)| release);
        let end = last + shift + self.deadline;
        let mut jobs = Completions {
            replay: self,
            task: task as u32,
            shift,
            next: 0,
            executed: 0,
            late: 0,
            most,
        };
        Simulation::new(set, options)?.run(end, &mut jobs)?;
        // All deadlines are past.
        Ok(jobs.late + (self.jobs.len() - jobs.next) as u64)
    }
}

/// Follows what the program executed: a job is done when all that was recorded up to its end has
/// been.
struct Completions<'a> {
    replay: &'a Replay,
    task: u32,
    shift: u64,
    next: usize,
    executed: u64,
    late: u64,
    most: u64,
}

impl Watcher for Completions<'_> {
    fn executed(&mut self, interval: &Interval) {
        if interval.task != self.task {
            return;
        }
        self.executed += interval.to - interval.from;
        while let Some(&(release, sum)) = self.replay.jobs.get(self.next) {
            if sum > self.executed {
                break;
            }
            let done = interval.to - (self.executed - sum);
            self.late += u64::from(done > release + self.shift + self.replay.deadline);
            self.next += 1;
        }
    }

    fn proceeds(&mut self, _: u64) -> bool {
        self.late <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::jobs_of;

    const MS: u64 = 1_000_000;

    /// Bursts that begin and execute at these times, ms.
    fn replay(bursts: &[(u64, u64)], gap: u64, deadline: u64, policy: &str) -> Replay {
        let burst = |&(wake, ms): &(u64, u64)| Burst {
            wake: wake * MS,
            end: (wake + ms) * MS,
            executed: ms * MS,
        };
        let bursts: Vec<Burst> = bursts.iter().map(burst).collect();
        let jobs = jobs_of(&bursts, gap * MS);
        Replay::new(&jobs, &bursts, deadline * MS, Capacity::THEORY, policy)
    }

    fn met(replay: &Replay, period: u64, budget: u64, beside: Beside) -> u64 {
        replay.met(period * MS, budget * MS, beside, 0).unwrap().unwrap()
    }

    #[test]
    fn jobs_that_fit_into_each_budget_meet_their_deadlines_and_others_do_not() {
        let steady: Vec<(u64, u64)> = (0..40).map(|n| (n * 40, 8)).collect();
        let steady = replay(&steady, 0, 40, "rm");
        for beside in [Beside::Nothing, Beside::Reservations] {
            assert_eq!(met(&steady, 40, 8, beside), 40, "{beside:?}");
        }
        // With 7 of 8 ms each job is 1 ms further behind: by its deadline the first is done with
        // the budget of the second period, and from the eighth on none is.
        assert!(met(&steady, 40, 7, Beside::Nothing) < 10);
        assert_eq!(steady.met(40 * MS, 7 * MS, Beside::Nothing, 39).unwrap(), None);
    }

    #[test]
    fn one_long_job_in_ten_is_late_with_the_budget_of_the_others() {
        let jobs: Vec<(u64, u64)> =
            (0..40).map(|n| (n * 40, if n % 10 == 9 { 30 } else { 4 })).collect();
        let replay = replay(&jobs, 0, 40, "rm");
        // 10 ms in each period: 4 + 30 ms need four periods, which the three short jobs after it
        // wait for.
        assert_eq!(met(&replay, 40, 30, Beside::Nothing), 40);
        let some = met(&replay, 40, 10, Beside::Nothing);
        assert!((40 - 4 * 4..=40 - 4).contains(&some), "{some}");
    }

    #[test]
    fn what_comes_before_it_makes_a_job_late_that_wakes_late_in_its_period() {
        // Deadlines of half a period, beside 28 ms of others: alone all are met.
        let jobs: Vec<(u64, u64)> = (0..20).map(|n| (n * 40, 8)).collect();
        let replay = replay(&jobs, 0, 20, "rm");
        assert_eq!(met(&replay, 40, 8, Beside::Nothing), 20);
        assert_eq!(met(&replay, 40, 8, Beside::Reservations), 0);
        // A quarter of the period and of the budget: the others leave it 2 ms in each 10.
        assert!(met(&replay, 10, 4, Beside::Reservations) == 20);
    }

    #[test]
    fn a_pause_within_a_job_follows_its_first_part() {
        // 4 ms, 2 ms of waiting, 4 ms: 10 ms in all, and alone no job is longer.
        let jobs: Vec<(u64, u64)> = (0..20).flat_map(|n| [(n * 40, 4), (n * 40 + 6, 4)]).collect();
        for (deadline, want) in [(10, 20), (9, 0)] {
            let replay = replay(&jobs, 2, deadline, "rm");
            assert_eq!(replay.jobs(), 20);
            assert_eq!(met(&replay, 40, 20, Beside::Nothing), want, "{deadline}");
        }
    }
}
