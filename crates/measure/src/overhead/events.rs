//! RTAI's Tables 2 and 3: what an event takes from the tasks. The paper divides what its tasks lost
//! by the number of timer expirations; here each loss is measured by itself (`gaps.rs`), so that
//! interrupt, dispatcher and switch are in it on every host, and the maximum is one of the same.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::DispatcherStats;
use punctual_session::{Execution, HostKind, Output, RunOptions, Session, TaskThread};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{Body, TaskSet};

use super::gaps::{Gap, GapPage, LOAD};
use super::paper::RTAI_TABLES_2_3;
use super::result::{
    DispatcherCost, EventRow, EventsResult, MeasuredHost, MeasuredTasks, PaperCost,
};
use super::{sets, OverheadPlan, Window};
use crate::cycles::CycleRate;
use crate::distribution::Distribution;
use crate::loads::{LoadProcess, Rounds};
use crate::running;

/// What is measured, in order.
pub const ROWS: [(MeasuredHost, MeasuredTasks); 3] = [
    (MeasuredHost::User, MeasuredTasks::Threads),
    (MeasuredHost::User, MeasuredTasks::Programs),
    (MeasuredHost::Kernel, MeasuredTasks::Programs),
];
/// Left out at the beginning, ns: programs start, caches are cold.
const WARM_UP: u64 = 100_000_000;
/// A spinner that has lost its supervisor ends by itself so long after the window, ns.
const SLACK: u64 = 10_000_000_000;
const STACK: usize = 128 << 10;
/// One round of the load, ns.
const ROUND: u64 = 5_000_000;

impl EventsResult {
    pub(super) fn new(duration: u64) -> EventsResult {
        let paper = RTAI_TABLES_2_3.iter().map(|row| PaperCost {
            tasks: row.tasks,
            cpu: row.machine.cpu.to_owned(),
            khz: row.machine.khz,
            average: row.machine.time(row.average_ns),
            max: row.machine.time(row.max_ns),
        });
        EventsResult { duration_ns: duration, rows: Vec::new(), paper: paper.collect() }
    }
}

/// Measures one row.
///
/// # Errors
/// The set cannot run. What this machine does not have is reported in the row.
pub fn row(
    plan: &OverheadPlan,
    rate: &CycleRate,
    (host, tasks): (MeasuredHost, MeasuredTasks),
    window: &mut Window,
) -> Result<EventRow, Diagnostic> {
    let row = EventRow {
        host,
        tasks,
        switch: None,
        average: None,
        p50: None,
        max: None,
        interruptions: None,
        dispatcher: None,
        not_possible: None,
        notes: Vec::new(),
    };
    let kind = host.kind();
    let set = TaskSet::parse(&format!("cpu = {}\n{}", plan.cpu, sets::TABLE_2), "table-2")?;
    if host == MeasuredHost::Kernel {
        if let Err(why) = Session::new(set.clone(), kind) {
            return Ok(EventRow { not_possible: Some(why.cause), ..row });
        }
    }
    let ran = run(plan, kind, tasks, set, window)?;
    let Losses { switches, interruptions } = losses(&ran.gaps, &ran.releases, ran.from);
    let switch = switches.spread();
    let lost = (ran.lost > 0).then(|| format!("{} gaps found no room", ran.lost));
    Ok(EventRow {
        switch,
        average: switch.map(|s| rate.time(s.average_ns)),
        p50: switch.map(|s| rate.time(s.p50_ns)),
        max: switch.map(|s| rate.time(s.max_ns)),
        interruptions: interruptions.spread(),
        dispatcher: ran.dispatcher.map(|stats| DispatcherCost::of(&stats, rate)),
        notes: ran.notes.into_iter().chain(lost).collect(),
        ..row
    })
}

impl DispatcherCost {
    fn of(stats: &DispatcherStats, rate: &CycleRate) -> DispatcherCost {
        DispatcherCost {
            events: stats.events,
            handler_average: rate.time(stats.handler_mean_ns),
            handler_max: rate.time(stats.handler_max_ns),
            cpu_average: rate.time(stats.cpu_ns / stats.events.max(1)),
        }
    }
}

/// What a run recorded.
struct Ran {
    gaps: Vec<Gap>,
    lost: u64,
    /// First release and period of each task, ns.
    releases: Vec<(u64, u64)>,
    /// What began earlier is left out.
    from: u64,
    dispatcher: Option<DispatcherStats>,
    notes: Vec<String>,
}

fn run(
    plan: &OverheadPlan,
    kind: HostKind,
    tasks: MeasuredTasks,
    mut set: TaskSet,
    window: &mut Window,
) -> Result<Ran, Diagnostic> {
    let refused = |e| Diagnostic::refused("shared memory cannot be had", e, "see dmesg");
    let page = Arc::new(GapPage::new().map_err(refused)?);
    let until = monotonic_ns() + window.length + SLACK;
    let executions = set.tasks.iter_mut().zip(LOAD + 1..).map(|(task, who)| match tasks {
        MeasuredTasks::Threads => {
            let page = page.clone();
            let body = move |task: TaskThread<'_>| {
                let task = task.user();
                task.into_iter().for_each(|task| page.spin(who, until, task.over()));
            };
            Execution::Thread { stack: STACK, body: Box::new(body) }
        }
        MeasuredTasks::Programs => {
            let words = [page.path(), who.to_string(), until.to_string()];
            let words = plan.spinner.iter().cloned().chain(words);
            task.body = Body::Command(words.collect());
            Execution::AsDeclared
        }
    });
    let executions = executions.collect();
    let periods: Vec<(u64, u64)> =
        set.tasks.iter().map(|task| (task.offset, task.period)).collect();
    set.duration = Some(window.length);
    let shared = page.clone();
    let load = Rounds::new(move || {
        shared.spin(LOAD, monotonic_ns() + ROUND, &AtomicBool::new(false));
        Ok(())
    });
    let load = LoadProcess::fork(load, plan.cpu, window.length + SLACK);
    let load = load.map_err(|why| Diagnostic::machine(why, "raise RLIMIT_NPROC"))?;
    let options =
        RunOptions { stop: plan.stop.clone(), output: Output::Nowhere, ..RunOptions::default() };
    let admitted = Session::new(set, kind)?.admit(false)?;
    let mut poll = |since| {
        window.tick(since);
        true
    };
    let ran = running::run(admitted, options, executions, &mut |_| {}, &mut poll)?;
    drop(load);
    let (gaps, lost) = page.gaps();
    let origin = ran.origin;
    Ok(Ran {
        gaps,
        lost,
        releases: periods.iter().map(|(offset, period)| (origin + offset, *period)).collect(),
        from: origin + WARM_UP.min(window.length / 2),
        dispatcher: ran.results.dispatcher,
        notes: ran.notes,
    })
}

/// What tasks lost, apart by whether the task changed.
#[derive(Default)]
pub(super) struct Losses {
    pub switches: Distribution,
    pub interruptions: Distribution,
}

/// `releases`: first release and period of each task. Gaps that began before `from` are left out.
///
/// Where the task after a gap was released in it, another program may have executed before: the
/// loss begins at the release. Where the load executes after a gap, another program may have been
/// first, and the gap says nothing.
pub(super) fn losses(gaps: &[Gap], releases: &[(u64, u64)], from: u64) -> Losses {
    let mut losses = Losses::default();
    for gap in gaps.iter().filter(|gap| gap.begin >= from && gap.after != LOAD) {
        let release = usize::try_from(gap.after - LOAD - 1)
            .ok()
            .and_then(|place| releases.get(place))
            .and_then(|&(first, period)| {
                Some(first + gap.end.checked_sub(first)? / period * period)
            })
            .filter(|&release| release > gap.begin);
        let lost = gap.end - release.unwrap_or(gap.begin);
        if gap.before == gap.after && release.is_none() {
            losses.interruptions.add(lost);
        } else {
            losses.switches.add(lost);
        }
    }
    losses
}
