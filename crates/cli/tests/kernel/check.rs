//! The invariants of the model (design, "What must always hold"), from a trace alone. They are stated here anew, and use
//! nothing of the dispatcher.
//!
//! ```text
//! a job of a task     | start                     finish |
//! its stretches           |running stopped|  |running stopped|(late)
//! charged                 sum <= budget (late)
//! ```
//!
//! *Late* is the host's stated precision: what passes between a decision and its being carried out. It is carried into
//! the next budget, so it does not add up.

use std::collections::{HashMap, HashSet};

use punctual_trace::Trace;

use crate::machine::preempt_rt;
use crate::soft_interrupts::SoftInterrupts;
use crate::trace::{told, End, Told};

/// What the kernel host may be late by, ns: stopping a task takes the time of an interrupt and a switch; and without
/// PREEMPT_RT of the soft interrupts that stand before it, of which this run's longest is known.
pub fn lateness(interrupts: &SoftInterrupts) -> u64 {
    interrupts.longest() + if preempt_rt() { 60_000 } else { 20_000 }
}

/// By what a period may be off beside whoever keeps the kernel itself busy, ns: the interrupt that began the soft ones, an alarm, and
/// the switch after it; with PREEMPT_RT all that interrupts take in mid-job, which is taken for its own until it stops.
pub fn precision(interrupts: &SoftInterrupts) -> u64 {
    interrupts.longest() + if preempt_rt() { 50_000 } else { 15_000 }
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
    /// Since when somebody else is selected while it runs.
    deselected: Option<u64>,
    /// When it was selected last, and then no more.
    unselected: Option<u64>,
}

struct Checker {
    late: u64,
    tasks: HashMap<u32, Seen>,
    owner: HashMap<u64, u32>,
    ended: HashSet<u64>,
    selected: u64,
    now: u64,
    wrong: Vec<String>,
}

/// What became of each task, by its number in the dispatcher.
///
/// # Panics
/// If an invariant does not hold.
pub fn holds(trace: &Trace, late: u64) -> HashMap<u32, Seen> {
    let (tasks, wrong) = look(trace, late);
    let first: Vec<_> = wrong.iter().take(10).collect();
    assert!(wrong.is_empty(), "{} times against the model, with {late} ns to be late: {first:#?}", wrong.len());
    tasks
}

fn look(trace: &Trace, late: u64) -> (HashMap<u32, Seen>, Vec<String>) {
    let told = told(trace);
    let ends = told.iter().filter_map(|(_, _, told)| match told {
        Told::Ended { task, job, .. } => Some((*job, *task)),
        _ => None,
    });
    let mut checker = Checker {
        late,
        tasks: HashMap::new(),
        owner: ends.collect(),
        ended: HashSet::new(),
        selected: 0,
        now: 0,
        wrong: Vec::new(),
    };
    for (number, at, told) in told {
        let before = checker.wrong.len();
        if at < checker.now {
            checker.wrong.push("time goes back".to_owned());
        }
        checker.now = at;
        checker.record(told);
        for what in &mut checker.wrong[before..] {
            *what = format!("record {number}, at {at} ns, {told:?}: {what}");
        }
    }
    (checker.tasks, checker.wrong)
}

impl Checker {
    fn record(&mut self, told: Told) {
        match told {
            Told::Reserved { task, start, period, budget, deadline, background } => {
                let seen = self.tasks.entry(task).or_default();
                (seen.period, seen.budget, seen.background) = (Some((start, period, deadline)), budget, background);
            }
            Told::Added { task, start, finish, budget } => {
                let seen = self.tasks.entry(task).or_default();
                seen.jobs.push(Job { start, finish, budget, cut: false, ended: false });
            }
            Told::Released { task, number, budget } => self.released(task, number, budget),
            Told::Charged { task, ns } => self.charged(task, ns),
            Told::ChargedJob { job, ns } => {
                if let Some(&task) = self.owner.get(&job) {
                    self.charged(task, ns);
                }
            }
            Told::Selected { job } => self.select(job),
            Told::Ended { task, job, used, how } => self.end(task, job, used, how),
            Told::Running { task, .. } => self.running(task),
            Told::Stopped { task, executed, .. } => self.stopped(task, executed),
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
            wrong.push(format!("{granted} ns are more than its budget of {} and an error", seen.budget));
        }
        (seen.before, seen.granted) = (seen.charged, granted);
        seen.releases += 1;
        seen.jobs.push(Job { start, finish: start + deadline, budget: granted, cut: false, ended: false });
    }

    fn end(&mut self, task: u32, job: u64, used: u64, how: End) {
        let (late, now) = (self.late, self.now);
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
                    End::Completed | End::Cancelled => now < job.finish + late,
                    End::Exhausted => job.cut || used + late >= job.budget,
                    End::Expired => now >= job.finish,
                    End::TaskGone => true,
                }
        };
        match seen.jobs.iter_mut().find(fits) {
            Some(job) => {
                job.ended = true;
                // A release whose task woke late goes on in a job of less budget.
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
        if let Some(&before) = self.owner.get(&self.selected).filter(|&&before| chosen != Some(before)) {
            self.tasks.entry(before).or_default().unselected = Some(now);
        }
        self.selected = job;
        for (&task, seen) in &mut self.tasks {
            let another = job == 0 || chosen.is_some_and(|chosen| chosen != task);
            seen.deselected = (another && seen.since.is_some()).then(|| seen.deselected.unwrap_or(now));
        }
    }

    fn running(&mut self, task: u32) {
        let (late, now) = (self.late, self.now);
        let chosen = self.owner.get(&self.selected).copied();
        for (other, seen) in &self.tasks {
            if seen.since.is_some() {
                self.wrong.push(format!("task {other} has not stopped"));
            }
            // Whatever was executed before is charged by the decision that lets somebody else run; who only stood aside
            // for a higher class goes on without one.
            if *other != task && seen.charged.abs_diff(seen.executed) > late && !seen.background {
                self.wrong.push(format!("task {other}: charged {} ns, executed {}", seen.charged, seen.executed));
            }
        }
        let seen = self.tasks.entry(task).or_default();
        // It may have been selected until just now, and a higher class took the CPU before it began. Then it stops at once.
        let another = self.selected == 0 || chosen.is_some_and(|chosen| chosen != task);
        let unselected = seen.unselected.filter(|at| another && now <= at + late);
        if !seen.background {
            if another && unselected.is_none() {
                self.wrong.push(format!("task {task} runs, selected is job {:#x} of {chosen:?}", self.selected));
            }
            if !seen.jobs.iter().any(|job| job.start <= now && now < job.finish) {
                self.wrong.push(format!("task {task} has no job now; its last one: {:?}", seen.jobs.last()));
            }
        }
        (seen.since, seen.deselected) = (Some(now), unselected);
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
            self.wrong.push(format!("it ran for {} ns after it was not selected any more", now - at));
        }
        // From window to window, each beginning at the end of the one before.
        let mut covered = since;
        while let Some(job) = seen.jobs.iter().find(|job| job.start <= covered && covered < job.finish) {
            covered = job.finish;
        }
        if covered + late < now {
            self.wrong.push(format!("task {task} ran until {} ns after its job's finish", now - covered));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::look;
    use punctual_trace::{Header, Record, Trace, TraceLimits};

    const LATE: u64 = 10;

    fn limits() -> TraceLimits {
        let limits = serde_json::json!({ "jobs": 4, "tasks": 4, "reservations": 4, "groups": 1, "budget_groups": 1,
            "timers": 1, "depth": 1, "events": 8, "records": 64, "windows": 0 });
        serde_json::from_value(limits).expect("limits")
    }

    /// Task 0: 100 ns in every 1,000 from 1,000 on. It is stopped at its budget, and is done early in its second period.
    fn good() -> Vec<Record> {
        let record = |kind, time, small, a, b| Record { time, a, b, small, kind };
        vec![
            record(3, 0, 0, 0, 0),
            record(23, 0, 0, 1_000, 1_000),
            record(24, 100, 0, 1_000, 0),
            record(25, 0, 0, 0, 0),
            record(12, 1_000, 0, 0, 0),
            record(141, 1_000, 0, 0, 100),
            record(64, 1_000, 0, 0x100, 0),
            record(96, 1_005, 0, 0, 77),
            record(8, 1_105, 0, 100, 0),
            record(130, 1_105, 0, 0x100, 100),
            record(64, 1_105, 0, 0, 0),
            record(97, 1_107, 0, 102, 77),
            record(8, 2_000, 0, 2, 0),
            record(12, 2_000, 0, 0, 0),
            record(141, 2_000, 0, 1, 98),
            record(64, 2_000, 0, 0x200, 0),
            record(96, 2_005, 0, 0, 77),
            record(97, 2_055, 0, 50, 77),
            record(8, 2_055, 0, 50, 0),
            record(7, 2_055, 0, 0, 0),
            record(129, 2_055, 0, 0x200, 50),
            record(64, 2_055, 0, 0, 0),
        ]
    }

    fn wrong(records: Vec<Record>) -> Vec<String> {
        let header = Header::new("kernel", 0, "edf", vec!["one".to_owned()], limits());
        look(&Trace { header, records }, LATE).1
    }

    #[test]
    fn a_trace_that_keeps_the_model_passes() {
        assert_eq!(wrong(good()), Vec::<String>::new());
    }

    /// What is broken, the record that is changed, how, and what is said of it.
    type Broken = (&'static str, usize, fn(&mut Record), &'static str);

    #[test]
    fn each_way_of_breaking_it_is_found() {
        let broken: [Broken; 10] = [
            ("released early", 5, |r| r.time = 990, "before 1000"),
            ("runs early", 7, |r| r.time = 1_000, "selected is"),
            ("stopped too late", 11, |r| r.time = 1_200, "after it was not selected"),
            ("too much used", 9, |r| r.b = 120, "can end so"),
            ("too much executed", 11, |r| r.a = 130, "executed in"),
            ("too little charged", 12, |r| r.a = 0, "no complaint"),
            ("ends twice", 20, |r| r.a = 0x100, "ended before"),
            ("does not end", 9, |r| r.kind = 140, "has not ended"),
            ("budget out of nothing", 14, |r| r.b = 120, "are more than its budget"),
            ("another is selected", 15, |r| r.a = 0, "selected is"),
        ];
        for (what, at, change, said) in broken {
            let mut records = good();
            change(&mut records[at]);
            if what == "runs early" {
                records.swap(6, 7);
            }
            let found = wrong(records);
            if said == "no complaint" {
                // 2 ns are within what it may be late by.
                assert_eq!(found, Vec::<String>::new(), "{what}");
            } else {
                assert!(found.iter().any(|f| f.contains(said)), "{what}: {found:?}");
            }
        }
        let mut uncharged = good();
        uncharged[8].a = 50;
        let other = Record { time: 2_100, a: 88, b: 0, small: 1, kind: 96 };
        uncharged.push(other);
        assert!(wrong(uncharged).iter().any(|f| f.contains("charged 102 ns, executed 152")));
    }

    #[test]
    fn execution_outside_of_every_job_is_found() {
        let mut records = good();
        let run = |time, kind| Record { time, a: u64::from(kind == 97) * 60, b: 0, small: 0, kind };
        records.extend([run(3_100, 96), run(3_160, 97)]);
        assert!(wrong(records).iter().any(|f| f.contains("has no job now")));
    }
}
