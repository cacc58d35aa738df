//! From two readings of a CPU clock to a period's record. Pure, so that it can be tested.

use crate::shared::TaskState;
use punctual_trace::{JobEnd, Period, NEVER};

/// What can be known of a task from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Stamps each job's beginning and end.
    Ends,
    /// Never done.
    Forever,
    /// An unmodified program.
    Command,
}

/// What stays the same from period to period.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Index in the set.
    pub task: u32,
    /// Time between releases, ns.
    pub period: u64,
    /// Relative deadline, ns.
    pub deadline: u64,
    /// Budget, ns.
    pub budget: u64,
    /// The kind of its work.
    pub nature: Nature,
    /// Its jobs suspend themselves.
    pub suspends: bool,
}

/// One period as the observer measured it.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Number of the release, from 0.
    pub number: u64,
    /// The release, ns.
    pub release: u64,
    /// Execution time between the two readings, ns.
    pub received: u64,
    /// How late the reading at its beginning was, ns.
    pub late_begin: u64,
    /// How late the reading at its end was, ns.
    pub late_end: u64,
}

/// The record of a period, at the end of it.
pub fn judge(terms: &Terms, m: &Measured, state: &TaskState) -> Period {
    let (started, completed) = match terms.nature {
        Nature::Ends => state.stamps(m.number),
        _ => (NEVER, NEVER),
    };
    let deadline = m.release.saturating_add(terms.deadline);
    let boundary = m.release.saturating_add(terms.period);
    // What ran between the release and a late first reading is missing from `received`.
    let at_most = m.received.saturating_add(m.late_begin);
    let miss = match terms.nature {
        Nature::Ends => completed == NEVER || completed > deadline,
        Nature::Forever => at_most < terms.budget - terms.budget / 100,
        Nature::Command => false,
    };
    let tolerance = 50_000.max(terms.budget / 100);
    let ready_throughout = match terms.nature {
        Nature::Ends => !terms.suspends && (completed > boundary || m.received >= terms.budget),
        Nature::Forever => true,
        Nature::Command => false,
    };
    Period {
        task: terms.task,
        number: m.number,
        release: m.release,
        deadline,
        assigned: terms.budget,
        received: m.received,
        unused: if ready_throughout { 0 } else { terms.budget.saturating_sub(m.received) },
        started,
        completed,
        end: end(completed, boundary),
        ready_throughout,
        woken_late: m.late_begin.max(m.late_end) > tolerance,
        miss,
        overrun: match terms.nature {
            Nature::Ends => miss || m.received > terms.budget + terms.budget / 20,
            _ => m.received > terms.budget + terms.budget / 20,
        },
    }
}

fn end(completed: u64, boundary: u64) -> JobEnd {
    if completed <= boundary {
        JobEnd::Completed
    } else {
        JobEnd::Expired
    }
}

/// Whether a record still waits for its job to be done, so that its response time is not lost; if
/// it was done meanwhile, takes that over.
pub fn still_open(period: &mut Period, state: &TaskState) -> bool {
    let (started, completed) = state.stamps(period.number);
    if started != NEVER {
        (period.started, period.completed) = (started, completed);
    }
    period.completed == NEVER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(nature: Nature) -> Terms {
        Terms {
            task: 0,
            period: 1_000_000,
            deadline: 800_000,
            budget: 200_000,
            nature,
            suspends: false,
        }
    }

    fn measured(received: u64) -> Measured {
        Measured { number: 3, release: 10_000_000, received, late_begin: 0, late_end: 0 }
    }

    #[test]
    fn a_job_done_in_time_did_not_want_its_whole_budget() {
        let state = TaskState::new();
        state.begin(3, 10_001_000);
        state.done(3, 10_700_000);
        let p = judge(&terms(Nature::Ends), &measured(150_000), &state);
        assert_eq!(
            (p.miss, p.overrun, p.ready_throughout, p.end),
            (false, false, false, JobEnd::Completed)
        );
        assert_eq!((p.started, p.completed, p.deadline), (10_001_000, 10_700_000, 10_800_000));
        assert!(judge(&terms(Nature::Ends), &measured(200_000), &state).ready_throughout);
    }

    #[test]
    fn a_task_whose_jobs_sleep_is_never_known_to_be_ready_throughout() {
        let (t, state) = (Terms { suspends: true, ..terms(Nature::Ends) }, TaskState::new());
        state.begin(3, 10_001_000);
        let p = judge(&t, &measured(120_000), &state);
        assert_eq!((p.miss, p.ready_throughout, p.unused), (true, false, 80_000));
        assert!(!judge(&t, &measured(200_000), &state).ready_throughout);
    }

    #[test]
    fn late_or_never_done_is_a_miss() {
        let state = TaskState::new();
        assert!(judge(&terms(Nature::Ends), &measured(0), &state).miss, "never begun");
        state.begin(3, 10_001_000);
        let mut p = judge(&terms(Nature::Ends), &measured(0), &state);
        assert!(p.miss && p.ready_throughout && p.end == JobEnd::Expired);
        assert!(still_open(&mut p, &state));
        state.done(3, 10_900_000);
        assert!(judge(&terms(Nature::Ends), &measured(0), &state).miss, "after its deadline");
        assert!(!still_open(&mut p, &state) && p.completed == 10_900_000 && p.miss);
    }

    #[test]
    fn a_task_without_end_misses_when_it_got_too_little() {
        let (t, state) = (terms(Nature::Forever), TaskState::new());
        assert!(!judge(&t, &measured(198_000), &state).miss);
        assert!(judge(&t, &measured(197_999), &state).miss);
        let late = Measured { late_begin: 30_000, ..measured(180_000) };
        assert!(!judge(&t, &late, &state).miss, "the reading was late, not the kernel");
        assert!(judge(&t, &measured(900_000), &state).overrun);
    }

    #[test]
    fn a_late_reading_is_reported() {
        let t = terms(Nature::Forever);
        let late = |late_begin, late_end| {
            judge(&t, &Measured { late_begin, late_end, ..measured(0) }, &TaskState::new())
                .woken_late
        };
        assert!(!late(50_000, 50_000));
        assert!(late(50_001, 0) && late(0, 50_001));
    }

    #[test]
    fn old_stamps_are_not_taken_for_new_ones() {
        let state = TaskState::new();
        state.begin(3, 1);
        state.done(3, 2);
        state.begin(3 + crate::shared::STAMPS as u64, 9);
        assert_eq!(state.stamps(3), (NEVER, NEVER));
        assert_eq!(state.stamps(3 + crate::shared::STAMPS as u64), (9, NEVER));
    }
}
