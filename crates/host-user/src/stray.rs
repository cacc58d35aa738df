//! Members that go on although they are parked: threads that have blocked the gate signal, and programs inside the
//! kernel, which neither freezer nor stop signals can reach before they leave it.
//!
//! ```text
//!   parked ──in its gate, frozen──> at rest
//!     │ executed GRACE since
//!     └──> into the ordinary class, told once
//! ```
//!
//! In the ordinary class it disturbs no job, and what it executes there is not charged. Its level
//! comes back with its next budget. A thread that did it once is put there at each of its parkings from
//! then on, at once; a program is not, for it cannot know how long a call takes.
//!
//! A program whose freezer is not written yet (`freezer.rs`: a write may wait for a lock of the
//! kernel) executes too. It is lowered into the ordinary class after 100 us, where an ordinary
//! holder of that lock gets the CPU beside it. That is not the program's doing: what it executes
//! there is charged, as enforcement error, and is not reported.
//!
//! A call may also never end at a real-time level: inside the kernel threads wait for others by trying again
//! and again (docs/faults.md, "What spins inside the kernel"), which then need the CPU.

use punctual_process::Park;

use crate::engine::Engine;
use crate::member::{Member, Standing, Who};
use crate::reports::Notice;

/// What a parked member may execute on its way to rest, ns: handlers of other signals, short system calls.
const GRACE: u64 = 1_000_000;

/// A program that cannot be frozen, asleep inside the kernel, is taken to be at rest after so many looks, each
/// after twice the time, at which it had executed nothing.
const IDLE_LOOKS: u32 = 4;

/// What is known of a member's obedience.
#[derive(Clone, Copy, Debug)]
pub struct Stray {
    /// When it was parked.
    since: u64,
    /// When to look next whether it came to rest.
    look_at: u64,
    /// What it executed since, ns.
    ran: u64,
    /// It was parked at this very instant: nothing can be known yet.
    fresh: bool,
    /// Looks in a row at which it had executed nothing.
    idle: u32,
    /// It went on once.
    unruly: bool,
    /// It is parked in the ordinary class.
    demoted: bool,
}

impl Stray {
    /// Nothing known.
    pub fn new() -> Stray {
        Stray { since: 0, look_at: u64::MAX, ran: 0, fresh: false, idle: 0, unruly: false, demoted: false }
    }
}

impl Member {
    /// It was parked.
    pub fn watch(&mut self, now: u64) {
        self.stray = Stray { since: now, look_at: now + GRACE, ran: 0, fresh: true, idle: 0, ..self.stray };
        if self.stray.unruly && matches!(self.who, Who::Thread(_)) {
            self.demote();
        }
    }

    /// It may execute again.
    pub fn unwatch(&mut self) {
        self.stray.look_at = u64::MAX;
        self.stray.demoted = false;
    }

    /// When to look whether it came to rest; `u64::MAX` when it need not be looked for.
    pub fn look_at(&self) -> u64 {
        self.stray.look_at
    }

    /// What it executes is charged: it is not in the ordinary class.
    pub fn is_charged(&self) -> bool {
        self.standing != Standing::Background && !self.stray.demoted
    }

    /// What it executed since the last event at a job's level although it is parked, ns.
    pub fn ran_on_its_way(&self) -> u64 {
        if self.standing == Standing::Parked && self.is_charged() {
            self.ran
        } else {
            0
        }
    }

    /// Whether a parked program stands still. Real-time safe.
    pub fn has_settled(&self, park: &Park) -> bool {
        !self.stray.fresh
            && match park.stands_still() {
                Some(still) => still || self.stray.idle >= IDLE_LOOKS,
                // One look that finds nothing executed must do.
                None => self.stray.idle > 0,
            }
    }

    fn demote(&mut self) {
        self.stray.demoted = true;
        self.stray.look_at = u64::MAX;
        self.set_level(0);
    }
}

impl Engine {
    /// Parked members that were not at rest yet when the clocks were read. It is looked for
    /// them once more, and after twice as long again, for they may just not have run.
    pub(crate) fn find_strays(&mut self, now: u64) {
        let Engine { members, moving, notices, .. } = self;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            m.stray.fresh = false;
            if m.stray.look_at == u64::MAX {
                continue;
            }
            if m.standing == Standing::Parked && m.freezer_is_pending() {
                m.stray.ran = 0;
                let waited = now.saturating_sub(m.stray.since);
                if m.freezer_waits(waited) {
                    m.set_level(0);
                }
                if now >= m.stray.look_at {
                    m.stray.look_at = now + waited.max(GRACE);
                }
                continue;
            }
            m.stray.ran += m.ran;
            if m.stray.ran >= GRACE && !m.at_rest() {
                m.demote();
                if !std::mem::replace(&mut m.stray.unruly, true) {
                    notices.send(Notice::Unresponsive(m.periods.params().task));
                }
            } else if now >= m.stray.look_at {
                m.stray.idle = if m.ran == 0 { m.stray.idle + 1 } else { 0 };
                m.stray.look_at = now + (now - m.stray.since).max(GRACE);
            }
        }
    }
}
