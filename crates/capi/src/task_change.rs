//! Changes of tasks that run: other parameters, suspended and resumed.

use std::ffi::c_int;
use std::time::Duration;

use punctual::{Error, Parameters};

use crate::error::{error, returned};
use crate::plain::{self, Plain};
use crate::task::{HandleOfTask, TASKS};

/// PUNCTUAL_CHANGE_PRIORITY.
pub const CHANGE_PRIORITY: u32 = 1;

/// `struct punctual_task_change`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTaskChange {
    pub size: usize,
    pub period: u64,
    pub budget: u64,
    pub deadline: u64,
    pub priority: i64,
    pub flags: u32,
    pub reserved: u32,
}

// SAFETY: integers.
unsafe impl Plain for CTaskChange {
    const FIRST: usize = size_of::<CTaskChange>();
}

impl CTaskChange {
    /// What is 0 was not given.
    fn parameters(&self) -> Result<Parameters, Error> {
        if self.flags & !CHANGE_PRIORITY != 0 || self.reserved != 0 {
            let cause =
                format!("a change has unknown flags ({:#x}) or reserved values", self.flags);
            return Err(error(libc::EINVAL, cause, "use PUNCTUAL_CHANGE_PRIORITY, or 0"));
        }
        let ns = Duration::from_nanos;
        let mut to = Parameters::new();
        if self.period != 0 {
            to = to.period(ns(self.period));
        }
        if self.budget != 0 {
            to = to.budget(ns(self.budget));
        }
        if self.deadline != 0 {
            to = to.deadline(ns(self.deadline));
        }
        if self.flags & CHANGE_PRIORITY != 0 {
            to = to.priority(self.priority);
        }
        Ok(to)
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_task_change(
    task: *mut HandleOfTask,
    change: *const CTaskChange,
) -> c_int {
    returned(TASKS.get(task).and_then(|task| {
        plain::not_null(change)?;
        // SAFETY: the caller's.
        let change = unsafe { plain::read(change)? };
        Ok(task.handle.change(&change.parameters()?)?)
    }))
}

#[no_mangle]
pub extern "C" fn punctual_task_suspend(task: *mut HandleOfTask) -> c_int {
    returned(TASKS.get(task).and_then(|task| Ok(task.handle.suspend()?)))
}

#[no_mangle]
pub extern "C" fn punctual_task_resume(task: *mut HandleOfTask) -> c_int {
    returned(TASKS.get(task).and_then(|task| Ok(task.handle.resume()?)))
}
