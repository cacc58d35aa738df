//! The rule for a host on a real kernel whose clock counts instructions.
//!
//! Two versions execute different numbers of instructions, so their traces differ in measured
//! times, in how often a running job is charged, and in the order of what happens at nearly the
//! same instant. The same decisions are:
//!
//! 1. Set-up: the same granularity, orders, reservations and windows, in every field; starts are
//!    relative.
//! 2. Events: the same releases and ends for each task, in the same order, and as many of each kind
//!    for servers. A release is noticed, and the execution time of a job measured, within
//!    [`WITHIN_NS`].
//! 3. Selections: at each instant the same task is selected. Both may disagree for up to
//!    [`WITHIN_NS`] at a time and for [`SHARE_PERMILLE`] of the run in all.
//!
//! Selections are compared over time and not in order, because the order of two near events
//! decides whether there is another selection between them (a budget ends 2 us before a release,
//! or with it), and job numbers depend on the order in which jobs end.

use std::collections::BTreeMap;
use std::fmt;

use punctual_trace::kind::{self, event};
use punctual_trace::{Record, Trace};

use crate::difference::{Difference, Numbered};

/// Bound of one disagreement. The guest's own work (kernel threads, the tick) takes up to 100 us
/// at phases that depend on the image: 16 sets on both hosts disagreed by at most 98 us between
/// two layouts of the kernel, and by 133 us between a debug and a release build (but for
/// `rtai-fig6` on the user host, whose costs in a debug build are too much for it). The smallest
/// budget in examples/ is 250 us, so a job that executes in another's place is beyond this bound.
pub const WITHIN_NS: u64 = 200_000;

/// Bound of all disagreements together. Same measurements: 3 and 9.
pub const SHARE_PERMILLE: u64 = 10;

/// The end of a run, in which what one side had and the other had not yet is no difference.
pub const TAIL_NS: i64 = 20_000_000;

/// The task of server jobs.
const NO_TASK: u32 = u32::MAX;

/// What a dispatcher selected.
#[derive(Clone, Copy, PartialEq)]
enum Selected {
    Nothing,
    Task(u32),
    /// A job that did not end in the trace, so that its task is not recorded.
    Unknown,
}

impl Selected {
    fn agrees(self, other: Selected) -> bool {
        self == other || self == Selected::Unknown || other == Selected::Unknown
    }
}

/// By how much the two differ in what may differ.
#[derive(Default)]
struct Found {
    events: usize,
    release_ns: u64,
    used_ns: u64,
    apart_ns: u64,
    /// The records of the longest disagreement.
    apart_at: (Option<Numbered>, Option<Numbered>),
    apart_sum_ns: u64,
    span_ns: u64,
}

impl Found {
    fn permille(&self) -> u64 {
        self.apart_sum_ns.saturating_mul(1000) / self.span_ns.max(1)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / 1000.0;
        write!(
            f,
            "{} events; at most {:.1} us between releases, {:.1} us between execution times, \
             {:.1} us between selections ({:.2} % of {} ms)",
            self.events,
            us(self.release_ns),
            us(self.used_ns),
            us(self.apart_ns),
            100.0 * self.apart_sum_ns as f64 / self.span_ns.max(1) as f64,
            self.span_ns / 1_000_000
        )
    }
}

/// One side, with times relative to the first start that was asked for.
struct Side<'a> {
    trace: &'a Trace,
    start: u64,
    /// The last record.
    end: i64,
}

impl<'a> Side<'a> {
    fn new(trace: &'a Trace) -> Side<'a> {
        let starts = trace.records.iter().filter(|r| adds(r) && r.a > 0).map(|r| r.a);
        let start = starts.min().unwrap_or(0);
        let times = trace.records.iter().filter_map(Record::at);
        let end = times.map(|at| at.wrapping_sub(start) as i64).max().unwrap_or(0);
        Side { trace, start, end }
    }

    fn at(&self, record: &Record) -> i64 {
        record.time.wrapping_sub(self.start) as i64
    }

    fn numbered(&self) -> impl Iterator<Item = Numbered> + '_ {
        self.trace.records.iter().copied().enumerate()
    }

    /// Commands that declare the set, in order, as they must be on both sides.
    fn set_up(&self) -> Vec<(Numbered, Record)> {
        let declares = |r: &Record| {
            matches!(r.kind, kind::GRANULARITY | kind::ORDER | kind::WINDOW_ADD)
                || (kind::RESERVATION_ADD..=kind::RESERVATION_ADD_4).contains(&r.kind)
        };
        let relative = |r: Record| Record {
            time: if r.at().is_some() { 0 } else { r.time },
            a: if adds(&r) && r.a > 0 { r.a - self.start } else { r.a },
            ..r
        };
        self.numbered().filter(|(_, r)| declares(r)).map(|n| (n, relative(n.1))).collect()
    }

    /// The events of each task in order; those of server jobs and segments by their kind.
    fn events(&self) -> BTreeMap<(u32, u32), Vec<Numbered>> {
        let mut streams = BTreeMap::<_, Vec<Numbered>>::new();
        for (number, record) in self.numbered().filter(|(_, r)| is_compared(r.kind)) {
            let of_task = record.small != NO_TASK && !ends_segment(record.kind);
            let kind = if of_task { 0 } else { record.kind };
            streams.entry((record.small, kind)).or_default().push((number, record));
        }
        streams
    }

    /// Changes of the selection, with their records.
    fn selections(&self) -> Vec<(i64, Selected, Numbered)> {
        let ends = self.trace.records.iter().filter(|r| ends_job(r.kind));
        let tasks: BTreeMap<u64, u32> = ends.map(|r| (r.a, r.small)).collect();
        let of = |job: u64| match tasks.get(&job) {
            _ if job == 0 => Selected::Nothing,
            Some(task) => Selected::Task(*task),
            None => Selected::Unknown,
        };
        let selected = self.numbered().filter(|(_, r)| r.kind == kind::SELECTED);
        selected.map(|n| (self.at(&n.1), of(n.1.a), n)).collect()
    }
}

/// The events that both have, with the largest differences in time, or the first difference.
pub fn compare(old: &Trace, new: &Trace) -> Result<String, Difference> {
    let differ = |what: &str| Difference { what: what.to_owned(), old: None, new: None };
    let (ours, theirs) = (&old.header, &new.header);
    if (&ours.host, &ours.policy, &ours.tasks) != (&theirs.host, &theirs.policy, &theirs.tasks) {
        return Err(differ("host, policy or tasks differ"));
    }
    let (old, new) = (Side::new(old), Side::new(new));
    let mut found = Found::default();
    set_up(&old, &new)?;
    events(&old, &new, &mut found)?;
    selections(&old, &new, &mut found)?;
    if found.events == 0 {
        return Err(differ("nothing was released on either side, so there is nothing to compare"));
    }
    Ok(found.to_string())
}

fn set_up(old: &Side<'_>, new: &Side<'_>) -> Result<(), Difference> {
    let (ours, theirs) = (old.set_up(), new.set_up());
    for i in 0..ours.len().max(theirs.len()) {
        let (o, n) = (ours.get(i), theirs.get(i));
        if o.map(|o| o.1) != n.map(|n| n.1) {
            let what = format!("command {i} of the set-up differs");
            return Err(Difference { what, old: o.map(|o| o.0), new: n.map(|n| n.0) });
        }
    }
    Ok(())
}

fn events(old: &Side<'_>, new: &Side<'_>, found: &mut Found) -> Result<(), Difference> {
    let tail = old.end.min(new.end) - TAIL_NS;
    let (ours, theirs) = (old.events(), new.events());
    let mut first: Option<(i64, Difference)> = None;
    for key in ours.keys().chain(theirs.keys().filter(|k| !ours.contains_key(k))) {
        let stream = |side: &BTreeMap<_, Vec<Numbered>>| side.get(key).cloned().unwrap_or_default();
        let (ours, theirs) = (stream(&ours), stream(&theirs));
        for i in 0..ours.len().max(theirs.len()) {
            let (o, n) = (ours.get(i).copied(), theirs.get(i).copied());
            let at = o.map(|o| old.at(&o.1)).into_iter().chain(n.map(|n| new.at(&n.1))).min();
            let at = at.unwrap_or(0);
            let Some(what) = event_differs(o.zip(n), old, new, found) else { continue };
            if at < tail && first.as_ref().is_none_or(|f| at < f.0) {
                let what = format!("{what} (event {i} {})", of_stream(*key));
                first = Some((at, Difference { what, old: o, new: n }));
            }
            break;
        }
    }
    first.map_or(Ok(()), |(_, difference)| Err(difference))
}

fn of_stream((task, kind): (u32, u32)) -> String {
    match kind {
        0 => format!("of task {task}"),
        kind => format!("of kind {kind}"),
    }
}

/// What differs between two events that stand at the same place, if anything does.
fn event_differs(
    pair: Option<(Numbered, Numbered)>,
    old: &Side<'_>,
    new: &Side<'_>,
    found: &mut Found,
) -> Option<String> {
    let Some(((_, o), (_, n))) = pair else { return Some("one side has an event more".to_owned()) };
    if o.kind != n.kind {
        return Some("events differ".to_owned());
    }
    let released = o.kind == kind::EVENT + event::RELEASED;
    if released && o.small != NO_TASK && o.a != n.a {
        return Some("release numbers differ".to_owned());
    }
    let (what, noted, apart) = if released {
        ("releases", &mut found.release_ns, old.at(&o).abs_diff(new.at(&n)))
    } else if o.small == NO_TASK {
        // Of several servers; the order of near ends, and with it which job is which, may differ.
        found.events += 1;
        return None;
    } else if ends_job(o.kind) || ends_segment(o.kind) {
        ("execution times", &mut found.used_ns, o.b.abs_diff(n.b))
    } else {
        found.events += 1;
        return ((o.a, o.b) != (n.a, n.b)).then(|| "events differ".to_owned());
    };
    if apart > WITHIN_NS {
        return Some(format!("{what} are {apart} ns apart, more than {WITHIN_NS}"));
    }
    found.events += 1;
    *noted = (*noted).max(apart);
    None
}

fn selections(old: &Side<'_>, new: &Side<'_>, found: &mut Found) -> Result<(), Difference> {
    let end = old.end.min(new.end) - TAIL_NS;
    let mut changes: Vec<(bool, (i64, Selected, Numbered))> = Vec::new();
    changes.extend(old.selections().into_iter().map(|change| (true, change)));
    changes.extend(new.selections().into_iter().map(|change| (false, change)));
    changes.sort_by_key(|(_, (at, ..))| *at);
    let (mut ours, mut theirs) = ((Selected::Nothing, None), (Selected::Nothing, None));
    // Length of the disagreement until `since`.
    let (mut apart, mut since) = (0, 0);
    for (is_old, (at, selected, record)) in changes.into_iter().filter(|c| c.1 .0 < end) {
        if !ours.0.agrees(theirs.0) {
            let more = (at - since) as u64;
            apart += more;
            found.apart_sum_ns += more;
            if apart > found.apart_ns {
                found.apart_ns = apart;
                found.apart_at = (ours.1, theirs.1);
            }
        }
        if apart > WITHIN_NS {
            let what = format!("selections differ for {apart} ns, more than {WITHIN_NS}");
            return Err(Difference { what, old: ours.1, new: theirs.1 });
        }
        since = at;
        *(if is_old { &mut ours } else { &mut theirs }) = (selected, Some(record));
        if ours.0.agrees(theirs.0) {
            apart = 0;
        }
    }
    found.span_ns = end.max(0) as u64;
    let (permille, longest) = (found.permille(), found.apart_ns);
    if permille >= SHARE_PERMILLE {
        let what = format!("selections differ for {permille} permille of the run ({longest} ns)");
        return Err(Difference { what, old: found.apart_at.0, new: found.apart_at.1 });
    }
    Ok(())
}

fn adds(record: &Record) -> bool {
    matches!(record.kind, kind::JOB_ADD | kind::RESERVATION_ADD)
}

/// Whether `kind` is the end of a job, also of one in a window.
fn ends_job(kind: u32) -> bool {
    matches!(
        kind.wrapping_sub(kind::EVENT),
        event::COMPLETED..=event::TASK_GONE | event::WINDOW_EXHAUSTED | event::WINDOW_EXPIRED
    )
}

fn ends_segment(kind: u32) -> bool {
    matches!(kind.wrapping_sub(kind::EVENT), event::SEGMENT_EXHAUSTED | event::SEGMENT_EXPIRED)
}

/// Whether events of `kind` are compared: not those that repeat an input (a task is ready or
/// blocked) or a selection (a group is active or idle).
fn is_compared(kind: u32) -> bool {
    let event = kind.wrapping_sub(kind::EVENT);
    ends_job(kind)
        || ends_segment(kind)
        || matches!(event, event::TIMER | event::LOST | event::RELEASED | event::RELEASES_LOST)
        || matches!(event, event::OVERRUN | event::BACKGROUND | event::DELAYED_SATURATED)
}
