//! Tasks: their attributes and handles.

use std::ffi::{c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual::jobs::TaskJobs;
use punctual::{Error, Overrun, Parameters, Running, TaskDraft, TaskEnd, TaskHandle, TaskResult};

use crate::current;
use crate::error::{error, failed, returned};
use crate::handle::{bad_handle, HandleKind, Table};
use crate::plain::{self, Plain};
use crate::set::{HandleOfSet, SETS};

pub static TASKS: Table<TaskObject, HandleOfTask> = Table::new(HandleKind::Task);

/// `struct punctual_task`.
pub enum HandleOfTask {}

/// `struct punctual_task_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TaskAttr {
    pub size: usize,
    pub name: *const c_char,
    pub period: u64,
    pub budget: u64,
    pub deadline: u64,
    pub offset: u64,
    pub priority: i64,
    pub overrun: u32,
    pub cpu: u32,
    pub stack: usize,
    pub group: *const c_char,
    pub budget_group: *const c_char,
    pub overrun_handler: Option<extern "C" fn(*mut c_void)>,
    pub overrun_argument: *mut c_void,
}

// SAFETY: integers and pointers.
unsafe impl Plain for TaskAttr {
    const FIRST: usize = mem::offset_of!(TaskAttr, group);
}

/// `struct punctual_task_end`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CEnd {
    pub size: usize,
    pub how: u32,
    pub code: i32,
    pub value: *mut c_void,
}

// SAFETY: integers and pointers.
unsafe impl Plain for CEnd {
    const FIRST: usize = size_of::<CEnd>();
}

/// By number: PUNCTUAL_CARRY, PUNCTUAL_SKIP, PUNCTUAL_BACKGROUND, PUNCTUAL_SIGNAL.
pub const OVERRUNS: [Overrun; 4] =
    [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal];

/// The number of an end in C: `enum punctual_how`, and its code.
pub fn number_of(end: &TaskEnd) -> (u32, i32) {
    match end {
        TaskEnd::Returned | TaskEnd::Panicked(_) => (0, 0),
        TaskEnd::NeverReleased => (1, 0),
        TaskEnd::Stopped => (2, 0),
        TaskEnd::Exited(code) => (3, *code),
        TaskEnd::Signalled(signal) => (4, *signal),
        TaskEnd::Gone => (5, 0),
        TaskEnd::Refused => (6, 0),
    }
}

/// A task that has a handle in C.
pub struct TaskObject {
    pub handle: Box<dyn AnyTask>,
    /// Of a task that the library made a thread for: the thread, until it is joined.
    thread: Mutex<Option<libc::pthread_t>>,
}

/// A [`TaskHandle`] of any type.
pub trait AnyTask: Send + Sync {
    fn wait(&self) -> TaskEnd;
    fn stop(&self) -> Result<(), Error>;
    fn change(&self, parameters: &Parameters) -> Result<(), Error>;
    fn suspend(&self) -> Result<(), Error>;
    fn resume(&self) -> Result<(), Error>;
    fn results(&self) -> Result<TaskResult, Error>;
    fn jobs(&self) -> Result<TaskJobs, Error>;
}

impl<T: Send> AnyTask for TaskHandle<T> {
    fn wait(&self) -> TaskEnd {
        TaskHandle::wait(self)
    }

    fn jobs(&self) -> Result<TaskJobs, Error> {
        TaskHandle::jobs(self)
    }

    fn stop(&self) -> Result<(), Error> {
        TaskHandle::stop(self)
    }

    fn change(&self, parameters: &Parameters) -> Result<(), Error> {
        TaskHandle::change(self, parameters)
    }

    fn suspend(&self) -> Result<(), Error> {
        TaskHandle::suspend(self)
    }

    fn resume(&self) -> Result<(), Error> {
        TaskHandle::resume(self)
    }

    fn results(&self) -> Result<TaskResult, Error> {
        TaskHandle::results(self)
    }
}

impl TaskObject {
    pub fn new(handle: impl AnyTask + 'static, thread: Option<libc::pthread_t>) -> Arc<TaskObject> {
        Arc::new(TaskObject { handle: Box::new(handle), thread: Mutex::new(thread) })
    }

    fn take_thread(&self) -> Option<libc::pthread_t> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for TaskObject {
    fn drop(&mut self) {
        if let Some(thread) = self.take_thread() {
            // SAFETY: a thread that was neither joined nor detached.
            unsafe { libc::pthread_detach(thread) };
        }
    }
}

/// What C asks for, as a draft in `set`.
///
/// # Errors
/// EINVAL: a value is out of its range.
///
/// # Safety
/// That of the header.
pub unsafe fn draft<'a>(
    set: &'a Running,
    attr: &TaskAttr,
) -> Result<TaskDraft<&'a Running>, Error> {
    static UNNAMED: AtomicU64 = AtomicU64::new(1);
    // SAFETY: the caller's.
    let name = match unsafe { plain::text(attr.name, "the task's name")? } {
        Some(name) => name.to_owned(),
        None => format!("task-{}", UNNAMED.fetch_add(1, Relaxed)),
    };
    let Some(&overrun) = OVERRUNS.get(attr.overrun as usize) else {
        let cause = format!("task {name:?}: there is no overrun policy {}", attr.overrun);
        let help = "use PUNCTUAL_CARRY, _SKIP, _BACKGROUND or _SIGNAL";
        return Err(error(libc::EINVAL, cause, help));
    };
    let ns = Duration::from_nanos;
    let mut draft = set.task(name).start(ns(attr.offset)).priority(attr.priority).overrun(overrun);
    // What is 0 was not given.
    if attr.period != 0 {
        draft = draft.period(ns(attr.period));
    }
    if attr.budget != 0 {
        draft = draft.budget(ns(attr.budget));
    }
    if attr.deadline != 0 {
        draft = draft.deadline(ns(attr.deadline));
    }
    // SAFETY: the caller's.
    let (group, node) = unsafe {
        let group = plain::text(attr.group, "the group's name")?;
        (group, plain::text(attr.budget_group, "the budget group's name")?)
    };
    if let Some(handler) = attr.overrun_handler {
        // SAFETY: the caller's. The policy is the one that C names.
        draft = unsafe { draft.overrun_handler(handler, attr.overrun_argument) }.overrun(overrun);
    }
    if let Some(group) = group {
        draft = draft.group(group);
    }
    if let Some(node) = node {
        draft = draft.budget_group(node);
    }
    if attr.cpu != 0 || set.cpus().count() > 1 {
        draft = draft.cpu(attr.cpu);
    }
    Ok(draft)
}

#[no_mangle]
pub unsafe extern "C" fn punctual_attach(
    set: *mut HandleOfSet,
    attr: *const TaskAttr,
    task: *mut *mut HandleOfTask,
) -> c_int {
    returned(SETS.get(set).and_then(|set| {
        let mut handle = ptr::null_mut();
        // SAFETY: the caller's.
        let attached = unsafe { draft(&set, &plain::read(attr)?)? }.attach_with(|admitted| {
            if !task.is_null() {
                handle = TASKS.add(TaskObject::new(admitted, None));
                // SAFETY: the caller's.
                unsafe { task.write(handle) };
            }
        })?;
        current::enter(attached, handle);
        Ok(())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_task_join(task: *mut HandleOfTask, end: *mut CEnd) -> c_int {
    returned(TASKS.get(task).and_then(|object| {
        if current::is(task) {
            return Err(failed(libc::EDEADLK, c"a task cannot wait for its own end"));
        }
        let mut value = ptr::null_mut();
        if let Some(thread) = object.take_thread() {
            // SAFETY: a thread that was neither joined nor detached.
            let refused = unsafe { libc::pthread_join(thread, &mut value) };
            if refused != 0 {
                *object.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
                return Err(failed(refused, c"the thread cannot be joined"));
            }
        }
        let (how, code) = number_of(&object.handle.wait());
        if !end.is_null() {
            let ended = CEnd { size: mem::size_of::<CEnd>(), how, code, value };
            // SAFETY: the caller's.
            unsafe { plain::write(end, &ended)? };
        }
        // Another thread may have joined it meanwhile.
        TASKS.remove(task).map(drop).map_err(|_| bad_handle())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_task_close(task: *mut HandleOfTask) -> c_int {
    returned(TASKS.remove(task).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_task_stop(task: *mut HandleOfTask) -> c_int {
    returned(TASKS.get(task).and_then(|task| Ok(task.handle.stop()?)))
}

#[no_mangle]
pub extern "C" fn punctual_task_set_budget(task: *mut HandleOfTask, budget: u64) -> c_int {
    let parameters = Parameters::new().budget(Duration::from_nanos(budget));
    returned(TASKS.get(task).and_then(|task| Ok(task.handle.change(&parameters)?)))
}
