//! Threads that the library makes for tasks.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;

use punctual::{Error, Running};

use crate::current;
use crate::error::{error, returned, CallError};
use crate::plain;
use crate::set::{HandleOfSet, SETS};
use crate::task::{draft, HandleOfTask, TaskAttr, TaskObject, TASKS};

/// A function of C.
pub type Function = extern "C" fn(*mut c_void) -> *mut c_void;

extern "C" {
    // thread.c
    fn punctual__create_thread(
        thread: *mut libc::pthread_t,
        stack: usize,
        start: *mut c_void,
    ) -> c_int;
}

/// What a thread needs to become its task.
struct Start {
    set: Arc<Running>,
    attr: TaskAttr,
    function: Function,
    argument: *mut c_void,
    /// The program wants a handle.
    wants_handle: bool,
    /// The task was admitted; its handle.
    answer: Sender<Result<usize, Error>>,
}

#[no_mangle]
pub unsafe extern "C" fn punctual_task_create(
    set: *mut HandleOfSet,
    attr: *const TaskAttr,
    function: Option<Function>,
    argument: *mut c_void,
    task: *mut *mut HandleOfTask,
) -> c_int {
    returned(SETS.get(set).and_then(|set| {
        let no_function = || error(libc::EFAULT, "the task has no function", "name one");
        let function = function.ok_or_else(no_function)?;
        // SAFETY: the caller's.
        let attr = unsafe { plain::read(attr)? };
        let (answer, is_answered) = channel();
        let wants_handle = !task.is_null();
        let start = Start { set, attr, function, argument, wants_handle, answer };
        let thread = create_thread(Box::new(start))?;
        match is_answered.recv() {
            Ok(Ok(handle)) => {
                if wants_handle {
                    // SAFETY: the caller's.
                    unsafe { task.write(handle as *mut HandleOfTask) };
                }
                Ok(())
            }
            Ok(Err(e)) => {
                // SAFETY: a thread that was neither joined nor detached; it returns.
                unsafe { libc::pthread_join(thread, ptr::null_mut()) };
                Err(e.into())
            }
            // It answers in any case.
            Err(_) => Err(error(libc::EIO, "the thread of the task has ended", "report it").into()),
        }
    }))
}

fn create_thread(start: Box<Start>) -> Result<libc::pthread_t, CallError> {
    let stack = start.attr.stack;
    let start = Box::into_raw(start);
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the thread has `start` from here on.
    let refused = unsafe { punctual__create_thread(thread.as_mut_ptr(), stack, start.cast()) };
    if refused == 0 {
        // SAFETY: it was made.
        return Ok(unsafe { thread.assume_init() });
    }
    // SAFETY: no thread has it.
    drop(unsafe { Box::from_raw(start) });
    let why = std::io::Error::from_raw_os_error(refused);
    let help = "raise RLIMIT_NPROC, or use another size of its stack";
    Err(error(refused, format!("no thread can be made for the task: {why}"), help).into())
}

/// Makes the calling thread the task; false: it is none, and returns.
#[no_mangle]
pub unsafe extern "C" fn punctual__begin_thread(
    start: *mut c_void,
    function: *mut Function,
    argument: *mut *mut c_void,
) -> bool {
    // SAFETY: what `create_thread` passes, once.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    let mut handle = ptr::null_mut();
    // SAFETY: the caller's attributes are there until it has an answer.
    let attached = unsafe { draft(&start.set, &start.attr) }.and_then(|draft| {
        draft.attach_with(|admitted| {
            // SAFETY: no arguments.
            let object = TaskObject::new(admitted, Some(unsafe { libc::pthread_self() }));
            if start.wants_handle {
                handle = TASKS.add(object);
            }
            drop(start.answer.send(Ok(handle as usize)));
        })
    });
    match attached {
        Ok(attached) => {
            // SAFETY: the caller's.
            unsafe {
                function.write(start.function);
                argument.write(start.argument);
            }
            // A run that ended before it began executes nothing.
            let is_released = !attached.task().is_over();
            current::enter(attached, handle);
            is_released
        }
        Err(e) => {
            drop(start.answer.send(Err(e)));
            false
        }
    }
}
