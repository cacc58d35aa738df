//! Records that hosts add to a trace beside those of their dispatchers, and what is read of them.
//! They are neither inputs nor decisions: a replay passes over them.

use crate::kind::{LOST_RECORDS, PERIOD, PERIOD_2, PERIOD_3, POLICY, RUNNING, STOPPED, TASK_PLACE};
use crate::{kind, Cut, Header, Interval, JobEnd, Period, PolicyStop, Record, Trace};

/// How jobs end, by the number in a record.
const ENDS: [JobEnd; 6] = [
    JobEnd::Completed,
    JobEnd::Exhausted,
    JobEnd::Expired,
    JobEnd::Cancelled,
    JobEnd::TaskGone,
    JobEnd::Replenished,
];

impl Record {
    /// `count` records are missing here.
    pub fn lost(count: u64) -> Record {
        Record { a: count, kind: LOST_RECORDS, ..Record::default() }
    }

    /// How many records are missing here; `None` for any other record.
    pub fn lost_before(&self) -> Option<u64> {
        (self.kind == LOST_RECORDS).then_some(self.a)
    }

    /// From here on `task` of the dispatcher is the task at this place in the set. Tasks that are
    /// added while it runs have the places that follow.
    pub fn task_place(task: u32, place: u32) -> Record {
        Record { a: place.into(), small: task, kind: TASK_PLACE, ..Record::default() }
    }

    /// Since `time`, ns, this group of the dispatcher has the policy `name`, of which a record has
    /// the first 16 bytes.
    pub fn policy(time: u64, group: u32, name: &str) -> Record {
        let mut bytes = [0; 16];
        let end = (0..=name.len().min(16)).rev().find(|&end| name.is_char_boundary(end));
        let end = end.unwrap_or(0);
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        let both = u128::from_le_bytes(bytes);
        Record { time, a: both as u64, b: (both >> 64) as u64, small: group, kind: POLICY }
    }

    /// The policy that a group has since its own has panicked.
    pub fn policy_stopped(stop: &PolicyStop) -> Record {
        Record::policy(stop.at, stop.group, stop.fallback.unwrap_or("none"))
    }

    /// The name in a record of another policy; `None` for any other record, or without UTF-8.
    pub fn policy_name(&self) -> Option<String> {
        let both = u128::from(self.a) | u128::from(self.b) << 64;
        let bytes = both.to_le_bytes();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let name = std::str::from_utf8(&bytes[..end]).ok()?;
        (self.kind == POLICY).then(|| name.to_owned())
    }

    /// A task begins to execute at `time`, ns: a thread of it, or 0.
    pub fn running(time: u64, task: u32, thread: u64, background: bool) -> Record {
        Record { time, a: thread, b: background.into(), small: task, kind: RUNNING }
    }

    /// It does not execute any more, and has executed for so long, ns.
    pub fn stopped(time: u64, task: u32, thread: u64, executed: u64) -> Record {
        Record { time, a: executed, b: thread, small: task, kind: STOPPED }
    }
}

impl Period {
    /// As a trace has it: three records, one after the other.
    pub fn to_records(&self) -> [Record; 3] {
        let flags = [self.ready_throughout, self.woken_late, self.miss, self.overrun];
        let end = ENDS.iter().position(|&end| end == self.end).unwrap_or(0) as u32;
        let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u32::from(flag));
        [
            Record {
                time: self.release,
                a: self.number,
                b: self.deadline,
                small: self.task,
                kind: PERIOD,
            },
            Record {
                time: self.assigned,
                a: self.received,
                b: self.unused,
                small: flags,
                kind: PERIOD_2,
            },
            Record { time: self.started, a: self.completed, b: 0, small: end, kind: PERIOD_3 },
        ]
    }

    /// The period that begins with the first of these records, if one does.
    pub fn from_records(records: &[Record]) -> Option<Period> {
        let [first, second, third, ..] = records else { return None };
        if [first.kind, second.kind, third.kind] != [PERIOD, PERIOD_2, PERIOD_3] {
            return None;
        }
        let flag = |bit: u32| second.small >> bit & 1 == 1;
        Some(Period {
            task: first.small,
            number: first.a,
            release: first.time,
            deadline: first.b,
            assigned: second.time,
            received: second.a,
            unused: second.b,
            started: third.time,
            completed: third.a,
            end: *ENDS.get(third.small as usize)?,
            ready_throughout: flag(0),
            woken_late: flag(1),
            miss: flag(2),
            overrun: flag(3),
        })
    }
}

impl Trace {
    /// How many records are missing in all.
    pub fn lost(&self) -> u64 {
        self.records.iter().filter_map(Record::lost_before).sum()
    }

    /// The periods, in the order in which they were reported.
    pub fn periods(&self) -> impl Iterator<Item = Period> + '_ {
        self.records.windows(3).filter_map(Period::from_records)
    }

    /// When each task executed, in the order of the ends; tasks by their places in the set.
    ///
    /// The simulator and the kernel host record it ([`RUNNING`], [`STOPPED`]). The user host
    /// charges what was executed between two of its events, so that an interval is as long as what
    /// was charged, and ends at the event. Tasks charged at one event are lined up in the order of
    /// the charges, which begins with the best.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = Intervals::new(&self.header);
        // A host may learn late which task is which.
        for record in self.records.iter().rev().filter(|r| r.kind == TASK_PLACE) {
            intervals.place(record);
        }
        self.records.iter().for_each(|record| intervals.record(record));
        intervals.finish()
    }
}

/// What executes, as far as the records were read.
struct Intervals {
    cpu: u32,
    cut: Option<Cut>,
    /// Execution is known by charges.
    by_charges: bool,
    /// By the dispatcher's task numbers.
    places: Vec<u32>,
    /// Threads that execute: task, thread, since when, in the background.
    running: Vec<(u32, u64, u64, bool)>,
    /// Charges of the event at this time, ns.
    charged: (u64, Vec<(u32, u64)>),
    found: Vec<Interval>,
}

impl Intervals {
    fn new(header: &Header) -> Intervals {
        Intervals {
            cpu: header.cpu,
            cut: header.cut.clone(),
            by_charges: header.host == "user",
            places: Vec::new(),
            running: Vec::new(),
            charged: (0, Vec::new()),
            found: Vec::new(),
        }
    }

    fn place(&mut self, record: &Record) {
        let task = record.small as usize;
        if self.places.len() <= task {
            self.places.resize(task + 1, u32::MAX);
        }
        self.places[task] = record.a as u32;
    }

    fn found(&mut self, task: u32, from: u64, to: u64, background: bool) {
        let Some(&task) = self.places.get(task as usize).filter(|&&place| place != u32::MAX) else {
            return;
        };
        let part = self.cut.as_ref().map_or(Some((from, to)), |cut| cut.clip(from, to));
        if let Some((from, to)) = part.filter(|(from, to)| from < to) {
            self.found.push(Interval { cpu: self.cpu, task, from, to, background });
        }
    }

    fn record(&mut self, r: &Record) {
        match r.kind {
            TASK_PLACE => {
                self.line_up();
                self.place(r);
            }
            RUNNING => self.running.push((r.small, r.a, r.time, r.b != 0)),
            STOPPED => {
                let thread = self
                    .running
                    .iter()
                    .position(|&(task, thread, ..)| (task, thread) == (r.small, r.b));
                if let Some(at) = thread {
                    let (task, _, since, background) = self.running.swap_remove(at);
                    self.found(task, since, r.time, background);
                }
            }
            // What executes at the other end is not known.
            LOST_RECORDS => {
                self.line_up();
                self.running.clear();
            }
            kind::CHARGE_TASK if self.by_charges => {
                if self.charged.0 != r.time {
                    self.line_up();
                }
                self.charged.0 = r.time;
                self.charged.1.push((r.small, r.a));
            }
            _ => {}
        }
    }

    fn line_up(&mut self) {
        let (to, charges) = std::mem::take(&mut self.charged);
        let all: u64 = charges.iter().map(|&(_, ns)| ns).sum();
        let mut from = to.saturating_sub(all);
        for (task, ns) in charges {
            self.found(task, from, from + ns, false);
            from += ns;
        }
    }

    fn finish(mut self) -> Vec<Interval> {
        self.line_up();
        self.found
    }
}
