//! The functions of the headers in `include/rtai`, which describe them. Each has the name of its
//! call; what it does is in the modules below.

mod bits;
mod fifos;
mod long_messages;
mod mailboxes;
mod message_queues;
mod messages;
mod names;
mod periods;
mod polls;
mod print;
mod proxies;
mod registry;
mod semaphores;
mod shared_memory;
mod tasks;
mod threads;
mod time;
mod watchdog;

pub use names::{name_of, NAMES_END};

use std::ffi::{c_int, c_void};

use crate::arena::{arena, Arena, Handle, TaskIndex};
use crate::current;

/// `RTIME`.
pub type Rtime = i64;

/// A task as C passes it: NULL is that of the calling thread.
///
/// # Errors
/// -EINVAL: there is no such task.
fn named_task(task: *const c_void) -> Result<(&'static Arena, TaskIndex), c_int> {
    let arena = arena().ok_or(-libc::EINVAL)?;
    if task.is_null() {
        return Ok((arena, current::calling_task().ok_or(-libc::EINVAL)?.task));
    }
    let handle = Handle::from_pointer(task);
    let found = arena.transact(|transaction| transaction.find_task(handle));
    Ok((arena, found.ok_or(-libc::EINVAL)?))
}
