//! What a trace tells, record by record (dispatcher/record.h, crates/host-kernel/bpf/orders.h).

use punctual_trace::kind::{self, event};
pub use punctual_trace::JobEnd as End;
use punctual_trace::{Record, Trace};

/// The task of what belongs to none: a server job, a segment.
const NONE: u32 = u32::MAX;

/// One record, as far as the invariants need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// How early a job may expire (docs/model.md).
    Granularity {
        ns: u64,
    },
    /// A reservation of a task.
    Reserved {
        task: u32,
        start: u64,
        period: u64,
        budget: u64,
        deadline: u64,
        background: bool,
    },
    /// A reservation of a task was changed; its releases stay where they are.
    Changed {
        task: u32,
        period: u64,
        budget: u64,
        deadline: u64,
    },
    /// A job that an allocator gave a task.
    Added {
        task: u32,
        start: u64,
        finish: u64,
        budget: u64,
    },
    /// A reservation's release, and the budget that it came with.
    Released {
        task: u32,
        number: u64,
        budget: u64,
    },
    Charged {
        task: u32,
        ns: u64,
    },
    ChargedJob {
        job: u64,
        ns: u64,
    },
    /// 0: no job.
    Selected {
        job: u64,
    },
    /// A real job ended.
    Ended {
        task: u32,
        job: u64,
        used: u64,
        how: End,
    },
    Running {
        task: u32,
        thread: u64,
    },
    /// By the kernel's count.
    Stopped {
        task: u32,
        thread: u64,
        executed: u64,
    },
}

/// What it tells, with the number of the record and the time, which is the last one known where a
/// record has none.
pub fn observed(trace: &Trace) -> Vec<(usize, u64, Observed)> {
    let records = &trace.records;
    let mut all = Vec::new();
    let mut now = 0;
    for (i, record) in records.iter().enumerate() {
        now = record.at().unwrap_or(now);
        let following = |n: usize| records.get(i + n).copied().unwrap_or_default();
        let before = i.checked_sub(1).map_or(kind::GRANULARITY, |before| records[before].kind);
        if let Some(observed) = one(before, record, following(1), following(2)) {
            all.push((i, now, observed));
        }
    }
    all
}

/// `before`: the kind of the record before it.
fn one(before: u32, record: &Record, second: Record, third: Record) -> Option<Observed> {
    let Record { a, b, small: task, .. } = *record;
    let real = task != NONE;
    let ended = |how| Observed::Ended { task, job: a, used: b, how };
    Some(match record.kind {
        kind::GRANULARITY => Observed::Granularity { ns: a },
        kind::CHARGE_TASK => Observed::Charged { task, ns: a },
        kind::CHARGE => Observed::ChargedJob { job: a, ns: b },
        kind::JOB_ADD if real => Observed::Added { task, start: a, finish: b, budget: second.time },
        kind::RESERVATION_ADD if real && before == kind::RESERVATION_CHANGE => {
            Observed::Changed { task, period: b, budget: second.time, deadline: second.a }
        }
        kind::RESERVATION_ADD if real => Observed::Reserved {
            task,
            start: a,
            period: b,
            budget: second.time,
            deadline: second.a,
            background: third.b == 2,
        },
        kind::SELECTED => Observed::Selected { job: a },
        kind::RUNNING if real => Observed::Running { task, thread: a },
        kind::STOPPED if real => Observed::Stopped { task, executed: a, thread: b },
        k if real => match k.checked_sub(kind::EVENT)? {
            event::COMPLETED => ended(End::Completed),
            event::EXHAUSTED => ended(End::Exhausted),
            event::EXPIRED => ended(End::Expired),
            event::CANCELLED => ended(End::Cancelled),
            event::TASK_GONE => ended(End::TaskGone),
            event::RELEASED => Observed::Released { task, number: a, budget: b },
            _ => return None,
        },
        _ => return None,
    })
}

/// When the trace's tasks began to run, each time: the task, the time.
pub fn runs(trace: &Trace) -> Vec<(u32, u64)> {
    let running = |(_, at, observed): (usize, u64, Observed)| match observed {
        Observed::Running { task, .. } => Some((task, at)),
        _ => None,
    };
    observed(trace).into_iter().filter_map(running).collect()
}

/// When the first reservation of all began: windows are counted from there.
pub fn table_began(trace: &Trace) -> u64 {
    let starts = trace
        .records
        .iter()
        .filter(|record| record.kind == kind::RESERVATION_ADD)
        .map(|record| record.a);
    starts.min().expect("a reservation")
}
