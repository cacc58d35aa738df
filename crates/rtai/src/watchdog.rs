//! The watchdog: what is done about periodic tasks that overrun their periods (RTAI, base/wd).
//!
//! RTAI's looks at all tasks from a task of its own. Here each task is looked at where it waits for
//! its next period: nothing can stop a thread elsewhere without the risk that it holds a lock which
//! the others need, and a task that never waits has no more than its budget, or its group's.

use crate::arena::{TaskIndex, Transaction, WatchdogSettings};

/// Sets for each of its words what RTAI has, but for the policy: nothing is done at first.
pub fn init(settings: &WatchdogSettings) {
    let WatchdogSettings { policy, grace, grace_divisor, safety, slip, stretch, limit } = settings;
    policy.store(WatchdogPolicy::Nothing as u64);
    for (word, value) in
        [(grace, 1), (grace_divisor, 1), (safety, 100), (slip, 10), (stretch, 10), (limit, 100)]
    {
        word.store(value);
    }
}

/// `wd_policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u64)]
pub enum WatchdogPolicy {
    Nothing,
    Resync,
    Debug,
    Stretch,
    Slip,
    Suspend,
    Kill,
}

impl WatchdogPolicy {
    pub fn of(number: i64) -> Option<WatchdogPolicy> {
        Some(match number {
            0 => WatchdogPolicy::Nothing,
            1 => WatchdogPolicy::Resync,
            2 => WatchdogPolicy::Debug,
            3 => WatchdogPolicy::Stretch,
            4 => WatchdogPolicy::Slip,
            5 => WatchdogPolicy::Suspend,
            6 => WatchdogPolicy::Kill,
            _ => return None,
        })
    }
}

/// What the calling thread's task has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Measure {
    /// To wait for its next period.
    None,
    /// To restart its periods now.
    Resync,
    /// To sleep for some ns before it waits.
    Slip(i64),
    Suspend,
    End,
}

impl Transaction<'_> {
    /// Looks at a periodic task without a budget that is about to wait for its next period.
    pub fn watch(&mut self, task: TaskIndex, now: i64) -> Measure {
        let (settings, slot) = (self.watchdog(), self.task(task));
        let policy = WatchdogPolicy::of(settings.policy.signed());
        let policy = policy.unwrap_or(WatchdogPolicy::Nothing);
        let (period, begun) = (slot.period.signed(), slot.periodic_resume_time.signed());
        if policy == WatchdogPolicy::Nothing || period <= 0 {
            return Measure::None;
        }
        let late = i128::from(now) - i128::from(begun);
        let divisor = i128::from(settings.grace_divisor.signed().max(1));
        if late * divisor < i128::from(period) * i128::from(settings.grace.signed()) {
            return Measure::None;
        }
        let overruns = slot.overruns.signed().saturating_add(1);
        self.set_signed(&slot.overruns, overruns);
        if overruns == 1 {
            self.set_signed(&slot.first_period, period);
        }
        let first_period = slot.first_period.signed();
        let (safety, limit) = (settings.safety.signed(), settings.limit.signed());
        let is_severe = safety >= 0 && late >= i128::from(safety) * i128::from(first_period);
        if is_severe || limit >= 0 && overruns >= limit {
            return Measure::Suspend;
        }
        let percent = |whole: i64, part: i64| {
            let part = i128::from(whole) * i128::from(part) / 100;
            i64::try_from(part).unwrap_or(i64::MAX)
        };
        match policy {
            WatchdogPolicy::Nothing => Measure::None,
            WatchdogPolicy::Resync | WatchdogPolicy::Debug => Measure::Resync,
            WatchdogPolicy::Stretch => {
                let more = percent(first_period, settings.stretch.signed());
                self.set_signed(&slot.period, period.saturating_add(more));
                Measure::Resync
            }
            WatchdogPolicy::Slip => Measure::Slip(percent(period, settings.slip.signed())),
            WatchdogPolicy::Suspend => Measure::Suspend,
            WatchdogPolicy::Kill => Measure::End,
        }
    }

    /// The periods of a task restart.
    pub fn resync(&mut self, task: TaskIndex, now: i64) {
        self.set_signed(&self.task(task).periodic_resume_time, now);
    }
}
