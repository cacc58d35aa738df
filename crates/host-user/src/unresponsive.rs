//! Members that execute although they are parked: threads that have blocked the gate signal, and
//! programs inside the kernel, where neither the freezer nor a stop signal takes effect.
//!
//! ```text
//!   parked ──in its gate, frozen──> at rest
//!     │ executed GRACE since
//!     └──> into the ordinary class, reported once
//! ```
//!
//! In the ordinary class it delays no job, and its execution there is not charged. Its next budget
//! restores its level. A thread that did it once is lowered as soon as it is parked from then on; a
//! program is not, because it cannot know how long a system call takes.
//!
//! A program whose freezer is not written yet (`freezer.rs`: a write may wait for a lock of the
//! kernel) executes too. It is lowered into the ordinary class after 100 us, where an ordinary
//! holder of that lock gets the CPU beside it. The program does not cause that: its execution there
//! is charged, as enforcement error, and is not reported.
//!
//! A call may also never end at a real-time level: inside the kernel threads wait for others by
//! trying again and again (docs/faults.md, "What spins inside the kernel"), and the others then
//! need the CPU.

use punctual_process::Park;

use crate::engine::{Engine, SWITCHING};
use crate::member::{Member, MemberKind, RunMode};
use crate::reports::Notice;

/// What a parked member may execute on its way to rest, ns: handlers of other signals, short system
/// calls.
const GRACE: u64 = 1_000_000;

/// A program that cannot be frozen because it sleeps inside the kernel counts as at rest after so
/// many polls, at doubling intervals, at which it had executed nothing.
const IDLE_POLLS: u32 = 4;

/// Whether a parked member comes to rest.
#[derive(Clone, Copy, Debug)]
pub struct ParkWatch {
    /// When it was parked.
    since: u64,
    /// When to poll next whether it came to rest.
    poll_at: u64,
    /// Its execution since then, ns.
    ran: u64,
    /// It was parked at this event: there is no reading yet.
    fresh: bool,
    /// Polls in a row at which it had executed nothing.
    idle: u32,
    /// It executed more than [`GRACE`] while parked, at least once.
    unresponsive: bool,
    /// It is parked in the ordinary class.
    demoted: bool,
}

impl ParkWatch {
    /// Of a member that has not been parked yet.
    pub fn new() -> ParkWatch {
        ParkWatch {
            since: 0,
            poll_at: u64::MAX,
            ran: 0,
            fresh: false,
            idle: 0,
            unresponsive: false,
            demoted: false,
        }
    }

    /// The member is parked in a class in which it is not charged.
    pub fn demote_parked(&mut self) {
        self.demoted = true;
    }
}

impl Member {
    /// Begins to watch a member that was parked.
    pub fn watch(&mut self, now: u64) {
        self.park_watch = ParkWatch {
            since: now,
            poll_at: now + GRACE,
            ran: 0,
            fresh: true,
            idle: 0,
            ..self.park_watch
        };
        let blocks_signal = matches!(self.kind, MemberKind::Thread(_));
        if self.park_watch.unresponsive && blocks_signal || self.wait_samples.found_lately(now) {
            self.demote();
        }
    }

    /// Ends that: the member may execute again.
    pub fn unwatch(&mut self) {
        self.park_watch.poll_at = u64::MAX;
        self.park_watch.demoted = false;
    }

    /// When to poll whether it came to rest; `u64::MAX` when that is not needed.
    pub fn poll_at(&self) -> u64 {
        self.park_watch.poll_at
    }

    /// Whether its execution is charged: it is not in the ordinary class.
    pub fn is_charged(&self) -> bool {
        self.run_mode != RunMode::Background && !self.park_watch.demoted
    }

    /// Its execution since the last event at a job's level although it is parked, ns.
    pub fn ran_on_its_way(&self) -> u64 {
        if self.run_mode == RunMode::Parked && self.is_charged() {
            self.ran
        } else {
            0
        }
    }

    /// Whether a parked program has stopped. Real-time safe.
    pub fn has_settled(&self, park: &Park) -> bool {
        !self.park_watch.fresh
            && match park.stands_still() {
                Some(still) => still || self.park_watch.idle >= IDLE_POLLS,
                // Without that reading, one poll at which it had executed nothing suffices.
                None => self.park_watch.idle > 0,
            }
    }

    fn demote(&mut self) {
        self.park_watch.demoted = true;
        self.park_watch.poll_at = u64::MAX;
        self.set_level(0);
    }
}

impl Engine {
    /// Lowers parked members that still execute. One that is not at rest and has not executed may
    /// just not have run yet: it is polled again, at doubling intervals.
    pub(crate) fn find_unresponsive(&mut self, now: u64) {
        let Engine { members, moving, cpu, notices, .. } = self;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            m.park_watch.fresh = false;
            if m.park_watch.poll_at == u64::MAX {
                continue;
            }
            if m.run_mode == RunMode::Parked && m.freezer_is_pending() {
                m.park_watch.ran = 0;
                let waited = now.saturating_sub(m.park_watch.since);
                if m.freezer_waits(waited) {
                    m.set_level(0);
                }
                if now >= m.park_watch.poll_at {
                    m.park_watch.poll_at = now + waited.max(GRACE);
                }
                continue;
            }
            if cpu.unused > SWITCHING && m.is_kept_by_inheritance(now) {
                m.demote();
                continue;
            }
            m.park_watch.ran += m.ran;
            if m.park_watch.ran >= GRACE && !m.at_rest() {
                m.demote();
                if !std::mem::replace(&mut m.park_watch.unresponsive, true) {
                    notices.send(Notice::Unresponsive(m.periods.params().task));
                }
            } else if now >= m.park_watch.poll_at {
                m.park_watch.idle = if m.ran == 0 { m.park_watch.idle + 1 } else { 0 };
                m.park_watch.poll_at = now + (now - m.park_watch.since).max(GRACE);
            }
        }
    }
}
