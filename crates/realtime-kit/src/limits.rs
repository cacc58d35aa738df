//! RealtimeKit's limits, as its daemon has them by default.

use std::time::{Duration, Instant};

use crate::refusal::CallRefusal;

/// The largest priority that a client may ask for. It decides nothing: reservations have no
/// priorities.
pub const MAX_PRIORITY: i32 = 20;
/// The lowest nice level that a client may ask for.
pub const MIN_NICE: i32 = -15;
/// Users with threads, or with calls of late.
pub const USERS: usize = 2048;
/// Processes of a user with such threads.
pub const PROCESSES: usize = 15;
/// Threads of a user.
pub const THREADS: usize = 25;
/// Calls of a user in a [`WINDOW`].
const CALLS: u32 = 25;
const WINDOW: Duration = Duration::from_secs(20);

/// Refuses a priority that RealtimeKit refuses.
///
/// # Errors
/// It is none of SCHED_RR's, or above [`MAX_PRIORITY`].
pub fn check_priority(priority: u32) -> Result<(), CallRefusal> {
    match priority {
        1..=20 => Ok(()),
        21..=99 => Err(CallRefusal::Denied(format!("priority {priority} is above {MAX_PRIORITY}"))),
        _ => Err(CallRefusal::Failed(format!("{priority} is no real-time priority"))),
    }
}

/// Refuses a nice level that RealtimeKit refuses.
///
/// # Errors
/// It is none, or below [`MIN_NICE`].
pub fn check_nice(nice: i32) -> Result<(), CallRefusal> {
    match nice {
        MIN_NICE..=19 => Ok(()),
        -20..MIN_NICE => Err(CallRefusal::Denied(format!("nice level {nice} is below {MIN_NICE}"))),
        _ => Err(CallRefusal::Failed(format!("{nice} is no nice level"))),
    }
}

/// The calls of a user.
#[derive(Debug)]
pub struct CallWindow {
    since: Instant,
    calls: u32,
}

impl CallWindow {
    /// A window that begins now.
    pub fn new(now: Instant) -> CallWindow {
        CallWindow { since: now, calls: 0 }
    }

    /// Whether the window is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= WINDOW
    }

    /// Counts a call.
    ///
    /// # Errors
    /// There are too many in this window.
    pub fn count(&mut self, now: Instant) -> Result<(), CallRefusal> {
        if self.is_over(now) {
            *self = CallWindow::new(now);
        }
        if self.calls >= CALLS {
            let seconds = WINDOW.as_secs();
            return Err(CallRefusal::Denied(format!("more than {CALLS} calls in {seconds} s")));
        }
        self.calls += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_and_nice_levels_are_refused_as_by_realtimekit() {
        use CallRefusal::{Denied, Failed};
        assert!(check_priority(1).is_ok() && check_priority(20).is_ok());
        assert!(matches!(check_priority(21), Err(Denied(_))));
        assert!(matches!(check_priority(99), Err(Denied(_))));
        assert!(matches!(check_priority(0), Err(Failed(_))));
        assert!(matches!(check_priority(100), Err(Failed(_))));
        assert_eq!(check_priority(MAX_PRIORITY as u32), Ok(()));
        assert!(check_nice(-15).is_ok() && check_nice(19).is_ok());
        assert!(matches!(check_nice(-16), Err(Denied(_))));
        assert!(matches!(check_nice(-20), Err(Denied(_))));
        assert!(matches!(check_nice(-21), Err(Failed(_))));
        assert!(matches!(check_nice(20), Err(Failed(_))));
    }

    #[test]
    fn a_window_has_25_calls_and_the_next_one_begins_after_20_s() {
        let start = Instant::now();
        let mut window = CallWindow::new(start);
        let late = start + WINDOW - Duration::from_millis(1);
        assert!((0..CALLS).all(|_| window.count(start).is_ok()));
        assert!(matches!(window.count(late), Err(CallRefusal::Denied(_))));
        assert!(!window.is_over(late) && window.is_over(start + WINDOW));
        assert!((0..CALLS).all(|_| window.count(start + WINDOW).is_ok()));
        assert!(window.count(start + WINDOW).is_err());
    }
}
