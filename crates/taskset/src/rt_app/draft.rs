//! Makes a task of a thread's jobs: its period, arrivals, budget and body.

use super::json::Object;
use super::phases::{self, Event, Job, Phase, Unrolled, Wait};
use super::Losses;
use crate::duration::DURATION_LIMIT;
use crate::{Arrival, Body, Overrun, Spin, Step, TaskSpec, MOST_STEPS};

/// A reservation of SCHED_DEADLINE: runtime, period, deadline, ns.
#[derive(Clone, Copy)]
pub(super) struct Reserved {
    pub(super) runtime: u64,
    pub(super) period: u64,
    pub(super) deadline: u64,
}

/// A thread whose phases are unrolled.
pub(super) struct Draft<'a, 'v, 't> {
    pub(super) object: &'a Object<'v, 't>,
    /// The first release, ns from the start of the run.
    pub(super) delay: u64,
    pub(super) wait: Wait,
    pub(super) reserved: Option<Reserved>,
}

impl Draft<'_, '_, '_> {
    /// The task that does the same, or why there is none.
    pub(super) fn task(
        mut self,
        unrolled: Unrolled,
        phases: &[Phase],
        duration: Option<u64>,
        losses: &mut Losses,
    ) -> Result<TaskSpec, &'static str> {
        let Unrolled { mut jobs, endless, cut } = unrolled;
        let path = &self.object.path;
        if let (false, Some(first)) = (endless, jobs.first_mut()) {
            // Before the first job, a sleep is a delay.
            if let Some(Step::Sleep(ns)) = first.steps.first() {
                self.delay = self.delay.saturating_add(*ns);
                first.next =
                    first.next.saturating_sub(if self.wait == Wait::Sleep { *ns } else { 0 });
                first.steps.remove(0);
            }
        }
        if cut {
            losses.add(path.clone(), "the phases beside the endless one are left out");
        }
        if jobs.is_empty() {
            return match self.reserved {
                Some(reserved) if endless && executes(phases) => {
                    Ok(self.spec(reserved.period, reserved.runtime, Body::Spin(Spin::Forever)))
                }
                _ => Err("it has neither timers nor sleeps that could give it a period"),
            };
        }
        let most = jobs.iter().map(Job::execution).max().unwrap_or(0);
        if most == 0 {
            return Err("it executes nothing");
        }
        let period = match self.reserved {
            Some(reserved) => {
                if jobs.iter().any(|job| job.next != 0 && job.next != reserved.period) {
                    losses.add(
                        path.clone(),
                        "it is released once every dl-period, not by its timers and sleeps",
                    );
                }
                jobs.iter_mut().for_each(|job| job.next = reserved.period);
                reserved.period
            }
            None => jobs
                .iter()
                .map(|job| job.next)
                .filter(|&next| next > 0)
                .min()
                .ok_or("it has no period")?,
        };
        if self.wait == Wait::Sleep && self.reserved.is_none() {
            losses.add(
                path.clone(),
                "a sleep counts from the end of a job; here its releases have fixed times",
            );
        }
        let even = jobs.iter().all(|job| job.next == period || (job.next == 0 && !endless));
        let arrival = match (even && endless, endless) {
            (true, _) => Arrival::Periodic,
            (false, false) => Arrival::List(self.times(jobs.iter(), u64::MAX)),
            (false, true) => {
                let end = duration.ok_or("its jobs come at unequal distances without end")?;
                let times = self.times(jobs.iter().cycle(), end);
                if times.len() > phases::MOST_JOBS || times.is_empty() {
                    return Err("its jobs come at unequal distances, too many of them");
                }
                Arrival::List(times)
            }
        };
        let budget = self
            .reserved
            .map_or_else(|| with_margin(most).min(period), |reserved| reserved.runtime);
        let mut spec = self.spec(period, budget, self.body(jobs, losses));
        if matches!(arrival, Arrival::List(_)) {
            spec.offset = 0;
        }
        spec.arrival = arrival;
        spec.overrun = self.overrun(phases);
        Ok(spec)
    }

    fn spec(&self, period: u64, budget: u64, body: Body) -> TaskSpec {
        let deadline = self.reserved.map_or(period, |reserved| reserved.deadline);
        TaskSpec { deadline, offset: self.delay, ..TaskSpec::new("", period, budget, body) }
    }

    /// The releases of these jobs before `end`, ns from the start of the run.
    fn times<'j>(&self, jobs: impl Iterator<Item = &'j Job>, end: u64) -> Vec<u64> {
        let mut at = self.delay;
        let mut times = Vec::new();
        for job in jobs {
            if at >= end.min(DURATION_LIMIT) || times.len() > phases::MOST_JOBS {
                break;
            }
            times.push(at);
            at = at.saturating_add(job.next);
        }
        times
    }

    /// What all jobs execute, or each in its turn.
    fn body(&self, mut jobs: Vec<Job>, losses: &mut Losses) -> Body {
        let same = jobs.iter().all(|job| job.steps == jobs[0].steps);
        let long = jobs[0].steps.len() > MOST_STEPS;
        if same && !long {
            let steps = std::mem::take(&mut jobs[0].steps);
            return match steps.as_slice() {
                [Step::Spin(spin)] => Body::Spin(spin.clone()),
                _ => Body::Steps(steps),
            };
        }
        if jobs.iter().any(Job::sleeps) {
            losses.add(self.object.path.clone(), "the sleeps within its jobs are left out");
        }
        // A job that only waits executes next to nothing.
        Body::Spin(Spin::Recorded(jobs.iter().map(|job| job.execution().max(1)).collect()))
    }

    /// An absolute timer keeps its times whatever happens, and the thread catches up; all others
    /// restart when they are late (rt-app's tutorial, "timer").
    fn overrun(&self, phases: &[Phase]) -> Overrun {
        let mut events = phases.iter().flat_map(|phase| &phase.events);
        let absolute = events.any(|event| matches!(event, Event::Timer { absolute: true, .. }));
        match absolute || self.reserved.is_some() {
            true => Overrun::Carry,
            false => Overrun::Skip,
        }
    }
}

fn executes(phases: &[Phase]) -> bool {
    phases.iter().flat_map(|phase| &phase.events).any(|event| matches!(event, Event::Run(_)))
}

/// A budget for a thread that has none in rt-app: its longest job and a tenth, at least 50 us more,
/// for what its waking and waiting takes.
fn with_margin(execution: u64) -> u64 {
    execution.saturating_add((execution / 10).max(50_000))
}
