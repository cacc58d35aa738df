//! A trace as a picture for Perfetto or Chrome.

mod chrome;
mod drawing;
mod perfetto;
mod protobuf;

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};

use punctual_trace::{Header, JobEnd, Period, TraceError, NEVER};

use crate::{Moment, Timeline, What};
use chrome::Chrome;
use drawing::{Drawing, Label, Names, Track};
use perfetto::Perfetto;

/// Ends of jobs that are kept of each task until their periods are read.
const ENDS_KEPT: usize = 64;
/// Moments between two calls of `proceeds`.
const BETWEEN_CALLS: u64 = 65_536;

/// A format of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON trace events.
    Chrome,
}

/// Draws the traces of one run, one after the other. Its memory is bounded by the set.
pub struct Exporter<'a> {
    drawing: Box<dyn Drawing + 'a>,
    /// By place in the set.
    tasks: Vec<TaskState>,
    flows: u64,
}

/// What is known of a task so far. Times are ns.
#[derive(Debug, Default)]
struct TaskState {
    /// The latest release after which it has not executed, and its flow.
    released: Option<(u64, u64)>,
    /// The latest ends of its jobs.
    ends: VecDeque<(u64, JobEnd)>,
    /// Where the job before ended: the next one is drawn after it.
    drawn: u64,
}

/// What became of one trace.
#[derive(Debug)]
pub struct Exported {
    /// Records that were read.
    pub records: u64,
    /// Records that the run has lost.
    pub lost: u64,
    /// Why it was not read to its end. What stands before was drawn.
    pub error: Option<TraceError>,
    /// `proceeds` ended it.
    pub interrupted: bool,
}

impl<'a> Exporter<'a> {
    /// Begins a picture of the run with this header.
    ///
    /// # Errors
    /// The writer's own.
    pub fn new(out: impl Write + 'a, format: Format, header: &Header) -> io::Result<Exporter<'a>> {
        let names = Names::of(header);
        let drawing: Box<dyn Drawing + 'a> = match format {
            Format::Perfetto => Box::new(Perfetto::new(out, names)?),
            Format::Chrome => Box::new(Chrome::new(out, names)?),
        };
        Ok(Exporter { drawing, tasks: Vec::new(), flows: 0 })
    }

    /// Draws a trace, as far as it can be read. `proceeds` receives the number of records now and
    /// then, and ends it with false.
    ///
    /// # Errors
    /// The writer's own. What is wrong with the trace is in the result.
    pub fn trace<R: BufRead>(
        &mut self,
        timeline: &mut Timeline<R>,
        proceeds: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<Exported> {
        let cpu = timeline.header().cpu;
        let mut exported = Exported { records: 0, lost: 0, error: None, interrupted: false };
        let mut until_call = BETWEEN_CALLS;
        while let Some(moment) = timeline.next() {
            match moment {
                Ok(moment) => {
                    if let What::LostRecords { count } = moment.what {
                        exported.lost = exported.lost.saturating_add(count);
                    }
                    self.moment(cpu, &moment)?;
                }
                Err(error) => exported.error = Some(error),
            }
            until_call -= 1;
            if until_call == 0 {
                until_call = BETWEEN_CALLS;
                if !proceeds(timeline.records()) {
                    exported.interrupted = true;
                    break;
                }
            }
        }
        exported.records = timeline.records();
        Ok(exported)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// The writer's own.
    pub fn finish(mut self) -> io::Result<()> {
        self.drawing.finish()
    }

    fn task(&mut self, task: u32) -> &mut TaskState {
        let at = task as usize;
        if self.tasks.len() <= at {
            self.tasks.resize_with(at + 1, TaskState::default);
        }
        &mut self.tasks[at]
    }

    fn moment(&mut self, cpu: u32, moment: &Moment) -> io::Result<()> {
        let at = moment.at;
        let (track, label, number) = match moment.what {
            What::Released { task, number, .. } => {
                return self.released(task, Label::Release, at, Some(number))
            }
            What::JobAdded { task, start, .. } => {
                return self.released(task, Label::JobAdded, start.max(at), None)
            }
            What::Executed { task, from, background } => {
                return self.executed(cpu, task, (from, at), background)
            }
            What::Remaining { task, budget } => return self.drawing.counter(task, at, budget),
            What::Period(period) => return self.period(&period),
            What::JobEnded { task, end, .. } => {
                if let Some(task) = task {
                    let ends = &mut self.task(task).ends;
                    if ends.len() == ENDS_KEPT {
                        ends.pop_front();
                    }
                    ends.push_back((at, end));
                }
                return Ok(());
            }
            What::ReleasesLost { task, first, .. } => {
                (Track::Jobs(task), Label::ReleasesLost, Some(first))
            }
            What::WindowEnded { task, .. } => (Track::Jobs(task), Label::WindowEnded, None),
            What::Gone { task } => (Track::Jobs(task), Label::Gone, None),
            What::SegmentEnded { node, .. } => {
                (Track::Cpu(cpu), Label::SegmentEnded, Some(node.into()))
            }
            What::Group { group, active } => {
                let label = if active { Label::GroupActive } else { Label::GroupIdle };
                (Track::Cpu(cpu), label, Some(group.into()))
            }
            What::LostRecords { count } => (Track::Cpu(cpu), Label::LostRecords, Some(count)),
            // Periods have all overruns.
            What::Overrun { .. } => return Ok(()),
            // Execution shows the effect of these.
            What::Ready { .. }
            | What::Blocked { .. }
            | What::Done { .. }
            | What::Selected { .. } => return Ok(()),
        };
        self.drawing.instant(track, label, at, number, None)
    }

    fn released(
        &mut self,
        task: u32,
        label: Label,
        at: u64,
        number: Option<u64>,
    ) -> io::Result<()> {
        self.flows += 1;
        let flow = self.flows;
        self.task(task).released = Some((at, flow));
        self.drawing.instant(Track::Jobs(task), label, at, number, Some(flow))
    }

    /// Execution across a release is cut there, so that each job has its own.
    fn executed(
        &mut self,
        cpu: u32,
        task: u32,
        (from, to): (u64, u64),
        background: bool,
    ) -> io::Result<()> {
        let released = self.task(task).released.take_if(|(at, _)| *at < to);
        match released {
            Some((at, flow)) if at > from => {
                self.executes(cpu, task, (from, at), background, None)?;
                self.executes(cpu, task, (at, to), background, Some(flow))
            }
            released => {
                self.executes(cpu, task, (from, to), background, released.map(|(_, flow)| flow))
            }
        }
    }

    fn executes(
        &mut self,
        cpu: u32,
        task: u32,
        time: (u64, u64),
        background: bool,
        flow: Option<u64>,
    ) -> io::Result<()> {
        let label = if background { Label::Background } else { Label::Executes };
        self.drawing.slice(Track::Cpu(cpu), Label::Task(task), time, None, None)?;
        self.drawing.slice(Track::Execution(task), label, time, None, flow)
    }

    fn period(&mut self, period: &Period) -> io::Result<()> {
        let (task, number) = (period.task, Some(period.number));
        let state = self.task(task);
        let from = period.release.max(state.drawn);
        let end = end_of(period, &state.ends).max(from);
        state.ends.retain(|&(at, _)| at > end);
        let jobs = Track::Jobs(task);
        if !was_never_made(period) {
            state.drawn = end;
            self.drawing.slice(jobs, Label::Task(task), (from, end), number, None)?;
            if period.overrun {
                self.drawing.instant(jobs, Label::Overrun, end, number, None)?;
            }
        }
        if period.deadline == NEVER {
            return Ok(());
        }
        self.drawing.instant(jobs, Label::Deadline, period.deadline, number, None)?;
        if period.miss {
            self.drawing.instant(jobs, Label::Missed, period.deadline, number, None)?;
        }
        Ok(())
    }
}

/// When the job of a period ended, as far as the trace has it; else its deadline.
fn end_of(period: &Period, ends: &VecDeque<(u64, JobEnd)>) -> u64 {
    let recorded = ends.iter().find(|&&(at, end)| at >= period.release && end == period.end);
    match (period.completed, recorded) {
        (NEVER, Some(&(at, _))) => at,
        (NEVER, None) if period.deadline == NEVER => period.release,
        (NEVER, None) => period.deadline,
        (completed, _) => completed,
    }
}

/// [`Period::lost`].
fn was_never_made(p: &Period) -> bool {
    *p == Period::lost(p.task, p.number, p.release, p.deadline, p.assigned)
}
