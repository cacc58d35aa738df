//! A part of a trace, as a trace.
//!
//! ```text
//! before the part:  InForce ──> what was declared, and what is in force when the part begins
//! the part:         as it stands
//! behind it:        ends of what executes when it ends; periods that began in it
//! ```
//!
//! So a part says by itself what the whole trace says of its time. Its header names it
//! ([`Cut`]), and readers leave out what lies outside. One that does not begin with the run cannot
//! be replayed: nothing says in which state the dispatcher was.

mod in_force;

use std::collections::HashSet;
use std::io::{BufRead, Write};

use punctual_trace::{
    kind, kind::event, Cut, Header, Record, TraceError, TraceReader, TraceWriter,
};

use crate::places::task_of;
use in_force::InForce;

/// Records between two calls of `proceeds`.
const BETWEEN_CALLS: u64 = 65_536;

/// What became of a trace that was cut.
#[derive(Debug, Default)]
pub struct CutTrace {
    /// Records that were read.
    pub read: u64,
    /// Records that were written.
    pub written: u64,
    /// Periods that the part has.
    pub periods: u64,
    /// Records of its time.
    pub within: u64,
    /// Why it was not read to its end. What stands before was cut.
    pub error: Option<TraceError>,
    /// `proceeds` ended it.
    pub interrupted: bool,
}

/// When the run of a trace begins, ns on its clock: the first start that was asked for.
///
/// # Errors
/// The trace is damaged before that.
pub fn start<R: BufRead>(reader: &mut TraceReader<R>) -> Result<u64, TraceError> {
    if let Some(cut) = &reader.header().cut {
        return Ok(cut.start);
    }
    let mut start: Option<u64> = None;
    for record in reader {
        let record = record?;
        if matches!(record.kind, kind::RESERVATION_ADD | kind::JOB_ADD) {
            start = Some(start.map_or(record.a, |start| start.min(record.a)));
        }
        let selected = record.kind == kind::SELECTED && record.a != 0;
        if selected || record.kind == kind::RUNNING || is_release(&record) {
            return Ok(start.unwrap_or(record.time));
        }
    }
    Ok(start.unwrap_or(0))
}

/// Writes the part of a trace that `cut` names to `out`. `proceeds` receives the number of records
/// now and then, and ends it with false.
///
/// # Errors
/// The writer's own. What is wrong with the trace is in the result.
pub fn cut<R: BufRead>(
    mut reader: TraceReader<R>,
    cut: &Cut,
    out: impl Write,
    proceeds: &mut dyn FnMut(u64) -> bool,
) -> Result<CutTrace, TraceError> {
    let header = Header { cut: Some(cut.clone()), ..reader.header().clone() };
    let writer = TraceWriter::new(out, &header)?;
    let mut cutter = Cutter::new(&header, cut, writer);
    let mut result = CutTrace::default();
    for record in reader.by_ref() {
        match record {
            Ok(record) => cutter.record(&record)?,
            Err(error) => {
                result.error = Some(error);
                break;
            }
        }
        result.read += 1;
        if result.read % BETWEEN_CALLS == 0 && !proceeds(result.read) {
            result.interrupted = true;
            break;
        }
    }
    cutter.begin()?;
    (result.written, result.within) = (cutter.written, cutter.within);
    result.periods = cutter.periods;
    cutter.out.finish()?;
    Ok(result)
}

/// Where in the trace it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Within,
    Behind,
}

struct Cutter<'c, W: Write> {
    cut: &'c Cut,
    by_charges: bool,
    out: TraceWriter<W>,
    written: u64,
    periods: u64,
    within: u64,
    /// Until the part begins.
    before: Option<InForce>,
    /// Where the last record with a time was.
    place: Place,
    /// A gap before the next record with a time.
    gap: Option<Record>,
    /// The first records of a period.
    period: Vec<Record>,
    /// Threads that execute.
    running: HashSet<(u32, u64)>,
    /// The instant behind the part whose charges complete it, ns.
    charged: Option<u64>,
    /// All of the part is written, with the ends of what executed.
    complete: bool,
    /// By the dispatcher's numbers: the place of the task in the set.
    places: Vec<u32>,
    /// Places of the tasks that are in the part; empty: all.
    tasks: Vec<u32>,
}

impl<'c, W: Write> Cutter<'c, W> {
    fn new(header: &Header, cut: &'c Cut, out: TraceWriter<W>) -> Cutter<'c, W> {
        let place = |name| header.tasks.iter().position(|task| task == name);
        Cutter {
            cut,
            by_charges: header.host == "user",
            out,
            written: 0,
            periods: 0,
            within: 0,
            before: Some(InForce::default()),
            place: Place::Before,
            gap: None,
            period: Vec::with_capacity(3),
            running: HashSet::new(),
            charged: None,
            complete: false,
            places: Vec::new(),
            tasks: cut.tasks.iter().filter_map(place).map(|place| place as u32).collect(),
        }
    }

    fn record(&mut self, r: &Record) -> Result<(), TraceError> {
        match r.kind {
            kind::TASK_PLACE => self.task_place(r),
            kind::PERIOD..=kind::PERIOD_3 => return self.period(r),
            kind::LOST_RECORDS => {
                let lost = self.gap.map_or(0, |gap| gap.a).saturating_add(r.a);
                self.gap = Some(Record::lost(lost));
                return Ok(());
            }
            _ => {}
        }
        if let Some(at) = r.at() {
            let was = self.place;
            self.place = match at {
                at if at < self.cut.from => Place::Before,
                at if at >= self.cut.to => Place::Behind,
                _ => Place::Within,
            };
            if let Some(gap) = self.gap.take() {
                if (was, self.place) != (Place::Before, Place::Before) && was != Place::Behind {
                    self.begin()?;
                    self.write(&gap)?;
                }
                self.running.clear();
                self.before.iter_mut().for_each(InForce::lost);
            }
        }
        if !self.is_kept(r) {
            return Ok(());
        }
        match r.kind {
            kind::RUNNING if self.place != Place::Behind => {
                self.running.insert((r.small, r.a));
            }
            kind::STOPPED if self.place != Place::Behind => {
                self.running.remove(&(r.small, r.b));
            }
            _ => {}
        }
        match (self.place, &mut self.before) {
            // Hosts may record a time late: it is before the part, and outside of it.
            (Place::Before, None) => Ok(()),
            (Place::Before, Some(before)) => {
                before.record(r);
                Ok(())
            }
            (Place::Within, _) => {
                self.begin()?;
                self.within += 1;
                self.write(r)
            }
            (Place::Behind, _) => self.behind(r),
        }
    }

    /// The ends of what executes when the part ends. The user host's are the charges of the next
    /// instant that has any, and all until then.
    fn behind(&mut self, r: &Record) -> Result<(), TraceError> {
        self.begin()?;
        if kind::TASK_PLACE == r.kind {
            return self.write(r);
        }
        if self.complete {
            return Ok(());
        }
        let charges = r.kind == kind::CHARGE_TASK;
        match self.charged {
            _ if !self.by_charges => {
                if r.kind == kind::STOPPED && self.running.remove(&(r.small, r.b)) {
                    self.write(r)?;
                }
                self.complete = self.running.is_empty();
                return Ok(());
            }
            Some(at) if !charges || r.time != at => {
                self.complete = true;
                return Ok(());
            }
            None if charges => self.charged = Some(r.time),
            _ => {}
        }
        self.write(r)
    }

    /// A period is of the part that its release is in, wherever it is reported.
    fn period(&mut self, r: &Record) -> Result<(), TraceError> {
        if r.kind == kind::PERIOD {
            self.period.clear();
        }
        self.period.push(*r);
        if r.kind != kind::PERIOD_3 {
            return Ok(());
        }
        let [first, second, third] = self.period[..] else { return Ok(()) };
        if self.cut.has(first.time) && self.has_task(first.small) {
            self.begin()?;
            self.periods += 1;
            [first, second, third].iter().try_for_each(|r| self.write(r))?;
        }
        Ok(())
    }

    fn task_place(&mut self, r: &Record) {
        let task = r.small as usize;
        if task < crate::places::MOST_TASKS as usize {
            self.places.resize(self.places.len().max(task + 1), u32::MAX);
            self.places[task] = r.a as u32;
        }
    }

    fn has_task(&self, place: u32) -> bool {
        self.tasks.is_empty() || self.tasks.contains(&place)
    }

    /// Records of other tasks than those asked for are left out, but not what declares them.
    fn is_kept(&self, r: &Record) -> bool {
        if self.tasks.is_empty() || r.kind == kind::TASK_ADD {
            return true;
        }
        let about = task_of(r).filter(|_| r.kind != kind::JOB_ADD);
        about.is_none_or(|task| {
            self.places.get(task as usize).is_some_and(|&place| self.has_task(place))
        })
    }

    /// Writes what was in force before the part, once.
    fn begin(&mut self) -> Result<(), TraceError> {
        let Some(before) = self.before.take() else { return Ok(()) };
        before.records(self.cut.from).iter().try_for_each(|r| self.write(r))
    }

    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        self.written += 1;
        self.out.record(r)
    }
}

/// The task of a release or a loss of some.
fn is_release(r: &Record) -> bool {
    matches!(r.kind.wrapping_sub(kind::EVENT), event::RELEASED | event::RELEASES_LOST)
}
