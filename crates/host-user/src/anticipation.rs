//! A dispatcher's timer is set ahead of its time, by what the machine takes to wake a thread at
//! least, as RTAI's timers are by its calibrated latency.
//!
//! ```text
//!   timer expires     the thread runs   its time: the event
//!   |---- latency ----|------ spins ----|
//!   |<------------- lead -------------->|     no longer than the least latency of late
//! ```
//!
//! No event comes before its time: who wakes too early spins until then. So the lead follows the
//! least latency, down at once and up slowly, and the spinning is short and seldom. The end of a
//! budget has no lead: the task that is to use the rest of it does not execute meanwhile.

use punctual_sys::clock;

/// The longest lead, ns: so long a dispatcher may spin.
const LONGEST: u64 = 50_000;

/// The lead of one dispatcher's timer.
#[derive(Debug)]
pub(crate) struct Anticipation {
    lead: u64,
    /// The time of the next event, CLOCK_MONOTONIC ns; `u64::MAX`: none.
    until: u64,
    /// What the timer is set to for it.
    set_to: u64,
}

impl Anticipation {
    pub const fn new() -> Anticipation {
        Anticipation { lead: 0, until: u64::MAX, set_to: u64::MAX }
    }

    /// To what the timer is to be set at `now` for an event at `until`; `u64::MAX`: off. One that
    /// comes too soon has no lead: tasks may execute until then.
    pub fn set(&mut self, now: u64, until: u64) -> u64 {
        let ahead = if until == u64::MAX { until } else { until.saturating_sub(self.lead) };
        self.set_to = if ahead > now { ahead } else { until };
        self.until = until;
        self.set_to
    }

    /// The same without a lead.
    pub fn set_exactly(&mut self, until: u64) -> u64 {
        (self.until, self.set_to) = (until, until);
        until
    }

    /// The time at which a thread that woke just now handles that event. One that was woken before
    /// the timer expired does not wait for it.
    pub fn woken(&mut self) -> u64 {
        let mut now = clock::monotonic_ns();
        if now < self.set_to {
            return now;
        }
        self.learn(now - self.set_to);
        // At most for the lead.
        while now < self.until {
            std::hint::spin_loop();
            now = clock::monotonic_ns();
        }
        now
    }

    fn learn(&mut self, latency: u64) {
        self.lead = latency.min(self.lead + self.lead / 16 + 100).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_the_least_latency() {
        let mut anticipation = Anticipation::new();
        assert_eq!(anticipation.set(0, 1_000_000), 1_000_000);
        for latency in [9_000, 30_000].repeat(100) {
            anticipation.learn(latency);
            assert!(anticipation.lead <= 10_000, "{}", anticipation.lead);
        }
        assert!(anticipation.lead >= 9_000);
        for _ in 0..100 {
            anticipation.learn(30_000);
        }
        assert_eq!(anticipation.set(0, 1_000_000), 970_000);
        assert_eq!(anticipation.set(969_999, 1_000_000), 970_000);
        assert_eq!(anticipation.set(970_000, 1_000_000), 1_000_000, "too soon");
        assert_eq!(anticipation.set_exactly(1_000_000), 1_000_000);
        anticipation.learn(4_000);
        assert_eq!(anticipation.set(0, 1_000_000), 996_000);
        assert_eq!(anticipation.set(0, u64::MAX), u64::MAX);
        for _ in 0..200 {
            anticipation.learn(1_000_000);
        }
        assert_eq!(anticipation.set(0, 1_000_000), 1_000_000 - LONGEST);
    }

    #[test]
    fn no_event_comes_before_its_time_and_a_bell_is_not_delayed() {
        assert!(Anticipation::new().woken() < u64::MAX);
        let mut anticipation = Anticipation { lead: 20_000, ..Anticipation::new() };
        let now = clock::monotonic_ns();
        let until = now + 20_001;
        assert_eq!(anticipation.set(now, until), now + 1);
        assert!(anticipation.woken() >= until);
        let in_an_hour = clock::monotonic_ns() + 3_600_000_000_000;
        anticipation.set(now, in_an_hour);
        assert!(anticipation.woken() < in_an_hour);
        anticipation.set(now, u64::MAX);
        assert!(anticipation.woken() < u64::MAX);
    }
}
