//! What a thread of rt-app does: phases of events, unrolled into jobs.
//!
//! A job ends where the thread waits for its next activation: at its timers; if it has none, under
//! SCHED_DEADLINE at `yield`; if there is none either, at the sleep that ends a phase.

use super::json::{Member, Object};
use super::Losses;
use crate::duration::DURATION_LIMIT;
use crate::problems::Problems;
use crate::value::Span;
use crate::{Spin, Step};

/// The longest time in a file, us: below [`DURATION_LIMIT`](crate::DURATION_LIMIT) in ns.
pub(super) const LONGEST_US: i64 = (1 << 62) / 1000 - 1;

/// A thread of more jobs than this, or a phase of more rounds, is one that does not end.
pub(super) const MOST_JOBS: usize = 100_000;

/// The most events that are looked at when the loops of a file are unrolled.
pub(super) const MOST_EVENTS: usize = 4_000_000;

/// All events of rt-app, in the order in which their names are tried: each may be followed by
/// anything.
const EVENTS: [(&str, &str); 20] = [
    ("lock", WAITS),
    ("unlock", WAKES),
    ("wait", WAITS),
    ("signal", WAKES),
    ("broad", WAKES),
    ("sync", WAITS),
    ("sleep", ""),
    ("runtime", ""),
    ("run", ""),
    ("timer", ""),
    ("suspend", WAITS),
    ("resume", WAKES),
    ("memrun", "accesses to memory are not imitated"),
    ("mem", "accesses to memory are not imitated"),
    ("iorun", "accesses to files are not imitated"),
    ("yield", ""),
    ("barrier", WAITS),
    ("fork", "tasks are all there from the beginning"),
    ("sem_post", WAKES),
    ("sem_wait", WAITS),
];
const WAITS: &str = "a job cannot wait for another task";
const WAKES: &str = "a job cannot wake another task";

/// The event of a key, and the report of one that has no counterpart.
pub(super) fn event(key: &str) -> Option<(&'static str, &'static str)> {
    EVENTS.into_iter().find(|(name, _)| key.starts_with(name))
}

/// An event with a counterpart; times in ns.
#[derive(Clone, Copy)]
pub(super) enum Event {
    Run(u64),
    Sleep(u64),
    Timer { period: u64, absolute: bool },
    Yield,
}

/// How often something is done.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rounds {
    Endless,
    Times(usize),
}

/// A part of a thread.
pub(super) struct Phase {
    pub(super) rounds: Rounds,
    pub(super) events: Vec<Event>,
}

/// Where a thread waits for its next activation.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wait {
    Timer,
    Yield,
    Sleep,
    Never,
}

/// Execution and sleeps between two waits, and from this activation to the next, ns.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Job {
    pub(super) steps: Vec<Step>,
    pub(super) next: u64,
}

/// How often a thread or a phase goes round; what is too often to be counted is said.
pub(super) fn rounds(
    object: &Object<'_, '_>,
    otherwise: Rounds,
    losses: &mut Losses,
    problems: &mut Problems<'_>,
) -> Rounds {
    match object.integer("loop", -1, i64::from(i32::MAX), problems) {
        None => otherwise,
        Some(-1) => Rounds::Endless,
        Some(n) => match usize::try_from(n) {
            Ok(n) if n <= MOST_JOBS => Rounds::Times(n),
            _ => {
                losses.add(object.path("loop"), &format!("more than {MOST_JOBS} rounds never end"));
                Rounds::Endless
            }
        },
    }
}

/// The events of a phase, or of a thread that is one phase itself.
pub(super) fn events(
    object: &Object<'_, '_>,
    deadline: bool,
    instances: usize,
    losses: &mut Losses,
    problems: &mut Problems<'_>,
) -> Vec<Event> {
    let mut events = Vec::new();
    for member in object.members() {
        let Some((name, loss)) = event(member.key) else { continue };
        match name {
            "run" | "runtime" => {
                events.extend(microseconds(object, member, problems).map(Event::Run))
            }
            "sleep" => events.extend(microseconds(object, member, problems).map(Event::Sleep)),
            "timer" => events.extend(timer(object, member, instances, losses, problems)),
            "yield" if deadline => events.push(Event::Yield),
            "yield" => losses.add(object.path(member.key), "a job does not yield"),
            _ => losses.add(object.path(member.key), loss),
        }
    }
    events.retain(|event| !matches!(event, Event::Run(0) | Event::Sleep(0)));
    events
}

fn microseconds(
    object: &Object<'_, '_>,
    member: Member<'_, '_>,
    problems: &mut Problems<'_>,
) -> Option<u64> {
    object.integer_of(member, 0, LONGEST_US, problems).map(|us| us.unsigned_abs() * 1000)
}

fn timer(
    object: &Object<'_, '_>,
    member: Member<'_, '_>,
    instances: usize,
    losses: &mut Losses,
    problems: &mut Problems<'_>,
) -> Option<Event> {
    let timer = object.object(member, problems)?;
    let period =
        timer.integer("period", 0, LONGEST_US, problems).unwrap_or(0).unsigned_abs() * 1000;
    let absolute =
        timer.string("mode", problems).is_some_and(|(_, mode)| mode.starts_with("absolute"));
    for member in timer.members().filter(|member| !["ref", "period", "mode"].contains(&member.key))
    {
        losses.add(timer.path(member.key), "rt-app has no such key");
    }
    if let Some((_, name)) = timer.string("ref", problems) {
        losses.timer(name, instances, timer.path("ref"));
    }
    if period == 0 {
        losses.add(timer.path.clone(), "a timer without a period waits for nothing");
        return None;
    }
    Some(Event::Timer { period, absolute })
}

/// Where a thread of these phases waits.
pub(super) fn wait(phases: &[Phase]) -> Wait {
    let any = |like: fn(&Event) -> bool| phases.iter().flat_map(|phase| &phase.events).any(like);
    if any(|event| matches!(event, Event::Timer { .. })) {
        Wait::Timer
    } else if any(|event| matches!(event, Event::Yield)) {
        Wait::Yield
    } else if phases.iter().any(|phase| matches!(phase.events.last(), Some(Event::Sleep(_)))) {
        Wait::Sleep
    } else {
        Wait::Never
    }
}

/// Jobs, whether they repeat from the first one, and the execution after the last wait.
pub(super) struct Unrolled {
    pub(super) jobs: Vec<Job>,
    pub(super) endless: bool,
    pub(super) cut: bool,
}

/// Unrolls a thread. `room` is how many events may still be looked at; `None` when it is not
/// enough.
pub(super) fn unroll(
    phases: &[Phase],
    thread: Rounds,
    wait: Wait,
    room: &mut usize,
) -> Option<Unrolled> {
    let mut made = Unrolled { jobs: Vec::new(), endless: thread == Rounds::Endless, cut: false };
    let mut job = Vec::new();
    let rounds = match thread {
        Rounds::Endless => 1,
        Rounds::Times(n) => n,
    };
    'thread: for _ in 0..rounds {
        for phase in phases {
            let times = match phase.rounds {
                // What went before is done once, which does not matter in the end.
                Rounds::Endless => {
                    made.cut = phases.len() > 1;
                    made.endless = true;
                    made.jobs.clear();
                    job.clear();
                    1
                }
                Rounds::Times(n) => n,
            };
            for _ in 0..times {
                *room = room.checked_sub(phase.events.len() + 1)?;
                round(phase, wait, &mut job, &mut made.jobs);
                if made.jobs.len() > MOST_JOBS {
                    return None;
                }
            }
            if phase.rounds == Rounds::Endless {
                break 'thread;
            }
        }
    }
    if made.endless {
        // What follows the last wait comes before the first one of the next round.
        if let Some(first) = made.jobs.first_mut() {
            job.append(&mut first.steps);
            first.steps = merged(job);
        }
    } else if !job.is_empty() {
        made.jobs.push(Job { steps: merged(job), next: 0 });
    }
    Some(made)
}

fn round(phase: &Phase, wait: Wait, job: &mut Vec<Step>, jobs: &mut Vec<Job>) {
    let last = phase.events.len().wrapping_sub(1);
    for (index, event) in phase.events.iter().enumerate() {
        let next = match *event {
            Event::Run(ns) => {
                job.push(Step::Spin(Spin::For(ns)));
                continue;
            }
            Event::Timer { period, .. } => {
                // A sleep before the wait is part of it.
                while let Some(Step::Sleep(_)) = job.last() {
                    job.pop();
                }
                period
            }
            Event::Yield => 0,
            Event::Sleep(ns) if wait == Wait::Sleep && index == last => capped(length(job), ns),
            Event::Sleep(ns) => {
                job.push(Step::Sleep(ns));
                continue;
            }
        };
        jobs.push(Job { steps: merged(std::mem::take(job)), next });
    }
}

/// Two executions, or two sleeps, that follow each other are one.
fn merged(steps: Vec<Step>) -> Vec<Step> {
    let mut made: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        match (made.last_mut(), &step) {
            (Some(Step::Spin(Spin::For(sum))), Step::Spin(Spin::For(ns))) => {
                *sum = capped(*sum, *ns)
            }
            (Some(Step::Sleep(sum)), Step::Sleep(ns)) => *sum = capped(*sum, *ns),
            _ => made.push(step),
        }
    }
    made
}

/// The sum of two durations, as long as there are durations of that length.
fn capped(a: u64, b: u64) -> u64 {
    a.saturating_add(b).min(DURATION_LIMIT - 1)
}

/// Execution and sleeps together.
fn length(steps: &[Step]) -> u64 {
    steps.iter().fold(0, |sum: u64, step| match step {
        Step::Spin(Spin::For(ns)) | Step::Sleep(ns) => capped(sum, *ns),
        Step::Spin(_) => sum,
    })
}

impl Job {
    /// How long it executes, ns.
    pub(super) fn execution(&self) -> u64 {
        self.steps.iter().fold(0, |sum: u64, step| match step {
            Step::Spin(Spin::For(ns)) => capped(sum, *ns),
            _ => sum,
        })
    }

    pub(super) fn sleeps(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Sleep(_)))
    }
}

/// The place where a thread's period comes from, for messages: its first timer, else the thread
/// itself.
pub(super) fn period_at(objects: &[&Object<'_, '_>], thread: &Span) -> Span {
    let timers = objects
        .iter()
        .flat_map(|object| object.members())
        .find(|member| member.key.starts_with("timer"));
    timers.map_or(thread.clone(), |member| member.at())
}
