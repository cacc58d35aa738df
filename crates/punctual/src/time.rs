//! Points in time, exact to the nanosecond.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time on CLOCK_MONOTONIC, the clock of every release and deadline.
///
/// `std::time::Instant` reads the same clock but does not return its value. A `Time` does, so that
/// a release can be compared with the times of other programs and traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The current time. One system call at most; real-time safe.
    #[must_use]
    pub fn now() -> Time {
        Time(punctual_host_user::now())
    }

    /// The time `ns` after the clock's beginning (the machine's start).
    #[must_use]
    pub fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Ns since the clock's beginning.
    #[must_use]
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this; zero if this is not later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time since this; zero if this is in the future.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Time::now().since(self)
    }
}

/// In seconds, with all nine digits: `12.000250000 s`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl Sub for Time {
    type Output = Duration;

    /// As [`Time::since`].
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Later by a duration, at most the end of the clock (584 years).
    fn add(self, later: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_exact_and_never_wrap() {
        let t = Time::from_nanos(5);
        assert_eq!((t + Duration::from_nanos(7)) - t, Duration::from_nanos(7));
        assert_eq!(t - (t + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(t + Duration::MAX, Time::from_nanos(u64::MAX));
        assert_eq!(Time::from_nanos(12_000_250_000).to_string(), "12.000250000 s");
        assert!(Time::now() > t && Time::now().elapsed() < Duration::from_secs(60));
    }
}
