//! Threads of other programs that wait for their releases by a page (`punctual-wait-page`).
//!
//! A thread that begins to wait leaves its CPU to the next level, and the engine finds the wait at
//! its next event, before the releases of that time. Until then the thread counts as one that
//! suspended itself, so that no budget depends on when the wait is found. A thread that executes
//! although it waits has no job, and is parked.

use punctual_dispatcher::Wait;
use punctual_policies::NewRelease;
use punctual_wait_page::PageRelease;

use crate::engine::Engine;
use crate::member::{Member, RunMode};

/// Waits of one thread that one event handles: all that are answered in advance, and one more.
const AT_ONCE: u32 = 65;

/// Members that wait by pages.
pub(crate) struct PageWaits {
    all: Vec<u32>,
    /// Those that had begun to wait when this event began.
    found: Vec<u32>,
    /// A wait was answered at this event.
    pub answered: bool,
}

impl PageWaits {
    /// For so many members.
    pub fn new(limit: usize) -> PageWaits {
        let (all, found) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
        PageWaits { all, found, answered: false }
    }

    pub fn add(&mut self, slot: u32) {
        self.all.push(slot);
    }

    pub fn remove(&mut self, slot: u32) {
        self.all.retain(|&i| i != slot);
        self.found.retain(|&i| i != slot);
    }

    /// No member has begun to wait.
    pub fn is_quiet(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether this one has.
    pub fn has(&self, slot: u32) -> bool {
        self.found.contains(&slot)
    }
}

impl Member {
    /// Publishes a release to a thread that waits by a page, with its budget and the releases lost
    /// since the last one, and answers its waits: `late` of them in advance. Whether it waits so.
    /// One that is suspended waits on, and gets what it lost with the release that resumes it.
    pub fn publish(&mut self, next: &NewRelease, (budget, lost): (u64, u32), late: u32) -> bool {
        let Some(page) = &mut self.page else { return false };
        let NewRelease { number, release, deadline, .. } = *next;
        let lost = lost.saturating_add(std::mem::take(&mut self.lost));
        if self.suspended {
            self.lost = lost;
            return false;
        }
        let exhausted_at = self.charged.saturating_add(budget);
        page.publish(&PageRelease { number, release, deadline, budget, lost }, exhausted_at);
        page.answer(late);
        true
    }
}

impl Engine {
    /// Finds the threads that have begun to wait: before execution is charged.
    pub(crate) fn find_page_waits(&mut self) {
        let Engine { pages, members, .. } = self;
        pages.found.clear();
        // One that waits already has nothing to ask.
        let has_asked =
            |m: &Member| !m.waiting && m.page.as_ref().is_some_and(|page| page.has_asked());
        for &i in &pages.all {
            if members[i as usize].as_deref().is_some_and(has_asked) {
                pages.found.push(i);
            }
        }
    }

    /// Completes the jobs of the threads that were found.
    pub(crate) fn drain_page_waits(&mut self, now: u64) {
        for k in 0..self.pages.found.len() {
            let i = self.pages.found[k];
            self.serve_page_waits(i, now);
            self.follow_suspension(i, now);
        }
    }

    fn serve_page_waits(&mut self, i: u32, now: u64) {
        let Engine { dispatcher, allocators, members, pages, .. } = self;
        let Some(m) = members[i as usize].as_deref_mut() else { return };
        if std::mem::take(&mut m.asleep) {
            let _ = dispatcher.task_ready(m.task, now);
        }
        m.periods.waits();
        for _ in 0..AT_ONCE {
            let Some(page) = m.page.as_mut().filter(|page| page.has_asked()) else { break };
            page.serve();
            let done = allocators.done(dispatcher, m.task, now);
            if done == Ok(Wait::Ignored) && !m.suspension.is_wanted() {
                page.answer(0);
                pages.answered = true;
                continue;
            }
            m.waiting = true;
            if m.run_mode == RunMode::Background {
                m.park();
            }
            break;
        }
    }

    /// Wakes the threads whose waits were answered: each has its level by now.
    pub(crate) fn wake_page_waits(&mut self) {
        let Engine { pages, members, .. } = self;
        if !std::mem::take(&mut pages.answered) {
            return;
        }
        for &i in &pages.all {
            if let Some(page) = members[i as usize].as_deref_mut().and_then(|m| m.page.as_mut()) {
                page.wake();
            }
        }
    }
}
