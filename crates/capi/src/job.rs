//! Jobs that the program adds to its tasks, and their ends. The calls for one job and one event
//! are real-time safe: they neither allocate nor lock.

use std::ffi::{c_char, c_int, CStr};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use punctual::jobs::{
    AddedJobEnd, Attribute, JobError, JobEvents, JobParams, JobRefusal, NoEvent, TaskJobs,
};

use crate::end_table::EndTable;
use crate::error::{error, failed, returned, CallError};
use crate::handle::HandleKind;
use crate::plain::{self, Plain};
use crate::set::{HandleOfSet, SETS};
use crate::task::{HandleOfTask, TASKS};

/// `struct punctual_jobs`.
pub enum HandleOfJobs {}
/// `struct punctual_job_events`.
pub enum HandleOfJobEvents {}

static JOBS: EndTable<TaskJobs, HandleOfJobs> = EndTable::new(HandleKind::Jobs);
static EVENTS: EndTable<JobEvents, HandleOfJobEvents> = EndTable::new(HandleKind::JobEvents);

/// `struct punctual_job_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CJobAttr {
    pub size: usize,
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    pub priority: i64,
    pub cookie: u64,
}

// SAFETY: integers.
unsafe impl Plain for CJobAttr {
    const FIRST: usize = size_of::<CJobAttr>();
}

/// `struct punctual_job_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CJobEvent {
    pub size: usize,
    pub at: u64,
    pub job: u64,
    pub cookie: u64,
    pub used: u64,
    pub remaining: u64,
    pub dropped: u64,
    pub end: u32,
    pub error: i32,
}

// SAFETY: integers.
unsafe impl Plain for CJobEvent {
    const FIRST: usize = size_of::<CJobEvent>();
}

/// By number: PUNCTUAL_ORDER_START, PUNCTUAL_ORDER_FINISH, PUNCTUAL_ORDER_BUDGET,
/// PUNCTUAL_ORDER_PRIORITY.
pub const ATTRIBUTES: [Attribute; 4] =
    [Attribute::Start, Attribute::Finish, Attribute::Budget, Attribute::Priority];

/// `enum punctual_job_end`, and the error of a job that was refused.
pub fn number_of_job_end(end: AddedJobEnd) -> (u32, i32) {
    match end {
        AddedJobEnd::Completed => (0, 0),
        AddedJobEnd::Exhausted => (1, 0),
        AddedJobEnd::Expired => (2, 0),
        AddedJobEnd::Cancelled => (3, 0),
        AddedJobEnd::TaskGone => (4, 0),
        AddedJobEnd::Refused(JobRefusal::Nothing) => (5, -libc::ESRCH),
        AddedJobEnd::Refused(JobRefusal::Busy) => (5, -libc::EBUSY),
        AddedJobEnd::Refused(JobRefusal::Invalid) => (5, -libc::EINVAL),
        AddedJobEnd::Refused(JobRefusal::Quota) => (5, -libc::EDQUOT),
        AddedJobEnd::Refused(JobRefusal::Tree) => (5, -libc::ELOOP),
        AddedJobEnd::Refused(JobRefusal::Full) => (5, -libc::ENOSPC),
        _ => (5, -libc::EIO),
    }
}

/// Real-time safe.
#[cold]
fn refused(e: JobError) -> CallError {
    let text: &CStr = match e {
        JobError::Full => c"the dispatcher has not taken 16 requests of this task; add fewer",
        JobError::Invalid => c"the finish is to be after the start, and within a period of it",
        JobError::Quota => c"the budget is more than that of the task",
        JobError::Over => c"the task has ended, or its set was closed",
    };
    failed(e.errno(), text)
}

#[no_mangle]
pub unsafe extern "C" fn punctual_jobs_open(
    task: *mut HandleOfTask,
    jobs: *mut *mut HandleOfJobs,
) -> c_int {
    returned(TASKS.get(task).and_then(|task| {
        plain::not_null(jobs)?;
        // SAFETY: the caller's.
        unsafe { jobs.write(JOBS.add(task.handle.jobs()?)?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_jobs_close(jobs: *mut HandleOfJobs) -> c_int {
    returned(JOBS.remove(jobs).map(drop))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_job_add(
    jobs: *mut HandleOfJobs,
    job: *const CJobAttr,
    number: *mut u64,
) -> c_int {
    let added = JOBS.with(jobs, |jobs| {
        plain::not_null(job)?;
        // SAFETY: the caller's.
        let CJobAttr { start, finish, budget, priority, cookie, .. } = unsafe { plain::read(job)? };
        jobs.add(&JobParams { start, finish, budget, priority }, cookie).map_err(refused)
    });
    returned(added.and_then(|added| added).map(|id| {
        if !number.is_null() {
            // SAFETY: the caller's.
            unsafe { number.write(id) };
        }
    }))
}

#[no_mangle]
pub extern "C" fn punctual_job_cancel(jobs: *mut HandleOfJobs, number: u64) -> c_int {
    let cancelled = JOBS.with(jobs, |jobs| jobs.cancel(number).map_err(refused));
    returned(cancelled.and_then(|cancelled| cancelled))
}

#[no_mangle]
pub extern "C" fn punctual_job_complete(jobs: *mut HandleOfJobs, number: u64) -> c_int {
    let completed = JOBS.with(jobs, |jobs| jobs.complete(number).map_err(refused));
    returned(completed.and_then(|completed| completed))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_jobs_order(
    set: *mut HandleOfSet,
    group: *const c_char,
    by: *const u32,
    count: usize,
) -> c_int {
    returned(SETS.get(set).and_then(|set| {
        plain::not_null(by)?;
        if !(1..=ATTRIBUTES.len()).contains(&count) {
            let cause = format!("an order of {count} attributes");
            return Err(error(libc::EINVAL, cause, "name one to four").into());
        }
        // SAFETY: the caller's.
        let by = unsafe { std::slice::from_raw_parts(by, count) };
        let by = by.iter().map(|&number| {
            ATTRIBUTES.get(number as usize).copied().ok_or_else(|| {
                let cause = format!("there is no attribute {number}");
                error(libc::EINVAL, cause, "use PUNCTUAL_ORDER_START and the following")
            })
        });
        let by = by.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the caller's.
        let group = unsafe { plain::text(group, "the name of the group")? };
        Ok(set.order_jobs(group, &by)?)
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_job_events_open(
    set: *mut HandleOfSet,
    events: *mut *mut HandleOfJobEvents,
) -> c_int {
    returned(SETS.get(set).and_then(|set| {
        plain::not_null(events)?;
        // SAFETY: the caller's.
        unsafe { events.write(EVENTS.add(set.job_events()?)?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_job_events_close(events: *mut HandleOfJobEvents) -> c_int {
    returned(EVENTS.remove(events).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_job_events_fd(events: *mut HandleOfJobEvents) -> c_int {
    match EVENTS.with(events, |events| events.as_fd().as_raw_fd()) {
        Ok(fd) => fd,
        Err(CallError(number)) => number,
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_job_event(
    events: *mut HandleOfJobEvents,
    event: *mut CJobEvent,
    until: u64,
) -> c_int {
    let read = EVENTS.with(events, |events| {
        let none = CJobEvent {
            size: size_of::<CJobEvent>(),
            at: 0,
            job: 0,
            cookie: 0,
            used: 0,
            remaining: 0,
            dropped: 0,
            end: 0,
            error: 0,
        };
        // A structure that cannot be filled takes no event.
        // SAFETY: the caller's.
        unsafe { plain::write(event, &none)? };
        let next = events.next(until).map_err(|none| match none {
            NoEvent::TimedOut => failed(libc::ETIMEDOUT, c"there is no event"),
            NoEvent::Over => failed(libc::ECANCELED, c"the set was closed"),
        })?;
        let (end, error) = number_of_job_end(next.end);
        let value = CJobEvent {
            at: next.at,
            job: next.id,
            cookie: next.cookie,
            used: next.used,
            remaining: next.remaining,
            dropped: events.take_dropped(),
            end,
            error,
            ..none
        };
        // SAFETY: the caller's.
        unsafe { plain::write(event, &value)? };
        Ok(())
    });
    returned(read.and_then(|read: Result<(), CallError>| read))
}
