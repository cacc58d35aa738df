//! The jobs that a program added to its tasks, as a trace has them.

use std::collections::HashMap;

use punctual_trace::{kind, Trace};

/// A job that has ended. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedJob {
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    pub priority: i64,
    /// Of [`kind::event`].
    pub end: u32,
    /// When.
    pub at: u64,
    pub used: u64,
}

/// The trace in a file.
pub fn read(path: impl AsRef<std::path::Path>) -> Trace {
    let file = std::fs::File::open(path).expect("it was written");
    Trace::read(&mut std::io::BufReader::new(file)).expect("it is whole")
}

/// The jobs of a trace that have ended, by task. No job was selected while another task that was
/// not suspended had a more important one: of the groups that are ordered by priority.
pub fn jobs_of(trace: &Trace) -> HashMap<u32, Vec<TracedJob>> {
    ended_jobs(trace, |selected, waiting| {
        let first = waiting.iter().map(|job| job.priority).max();
        assert!(first <= Some(selected.priority), "{selected:?} of {waiting:?}");
    })
}

/// The jobs of a trace that have ended, by task. `check` gets each job that was selected, and all
/// jobs of tasks that were not suspended.
pub fn ended_jobs(
    trace: &Trace,
    check: impl Fn(&TracedJob, &[&TracedJob]),
) -> HashMap<u32, Vec<TracedJob>> {
    let records = &trace.records;
    let ends = kind::EVENT + 1..=kind::EVENT + 5;
    let of_task: HashMap<u64, u32> =
        records.iter().filter(|r| ends.contains(&r.kind)).map(|r| (r.a, r.small)).collect();
    let mut all = HashMap::<u32, Vec<TracedJob>>::new();
    let mut in_flight = HashMap::<u32, TracedJob>::new();
    let mut suspended = Vec::new();
    for pair in records.windows(2) {
        let (record, then) = (&pair[0], &pair[1]);
        match record.kind {
            // Those of groups have no task.
            kind::JOB_ADD if record.small != u32::MAX => {
                assert_eq!(then.kind, kind::JOB_ADD_2);
                let (start, finish, budget) = (record.a, record.b, then.time);
                let priority = then.a as i64;
                let job = TracedJob { start, finish, budget, priority, end: 0, at: 0, used: 0 };
                assert_eq!(in_flight.insert(record.small, job), None, "one job at a time");
            }
            kind::TASK_BLOCKED => suspended.push(record.small),
            kind::TASK_READY => suspended.retain(|&task| task != record.small),
            kind::SELECTED => {
                let Some(task) = of_task.get(&record.a) else { continue };
                let Some(selected) = in_flight.get(task) else { continue };
                let ready = in_flight.iter().filter(|(other, _)| !suspended.contains(other));
                check(selected, &ready.map(|(_, job)| job).collect::<Vec<_>>());
            }
            end if ends.contains(&end) => {
                let Some(job) = in_flight.remove(&record.small) else { continue };
                let (end, at, used) = (end - kind::EVENT, record.time, record.b);
                all.entry(record.small).or_default().push(TracedJob { end, at, used, ..job });
            }
            _ => {}
        }
    }
    all
}
