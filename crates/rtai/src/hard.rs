//! Threads that are tasks of Punctual: hard tasks, and those that have a budget.
//!
//! A task with a budget is a reservation of its own. Hard tasks without one share a scheduling
//! group of their program, in which RTAI's priorities hold.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use punctual::{Attached, Error, Task};
use punctual_classic::{report_refusal, ClassicSets, CpuSet, InterfaceNames, MemberId, TaskShare};
use punctual_sys::sched::{self, Mask};

use crate::api;
use crate::arena::{Arena, TaskIndex, TaskSlot, TASKS};
use crate::blocking::now;

/// The sets of this program.
static SETS: ClassicSets = ClassicSets::new(InterfaceNames {
    library: "liblxrt",
    group: "rtai",
    prefix: "PUNCTUAL_RTAI",
    tasks: TASKS as u32,
});

/// Reports that a reservation was refused.
pub fn refused(error: &Error) {
    report_refusal(SETS.names(), error);
}

/// What the sets call a task.
fn member_of(task: TaskIndex) -> MemberId {
    MemberId(task.index() as u64)
}

/// RTAI's priority as a dispatcher has it: there the larger number comes first.
fn of_dispatcher(priority: i64) -> i64 {
    -priority
}

/// The calling thread as a task of Punctual.
struct HardThread {
    // In this order: the thread leaves before its budget is free.
    attached: Attached,
    member: Member,
    /// Number of the release that a wait returned last; `None` before the first one.
    returned: Cell<Option<u64>>,
    /// What it may execute on otherwise.
    cpus: Option<Mask>,
}

/// A member of a set, until this is dropped.
struct Member {
    set: Arc<CpuSet>,
    task: TaskIndex,
    share: TaskShare,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.set.remove(member_of(self.task));
    }
}

/// Of the calling thread.
#[derive(Default)]
struct ThreadState {
    thread: Option<HardThread>,
    /// The changes of its task that it has applied.
    seen: u64,
}

thread_local! {
    static STATE: RefCell<ThreadState> = RefCell::default();
}

/// What the slot of a task asks for; `None`: its thread is an ordinary one.
fn wanted(slot: &TaskSlot) -> Option<TaskShare> {
    match (slot.budget.get(), slot.is_hard.get()) {
        (0, 0) => None,
        (0, _) => {
            let priority = of_dispatcher(slot.base_priority.signed());
            Some(TaskShare::Group { priority })
        }
        (budget, _) => {
            let period = slot.period.get();
            // One release is for the first wait (`enter`).
            let start = slot.periodic_resume_time.signed();
            let start = start.saturating_sub(now()).saturating_sub_unsigned(period);
            let start = u64::try_from(start).unwrap_or(0);
            Some(TaskShare::Budget { period, budget, start })
        }
    }
}

/// The calling thread is a task of Punctual. Real-time safe.
pub fn is_attached() -> bool {
    let has_thread =
        |state: &RefCell<ThreadState>| state.try_borrow().is_ok_and(|s| s.thread.is_some());
    STATE.try_with(has_thread).unwrap_or(false)
}

/// What the calling thread may execute on when it is no task, where it is one.
pub fn cpus() -> Option<Mask> {
    STATE.try_with(|state| state.try_borrow().ok()?.thread.as_ref()?.cpus.clone()).ok().flatten()
}

/// Has the thread of `task`, the calling one, the reservation that its slot asks for. Nothing is
/// done, and nothing waited for, where that did not change.
///
/// # Errors
/// The reservation is refused; the thread is an ordinary one then.
pub fn apply(arena: &Arena, task: TaskIndex) -> Result<(), Error> {
    let slot = arena.task(task);
    let changes = slot.changes.get();
    let is_seen = |state: &RefCell<ThreadState>| {
        // A handler of a signal may interrupt a change.
        state.try_borrow().is_ok_and(|state| state.seen == changes)
    };
    if STATE.try_with(is_seen).unwrap_or(true) {
        return Ok(());
    }
    // Its former reservation is free before it asks for another one.
    let former = STATE.with_borrow_mut(|state| {
        state.seen = changes;
        state.thread.take()
    });
    drop(former);
    if wanted(slot).is_some() {
        let entered = enter(arena, task)?;
        STATE.with_borrow_mut(|state| state.thread = entered);
    }
    Ok(())
}

/// Makes the calling thread what its slot asks for; `None`: it asks for nothing any more.
fn enter(arena: &Arena, task: TaskIndex) -> Result<Option<HardThread>, Error> {
    let slot = arena.task(task);
    let cpus = sched::affinity(0).ok();
    let set = SETS.on(slot.cpus.get())?;
    // From now on: the set may have been made first, which takes its time.
    let Some(share) = wanted(slot) else { return Ok(None) };
    let name = match api::name_of(slot.head.name.get()) {
        // The number 2, which programs have that count their tasks: "0", and zeros are lost.
        name if name.is_empty() => "0".to_owned(),
        name => String::from_utf8_lossy(&name).into_owned(),
    };
    // The priority of a task of the group may change meanwhile.
    let attached = set.attach(member_of(task), &name, || wanted(slot).unwrap_or(share))?;
    if matches!(share, TaskShare::Budget { .. }) {
        // Waits that come late count from the first wait on; in RTAI, from the first period on. If
        // the run is over, the next wait says so.
        let _ = attached.task().wait_period();
    }
    let (member, returned) = (Member { set, task, share }, Cell::new(None));
    Ok(Some(HardThread { attached, member, returned, cpus }))
}

/// Ends what [`apply`] did for the calling thread.
pub fn leave() {
    let thread = STATE.try_with(|state| {
        let mut state = state.borrow_mut();
        state.seen = 0;
        state.thread.take()
    });
    drop(thread);
}

/// In the child of a fork: what its parent's thread was.
pub fn forget() {
    let thread = STATE.try_with(|state| state.try_borrow_mut().ok().map(|mut s| s.thread.take()));
    std::mem::forget(thread);
}

/// Makes the calling thread's `task` hard, if it can be; whether it is.
pub fn make_hard(arena: &Arena, task: TaskIndex) -> bool {
    let slot = arena.task(task);
    if slot.is_hard.get() == 0 {
        arena.transact(|transaction| transaction.set_hard(task, true));
        if let Err(error) = apply(arena, task) {
            refused(&error);
            arena.transact(|transaction| transaction.set_hard(task, false));
        }
    }
    slot.is_hard.get() != 0
}

/// Makes the calling thread's `task` soft; it keeps a budget.
pub fn make_soft(arena: &Arena, task: TaskIndex) {
    if arena.task(task).is_hard.get() != 0 {
        arena.transact(|transaction| transaction.set_hard(task, false));
        let _ = apply(arena, task).inspect_err(refused);
    }
}

/// How a wait for the next period of a task with a budget ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodWait {
    /// By the next release.
    Next,
    /// It was due in a period gone by, and is ignored; or releases were lost.
    Late,
    /// The machine has ended the guarantees.
    Over,
}

/// Calls `f` with the calling thread and its task of Punctual; `None`: it has no budget.
fn with_budget<T>(f: impl FnOnce(&HardThread, &Task<'_>) -> T) -> Option<T> {
    let with_task = |state: &RefCell<ThreadState>| {
        let state = state.try_borrow().ok()?;
        let thread = state.thread.as_ref()?;
        let has_budget = matches!(thread.member.share, TaskShare::Budget { .. });
        has_budget.then(|| f(thread, &thread.attached.task()))
    };
    STATE.try_with(with_task).ok().flatten()
}

/// Waits for the next release of the calling thread's budget; `None`: it has none. Real-time safe.
pub fn wait_period() -> Option<PeriodWait> {
    with_budget(|thread, task| {
        let before = task.current().number;
        let Some(released) = task.wait_period() else { return PeriodWait::Over };
        // The next release may come on the way to the dispatcher, which ignores the wait of a task
        // that is behind all the same: `before` is not the one that it returns.
        let last = thread.returned.replace(Some(released.number));
        let passed_over = last.is_some_and(|last| released.number > last.saturating_add(1));
        match released.number == before || released.lost > 0 || passed_over {
            true => PeriodWait::Late,
            false => PeriodWait::Next,
        }
    })
}

/// When the current release of the calling thread's budget was due; `None`: it has no budget.
pub fn current_release() -> Option<u64> {
    with_budget(|_, task| task.release().as_nanos())
}

/// A task of this process has another priority of its own.
pub fn change_priority(task: TaskIndex, priority: i64) {
    SETS.change_priority(member_of(task), of_dispatcher(priority));
}
