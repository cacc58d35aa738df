//! What a picture of a schedule consists of, whatever its format.

use std::borrow::Cow;
use std::io;

use punctual_trace::Header;

/// A line of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Track {
    /// What executes on a CPU.
    Cpu(u32),
    /// A task's jobs, from release to end, by its place in the set.
    Jobs(u32),
    /// When a task executes.
    Execution(u32),
    /// What a task's job may still execute.
    Remaining(u32),
}

impl Track {
    /// The track below which it stands.
    pub fn parent(self) -> Option<Track> {
        match self {
            Track::Cpu(_) | Track::Jobs(_) => None,
            Track::Execution(task) | Track::Remaining(task) => Some(Track::Jobs(task)),
        }
    }
}

/// The name of a slice or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// The task's.
    Task(u32),
    Executes,
    Background,
    Release,
    JobAdded,
    ReleasesLost,
    Deadline,
    Missed,
    Overrun,
    WindowEnded,
    SegmentEnded,
    GroupActive,
    GroupIdle,
    Gone,
    LostRecords,
}

impl Label {
    /// All but the tasks', with their texts.
    pub const FIXED: [(Label, &'static str); 14] = [
        (Label::Executes, "executes"),
        (Label::Background, "executes in the background"),
        (Label::Release, "release"),
        (Label::JobAdded, "job added"),
        (Label::ReleasesLost, "releases lost"),
        (Label::Deadline, "deadline"),
        (Label::Missed, "deadline missed"),
        (Label::Overrun, "overrun"),
        (Label::WindowEnded, "window ended"),
        (Label::SegmentEnded, "segment of a budget group ended"),
        (Label::GroupActive, "group active"),
        (Label::GroupIdle, "group idle"),
        (Label::Gone, "task ended"),
        (Label::LostRecords, "records lost"),
    ];
}

/// The names of tasks and tracks.
#[derive(Debug, Clone)]
pub(super) struct Names {
    host: String,
    policy: String,
    tasks: Vec<String>,
}

impl Names {
    pub fn of(header: &Header) -> Names {
        Names {
            host: header.host.clone(),
            policy: header.policy.clone(),
            tasks: header.tasks.clone(),
        }
    }

    pub fn label(&self, label: Label) -> Cow<'_, str> {
        match label {
            Label::Task(task) => self.task(task),
            fixed => Label::FIXED
                .iter()
                .find(|(label, _)| *label == fixed)
                .map_or("", |(_, text)| text)
                .into(),
        }
    }

    pub fn track(&self, track: Track) -> Cow<'_, str> {
        match track {
            Track::Cpu(cpu) => format!("CPU {cpu} ({} host, {})", self.host, self.policy).into(),
            Track::Jobs(task) => self.task(task),
            Track::Execution(_) => "execution".into(),
            Track::Remaining(_) => "remaining budget".into(),
        }
    }

    /// Of a task that a program added, only its place is known.
    fn task(&self, task: u32) -> Cow<'_, str> {
        match self.tasks.get(task as usize) {
            Some(name) => name.into(),
            None => format!("task {task}").into(),
        }
    }
}

/// Whether the number was not seen before; it is from now on.
pub(super) fn is_new(seen: &mut Vec<bool>, number: u64) -> bool {
    let number = number as usize;
    if seen.len() <= number {
        seen.resize(number + 1, false);
    }
    !std::mem::replace(&mut seen[number], true)
}

/// A format. Times are ns; calls are in no order of time.
pub(super) trait Drawing {
    /// Something that takes time; it may end a flow. `number`: of the release.
    fn slice(
        &mut self,
        track: Track,
        label: Label,
        time: (u64, u64),
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()>;

    /// Something that takes none; it may begin a flow.
    fn instant(
        &mut self,
        track: Track,
        label: Label,
        at: u64,
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()>;

    /// What a task's job may still execute, ns.
    fn counter(&mut self, task: u32, at: u64, value: u64) -> io::Result<()>;

    /// Nothing follows.
    fn finish(&mut self) -> io::Result<()>;
}
