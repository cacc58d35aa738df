//! Threads of other programs that wait for their releases by sched_yield: what their pages say.

use std::collections::BTreeMap;

use punctual_taskset::{Overrun, TaskChange, TaskSpec};
use punctual_wait_page::{DispatcherPage, PageRelease};

use crate::joining::Joining;

/// Those of a domain, by index. A thread whose page is dropped finds that its reservation has
/// ended.
#[derive(Debug, Default)]
pub(crate) struct PageWaits(BTreeMap<usize, YieldPage>);

#[derive(Debug)]
struct YieldPage {
    page: DispatcherPage,
    /// As published, with no lost releases.
    first: PageRelease,
    suspended: bool,
}

impl PageWaits {
    /// A task that is released from `origin` and its offset on, if it has a page. Before its thread
    /// learns that it has a reservation.
    pub fn add(&mut self, joining: &Joining, spec: &TaskSpec, origin: u64) {
        let Some(page) = &joining.page else { return };
        let release = origin.saturating_add(spec.offset);
        let first = PageRelease {
            number: 0,
            release,
            deadline: release.saturating_add(spec.deadline),
            budget: spec.budget,
            lost: 0,
        };
        let skips = spec.overrun == Overrun::Skip;
        let page = DispatcherPage::by_yield(page, &first, spec.period, skips);
        self.0.insert(joining.index, YieldPage { page, first, suspended: false });
    }

    pub fn remove(&mut self, index: usize) {
        self.0.remove(&index);
    }

    /// Other parameters, but the period.
    pub fn change(&mut self, index: usize, change: &TaskChange) {
        let Some(YieldPage { page, first, .. }) = self.0.get_mut(&index) else { return };
        first.budget = change.budget.unwrap_or(first.budget);
        if let Some(deadline) = change.deadline {
            first.deadline = first.release.saturating_add(deadline);
        }
        page.publish(first, 0);
    }

    /// Its thread cannot have so many of its releases.
    pub fn lost(&mut self, index: usize, count: u64) {
        let Some(YieldPage { page, first, .. }) = self.0.get_mut(&index) else { return };
        page.publish(&PageRelease { lost: count as u32, ..*first }, 0);
    }

    /// It had a release, which is lost while it is suspended.
    pub fn released(&mut self, index: usize) {
        if self.0.get(&index).is_some_and(|page| page.suspended) {
            self.lost(index, 1);
        }
    }

    /// Its thread is to execute nothing once it waits; or (`false`) it waits for its next release.
    pub fn set_suspended(&mut self, index: usize, suspended: bool) {
        if let Some(page) = self.0.get_mut(&index).filter(|page| page.suspended != suspended) {
            page.suspended = suspended;
            page.page.toggle_suspension();
        }
    }
}
