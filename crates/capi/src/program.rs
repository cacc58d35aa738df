//! Tasks that are programs: commands and running processes.

use std::ffi::{c_char, c_int, CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use punctual::{Error, Running, TaskDraft, TaskEnd, TaskHandle};

use crate::error::{returned, CallError};
use crate::plain;
use crate::set::{HandleOfSet, SETS};
use crate::task::{draft, HandleOfTask, TaskAttr, TaskObject, TASKS};

#[no_mangle]
pub unsafe extern "C" fn punctual_task_command(
    set: *mut HandleOfSet,
    attr: *const TaskAttr,
    argv: *const *mut c_char,
    task: *mut *mut HandleOfTask,
) -> c_int {
    let argv = || {
        plain::not_null(argv)?;
        // SAFETY: the caller's: texts, the last of which NULL follows.
        Ok(unsafe { texts(argv) })
    };
    // SAFETY: the caller's.
    returned(argv().and_then(|argv: Vec<OsString>| unsafe {
        start(set, attr, task, |draft| draft.command(argv))
    }))
}

unsafe fn texts(mut from: *const *mut c_char) -> Vec<OsString> {
    let mut texts = Vec::new();
    // SAFETY: the caller's.
    unsafe {
        while !(*from).is_null() {
            texts.push(OsStr::from_bytes(CStr::from_ptr(*from).to_bytes()).to_owned());
            from = from.add(1);
        }
    }
    texts
}

#[no_mangle]
pub unsafe extern "C" fn punctual_task_pid(
    set: *mut HandleOfSet,
    attr: *const TaskAttr,
    pid: libc::pid_t,
    task: *mut *mut HandleOfTask,
) -> c_int {
    // SAFETY: the caller's.
    returned(unsafe { start(set, attr, task, |draft| draft.pid(pid)) })
}

unsafe fn start(
    set: *mut HandleOfSet,
    attr: *const TaskAttr,
    task: *mut *mut HandleOfTask,
    complete: impl FnOnce(TaskDraft<&Running>) -> Result<TaskHandle<TaskEnd>, Error>,
) -> Result<(), CallError> {
    let set = SETS.get(set)?;
    // SAFETY: the caller's.
    let handle = complete(unsafe { draft(&set, &plain::read(attr)?)? })?;
    if !task.is_null() {
        // SAFETY: the caller's.
        unsafe { task.write(TASKS.add(TaskObject::new(handle, None))) };
    }
    Ok(())
}
