//! The ends of the jobs that the program adds, from a host to the program: a ring of fixed size for
//! each CPU, and one count for all, which a thread or `poll` waits for.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::End;
use punctual_policies::{AddedJob, GroupJob, JobParams, JobRefusal, ReleaseEvent};
use punctual_sys::event_count::EventCount;
use punctual_sys::memory::touched_ring;
use punctual_taskset::TaskSet;
use rtrb::{Consumer, Producer};

use crate::refusals::no_group;
use crate::{events_taken, has_jobs};

/// Events of a CPU that wait for their reader.
const EVENTS: usize = 1 << 10;
/// Counts that readers find when the run is over: more than there are reads.
const OVER: u64 = 1 << 48;

/// The end of a job that the program added. Times are CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// When it ended.
    pub at: u64,
    /// The job.
    pub id: u64,
    /// As it was given with the job.
    pub cookie: u64,
    /// How it ended.
    pub end: AddedJobEnd,
    /// Its execution time, ns.
    pub used: u64,
    /// What is left of its budget for other jobs of the task, ns.
    pub remaining: u64,
}

impl JobEvent {
    /// Of the end of a job; `None`: of another event.
    #[must_use]
    pub fn of(event: &ReleaseEvent) -> Option<JobEvent> {
        let ReleaseEvent::JobEnded { at, id, cookie, end, used, remaining, .. } = *event else {
            return None;
        };
        Some(JobEvent { at, id, cookie, end: end.into(), used, remaining })
    }

    pub(crate) fn refused(job: &AddedJob, why: JobRefusal, at: u64) -> JobEvent {
        let AddedJob { id, cookie, ref params, .. } = *job;
        JobEvent::refusal((id, cookie), params, why, at)
    }

    pub(crate) fn refused_of_group(job: &GroupJob, why: JobRefusal, at: u64) -> JobEvent {
        let GroupJob { id, cookie, ref params, .. } = *job;
        JobEvent::refusal((id, cookie), params, why, at)
    }

    fn refusal((id, cookie): (u64, u64), job: &JobParams, why: JobRefusal, at: u64) -> JobEvent {
        let end = AddedJobEnd::Refused(why);
        JobEvent { at, id, cookie, end, used: 0, remaining: job.budget }
    }
}

/// How a job that the program added ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddedJobEnd {
    /// Its task called `wait_period`.
    Completed,
    /// Its budget was used up.
    Exhausted,
    /// Its finish came.
    Expired,
    /// It was cancelled.
    Cancelled,
    /// Its task ended.
    TaskGone,
    /// The dispatcher did not take it.
    Refused(JobRefusal),
}

impl From<End> for AddedJobEnd {
    fn from(end: End) -> AddedJobEnd {
        match end {
            End::Completed => AddedJobEnd::Completed,
            End::Exhausted => AddedJobEnd::Exhausted,
            End::Expired => AddedJobEnd::Expired,
            End::Cancelled => AddedJobEnd::Cancelled,
            End::TaskGone => AddedJobEnd::TaskGone,
        }
    }
}

/// Why there is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEvent {
    /// There was none in time.
    TimedOut,
    /// The run is over, and its events were read.
    Over,
}

/// What both sides share.
#[derive(Debug)]
struct Shared {
    count: EventCount,
    dropped: AtomicU64,
    over: AtomicBool,
}

/// The program's end: one reader has it. Its descriptor is readable while there is an event, or the
/// run is over.
pub struct JobEvents {
    rings: Vec<Consumer<JobEvent>>,
    shared: Arc<Shared>,
}

impl JobEvents {
    /// The next event, in the order of each CPU; waits for it until `until` (CLOCK_MONOTONIC ns;
    /// `u64::MAX` for ever; a time gone by does not wait). Neither allocates nor locks.
    ///
    /// # Errors
    /// See [`NoEvent`].
    pub fn next(&mut self, until: u64) -> Result<JobEvent, NoEvent> {
        loop {
            if self.shared.count.take() {
                // Each count follows its event; those of the end follow all.
                if let Some(event) = self.rings.iter_mut().find_map(|ring| ring.pop().ok()) {
                    return Ok(event);
                }
                if self.shared.over.load(SeqCst) {
                    return Err(NoEvent::Over);
                }
            }
            if punctual_sys::clock::monotonic_ns() >= until {
                return Err(NoEvent::TimedOut);
            }
            self.shared.count.wait(until);
        }
    }

    /// Events that are missing, since the last call: the reader was too slow for the ring of 1,024
    /// events that each CPU has, or the task of a job ended when the job was added.
    pub fn take_dropped(&mut self) -> u64 {
        self.shared.dropped.swap(0, Relaxed)
    }
}

impl std::fmt::Debug for JobEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobEvents").finish_non_exhaustive()
    }
}

impl AsFd for JobEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.count.as_fd()
    }
}

/// The end of a thread that executes the policies of a CPU.
#[derive(Debug)]
pub struct JobEventSender {
    ring: Producer<JobEvent>,
    shared: Arc<Shared>,
}

impl JobEventSender {
    /// Real-time safe. Counts the event as dropped when there is no room.
    pub fn send(&mut self, event: JobEvent) {
        match self.ring.push(event) {
            Ok(()) => self.shared.count.add(1),
            Err(_) => drop(self.shared.dropped.fetch_add(1, Relaxed)),
        }
    }

    /// The same for the end of a job; other events are not for the program. Real-time safe.
    pub fn send_end(&mut self, event: &ReleaseEvent) {
        JobEvent::of(event).into_iter().for_each(|event| self.send(event));
    }
}

/// The host's end: makes those of its CPUs, hands over the reader's, and ends all.
#[derive(Debug)]
pub struct JobEventRings {
    shared: Arc<Shared>,
    rings: Option<Vec<Consumer<JobEvent>>>,
}

impl JobEventRings {
    /// For a set; `None`: the program adds no jobs to it.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn of(set: &TaskSet) -> Result<Option<JobEventRings>, Diagnostic> {
        if !has_jobs(set) {
            return Ok(None);
        }
        let count = EventCount::new().map_err(|e| {
            let cause = format!("no descriptor for the events of jobs: {e}");
            Diagnostic::machine(cause, "raise RLIMIT_NOFILE")
        })?;
        let shared = Shared { count, dropped: AtomicU64::new(0), over: AtomicBool::new(false) };
        Ok(Some(JobEventRings { shared: Arc::new(shared), rings: Some(Vec::new()) }))
    }

    /// For one more CPU; before the reader's end is taken.
    pub fn sender(&mut self) -> JobEventSender {
        let filler = JobEvent {
            at: 0,
            id: 0,
            cookie: 0,
            end: AddedJobEnd::Completed,
            used: 0,
            remaining: 0,
        };
        let (ring, events) = touched_ring(EVENTS, || filler);
        if let Some(rings) = &mut self.rings {
            rings.push(events);
        }
        JobEventSender { ring, shared: self.shared.clone() }
    }

    /// The reader's end, once.
    ///
    /// # Errors
    /// The program adds no jobs (`None`), or it was taken before (EBUSY).
    pub fn take_reader(this: Option<&mut JobEventRings>) -> Result<JobEvents, Diagnostic> {
        let this = this.ok_or_else(no_group)?;
        let rings = this.rings.take().ok_or_else(events_taken)?;
        Ok(JobEvents { rings, shared: this.shared.clone() })
    }

    /// So many events could not be sent.
    pub fn count_dropped(&self, events: u64) {
        self.shared.dropped.fetch_add(events, Relaxed);
    }

    /// The run is over: no event follows, and readers do not wait any more.
    pub fn end(&self) {
        self.shared.over.store(true, SeqCst);
        self.shared.count.add(OVER);
    }
}
