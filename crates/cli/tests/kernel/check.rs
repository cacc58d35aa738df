//! The invariants of the model (design, "What must always hold"), from a trace alone. They are
//! stated here a second time, and use nothing of the dispatcher.
//!
//! ```text
//! a job of a task     | start                     finish |
//! its stretches           |running stopped|  |running stopped|(late)
//! charged                 sum <= budget (late)
//! ```
//!
//! *Late* is the host's stated precision: what passes between a decision and its being carried out.
//! It is carried into the next budget, so it does not add up.

use std::collections::{HashMap, HashSet};

use punctual_trace::Trace;

use crate::kernels_own::KernelsOwn;
use crate::machine::preempt_rt;
use crate::trace::{observed, End, Observed};

/// What the kernel host may be late by, ns: stopping a task takes the time of an interrupt and a
/// switch; and without PREEMPT_RT of the soft interrupts that stand before it, of which this run's
/// longest is known.
pub fn lateness(own: &KernelsOwn) -> u64 {
    own.longest_soft_interrupt() + if preempt_rt() { 60_000 } else { 20_000 }
}

/// The most by which a period may be off beside processes that keep the kernel itself busy, ns: the
/// interrupt that began the soft ones, a timer, and the switch after it; with PREEMPT_RT all that
/// interrupts take in mid-job, which counts as the job's own until it stops.
pub fn precision(own: &KernelsOwn) -> u64 {
    own.longest_soft_interrupt() + if preempt_rt() { 50_000 } else { 15_000 }
}

#[derive(Debug, Clone, Copy)]
struct Job {
    start: u64,
    finish: u64,
    budget: u64,
    /// By the wake-up rule: it has less than its budget says.
    cut: bool,
    ended: bool,
}

/// What became of one task.
#[derive(Default)]
pub struct Seen {
    /// By the kernel's count, while it was running on the dispatcher's CPU, ns.
    pub executed: u64,
    /// To its jobs, ns.
    pub charged: u64,
    pub releases: u64,
    pub ends: u64,
    jobs: Vec<Job>,
    /// Of its reservation.
    period: Option<(u64, u64, u64)>,
    budget: u64,
    granted: u64,
    /// Charged at its last release.
    before: u64,
    background: bool,
    /// Since when it runs.
    since: Option<u64>,
    /// Since when another job is selected while it runs.
    deselected: Option<u64>,
    /// When it was selected last, and then no more.
    unselected: Option<u64>,
}

struct Checker {
    late: u64,
    /// The dispatcher's, as the trace has it.
    granularity: u64,
    /// Threads that gave a lent priority back, and when.
    given_back: Vec<(u64, u64)>,
    tasks: HashMap<u32, Seen>,
    owner: HashMap<u64, u32>,
    ended: HashSet<u64>,
    selected: u64,
    now: u64,
    /// Of the record that it is at.
    wrong: Vec<String>,
}

/// From giving a lent priority back to being reported as running, ns, and what the tracer's
/// microseconds leave out.
pub const RETURN: u64 = 5_000;
/// How many records before and after the first one that is against the model are shown.
const AROUND: usize = 25;

/// What became of each task, by its number in the dispatcher.
///
/// # Panics
/// If an invariant does not hold.
pub fn holds(trace: &Trace, own: &KernelsOwn, late: u64) -> HashMap<u32, Seen> {
    // With a bpf_timer, and with a timer process (host-kernel/src/probe.rs).
    let granularity =
        |observed: &Observed| matches!(observed, Observed::Granularity { ns: 1_000 | 2_000 });
    assert!(observed(trace).iter().any(|(.., observed)| granularity(observed)));
    let (tasks, wrong) = look(trace, late, own.given_back());
    if let Some((first, _)) = wrong.first() {
        let what: Vec<_> = wrong.iter().take(10).map(|(_, what)| what).collect();
        eprintln!("Around the first record that is against the model:");
        for (number, at, observed) in
            observed(trace).iter().filter(|(number, ..)| number.abs_diff(*first) <= AROUND)
        {
            eprintln!("{number:7} {at} {observed:?}");
        }
        panic!("{} times against the model, with {late} ns to be late: {what:#?}", wrong.len());
    }
    tasks
}

/// And what is against the model, with the number of its record.
pub fn look(
    trace: &Trace,
    late: u64,
    given_back: Vec<(u64, u64)>,
) -> (HashMap<u32, Seen>, Vec<(usize, String)>) {
    let observed = observed(trace);
    let ends = observed.iter().filter_map(|(_, _, observed)| match observed {
        Observed::Ended { task, job, .. } => Some((*job, *task)),
        _ => None,
    });
    let mut checker = Checker {
        late,
        granularity: 0,
        given_back,
        tasks: HashMap::new(),
        owner: ends.collect(),
        ended: HashSet::new(),
        selected: 0,
        now: 0,
        wrong: Vec::new(),
    };
    let mut wrong = Vec::new();
    for (number, at, observed) in observed {
        if at < checker.now {
            checker.wrong.push("time goes back".to_owned());
        }
        checker.now = at;
        let text = format!("record {number}, at {at} ns, {observed:?}");
        checker.record(observed);
        wrong.extend(checker.wrong.drain(..).map(|what| (number, format!("{text}: {what}"))));
    }
    (checker.tasks, wrong)
}

impl Checker {
    fn record(&mut self, observed: Observed) {
        match observed {
            Observed::Granularity { ns } => self.granularity = ns,
            Observed::Reserved { task, start, period, budget, deadline, background } => {
                let seen = self.tasks.entry(task).or_default();
                (seen.period, seen.budget, seen.background) =
                    (Some((start, period, deadline)), budget, background);
                // Its policy may have made its jobs until now.
                (seen.before, seen.granted) = (seen.charged, 0);
            }
            Observed::Changed { task, period, budget, deadline } => {
                let seen = self.tasks.entry(task).or_default();
                let same = |(_, p, d): (u64, u64, u64)| (p, d) == (period, deadline);
                if seen.budget != budget || !seen.period.is_some_and(same) {
                    self.wrong.push("more than a priority was changed".to_owned());
                }
            }
            Observed::Added { task, start, finish, budget } => {
                let seen = self.tasks.entry(task).or_default();
                if seen.period.take().is_some() {
                    // Another policy, which makes its jobs, took its reservation from it.
                    seen.jobs.retain(|job| job.ended);
                }
                seen.jobs.push(Job { start, finish, budget, cut: false, ended: false });
            }
            Observed::Released { task, number, budget } => self.released(task, number, budget),
            Observed::Charged { task, ns } => self.charged(task, ns),
            Observed::ChargedJob { job, ns } => {
                if let Some(&task) = self.owner.get(&job) {
                    self.charged(task, ns);
                }
            }
            Observed::Selected { job } => self.select(job),
            Observed::Ended { task, job, used, how } => self.end(task, job, used, how),
            Observed::Running { task, thread } => self.running(task, thread),
            Observed::Stopped { task, executed, .. } => self.stopped(task, executed),
        }
    }

    fn charged(&mut self, task: u32, ns: u64) {
        self.tasks.entry(task).or_default().charged += ns;
    }

    fn released(&mut self, task: u32, number: u64, granted: u64) {
        let (late, now, wrong) = (self.late, self.now, &mut self.wrong);
        let seen = self.tasks.entry(task).or_default();
        let Some((start, period, deadline)) = seen.period else {
            wrong.push("a release without a reservation".to_owned());
            return;
        };
        let start = start + number * period;
        if now < start {
            wrong.push(format!("released {} ns before {start}", start - now));
        }
        if seen.jobs.iter().any(|job| !job.ended) {
            wrong.push("the release before has not ended".to_owned());
        }
        // The enforcement error is carried, one budget at most, so that it never adds up.
        let charged = seen.charged - seen.before;
        if charged > seen.granted + late && !seen.background {
            wrong.push(format!("{charged} ns were charged for a budget of {}", seen.granted));
        }
        if granted > seen.budget + late {
            wrong.push(format!(
                "{granted} ns are more than its budget of {} and an error",
                seen.budget
            ));
        }
        (seen.before, seen.granted) = (seen.charged, granted);
        seen.releases += 1;
        seen.jobs.push(Job {
            start,
            finish: start + deadline,
            budget: granted,
            cut: false,
            ended: false,
        });
    }

    fn end(&mut self, task: u32, job: u64, used: u64, how: End) {
        let (late, now, granularity) = (self.late, self.now, self.granularity);
        if !self.ended.insert(job) {
            self.wrong.push(format!("job {job:#x} ended before"));
        }
        let seen = self.tasks.entry(task).or_default();
        seen.ends += 1;
        // A task may have several jobs; which one this is follows from how it ended.
        let fits = |job: &&mut Job| {
            let enough = used <= job.budget + late;
            !job.ended
                && enough
                && match how {
                    End::Completed | End::Cancelled => now < job.finish.saturating_add(late),
                    End::Exhausted => job.cut || used + late >= job.budget,
                    End::Expired => now + granularity >= job.finish,
                    End::TaskGone => true,
                    // Releases end so; jobs never.
                    End::Replenished => false,
                }
        };
        match seen.jobs.iter_mut().find(fits) {
            Some(job) => {
                job.ended = true;
                // A release whose task woke late continues in a job of less budget.
                let replaced = Job { cut: true, ended: false, ..*job };
                if how == End::Cancelled && seen.period.is_some() {
                    seen.jobs.push(replaced);
                }
            }
            None => {
                let open: Vec<_> = seen.jobs.iter().filter(|job| !job.ended).collect();
                let what = format!("no job of task {task} can end so: {open:?}");
                self.wrong.push(what);
            }
        }
    }

    fn select(&mut self, job: u64) {
        let now = self.now;
        let chosen = self.owner.get(&job).copied();
        if let Some(&before) =
            self.owner.get(&self.selected).filter(|&&before| chosen != Some(before))
        {
            self.tasks.entry(before).or_default().unselected = Some(now);
        }
        self.selected = job;
        for (&task, seen) in &mut self.tasks {
            let another = job == 0 || chosen.is_some_and(|chosen| chosen != task);
            seen.deselected =
                (another && seen.since.is_some()).then(|| seen.deselected.unwrap_or(now));
        }
    }

    fn running(&mut self, task: u32, thread: u64) {
        let (late, now) = (self.late, self.now);
        let chosen = self.owner.get(&self.selected).copied();
        for (other, seen) in &self.tasks {
            if seen.since.is_some() {
                self.wrong.push(format!("task {other} has not stopped"));
            }
            // Whatever was executed before is charged by the decision that lets another task run;
            // one that only stood aside for a higher class continues without one.
            if *other != task && seen.charged.abs_diff(seen.executed) > late && !seen.background {
                self.wrong.push(format!(
                    "task {other}: charged {} ns, executed {}",
                    seen.charged, seen.executed
                ));
            }
        }
        let seen = self.tasks.entry(task).or_default();
        // It may have been selected until just now, and a higher class took the CPU before it
        // began; or it was in a higher class itself, by a lock that a thread of that class waited
        // for, and is back. Then it stops at once.
        let another = self.selected == 0 || chosen.is_some_and(|chosen| chosen != task);
        let given_back = |&(of, at): &(u64, u64)| of == thread && now.abs_diff(at) <= RETURN;
        let returns = || self.given_back.iter().any(given_back).then_some(now);
        let tolerated = another
            .then(|| seen.unselected.filter(|at| now <= at + late).or_else(returns))
            .flatten();
        if !seen.background {
            if another && tolerated.is_none() {
                self.wrong.push(format!(
                    "task {task} runs, selected is job {:#x} of {chosen:?}",
                    self.selected
                ));
            }
            // From the selection to the first instruction a switch goes by, in which the finish may
            // come.
            if !seen
                .jobs
                .iter()
                .any(|job| job.start <= now && now < job.finish.saturating_add(late))
            {
                self.wrong.push(format!(
                    "task {task} has no job now; its last one: {:?}",
                    seen.jobs.last()
                ));
            }
        }
        (seen.since, seen.deselected) = (Some(now), tolerated);
    }

    fn stopped(&mut self, task: u32, executed: u64) {
        let (late, now) = (self.late, self.now);
        let seen = self.tasks.entry(task).or_default();
        let (since, deselected) = (seen.since.take(), seen.deselected.take());
        seen.executed += executed;
        let Some(since) = since else {
            self.wrong.push(format!("task {task} stops, but does not run"));
            return;
        };
        if executed > now - since + late {
            self.wrong.push(format!("{executed} ns executed in {}", now - since));
        }
        if seen.background {
            return;
        }
        if let Some(at) = deselected.filter(|at| at + late < now) {
            self.wrong
                .push(format!("it ran for {} ns after it was not selected any more", now - at));
        }
        // From window to window. Where the stop at the end of one may be late, it may come after
        // the next one's start.
        let mut covered = since;
        while let Some(job) = seen
            .jobs
            .iter()
            .find(|job| job.start <= covered.saturating_add(late) && covered < job.finish)
        {
            covered = job.finish;
        }
        if covered.saturating_add(late) < now {
            self.wrong
                .push(format!("task {task} ran until {} ns after its job's finish", now - covered));
        }
    }
}
