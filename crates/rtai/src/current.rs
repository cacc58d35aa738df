//! The task that the calling thread is.

use std::cell::{Cell, RefCell};
use std::sync::Once;

use crate::arena::{arena, Arena, TaskIndex};
use crate::blocking;
use crate::hard;
use crate::task::LOWEST_PRIORITY;

/// A thread that is a task.
pub struct ThisTask {
    task: TaskIndex,
}

thread_local! {
    /// The word of the task; 0: none. Of `OWNER`'s, without its destructor.
    static WORD: Cell<u64> = const { Cell::new(0) };
    /// Ends the task with the thread.
    static OWNER: RefCell<Option<ThisTask>> = const { RefCell::new(None) };
}

impl Drop for ThisTask {
    fn drop(&mut self) {
        WORD.set(0);
        hard::leave();
        let Some(arena) = arena() else { return };
        arena.transact(|transaction| transaction.delete_task(self.task));
        arena.task(self.task).life.unlock_kept();
    }
}

/// The task of the calling thread, if it is one.
pub fn task() -> Option<TaskIndex> {
    TaskIndex::from_word(WORD.get())
}

/// What a call of a task needs.
#[derive(Clone, Copy)]
pub struct CallingTask {
    pub arena: &'static Arena,
    pub task: TaskIndex,
}

/// The calling thread as a task. One that is none becomes one without a name of its own, the least
/// important of the soft ones. Where another task has suspended it, it waits first. `None`: there
/// is no arena, or no room in it.
pub fn calling_task() -> Option<CallingTask> {
    let arena = arena()?;
    let task = match task() {
        Some(task) => task,
        None => enter(arena, 0, LOWEST_PRIORITY, u64::MAX)?,
    };
    blocking::pass(arena, task);
    // Another task may have given it a budget.
    let _ = hard::apply(arena, task).inspect_err(hard::refused);
    Some(CallingTask { arena, task })
}

/// Makes the calling thread a task, of a name that no object has where `name` is 0; `None`: the
/// name is in use, or there is no room.
pub fn enter(arena: &Arena, name: u64, priority: i64, cpus: u64) -> Option<TaskIndex> {
    watch_forks();
    let task = arena.transact(|transaction| {
        let name = match name {
            0 => transaction.unused_name(),
            name => transaction.find_name(name).is_none().then_some(name)?,
        };
        transaction.new_task(name, priority, cpus)
    })?;
    OWNER.with_borrow_mut(|owner| *owner = Some(ThisTask { task }));
    WORD.set(task.word());
    Some(task)
}

/// Ends the task that the calling thread is; false: it is none.
pub fn leave() -> bool {
    let owner = OWNER.try_with(|owner| owner.borrow_mut().take()).ok().flatten();
    owner.is_some()
}

/// The child of a fork is no task of its parent's.
fn watch_forks() {
    extern "C" fn in_child() {
        WORD.set(0);
        let owner = OWNER.try_with(|owner| owner.try_borrow_mut().ok()?.take());
        std::mem::forget(owner);
        hard::forget();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler does what is safe in the child of a fork: a store, and forgetting.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
