//! A simulated task: what it does next, and its latest release.

use punctual_dispatcher::End;
use punctual_policies::{NewRelease, PeriodBuilder, PeriodParams};
use punctual_taskset::{Body, Spin, Step, TaskChange, TaskSpec};
use punctual_trace::Period;
use punctual_workload::{Act, Demand, Script};

use crate::program::{Playback, RecordedProgram};

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Stands in `wait_period`.
    Waiting,
    /// Wants the CPU, whether it has a job or not.
    Working,
    /// Suspended in the middle of a job.
    Sleeping,
}

/// Where a task's acts are from.
enum Behaviour {
    Synthetic(Script),
    Recorded(Playback),
    /// A program: it wants all that it can get.
    Greedy,
}

/// One task.
pub(crate) struct Task {
    pub(crate) state: State,
    /// Execution until it does something else, ns; 0 when it is not known before it has the CPU.
    pub(crate) left: u64,
    behaviour: Behaviour,
    /// The job of the latest release has ended.
    ended: bool,
    periods: PeriodBuilder,
}

impl Task {
    pub(crate) fn new(index: u32, spec: &TaskSpec, program: Option<RecordedProgram>) -> Task {
        let waits = match &spec.body {
            Body::Spin(spin) => *spin != Spin::Forever,
            Body::Steps(steps) => !steps.contains(&Step::Spin(Spin::Forever)),
            Body::Command(_) | Body::Pid(_) => false,
        };
        Task {
            state: State::Waiting,
            left: 0,
            behaviour: match (program, Script::of(&spec.body)) {
                (Some(program), _) => Behaviour::Recorded(Playback::new(program)),
                (None, Some(script)) => Behaviour::Synthetic(script),
                (None, None) => Behaviour::Greedy,
            },
            ended: false,
            periods: PeriodBuilder::new(PeriodParams::new(index, spec), waits),
        }
    }

    /// Its place in the task set.
    pub(crate) fn index(&self) -> u32 {
        self.periods.params().task
    }

    /// It has other parameters from its next release on.
    pub(crate) fn change(&mut self, change: &TaskChange) {
        self.periods.change(change);
    }

    /// Its next step at `now`, when it has the CPU.
    pub(crate) fn act(&mut self, now: u64) -> Act {
        match &mut self.behaviour {
            Behaviour::Synthetic(script) => script.next(),
            Behaviour::Recorded(playback) => playback.act(now),
            Behaviour::Greedy => Act::Execute(Demand::Forever),
        }
    }

    pub(crate) fn sleep(&mut self) {
        self.state = State::Sleeping;
        // In virtual time every suspension is known for sure, however short.
        self.periods.suspended(u64::MAX);
    }

    /// It executed for `ran` ns, on a job, until `now`.
    pub(crate) fn executed(&mut self, ran: u64, now: u64) {
        self.periods.executed(ran);
        self.periods.started(now - ran);
    }

    /// It had the CPU, if only to find that it has nothing to do.
    pub(crate) fn touched(&mut self, now: u64) {
        if !self.ended {
            self.periods.started(now);
        }
    }

    /// The next release: the period of the one before.
    pub(crate) fn released(&mut self, next: NewRelease) -> Option<Period> {
        let period = self.periods.released(next);
        self.ended = false;
        match self.state {
            State::Sleeping => self.periods.suspended(u64::MAX),
            State::Waiting => {
                self.state = State::Working;
                self.left = 0;
            }
            State::Working => {}
        }
        period
    }

    /// The latest release is over; the task gave up `unused` ns of its budget.
    pub(crate) fn ended(&mut self, end: End, at: u64, unused: u64, extended: u64) {
        self.ended = true;
        self.periods.unused(unused);
        self.periods.extended(extended);
        self.periods.ended(end.into(), at);
    }

    /// The latest release is over at `at`, for its server was replenished; as [`Task::ended`].
    pub(crate) fn replenished(&mut self, at: u64, unused: u64) {
        self.ended = true;
        self.periods.unused(unused);
        self.periods.replenished(at);
    }

    /// A release that was never made. The dispatcher is never late here.
    pub(crate) fn lost(&self, number: u64) -> Period {
        Period { woken_late: false, ..self.periods.lost(number) }
    }

    /// The latest release as it stands, once.
    pub(crate) fn close(&mut self) -> Option<Period> {
        self.periods.close()
    }
}
