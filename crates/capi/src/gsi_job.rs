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
/// Scheduling groups, and budget groups: GSI_GROUPS.
pub const GROUPS: u32 = 32;
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

/// What a job's budget is for. Groups have numbers from 1; 0 is the top one, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The process executes on it.
    Process(i32),
    /// The jobs of a scheduling group do.
    Group(u32),
    /// It is a budget of a budget group.
    Budget(u32),
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
    /// What it is for. As Table 4 has it, the job of a process may name its own group as the
    /// server, too: it serves none.
    ///
    /// # Errors
    /// EINVAL, ENOENT.
    pub fn served(&self) -> Result<Served, CallError> {
        let GsiJob { pid, group, server, budget_group, budget_server, .. } = *self;
        for number in [group, server, budget_group, budget_server] {
            if !(0..=GROUPS as c_int).contains(&number) {
                return Err(failed(libc::ENOENT, c"groups have the numbers 1 to 32"));
            }
        }
        let (serves, supplies) = (server != group, budget_server != budget_group);
        let (serves, supplies) = (serves && server != 0, supplies && budget_server != 0);
        match (pid, serves, supplies) {
            (1.., false, false) => Ok(Served::Process(pid)),
            (0, true, false) => Ok(Served::Group(server as u32)),
            (0, false, true) if group == 0 => Ok(Served::Budget(budget_server as u32)),
            _ => Err(failed(
                libc::EINVAL,
                c"a job has the pid of its process, or serves a group, or is a group's budget",
            )),
        }
    }

    /// The scheduling group in which it competes, and the budget group that limits it.
    pub fn place(&self) -> (u32, u32) {
        (self.group as u32, self.budget_group as u32)
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
    }

    /// What a job of this pid is for, by the columns of Table 4.
    fn served(pid: c_int, columns: [c_int; 4]) -> Result<Served, c_int> {
        let [group, server, budget_group, budget_server] = columns;
        let job = GsiJob { pid, group, server, budget_group, budget_server, ..JOB };
        job.served().map_err(|e| -e.0)
    }

    #[test]
    fn the_jobs_of_table_4_are_of_processes_groups_and_budget_groups() {
        assert_eq!(served(0, [0, 1, 0, 0]), Ok(Served::Group(1)), "J_0");
        assert_eq!(served(7, [2, 2, 2, 2]), Ok(Served::Process(7)), "J_1");
        assert_eq!(served(7, [2, 2, 0, 0]), Ok(Served::Process(7)), "J_2");
        assert_eq!(served(0, [1, 2, 0, 0]), Ok(Served::Group(2)), "J_3");
        assert_eq!(served(7, [1, 1, 0, 0]), Ok(Served::Process(7)), "J_4");
        assert_eq!(served(0, [0, 0, 0, 1]), Ok(Served::Budget(1)), "J_5");
        assert_eq!(served(0, [0, 0, 1, 2]), Ok(Served::Budget(2)), "J_6");
        assert_eq!(served(7, [1, 1, 1, 1]), Ok(Served::Process(7)), "J_7");
        assert_eq!(served(7, [1, 1, 2, 2]), Ok(Served::Process(7)), "J_8");
        assert_eq!(served(7, [1, 0, 2, 0]), Ok(Served::Process(7)));
    }

    #[test]
    fn jobs_that_are_of_none_or_of_several_are_refused() {
        for (pid, columns) in [
            (0, [0; 4]),
            (-1, [0; 4]),
            (0, [1, 1, 0, 0]),
            (7, [0, 1, 0, 0]),
            (7, [0, 0, 0, 1]),
            (0, [0, 1, 0, 1]),
            (0, [1, 1, 0, 1]),
            (-1, [0, 1, 0, 0]),
        ] {
            assert_eq!(served(pid, columns), Err(libc::EINVAL), "{columns:?}");
        }
        for columns in [[33, 0, 0, 0], [0, -1, 0, 0], [0, 0, c_int::MAX, 0], [0, 0, 0, 33]] {
            assert_eq!(served(7, columns), Err(libc::ENOENT), "{columns:?}");
        }
    }
}
