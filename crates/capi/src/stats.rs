//! The figures of a task, and of a run.

use std::ffi::c_int;
use std::mem::size_of;

use punctual::results::TimeSpread;
use punctual::{Results, TaskResult};

use crate::error::returned;
use crate::plain::{self, Plain};
use crate::set::{HandleOfSet, SETS};
use crate::task::{HandleOfTask, TASKS};

/// `struct punctual_spread`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSpread {
    pub count: u64,
    pub median: u64,
    pub p99: u64,
    pub worst: u64,
}

impl From<Option<TimeSpread>> for CSpread {
    fn from(spread: Option<TimeSpread>) -> CSpread {
        match spread {
            Some(s) => {
                CSpread { count: s.count, median: s.median_ns, p99: s.p99_ns, worst: s.worst_ns }
            }
            None => CSpread { count: 0, median: 0, p99: 0, worst: 0 },
        }
    }
}

/// `struct punctual_task_stats`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTaskStats {
    pub size: usize,
    pub period: u64,
    pub budget: u64,
    pub deadline: u64,
    pub periods: u64,
    pub misses: u64,
    pub overruns: u64,
    pub unreported: u64,
    pub received: u64,
    pub assigned: u64,
    pub shortfall: u64,
    pub latency: CSpread,
    pub response: CSpread,
}

// SAFETY: integers.
unsafe impl Plain for CTaskStats {
    const FIRST: usize = size_of::<CTaskStats>();
}

impl From<&TaskResult> for CTaskStats {
    fn from(task: &TaskResult) -> CTaskStats {
        CTaskStats {
            size: size_of::<CTaskStats>(),
            period: task.period_ns,
            budget: task.budget_ns,
            deadline: task.deadline_ns,
            periods: task.periods,
            misses: task.misses,
            overruns: task.overruns,
            unreported: task.unreported,
            received: task.received_ns,
            assigned: task.assigned_ns,
            shortfall: task.shortfall_ns,
            latency: task.release_latency.into(),
            response: task.response_time.into(),
        }
    }
}

/// `struct punctual_stats`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSetStats {
    pub size: usize,
    pub duration: u64,
    pub tasks: u64,
    pub alive: u64,
    pub periods: u64,
    pub misses: u64,
    pub unreported: u64,
    pub short_tasks: u64,
    pub dispatcher_events: u64,
    pub dispatcher_cpu: u64,
}

// SAFETY: integers.
unsafe impl Plain for CSetStats {
    const FIRST: usize = size_of::<CSetStats>();
}

impl CSetStats {
    fn new(results: &Results, alive: usize) -> CSetStats {
        let dispatcher = results.dispatcher.as_ref();
        CSetStats {
            size: size_of::<CSetStats>(),
            duration: results.duration_ns,
            tasks: results.tasks.len() as u64,
            alive: alive as u64,
            periods: results.totals.periods,
            misses: results.totals.missed,
            unreported: results.totals.unreported,
            short_tasks: results.totals.short,
            dispatcher_events: dispatcher.map_or(0, |d| d.events),
            dispatcher_cpu: dispatcher.map_or(0, |d| d.cpu_ns),
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_stats(set: *mut HandleOfSet, stats: *mut CSetStats) -> c_int {
    returned(SETS.get(set).and_then(|set| {
        let alive = set.alive()?.len();
        // SAFETY: the caller's.
        unsafe { plain::write(stats, &CSetStats::new(&set.results()?, alive))? };
        Ok(())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_task_stats(
    task: *mut HandleOfTask,
    stats: *mut CTaskStats,
) -> c_int {
    returned(TASKS.get(task).and_then(|task| {
        // SAFETY: the caller's.
        unsafe { plain::write(stats, &CTaskStats::from(&task.handle.results()?))? };
        Ok(())
    }))
}
