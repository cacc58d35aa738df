//! How enforcement error is best settled: the errors of real runs, replayed under other rules than
//! the dispatcher's (docs/model.md, "Enforcement error").

use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_measure::overhead::sets::FIG_6;
use punctual_taskset::fmt_ns;
use punctual_trace::kind::{event, EVENT};
use punctual_trace::{kind, Record, Trace};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::BufReader;

/// What a release settles, in thousandths of its budget: what exceeds `at_once`; of the rest, one
/// of `parts` and `step` at most.
#[derive(Clone, Copy)]
struct Rule {
    at_once: u64,
    parts: u64,
    step: u64,
}

const ALL_AT_ONCE: Rule = Rule { at_once: 0, parts: 1, step: 0 };
/// The dispatcher's.
const CHOSEN: Rule = Rule { at_once: 100, parts: 2, step: 40 };
const RULES: [Rule; 13] = [
    ALL_AT_ONCE,
    Rule { at_once: 100, parts: 1, step: 40 },
    Rule { at_once: 100, parts: 1, step: 20 },
    Rule { at_once: 100, parts: 1, step: 10 },
    Rule { at_once: 100, parts: 1, step: 5 },
    CHOSEN,
    Rule { at_once: 100, parts: 2, step: 20 },
    Rule { at_once: 100, parts: 2, step: 100 },
    Rule { at_once: 50, parts: 2, step: 40 },
    Rule { at_once: 250, parts: 2, step: 40 },
    Rule { at_once: 500, parts: 2, step: 40 },
    Rule { at_once: 100, parts: 4, step: 40 },
    Rule { at_once: 100, parts: 8, step: 40 },
];

impl Rule {
    fn settled(self, budget: u64, error: i64) -> i64 {
        let magnitude = error.unsigned_abs();
        let small = magnitude.min(budget * self.at_once / 1000);
        let settled =
            magnitude - small + small.div_ceil(self.parts).min((budget * self.step / 1000).max(1));
        error.signum() * settled as i64
    }

    fn name(self) -> String {
        let percent = |thousandths: u64| thousandths as f64 / 10.0;
        if self.at_once == 0 {
            "all at once".to_owned()
        } else {
            format!("{} %; 1/{}, {} %", percent(self.at_once), self.parts, percent(self.step))
        }
    }
}

/// A release: how its job was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop {
    /// Late (+) or early (-), ns.
    error: i64,
    /// Not received by its finish, ns; never carried.
    lost: i64,
}

/// A task of the set, over all windows. Each has another budget.
struct Task {
    budget: u64,
    windows: Vec<Vec<Stop>>,
}

/// What the releases of a task received under a rule.
#[derive(Default)]
struct Received {
    periods: u64,
    off_1: u64,
    off_5: u64,
    total: i64,
    /// Most that was still to be settled after a release, ns, and for how many releases on end it
    /// was more than 1 % of the budget.
    most: u64,
    longest: u64,
}

impl Received {
    fn of(task: &Task, rule: Rule) -> Received {
        let (mut all, budget) = (Received::default(), task.budget as i64);
        for window in &task.windows {
            let (mut error, mut since) = (0, 0);
            for stop in window {
                let settled = rule.settled(task.budget, error);
                error -= settled;
                let received = (budget - settled + stop.error - stop.lost).max(0);
                let off = received.abs_diff(budget);
                all.periods += 1;
                all.off_1 += u64::from(off * 100 > task.budget);
                all.off_5 += u64::from(off * 20 > task.budget);
                all.total += received;
                all.most = all.most.max(error.unsigned_abs());
                since = if error.unsigned_abs() * 100 > task.budget { since + 1 } else { 0 };
                all.longest = all.longest.max(since);
                error = (error + stop.error).clamp(-budget, budget);
            }
        }
        all
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.periods as f64
    }

    fn json(&self, task: &Task) -> Value {
        json!({ "budget_ns": task.budget, "periods": self.periods, "off_1_percent": self.off_1,
            "off_5_percent": self.off_5, "received_ns": self.total,
            "assigned_ns": self.periods * task.budget, "largest_unsettled_ns": self.most,
            "longest_unsettled_periods": self.longest })
    }
}

/// How each release of each reserved task was stopped, and its budget without error.
fn stops(records: &[Record]) -> BTreeMap<u32, (u64, Vec<Stop>)> {
    let mut tasks: BTreeMap<u32, (u64, Vec<Stop>)> = BTreeMap::new();
    let (mut adding, mut granted) = (0, BTreeMap::new());
    for record in records {
        match record.kind {
            kind::RESERVATION_ADD => adding = record.small,
            kind::RESERVATION_ADD_2 => tasks.entry(adding).or_default().0 = record.time,
            // Without a job: the release before was stopped that much later.
            kind::CHARGE_TASK if !granted.contains_key(&record.small) => {
                if let Some(stop) = tasks.get_mut(&record.small).and_then(|t| t.1.last_mut()) {
                    stop.error += record.a as i64;
                }
            }
            k if k == EVENT + event::RELEASED => {
                granted.insert(record.small, record.b as i64);
            }
            k if k == EVENT + event::EXHAUSTED || k == EVENT + event::EXPIRED => {
                let Some(granted) = granted.remove(&record.small) else { continue };
                let off = record.b as i64 - granted;
                let expired = off < 0 && k == EVENT + event::EXPIRED;
                let (error, lost) = if expired { (0, -off) } else { (off, 0) };
                tasks.entry(record.small).or_default().1.push(Stop { error, lost });
            }
            _ => {}
        }
    }
    tasks
}

fn run(bench: &Bench, duration: &str) -> Result<Trace, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace");
    let set = format!("cpu = {}\n{FIG_6}", bench.cpu);
    let options = [
        "--load",
        "--duration",
        duration,
        "--trace-records",
        "1048576",
        "--trace",
        path.to_str().ok_or("no text")?,
    ];
    tools::punctual(bench, &set, &options)?;
    Ok(Trace::read(&mut BufReader::new(std::fs::File::open(path)?))?)
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let duration = if bench.quick { "2s" } else { "5s" };
    let mut tasks: Vec<Task> = Vec::new();
    for n in 0..bench.windows {
        tools::progress(&format!("settling: window {} of {}", n + 1, bench.windows));
        for (budget, window) in stops(&run(bench, duration)?.records).into_values() {
            match tasks.iter_mut().find(|task| task.budget == budget) {
                Some(task) => task.windows.push(window),
                None => tasks.push(Task { budget, windows: vec![window] }),
            }
        }
    }
    tools::progress("");
    tasks.sort_by_key(|task| task.budget);
    println!(
        "Settling enforcement error: the errors of {} windows of {duration} under each rule",
        bench.windows
    );
    tools::row(
        [-22, -12, 8, 8, 8, 16, 16, 11],
        [
            "at once; part, most",
            "budget",
            "periods",
            ">1 %",
            ">5 %",
            "unsettled, %",
            "longest, periods",
            "long run %",
        ],
    );
    let mut figures = Vec::new();
    for rule in RULES {
        let received: Vec<Received> = tasks.iter().map(|task| Received::of(task, rule)).collect();
        for (task, r) in tasks.iter().zip(&received) {
            let [off_1, off_5] = [r.off_1, r.off_5].map(|count| r.percent(count));
            let most = 100.0 * r.most as f64 / task.budget as f64;
            let (periods, longest, long) =
                (r.periods, r.longest, r.percent(1) * r.total as f64 / task.budget as f64);
            println!(
                "  {:<22} {:<12} {periods:>8} {off_1:>8.2} {off_5:>8.3} {most:>16.1} {longest:>16} \
                 {long:>11.4}",
                rule.name(),
                fmt_ns(task.budget),
            );
        }
        let received: Vec<Value> =
            tasks.iter().zip(&received).map(|(task, r)| r.json(task)).collect();
        figures.push(json!({
            "at_once_beyond_permille": rule.at_once, "parts": rule.parts,
            "step_permille": rule.step, "tasks": received,
        }));
    }
    println!();
    Ok(Part { figures: Value::Array(figures), verdicts: tasks.iter().map(verdict).collect() })
}

/// The rule is there to disturb fewer periods.
fn verdict(task: &Task) -> Verdict {
    let [once, chosen] = [ALL_AT_ONCE, CHOSEN].map(|rule| Received::of(task, rule));
    let percent = |r: &Received| r.percent(r.off_1);
    Verdict::new(
        format!("off by more than 1 %, against all at once, {}", fmt_ns(task.budget)),
        "fewer",
        format!("{:.2} % and {:.2} %", percent(&chosen), percent(&once)),
        chosen.off_1 <= once.off_1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_dispatcher::{error_settled, Dispatcher, For, Limits, Reservation};

    #[test]
    fn the_chosen_rule_is_the_dispatchers() {
        for budget in (1..2_000).chain([999_999, 1_000_000, 1_000_199]) {
            for parts in -100..=100 {
                let error = budget as i64 * parts / 100;
                assert_eq!(
                    CHOSEN.settled(budget, error),
                    error_settled(budget, error),
                    "{error} of {budget}"
                );
            }
        }
    }

    #[test]
    fn stops_are_read_from_what_a_dispatcher_recorded() {
        let mut d = Dispatcher::new(Limits::for_tasks(1)).expect("valid limits");
        let task = d.add_task(0).expect("room");
        let reservation = Reservation::new(For::Task(task), 10_000, 2_000);
        d.set_granularity(100).expect("in range");
        d.add_reservation(&reservation, 0).expect("it is valid");
        // Late, early, and not at all: it expires. Then late once more, and later still without a
        // job.
        for (k, ran) in [2_030, 1_940, 500, 2_070].into_iter().enumerate() {
            let now = k as u64 * 10_000;
            d.advance(now);
            d.charge_task(task, ran, now + 3_000).expect("it is there");
            d.advance(now + 3_000);
        }
        d.charge_task(task, 7, 34_000).expect("it is there");
        let records: Vec<Record> = (0..d.record_count()).filter_map(|n| d.record(n)).collect();
        let (budget, seen) = stops(&records).remove(&task.0).expect("the task");
        let stop = |error, lost| Stop { error, lost };
        assert_eq!(budget, 2_000);
        assert_eq!(seen, [stop(30, 0), stop(-45, 0), stop(0, 1_515), stop(69, 0)]);
    }
}
