//! Sets a dispatcher's timer ahead of the next event, by the least latency from a timer to a thread
//! that was seen of late, as RTAI's timers are set ahead by its calibrated latency.
//!
//! ```text
//!   timer expires     the thread runs   the event
//!   |---- latency ----|------ spins ----|
//!   |<------------- lead -------------->|
//! ```
//!
//! No event is handled before its time: a dispatcher that wakes too early spins until then. So the
//! lead follows a shorter latency at once and a longer one slowly, and spins are short and seldom.
//! The end of a budget has no lead: while the dispatcher spins, the task cannot use the rest of its
//! budget.

use punctual_sys::clock;

/// The longest lead, ns, which bounds the spin.
const LONGEST: u64 = 50_000;

/// The lead of one dispatcher's timer.
#[derive(Debug)]
pub(crate) struct Anticipation {
    lead: u64,
    /// The time of the next event, CLOCK_MONOTONIC ns; `u64::MAX`: none.
    until: u64,
    /// When the timer for it expires, CLOCK_MONOTONIC ns.
    set_to: u64,
}

impl Anticipation {
    pub const fn new() -> Anticipation {
        Anticipation { lead: 0, until: u64::MAX, set_to: u64::MAX }
    }

    /// Chooses at `now` when the timer for an event at `until` expires, and returns that time;
    /// `u64::MAX`: never. An event that is nearer than the lead has none, so that tasks execute
    /// until then.
    pub fn set(&mut self, now: u64, until: u64) -> u64 {
        let ahead = if until == u64::MAX { until } else { until.saturating_sub(self.lead) };
        self.set_to = if ahead > now { ahead } else { until };
        self.until = until;
        self.set_to
    }

    /// The same for an event without a lead.
    pub fn set_exactly(&mut self, until: u64) -> u64 {
        (self.until, self.set_to) = (until, until);
        until
    }

    /// Called on waking: spins until the event if the timer has expired, and returns the time, ns.
    /// A dispatcher that was woken before that returns at once.
    pub fn woken(&mut self) -> u64 {
        let mut now = clock::monotonic_ns();
        if now < self.set_to {
            return now;
        }
        self.learn(now - self.set_to);
        // No longer than the lead.
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
