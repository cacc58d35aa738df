//! What the release events of the allocators lead to.

use std::rc::Rc;

use punctual_dispatcher::late_waits::MAX_DELAYED;
use punctual_policies::ReleaseEvent;
use punctual_sys::pidfd;

use super::jobs::ProgramJobs;
use super::{Domain, Key, KeyedEvent};
use crate::gsi::CommandChannel;
use crate::joining::Members;
use crate::page_waits::PageWaits;

/// What the thread of a domain does on a release event.
pub(super) struct Report<'d, 'a> {
    pub channel: Rc<CommandChannel<'a>>,
    pub members: &'d Members,
    pub pages: &'d mut PageWaits,
    pub jobs: &'d mut ProgramJobs,
    pub events: &'d mut Vec<KeyedEvent>,
}

impl<'d, 'a> Report<'d, 'a> {
    pub fn of(domain: &'d mut Domain<'a>) -> Report<'d, 'a> {
        let Domain { gsi, members, pages, jobs, events, .. } = domain;
        Report { channel: gsi.channel(), members, pages, jobs, events }
    }

    /// `reserved`: the kernel has handled it already, as that of a reservation of its dispatcher.
    pub fn event(&mut self, event: ReleaseEvent, key: Key, reserved: bool) {
        let Report { channel, members, pages, jobs, events } = self;
        let mut saturated = None;
        match event {
            ReleaseEvent::Ended { at, task, index, end, .. } if !reserved => {
                let late = members
                    .of(task)
                    .and_then(|member| member.over(end))
                    .map_or(0, |flags| channel.end_release(task, flags));
                saturated = (late == i64::from(MAX_DELAYED))
                    .then_some(ReleaseEvent::DelayedSaturated { at, task, index });
            }
            ReleaseEvent::Overrun { task, .. } if !reserved => {
                // One that has ended needs no signal.
                let member = members.of(task).into_iter();
                member.for_each(|m| drop(pidfd::send(&*m.pidfd, libc::SIGXCPU)));
            }
            ReleaseEvent::JobEnded { .. } => return jobs.ended(&event),
            _ => {}
        }
        let index = members.index_at(&event);
        match event {
            ReleaseEvent::Lost { count, .. } => pages.lost(index, count),
            ReleaseEvent::Released { .. } => pages.released(index),
            _ => {}
        }
        let all = [event].into_iter().chain(saturated);
        events.extend(all.map(|event| KeyedEvent { event, key, index }));
    }
}
