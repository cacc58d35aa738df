//! The structures of gsi.h, and their units.

use std::ffi::c_int;

use punctual::jobs::JobParams;

use crate::error::{failed, CallError};

/// Nanoseconds in a tick.
const TICK: u64 = 1000;
/// GSI_INFINITE
pub const INFINITE: i64 = i64::MAX;
/// GSI_EV_JOB_EXPIRED
pub const GSI_EV_JOB_EXPIRED: c_int = 1;
/// The largest budget of a job, ns: without a limit.
const LARGEST: u64 = 1 << 62;

/// `GSI_JOB`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GsiJob {
    pub starttime: i64,
    pub finishtime: i64,
    pub budget: i64,
    pub priority: c_int,
    pub pid: c_int,
    pub group: c_int,
    pub server: c_int,
    pub budget_group: c_int,
    pub budget_server: c_int,
    pub private: isize,
}

/// `GSI_Event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GsiEvent {
    pub kind: c_int,
    pub reason: c_int,
    pub budget: i64,
    pub time: i64,
    pub pid: c_int,
    pub reserved: c_int,
    pub private: isize,
}

/// What a job's budget is for.
pub enum Placed {
    /// A process executes on it.
    Process(i32),
}

/// Ticks that have passed at `ns`, or are whole in it.
pub fn ticks(ns: u64) -> i64 {
    (ns / TICK) as i64
}

/// So many ticks in ns; `None`: negative, or too many.
pub fn nanoseconds(ticks: i64) -> Option<u64> {
    u64::try_from(ticks).ok()?.checked_mul(TICK)
}

impl GsiJob {
    /// What it is for.
    ///
    /// # Errors
    /// EINVAL, EOPNOTSUPP.
    pub fn placed(&self) -> Result<Placed, CallError> {
        let GsiJob { pid, group, server, budget_group, budget_server, .. } = *self;
        if [group, server, budget_group, budget_server] != [0; 4] {
            return Err(failed(libc::EOPNOTSUPP, c"there are no groups of jobs here"));
        }
        match pid > 0 {
            true => Ok(Placed::Process(pid)),
            false => Err(failed(libc::EINVAL, c"the pid of a job is that of its process")),
        }
    }

    /// Its attributes in ns.
    ///
    /// # Errors
    /// EINVAL.
    pub fn params(&self) -> Result<JobParams, CallError> {
        let wrong = || {
            failed(
                libc::EINVAL,
                c"times and budgets are not negative, and the finish is after the start",
            )
        };
        let start = nanoseconds(self.starttime).ok_or_else(wrong)?;
        let finish = match self.finishtime {
            INFINITE => u64::MAX,
            finish => nanoseconds(finish).ok_or_else(wrong)?,
        };
        let budget = match self.budget {
            INFINITE => LARGEST,
            budget => nanoseconds(budget).ok_or_else(wrong)?.min(LARGEST),
        };
        if finish <= start {
            return Err(wrong());
        }
        Ok(JobParams { start, finish, budget, priority: self.priority.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: GsiJob = GsiJob {
        starttime: 5,
        finishtime: 7,
        budget: 1,
        priority: -3,
        pid: 1,
        group: 0,
        server: 0,
        budget_group: 0,
        budget_server: 0,
        private: 0,
    };

    #[test]
    fn a_job_is_in_ns_and_what_has_no_limit_has_none() {
        let params = |job: GsiJob| job.params().map_err(|e| e.0);
        let expected = JobParams { start: 5000, finish: 7000, budget: 1000, priority: -3 };
        assert_eq!(params(JOB), Ok(expected));
        let endless = GsiJob { finishtime: INFINITE, budget: INFINITE, ..JOB };
        assert_eq!(params(endless).map(|p| (p.finish, p.budget)), Ok((u64::MAX, LARGEST)));
        let bad = [
            GsiJob { starttime: -1, ..JOB },
            GsiJob { starttime: INFINITE, finishtime: INFINITE, ..JOB },
            GsiJob { finishtime: 5, ..JOB },
            GsiJob { finishtime: i64::MIN, ..JOB },
            GsiJob { finishtime: INFINITE - 1, ..JOB },
            GsiJob { budget: -1, ..JOB },
        ];
        for job in bad {
            assert_eq!(params(job), Err(-libc::EINVAL));
        }
        assert!(GsiJob { pid: 0, ..JOB }.placed().is_err());
        assert!(GsiJob { pid: -1, ..JOB }.placed().is_err());
    }
}
