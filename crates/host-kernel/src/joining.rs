//! The tasks of a domain, as its thread knows them, and their threads' way into the dispatcher.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{End, Refusal, TaskId};
use punctual_policies::ReleaseEvent;
use punctual_taskset::Overrun;
use punctual_wait_page::SealedPage;

use crate::abi::{ALONE, COOPERATES, IN_BACKGROUND, LATE};
use crate::diagnostics::not_done_here;
use crate::domain::DomainEvent;
use crate::gsi::KernelGsi;
use crate::members;

/// The index of no task.
pub(crate) const NO_INDEX: usize = usize::MAX;

/// Which threads of a process become a task's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// All that there are, and its children's.
    All,
    /// Its only one. Others and children that it starts later are members by birth.
    First,
    /// The one that has the process's number, and none that it starts.
    Alone,
}

/// Whose threads become a task's members.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    /// The task's: its place in the set, or a later one.
    pub index: usize,
    /// Its first process, or its single thread.
    pub pid: i32,
    /// Its sched_yield ends its job.
    pub cooperates: bool,
    pub threads: Threads,
    /// Holds on to the process, whatever its number is given to.
    pub pidfd: Arc<OwnedFd>,
    pub overrun: Overrun,
    /// Of a thread that waits for its releases.
    pub page: Option<SealedPage>,
}

impl Joining {
    /// Flags of the command that ends a release which an allocator made, without the task's wait;
    /// `None`: no command.
    pub fn over(&self, end: End) -> Option<u32> {
        let overran = matches!(end, End::Exhausted | End::Expired);
        let late = if overran && self.overrun != Overrun::Skip { LATE } else { 0 };
        let background =
            if overran && self.overrun == Overrun::Background { IN_BACKGROUND } else { 0 };
        let asked = self.cooperates || background != 0;
        (asked && !matches!(end, End::Completed | End::TaskGone)).then_some(late | background)
    }

    fn flags(&self) -> u32 {
        let alone = if self.threads == Threads::Alone { ALONE } else { 0 };
        alone | if self.cooperates { COOPERATES } else { 0 }
    }
}

/// Those of one domain that are in its dispatcher.
#[derive(Debug)]
pub(crate) struct Members {
    /// By number in the dispatcher.
    by_number: Vec<Option<Joining>>,
    /// Tasks of the set, of all domains.
    of_the_set: usize,
}

impl Members {
    pub fn new(of_the_set: usize) -> Members {
        Members { by_number: Vec::new(), of_the_set }
    }

    /// Numbers and indices.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, usize)> + '_ {
        let all = self.by_number.iter().enumerate();
        all.filter_map(|(number, one)| Some((TaskId(number as u32), one.as_ref()?.index)))
    }

    pub fn of(&self, task: TaskId) -> Option<&Joining> {
        self.by_number.get(task.0 as usize)?.as_ref()
    }

    /// The number of the task of this index.
    pub fn number(&self, index: usize) -> Option<TaskId> {
        self.iter().find(|(_, of)| *of == index).map(|(task, _)| task)
    }

    pub fn remove(&mut self, task: TaskId) {
        self.by_number.get_mut(task.0 as usize).into_iter().for_each(|one| *one = None);
    }

    /// The allocators' place for a task that is not the set's.
    pub fn slot(&self, task: TaskId) -> usize {
        self.of_the_set + task.0 as usize
    }

    /// The index of the task that an event is about. A task of the set has it as its place, others
    /// have places by their numbers.
    pub fn index_at(&self, event: &ReleaseEvent) -> usize {
        match *event {
            ReleaseEvent::Released { task, .. }
            | ReleaseEvent::Replenished { task, .. }
            | ReleaseEvent::Ended { task, .. }
            | ReleaseEvent::Lost { task, .. }
            | ReleaseEvent::Overrun { task, .. }
            | ReleaseEvent::Background { task, .. }
            | ReleaseEvent::DelayedSaturated { task, .. } => {
                self.of(task).map_or(NO_INDEX, |one| one.index)
            }
            ReleaseEvent::EventsLost { .. }
            | ReleaseEvent::JobEnded { .. }
            | ReleaseEvent::PolicyStopped(_) => NO_INDEX,
        }
    }

    /// A task becomes the dispatcher's, with these threads; [`insert`](Members::insert) follows.
    /// `None`: threads of the task that had the next number last are still to leave its queue.
    ///
    /// # Errors
    /// No room, no such thread, one that cannot be a member; nothing is left then. The kernel's
    /// failure.
    pub fn join(
        &self,
        gsi: &mut KernelGsi<'_>,
        one: &Joining,
        say: &dyn Fn(DomainEvent) -> bool,
    ) -> Result<Option<TaskId>, Diagnostic> {
        say(DomainEvent::Joins(one.index));
        let task = gsi.add_task();
        say(DomainEvent::Joined(one.index, task.ok()));
        gsi.check()?;
        let task = match task {
            Ok(task) => task,
            Err(Refusal::Busy) => return Ok(None),
            Err(e) => return Err(not_done_here(format!("no room for a task: {e}"))),
        };
        let flags = one.flags();
        let mut add = |thread| gsi.join(task, thread, flags);
        let joined = match one.threads {
            Threads::All => members::join_all(one.pid, &mut add),
            Threads::First | Threads::Alone => members::join_one(one.pid, &mut add),
        };
        gsi.check()?;
        if let Err(e) = joined {
            // Refused where it has been removed already, with its last thread.
            let _ = gsi.retire(task);
            return Err(e);
        }
        Ok(Some(task))
    }

    /// A task that has joined has this number. The index of one that had it: its last thread has
    /// left, and its removal is still to be requested.
    pub fn insert(&mut self, task: TaskId, one: Joining) -> Option<usize> {
        let number = task.0 as usize;
        if self.by_number.len() <= number {
            self.by_number.resize_with(number + 1, || None);
        }
        self.by_number[number].replace(one).map(|before| before.index)
    }
}
