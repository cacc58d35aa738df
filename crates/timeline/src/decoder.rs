//! What a record says: from records whose tasks are known to moments.

use std::collections::VecDeque;

use punctual_trace::{kind, kind::event, Cut, Header, JobEnd, Period, Record};

use crate::places::{Places, MOST_TASKS};
use crate::{Moment, What};

/// What is known of the schedule so far. Its size is that of the set.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Execution is known by charges (docs/traces.md, the user host).
    by_charges: bool,
    /// Outside this part only what completes it is read.
    cut: Option<Cut>,
    /// The latest time of a record, ns.
    now: u64,
    /// Threads that execute: the dispatcher's task, thread, since when, in the background.
    running: Vec<(u32, u64, u64, bool)>,
    /// Charges of the event at this time, ns, with the number of the last.
    charged: (u64, u64, Vec<(u32, u64)>),
    /// What jobs may still execute, by their tasks' places; `None` without a job or a bound.
    remaining: Vec<Option<u64>>,
    /// The job whose second record comes next: its task's place, start and finish.
    job: Option<(u64, u32, u64, u64)>,
    /// The first records of a period.
    period: Vec<Record>,
    /// Moments that were not taken yet.
    pub found: VecDeque<Moment>,
}

impl Decoder {
    pub fn new(header: &Header) -> Decoder {
        Decoder {
            by_charges: header.host == "user",
            cut: header.cut.clone(),
            now: 0,
            running: Vec::new(),
            charged: (0, 0, Vec::new()),
            remaining: Vec::new(),
            job: None,
            period: Vec::with_capacity(3),
            found: VecDeque::new(),
        }
    }

    /// Takes the next record; what it says is in `found` then.
    pub fn record(&mut self, number: u64, r: &Record, places: &Places) {
        self.now = r.at().unwrap_or(self.now);
        let task = || places.of(r.small);
        let found =
            |what: Option<What>| what.map(|what| Moment { at: r.time, record: number, what });
        let moment = match r.kind {
            kind::TASK_READY => found(task().map(|task| What::Ready { task })),
            kind::TASK_BLOCKED => found(task().map(|task| What::Blocked { task })),
            kind::TASK_DONE => found(task().map(|task| What::Done { task })),
            kind::TASK_GONE => found(task().map(|task| What::Gone { task })),
            kind::SELECTED => found(Some(What::Selected { job: (r.a != 0).then_some(r.a) })),
            kind::CHARGE_TASK => return self.charge_task(number, r, places),
            kind::CHARGE => return self.charge_job(number, r, places),
            kind::RUNNING => return self.running.push((r.small, r.a, r.time, r.b != 0)),
            kind::STOPPED => return self.stopped(number, r, places),
            kind::JOB_ADD => {
                self.job = task().map(|task| (r.time, task, r.a, r.b));
                None
            }
            kind::JOB_ADD_2 => return self.job_added(number, r),
            kind::PERIOD..=kind::PERIOD_3 => return self.period(number, r),
            kind::LOST_RECORDS => return self.lost(number, r, places),
            k if k > kind::EVENT => return self.event(number, r, places),
            _ => None,
        };
        moment.into_iter().for_each(|moment| self.add(moment));
    }

    /// A moment, unless the trace is of a part of its run that it is not in.
    fn add(&mut self, mut moment: Moment) {
        if let Some(cut) = &self.cut {
            match &mut moment.what {
                What::Executed { from, .. } => match cut.clip(*from, moment.at) {
                    Some(part) => (*from, moment.at) = part,
                    None => return,
                },
                What::LostRecords { .. } => moment.at = moment.at.max(cut.from),
                _ if !cut.has(moment.at) => return,
                _ => {}
            }
        }
        self.found.push_back(moment);
    }

    fn event(&mut self, number: u64, r: &Record, places: &Places) {
        let task = places.of(r.small);
        let (job, used) = (r.a, r.b);
        let what = match r.kind - kind::EVENT {
            k @ event::COMPLETED..=event::TASK_GONE => {
                Some(What::JobEnded { task, job, end: end(k), used })
            }
            k @ (event::WINDOW_EXHAUSTED | event::WINDOW_EXPIRED) => {
                let end =
                    if k == event::WINDOW_EXHAUSTED { JobEnd::Exhausted } else { JobEnd::Expired };
                task.map(|task| What::WindowEnded { task, job, end, used })
            }
            k @ (event::SEGMENT_EXHAUSTED | event::SEGMENT_EXPIRED) => {
                let end =
                    if k == event::SEGMENT_EXHAUSTED { JobEnd::Exhausted } else { JobEnd::Expired };
                Some(What::SegmentEnded { node: r.small, job, end, used })
            }
            event::GROUP_ACTIVE => Some(What::Group { group: r.small, active: true }),
            event::GROUP_IDLE => Some(What::Group { group: r.small, active: false }),
            event::RELEASED => task.map(|task| What::Released { task, number: r.a, budget: r.b }),
            event::RELEASES_LOST => {
                task.map(|task| What::ReleasesLost { task, first: r.a, count: r.b })
            }
            event::OVERRUN => task.map(|task| What::Overrun { task, background: false }),
            event::BACKGROUND => task.map(|task| What::Overrun { task, background: true }),
            _ => None,
        };
        let Some(what) = what else { return };
        self.add(Moment { at: r.time, record: number, what });
        match what {
            What::Released { task, budget, .. } => self.refill(number, r.time, task, budget),
            What::JobEnded { task: Some(task), .. } => {
                self.remains(number, r.time, task, |_| 0);
                self.remaining[task as usize] = None;
            }
            _ => {}
        }
    }

    fn job_added(&mut self, number: u64, r: &Record) {
        let Some((at, task, start, finish)) = self.job.take() else { return };
        let what = What::JobAdded { task, start, finish, budget: r.time };
        self.add(Moment { at, record: number, what });
        self.refill(number, at, task, r.time);
    }

    /// The task's job may execute so much.
    fn refill(&mut self, number: u64, at: u64, task: u32, budget: u64) {
        if self.remaining.len() <= task as usize {
            self.remaining.resize(task as usize + 1, None);
        }
        // Of a job that began before a part, what it executed there is not known.
        let before = self.cut.as_ref().is_some_and(|cut| at < cut.from);
        self.remaining[task as usize] = (budget != u64::MAX && !before).then_some(budget);
        self.remains(number, at, task, |budget| budget);
    }

    fn remains(&mut self, number: u64, at: u64, task: u32, now: impl FnOnce(u64) -> u64) {
        if self.remaining.len() <= task as usize {
            self.remaining.resize(task as usize + 1, None);
        }
        if let Some(budget) = &mut self.remaining[task as usize] {
            *budget = now(*budget);
            let what = What::Remaining { task, budget: *budget };
            self.add(Moment { at, record: number, what });
        }
    }

    fn charge_task(&mut self, number: u64, r: &Record, places: &Places) {
        if self.by_charges {
            if self.charged.0 != r.time {
                self.line_up(places);
            }
            (self.charged.0, self.charged.1) = (r.time, number);
            self.charged.2.push((r.small, r.a));
        }
        if let Some(task) = places.of(r.small) {
            self.remains(number, r.time, task, |budget| budget.saturating_sub(r.a));
        }
    }

    /// The simulator charges jobs, while the one task executes that it has recorded.
    fn charge_job(&mut self, number: u64, r: &Record, places: &Places) {
        if let [(task, _, _, false)] = self.running[..] {
            if let Some(task) = places.of(task) {
                self.remains(number, r.time, task, |budget| budget.saturating_sub(r.b));
            }
        }
    }

    fn stopped(&mut self, number: u64, r: &Record, places: &Places) {
        let thread =
            self.running.iter().position(|&(task, thread, ..)| (task, thread) == (r.small, r.b));
        if let Some(at) = thread {
            let (task, _, from, background) = self.running.swap_remove(at);
            self.executed(number, places.of(task), from, r.time, background);
        }
    }

    fn executed(&mut self, number: u64, task: Option<u32>, from: u64, at: u64, background: bool) {
        if let Some(task) = task.filter(|_| from < at) {
            self.add(Moment {
                at,
                record: number,
                what: What::Executed { task, from, background },
            });
        }
    }

    fn period(&mut self, number: u64, r: &Record) {
        if r.kind == kind::PERIOD {
            self.period.clear();
        }
        if self.period.len() < 3 {
            self.period.push(*r);
        }
        if r.kind == kind::PERIOD_3 {
            let period = Period::from_records(&self.period);
            if let Some(period) = period.filter(|period| period.task < MOST_TASKS) {
                self.add(Moment { at: period.release, record: number, what: What::Period(period) });
            }
            self.period.clear();
        }
    }

    /// What executes, and what is left, at the other end of a gap is not known.
    fn lost(&mut self, number: u64, r: &Record, places: &Places) {
        self.line_up(places);
        self.running.clear();
        self.remaining.clear();
        self.add(Moment { at: self.now, record: number, what: What::LostRecords { count: r.a } });
    }

    /// Tasks charged at one event executed one after the other, in the order of the charges.
    pub fn line_up(&mut self, places: &Places) {
        let (to, number, charges) =
            (self.charged.0, self.charged.1, std::mem::take(&mut self.charged.2));
        let all = charges.iter().fold(0u64, |all, &(_, ns)| all.saturating_add(ns));
        let mut from = to.saturating_sub(all);
        for (task, ns) in charges {
            let until = from.saturating_add(ns).min(to);
            self.executed(number, places.of(task), from, until, false);
            from = until;
        }
    }
}

fn end(kind: u32) -> JobEnd {
    match kind {
        event::COMPLETED => JobEnd::Completed,
        event::EXHAUSTED => JobEnd::Exhausted,
        event::EXPIRED => JobEnd::Expired,
        event::CANCELLED => JobEnd::Cancelled,
        _ => JobEnd::TaskGone,
    }
}
