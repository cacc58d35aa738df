//! Threads that go on although they are parked: they have blocked the gate signal.
//!
//! ```text
//!   parked ──in its gate──> at rest
//!     │ executed GRACE since
//!     └──> unruly: into the ordinary class, told once; from now on at every parking, at once
//! ```
//!
//! In the ordinary class it disturbs no job, and what it executes there is not charged. Its level
//! comes back with its next budget.

use crate::engine::{Engine, Note};
use crate::member::{Member, Standing};

/// What a parked thread may execute on its way into the gate, ns: handlers of other signals.
const GRACE: u64 = 1_000_000;

/// What is known of a thread's obedience.
#[derive(Clone, Copy, Debug)]
pub struct Stray {
    /// When it was sent into its gate.
    since: u64,
    /// When to look next whether it went.
    look_at: u64,
    /// What it executed since, ns.
    ran: u64,
    /// It went on once.
    unruly: bool,
    /// It is parked in the ordinary class.
    demoted: bool,
}

impl Stray {
    /// Nothing known.
    pub fn new() -> Stray {
        Stray { since: 0, look_at: u64::MAX, ran: 0, unruly: false, demoted: false }
    }
}

impl Member {
    /// It was sent into its gate.
    pub fn watch(&mut self, now: u64) {
        self.stray = Stray { since: now, look_at: now + GRACE, ran: 0, ..self.stray };
        if self.stray.unruly {
            self.demote();
        }
    }

    /// It may execute again.
    pub fn unwatch(&mut self) {
        self.stray.look_at = u64::MAX;
        self.stray.demoted = false;
    }

    /// When to look whether it went into its gate; `u64::MAX` when it need not be looked for.
    pub fn look_at(&self) -> u64 {
        self.stray.look_at
    }

    /// What it executes is charged: it is not in the ordinary class.
    pub fn is_charged(&self) -> bool {
        self.standing != Standing::Background && !self.stray.demoted
    }

    fn demote(&mut self) {
        self.stray.demoted = true;
        self.stray.look_at = u64::MAX;
        self.set_level(0);
    }
}

impl Engine {
    /// Parked threads that were not in their gates yet when the clocks were read. It is looked for
    /// them once more, and after twice as long again, for they may just not have run.
    pub(crate) fn find_strays(&mut self, now: u64) {
        let Engine { members, moving, notes, .. } = self;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            if m.stray.look_at == u64::MAX {
                continue;
            }
            m.stray.ran += m.ran;
            if m.stray.ran >= GRACE && !m.at_rest() {
                m.stray.unruly = true;
                m.demote();
                drop(notes.push(Note::Unruly(m.track.index)));
            } else if now >= m.stray.look_at {
                m.stray.look_at = now + (now - m.stray.since).max(GRACE);
            }
        }
    }
}
