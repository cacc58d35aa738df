//! From context switches to what the program as a whole does: bursts of execution, and between
//! them the times at which all of its threads wait.
//!
//! ```text
//!   thread 1   ──███████──────────────██──       in, blocked, in, blocked
//!   thread 2   ─────█████░░██─────────────       in, preempted, in, blocked: ░ is ready
//!   program      └──burst──┘          └┘         one task, whichever thread executes
//! ```

use std::collections::BTreeMap;

use punctual_sys::perf::{Switch, SwitchRecord};

/// The program executes, or could, from its waking until all of its threads wait again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// When its first thread got a CPU, ns.
    pub wake: u64,
    /// When its last thread began to wait, ns.
    pub end: u64,
    /// What all threads executed, ns: more than the time between, if they had several CPUs.
    pub executed: u64,
}

/// What one thread did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    /// Times that it got the CPU after it had waited.
    pub wake_ups: u64,
    /// ns.
    pub executed: u64,
    /// Number of preemptions.
    pub preemptions: u64,
    /// Time that it then stood ready, ns.
    pub preempted: u64,
}

/// What a program did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramActivity {
    /// Bursts in order of time.
    pub bursts: Vec<Burst>,
    /// The last burst was cut off by the end of the recording.
    pub cut: bool,
    /// By thread.
    pub threads: BTreeMap<i32, ThreadActivity>,
    /// The most threads that executed at one time.
    pub parallel: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waits,
    /// Since when, ns.
    Executes(u64),
    Ready(u64),
}

impl ProgramActivity {
    /// Of records in order of time, until `end`, ns. What a thread did before its first record is
    /// not known, and counts as waiting.
    #[must_use]
    pub fn of(records: &[SwitchRecord], end: u64) -> ProgramActivity {
        let mut activity = ProgramActivity::default();
        let mut states: BTreeMap<i32, State> = BTreeMap::new();
        let (mut active, mut executing) = (0u32, 0u32);
        let mut burst: Option<Burst> = None;
        for &SwitchRecord { time, tid, switch } in records {
            let thread = activity.threads.entry(tid).or_default();
            let state = states.entry(tid).or_insert(State::Waits);
            let was_active = *state != State::Waits;
            match *state {
                State::Executes(since) => {
                    let ran = time.saturating_sub(since);
                    thread.executed += ran;
                    burst.iter_mut().for_each(|burst| burst.executed += ran);
                    executing -= 1;
                }
                State::Ready(since) => thread.preempted += time.saturating_sub(since),
                State::Waits => thread.wake_ups += u64::from(switch == Switch::In),
            }
            // A thread whose first record is not its waking was executing before: from here on it
            // is known.
            *state = match switch {
                Switch::In => State::Executes(time),
                Switch::Preempted => State::Ready(time),
                Switch::Blocked | Switch::Exit => State::Waits,
            };
            thread.preemptions += u64::from(switch == Switch::Preempted);
            executing += u32::from(switch == Switch::In);
            activity.parallel = activity.parallel.max(executing);
            let is_active = *state != State::Waits;
            active = active + u32::from(is_active) - u32::from(was_active);
            match (&mut burst, active) {
                (None, 1..) => burst = Some(Burst { wake: time, end: time, executed: 0 }),
                (Some(ended), 0) => {
                    ended.end = time;
                    activity.bursts.extend(burst.take());
                }
                _ => {}
            }
        }
        if let Some(burst) = burst {
            let tail = |state: &State| match *state {
                State::Executes(since) => end.saturating_sub(since),
                State::Waits | State::Ready(_) => 0,
            };
            for (tid, state) in &states {
                activity.threads.entry(*tid).or_default().executed += tail(state);
            }
            let executed = burst.executed + states.values().map(tail).sum::<u64>();
            activity.bursts.push(Burst { end, executed, ..burst });
            activity.cut = true;
        }
        activity
    }

    /// Without what woke before `start`, ns, and without a last burst that was cut off.
    #[must_use]
    pub fn whole_bursts(&self, start: u64) -> &[Burst] {
        let first = self.bursts.partition_point(|burst| burst.wake < start);
        let last = self.bursts.len() - usize::from(self.cut);
        self.bursts.get(first..last).unwrap_or_default()
    }

    /// How long some thread executed or could, between two times, ns.
    #[must_use]
    pub fn active_between(&self, start: u64, end: u64) -> u64 {
        let within = |burst: &Burst| burst.end.min(end).saturating_sub(burst.wake.max(start));
        self.bursts.iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Switch::{Blocked, Exit, In, Preempted};

    fn of(records: &[(u64, i32, Switch)], end: u64) -> ProgramActivity {
        let record = |&(time, tid, switch)| SwitchRecord { time, tid, switch };
        ProgramActivity::of(&records.iter().map(record).collect::<Vec<_>>(), end)
    }

    #[test]
    fn a_burst_continues_while_a_thread_executes_or_is_preempted() {
        // The drawing above.
        let activity = of(
            &[
                (10, 1, In),
                (13, 2, In),
                (17, 1, Blocked),
                (18, 2, Preempted),
                (20, 2, In),
                (22, 2, Blocked),
                (36, 1, In),
                (38, 1, Blocked),
            ],
            50,
        );
        let bursts =
            [Burst { wake: 10, end: 22, executed: 14 }, Burst { wake: 36, end: 38, executed: 2 }];
        assert_eq!(activity.bursts, bursts);
        assert_eq!((activity.cut, activity.parallel), (false, 2));
        let first = ThreadActivity { wake_ups: 2, executed: 9, ..Default::default() };
        let second = ThreadActivity { wake_ups: 1, executed: 7, preemptions: 1, preempted: 2 };
        assert_eq!(activity.threads, BTreeMap::from([(1, first), (2, second)]));
        assert_eq!(activity.whole_bursts(11), &bursts[1..]);
        assert_eq!(activity.active_between(20, 37), 2 + 1);
    }

    #[test]
    fn the_end_of_a_thread_ends_its_burst_and_the_end_of_the_recording_cuts_one_off() {
        let activity = of(&[(5, 1, In), (9, 1, Exit), (20, 2, In)], 27);
        let cut = Burst { wake: 20, end: 27, executed: 7 };
        assert_eq!(activity.bursts, [Burst { wake: 5, end: 9, executed: 4 }, cut]);
        assert!(activity.cut);
        assert_eq!(activity.whole_bursts(0), &activity.bursts[..1]);
        assert_eq!(activity.whole_bursts(100), []);
    }

    #[test]
    fn a_thread_that_executed_before_the_recording_counts_from_its_first_record_on() {
        let activity = of(&[(5, 1, Blocked), (7, 2, Preempted), (9, 2, In), (10, 2, Blocked)], 20);
        assert_eq!(activity.bursts, [Burst { wake: 7, end: 10, executed: 1 }]);
        assert_eq!(of(&[], 20), ProgramActivity::default());
    }
}
