//! The tasks of rt-exec's tables, and what each kind means: our reading (docs/measure.md).

use serde::{Deserialize, Serialize};

/// How a task is released, by the name that rt-exec's tables give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReleaseKind {
    /// Directly: the executive wakes a futex of the task's own.
    Dth,
    /// The executive signals a condition variable of the task's own.
    Sth,
    /// The executive posts a semaphore of the task's own.
    Sem,
    /// The executive sends a real-time signal to the thread.
    Sig,
    /// The task's own POSIX timer sends it a real-time signal.
    Hrt,
    /// The task sleeps for its period by clock_nanosleep.
    Hrn,
    /// The task sleeps for its period by usleep.
    Hru,
    /// The executive broadcasts one condition variable to all tasks of this kind.
    Bth,
}

impl ReleaseKind {
    /// As rt-exec's tables have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReleaseKind::Dth => "dth",
            ReleaseKind::Sth => "sth",
            ReleaseKind::Sem => "sem",
            ReleaseKind::Sig => "sig",
            ReleaseKind::Hrt => "hrt",
            ReleaseKind::Hrn => "hrn",
            ReleaseKind::Hru => "hru",
            ReleaseKind::Bth => "bth",
        }
    }

    /// The call that releases a cycle.
    #[must_use]
    pub fn primitive(self) -> &'static str {
        match self {
            ReleaseKind::Dth => "futex",
            ReleaseKind::Sth => "pthread_cond_signal",
            ReleaseKind::Sem => "sem_post",
            ReleaseKind::Sig => "tgkill",
            ReleaseKind::Hrt => "timer_settime",
            ReleaseKind::Hrn => "clock_nanosleep",
            ReleaseKind::Hru => "usleep",
            ReleaseKind::Bth => "pthread_cond_broadcast",
        }
    }
}

/// A real-time policy of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RealTimePolicy {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

/// A task of the tables.
pub struct TaskPlan {
    pub kind: ReleaseKind,
    pub policy: RealTimePolicy,
    pub priority: u32,
    /// It is released at each beat whose number this divides.
    pub every: u32,
}

/// Below all of its tasks: each release is executed to its end before the next one is made.
pub const EXECUTIVE_PRIORITY: u32 = 5;

const fn task(kind: ReleaseKind, policy: RealTimePolicy, priority: u32, every: u32) -> TaskPlan {
    TaskPlan { kind, policy, priority, every }
}

/// task1 to task16, with the tables' policies and priorities, and the rates that the third one
/// shows (1000 Hz).
pub const TASKS: [TaskPlan; 16] = {
    use RealTimePolicy::{Fifo, Rr};
    use ReleaseKind::*;
    [
        task(Dth, Fifo, 29, 4),
        task(Dth, Fifo, 28, 4),
        task(Sth, Fifo, 25, 2),
        task(Sth, Fifo, 24, 2),
        task(Sem, Fifo, 23, 1),
        task(Sem, Fifo, 22, 2),
        task(Sig, Fifo, 19, 2),
        task(Sig, Fifo, 18, 2),
        task(Hrt, Rr, 17, 2),
        task(Hrt, Rr, 17, 2),
        task(Hrn, Rr, 14, 1),
        task(Hrn, Rr, 14, 1),
        task(Hru, Rr, 11, 1),
        task(Hru, Rr, 11, 1),
        task(Bth, Rr, 7, 1),
        task(Bth, Rr, 7, 1),
    ]
};
