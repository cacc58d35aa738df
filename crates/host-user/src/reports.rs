//! Reports from an engine to the housekeeper, over two rings of fixed size.
//!
//! The housekeeper is an ordinary thread and may not get the CPU for as long as the machine is
//! busy.
//! - *Notices* change what the control side does, so none may be lost. Their number is bounded: for
//!   each member at most [`NOTICES_PER_MEMBER`], of which the last is `Refused` or `Removed`. The
//!   host hands a member over only while fewer than [`members_in_flight`] have not had their last
//!   notice popped, and the ring has room for all of theirs.
//! - *Reports* come with each release, without bound. One that finds the ring full is counted in
//!   its task's own counter ([`Member::unreported`]), so that periods reported and unreported are
//!   always the periods released.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_dispatcher::Refusal;
use punctual_sys::memory::touched_ring;
use punctual_trace::{Period, PolicyStop};
use rtrb::{Consumer, Producer, PushError};

use crate::member::Member;
use crate::policy_swap::EngineSwap;

/// Capacity for reports that the housekeeper has not read yet. With some 25 ms between its rounds,
/// and a thousand releases per second of each of ten tasks, it may be late by 0.8 s before any are
/// dropped.
const REPORTS: usize = 1 << 13;

/// `Unresponsive`, `Saturated`, `Removed`; or `Refused` alone.
const NOTICES_PER_MEMBER: usize = 3;

/// Members of an engine for `tasks` tasks at one time that may be handed over without their last
/// notice having been popped. The room beyond `tasks` is for those that follow on others that have
/// just ended.
pub fn members_in_flight(tasks: u32) -> usize {
    tasks as usize + 64
}

/// A control message. Those of one member come in this order, each at most once.
pub enum Notice {
    /// The dispatcher refused the set's groups. It begins once, so this comes at most once.
    NotBegun(Refusal),
    /// The dispatcher refused a member.
    Refused(Box<Member>, Refusal),
    /// Policies were swapped; the housekeeper frees those that are not used any more. One swap at a
    /// time is under way.
    Swapped(Box<EngineSwap>),
    /// A policy of the program was stopped: of each group once between two swaps.
    PolicyStopped(PolicyStop),
    /// A member continues to execute although it is parked.
    Unresponsive(u32),
    /// A task has 30,000 delayed waits.
    Saturated(u32),
    /// A member is out of the engine; the housekeeper drops it, because freeing memory is not
    /// real-time safe. `returned`: its thread returned.
    Removed { member: Box<Member>, returned: bool },
}

/// One or more releases of one task.
pub enum Report {
    /// A finished release.
    Released(Period),
    /// `count` releases in a row that were never made, `interval` ns apart.
    NotReleased { first: Period, count: u64, interval: u64 },
}

impl Report {
    /// Number of releases.
    fn releases(&self) -> u64 {
        match self {
            Report::Released(_) => 1,
            Report::NotReleased { count, .. } => *count,
        }
    }

    /// Each release by itself.
    pub fn periods(self) -> impl Iterator<Item = Period> {
        let (first, count, interval) = match self {
            Report::Released(period) => (period, 1, 0),
            Report::NotReleased { first, count, interval } => (first, count, interval),
        };
        (0..count).map(move |n| Period {
            number: first.number + n,
            release: first.release.saturating_add(n.saturating_mul(interval)),
            deadline: first.deadline.saturating_add(n.saturating_mul(interval)),
            ..first
        })
    }
}

/// The engine's end of the notices.
pub struct NoticeSender(Producer<Notice>);

impl NoticeSender {
    /// Real-time safe: there is always room, see above.
    pub fn send(&mut self, notice: Notice) {
        let sent = self.0.push(notice);
        debug_assert!(sent.is_ok(), "more notices than members in flight permit");
    }
}

/// The engine's end of the reports.
pub struct ReportSender(Producer<Report>);

impl ReportSender {
    /// Real-time safe. Counts its releases in `unreported` when there is no room.
    pub fn send(&mut self, report: Report, unreported: &AtomicU64) {
        if let Err(PushError::Full(dropped)) = self.0.push(report) {
            unreported.fetch_add(dropped.releases(), Relaxed);
        }
    }
}

/// Both rings of an engine for `tasks` tasks at one time, and so many scheduling groups.
#[allow(clippy::type_complexity)]
pub fn channels(
    tasks: u32,
    groups: u32,
) -> ((NoticeSender, ReportSender), (Consumer<Notice>, Consumer<Report>)) {
    // `NotBegun` and `Swapped` beside them, and `PolicyStopped` before and after a swap.
    let notices = NOTICES_PER_MEMBER * members_in_flight(tasks) + 2 + 2 * groups as usize;
    let (notices_in, notices) = touched_ring(notices, || Notice::Unresponsive(0));
    let (reports_in, reports) =
        touched_ring(REPORTS, || Report::Released(Period::lost(0, 0, 0, 0, 0)));
    ((NoticeSender(notices_in), ReportSender(reports_in)), (notices, reports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrb::RingBuffer;

    #[test]
    fn periods_reported_and_unreported_are_the_periods_released() {
        let (ring, mut reports) = RingBuffer::new(3);
        let (mut sender, unreported) = (ReportSender(ring), AtomicU64::new(0));
        let period = |number| Period::lost(0, number, 10 * number, 10 * number + 10, 5);
        sender.send(Report::Released(period(0)), &unreported);
        sender
            .send(Report::NotReleased { first: period(1), count: 200, interval: 10 }, &unreported);
        sender.send(Report::Released(period(201)), &unreported);
        sender
            .send(Report::NotReleased { first: period(202), count: 50, interval: 10 }, &unreported);
        sender.send(Report::Released(period(252)), &unreported);
        let mut periods = Vec::new();
        while let Ok(report) = reports.pop() {
            periods.extend(report.periods());
        }
        assert!(periods.iter().enumerate().all(|(n, p)| *p == period(n as u64)), "{periods:?}");
        assert_eq!((periods.len() as u64, unreported.into_inner()), (202, 51));
    }
}
