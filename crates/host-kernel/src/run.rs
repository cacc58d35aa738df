//! A whole task set inside the kernel, from start to end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_dispatcher::{Limits, TaskId};
use punctual_policies::Allocators;
use punctual_taskset::{Body, Overrun, ServerKind, ServerSpec, TaskSet};
use punctual_trace::{Header, Period, Trace};
use punctual_workload::monotonic_ns;

use crate::follow::Follow;
use crate::machine;
use crate::orders::Recorder;
use crate::run_error::RunError;
use crate::scheduler::Scheduler;
use crate::tasks::Tasks;

/// From asking for the reservations to the first release, ns.
const LEAD: u64 = 20_000_000;
const HOUSEKEEPING: Duration = Duration::from_millis(25);
/// The kernel's watchdog evicts a scheduler whose runnable task waits for 30 s.
const LONGEST_PERIOD: u64 = 20_000_000_000;

/// How to run a set.
pub struct RunOptions<'a> {
    /// Becomes true when it shall end early.
    pub stop: &'a AtomicBool,
    /// Trace records kept: the newest.
    pub records: usize,
}

/// How a run went.
pub struct RunOutcome {
    /// From the first release to the end, ns.
    pub ran: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub ended: u64,
    /// Events of the dispatcher.
    pub events: u64,
    /// The trace: the newest records.
    pub trace: Trace,
    /// What people should know.
    pub notes: Vec<String>,
    /// It was stopped early.
    pub interrupted: bool,
}

/// Whether this host can carry a set out.
///
/// # Errors
/// What of it only the other hosts can do.
pub fn accepts(set: &TaskSet) -> Result<(), RunError> {
    if set.cpus != [0] {
        return Err(RunError::set(format!(
            "the set names the CPUs {:?}, and the kernel host works on CPU 0 yet",
            set.cpus
        )));
    }
    for task in &set.tasks {
        let place = format!("task \"{}\"", task.name);
        if !matches!(task.body, Body::Spin(_) | Body::Steps(_)) {
            return Err(RunError::set(format!("{place}: the kernel host runs synthetic work, no programs yet")));
        }
        if !matches!(task.overrun, Overrun::Carry | Overrun::Skip) {
            return Err(RunError::set(format!("{place}: the kernel host has the overrun policies carry and skip yet")));
        }
        if task.period > LONGEST_PERIOD {
            return Err(RunError::set(format!("{place}: a period over 20 s would wake the watchdog of sched_ext")));
        }
    }
    for group in &set.groups {
        if matches!(group.server, ServerSpec::Periodic { kind: ServerKind::Polling, .. }) {
            let why = "a polling server is asked at each release, which the kernel host does not do yet";
            return Err(RunError::set(format!("group \"{}\": {why}", group.name)));
        }
    }
    let mut recorder = Recorder::new(0);
    let mut allocators = allocators(set)?;
    let mut taken = allocators.begin(&mut recorder, LEAD);
    for index in 0..set.tasks.len() {
        taken = taken.and_then(|()| allocators.add(&mut recorder, index, TaskId(index as u32)));
    }
    if recorder.needs_policy {
        return Err(RunError::set(format!(
            "policy \"{}\": some of its jobs need the policy at each release, which the kernel host does not do yet",
            set.policy.name
        )));
    }
    taken.map_err(|e| RunError::set(e.to_string()))
}

fn allocators(set: &TaskSet) -> Result<Allocators, RunError> {
    Allocators::new(set, 0).map_err(|e| RunError::set(e.to_string()))
}

/// Runs a set inside the kernel; `sink` hears of each period as it becomes known.
///
/// # Errors
/// What the set or the machine does not permit; and a scheduler that the kernel ended. Nothing is left behind.
pub fn run(set: &TaskSet, options: &RunOptions<'_>, sink: &mut dyn FnMut(Period)) -> Result<RunOutcome, RunError> {
    machine::check()?;
    accepts(set)?;
    let mut allocators = allocators(set)?;
    let limits = Limits { events: 4096, records: 65_536, ..allocators.limits() };
    let mut scheduler = Scheduler::start(limits)?;
    let mut tasks = Tasks::start(set, &mut scheduler)?;
    let numbers = tasks.joined()?;
    let mut recorder = Recorder::new(monotonic_ns());
    let origin = recorder.now + LEAD;
    let mut asked = allocators.begin(&mut recorder, origin);
    for (index, &number) in numbers.iter().enumerate() {
        asked = asked.and_then(|()| allocators.add(&mut recorder, index, TaskId(number)));
    }
    asked.map_err(|e| RunError::set(e.to_string()))?;
    scheduler.carry_out(&recorder.orders)?;

    let mut kept = VecDeque::new();
    let (mut seen, mut done, mut notes) = (0, 0, Vec::new());
    let mut follow = Follow::new(set, &numbers);
    let end = set.duration.map(|d| origin.saturating_add(d));
    let (mut interrupted, mut alive) = (false, numbers.len());
    loop {
        let now = monotonic_ns();
        interrupted = interrupted || options.stop.load(Ordering::Relaxed);
        let over = interrupted || alive == 0 || end.is_some_and(|e| e <= now);
        let look = scheduler.look(done)?;
        done = look.events.len() as u64;
        let records = scheduler.records(seen, &look);
        if records.len() as u64 != look.call.record_count - seen {
            notes.push("the kernel's ring of records overflowed: the trace has a gap".to_owned());
            kept.clear();
        }
        seen = look.call.record_count;
        follow.records(&records);
        kept.extend(records);
        let surplus = kept.len().saturating_sub(options.records);
        kept.drain(..surplus);
        for event in look.events.iter().filter_map(|e| e.event()) {
            follow.event(&mut allocators, &event, sink);
        }
        if look.call.exit_kind != 0 {
            return Err(ended_by_kernel(look.call.exit_kind));
        }
        if over {
            if look.call.throttled > 0 {
                notes.push(format!("jobs were held back {} times to leave others 5 % of the CPU", look.call.throttled));
            }
            break;
        }
        while let Some(index) = tasks.died() {
            alive -= 1;
            notes.push(format!("{} ended", set.tasks[index].name));
        }
        let left = end.map_or(HOUSEKEEPING, |e| Duration::from_nanos(e.saturating_sub(now)));
        std::thread::sleep(HOUSEKEEPING.min(left));
    }
    let ended = monotonic_ns();
    tasks.end();
    scheduler.detach();
    drop(tasks);
    let names = set.tasks.iter().map(|t| t.name.clone()).collect();
    let header = Header::new("kernel", 0, &set.policy.name, names, limits.into());
    let trace = Trace { header: Header { first: seen - kept.len() as u64, ..header }, records: kept.into() };
    let events = follow.events;
    Ok(RunOutcome { ran: ended.saturating_sub(origin), ended, events, trace, notes, interrupted })
}

/// `enum scx_exit_kind`, in words.
fn ended_by_kernel(kind: u64) -> RunError {
    let why = match kind {
        64..=66 => "somebody took it away",
        67 => "SysRq-S",
        1026 => "its watchdog: a runnable task waited too long",
        _ => "an error; the kernel's log has it",
    };
    RunError::machine(
        format!("the kernel ended the scheduler ({why}); all tasks are back in the normal class"),
        "see dmesg, and run it again",
    )
}
