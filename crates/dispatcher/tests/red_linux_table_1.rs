//! RED-Linux GSF, Table 1, "Attributes for Different Scheduling Policies", for the two periodic
//! ones: what a job's start, finish, budget and priority are under RM and EDF, and that ordering by
//! the named parameter makes that policy.
//!
//!     Policy  Start time  Finish time  Budget  Priority  Scheduling parameter
//!     RM      BP          EP           B       1/P       priority
//!     EDF     BP          EP           B       NA        finish time
//!
//! 1/P is an order, not a number: -P is stored.

use punctual_dispatcher::{
    Attribute, Dispatcher, Event, For, Job, JobId, Limits, Reservation, TaskId,
};

struct Periodic {
    period: u64,
    budget: u64,
}

/// A set on which the two differ: 2 of 5 and 4 of 7 fit under EDF only.
const SET: [Periodic; 2] = [Periodic { period: 5, budget: 2 }, Periodic { period: 7, budget: 4 }];
const HYPERPERIOD: u64 = 35;

/// One unit of time after the other; the task that ran in each, and how many releases missed.
fn run(by: Attribute) -> (Vec<Option<u32>>, usize) {
    let mut d = Dispatcher::new(Limits::for_tasks(2)).expect("valid limits");
    d.set_order(0, &[by]).expect("it is empty");
    let mut released: Vec<(JobId, TaskId, u64)> = Vec::new();
    let mut missed = 0;
    for p in &SET {
        let task = d.add_task(0).expect("room");
        let reservation = Reservation {
            priority: -(p.period as i64),
            ..Reservation::new(For::Task(task), p.period, p.budget)
        };
        d.add_reservation(&reservation, 0).expect("it is valid");
    }
    let mut ran = Vec::new();
    for now in 0..HYPERPERIOD {
        d.advance(now);
        while let Some(event) = d.next_event() {
            match event {
                Event::Released { job, task, number, release, budget, .. } => {
                    let p = &SET[task.0 as usize];
                    // BP and B; EP is the timer's business below.
                    assert_eq!((release, budget), (number * p.period, p.budget));
                    released.push((job, task, release + p.period));
                }
                Event::JobEnded { at, task, remaining, .. } if remaining > 0 => {
                    assert_eq!(at % SET[task.0 as usize].period, 0, "it ends at EP");
                    missed += 1;
                }
                _ => {}
            }
        }
        let selected = d.select(0, now);
        ran.push(selected.and_then(|job| d.task_of(job)).map(|t| t.0));
        if let Some(job) = selected {
            let (_, _, end) = *released.iter().find(|r| r.0 == job).expect("it was released");
            assert!(now < end && d.timer(0, 1, now) <= end);
            d.charge_job(job, 1, now + 1).expect("it is there");
        }
    }
    (ran, missed)
}

/// The textbook's schedule: at each unit the pending task with the least key, of equal ones the
/// earlier release.
fn textbook(key: impl Fn(usize, u64) -> u64) -> (Vec<Option<u32>>, usize) {
    let mut left = [0; 2];
    let mut missed = 0;
    let ran = (0..HYPERPERIOD)
        .map(|now| {
            for (task, p) in SET.iter().enumerate() {
                if now % p.period == 0 {
                    missed += usize::from(left[task] > 0);
                    left[task] = p.budget;
                }
            }
            let pending = (0..2).filter(|task| left[*task] > 0);
            let best = pending.min_by_key(|task| {
                (key(*task, now), now / SET[*task].period * SET[*task].period)
            })?;
            left[best] -= 1;
            Some(best as u32)
        })
        .collect();
    (ran, missed)
}

#[test]
fn rate_monotonic() {
    let (ran, missed) = run(Attribute::Priority);
    let by_period = textbook(|task, _| SET[task].period);
    assert_eq!((ran, missed), by_period);
    assert!(missed > 0, "97 % is more than rate monotonic can promise");
}

#[test]
fn earliest_deadline_first() {
    let (ran, missed) = run(Attribute::Finish);
    let by_deadline = textbook(|task, now| (now / SET[task].period + 1) * SET[task].period);
    assert_eq!((ran, missed), by_deadline);
    assert_eq!(missed, 0, "97 % fits");
}

/// The attributes themselves, given by an allocator outside.
#[test]
fn the_attributes_decide() {
    for (by, first) in [(Attribute::Priority, 0), (Attribute::Finish, 1)] {
        let mut d = Dispatcher::new(Limits::for_tasks(2)).expect("valid limits");
        d.set_order(0, &[by]).expect("it is empty");
        let jobs: Vec<_> = [(5, 8), (7, 7)]
            .into_iter()
            .map(|(period, finish)| {
                let task = d.add_task(0).expect("room");
                let job = Job { finish, priority: -period, ..Job::new(For::Task(task), 1) };
                d.add_job(&job, 0).expect("room")
            })
            .collect();
        assert_eq!(d.select(0, 0), Some(jobs[first]));
    }
}
