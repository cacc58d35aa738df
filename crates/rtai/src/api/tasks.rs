//! Tasks, their suspension and priorities.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::ptr;

use punctual_sys::{clock, futex, sched};

use super::{named_task, Rtime};
use crate::arena::{arena, Arena, TaskIndex, TaskSlot, Transaction};
use crate::blocking::{self, now, Begun};
use crate::current;
use crate::hard;

/// `RT_TASK_INFO`.
#[repr(C)]
pub struct CTaskInfo {
    period: Rtime,
    base_priority: std::ffi::c_long,
    priority: std::ffi::c_long,
}

pub(super) fn handle_of(arena: &Arena, task: TaskIndex) -> *mut c_void {
    arena.transact(|transaction| transaction.handle_of_task(task).pointer())
}

#[no_mangle]
extern "C" fn rt_task_init_schmod(
    name: c_ulong,
    priority: c_int,
    _stack_size: c_int,
    _max_msg_size: c_int,
    policy: c_int,
    cpus_allowed: c_int,
) -> *mut c_void {
    let known = matches!(policy, libc::SCHED_OTHER | libc::SCHED_FIFO | libc::SCHED_RR);
    let Some(arena) = arena().filter(|_| known && priority >= 0) else { return ptr::null_mut() };
    let cpus = match cpus_allowed {
        0 => u64::MAX,
        cpus => u64::from(cpus as u32),
    };
    if let Some(task) = current::task() {
        // As in RTAI: it is a task already, and may have other CPUs.
        set_cpus(arena, task, cpus);
        return handle_of(arena, task);
    }
    let enter = || current::enter(arena, name, priority.into(), cpus);
    let task = enter().or_else(|| {
        // The name may be that of a task whose thread has ended.
        arena.reap();
        enter()
    });
    let Some(task) = task else { return ptr::null_mut() };
    set_cpus(arena, task, cpus);
    handle_of(arena, task)
}

#[no_mangle]
extern "C" fn rt_task_init(
    name: c_ulong,
    priority: c_int,
    stack_size: c_int,
    max_msg_size: c_int,
) -> *mut c_void {
    rt_task_init_schmod(name, priority, stack_size, max_msg_size, libc::SCHED_FIFO, 0xFF)
}

#[no_mangle]
extern "C" fn rt_thread_init(
    name: c_ulong,
    priority: c_int,
    max_msg_size: c_int,
    policy: c_int,
    cpus_allowed: c_int,
) -> *mut c_void {
    rt_task_init_schmod(name, priority, 0, max_msg_size, policy, cpus_allowed)
}

#[no_mangle]
extern "C" fn rt_thread_delete(task: *mut c_void) -> c_int {
    let Ok((_, found)) = named_task(task) else { return -libc::EINVAL };
    if current::task() != Some(found) {
        return -libc::EPERM;
    }
    current::leave();
    0
}

#[no_mangle]
extern "C" fn rt_agent() -> *mut c_void {
    let task = arena().zip(current::task());
    task.map_or(ptr::null_mut(), |(arena, task)| handle_of(arena, task))
}

#[no_mangle]
extern "C" fn rt_gettid() -> c_int {
    sched::thread_id()
}

#[no_mangle]
extern "C" fn rt_get_linux_tid(task: *mut c_void) -> libc::pid_t {
    match named_task(task) {
        Ok((arena, task)) => arena.task(task).tid.get() as libc::pid_t,
        Err(_) => 0,
    }
}

/// Does what may have the calling thread's task wait, which `task` may be.
fn of_task(
    task: *mut c_void,
    begin: impl FnOnce(&mut Transaction<'_>, TaskIndex, bool) -> Begun<c_int>,
    is_timed: bool,
) -> c_int {
    let (arena, task) = match named_task(task) {
        Ok(found) => found,
        Err(errno) => return errno,
    };
    let is_own = current::task() == Some(task);
    let begin = |transaction: &mut Transaction<'_>| begin(transaction, task, is_own);
    blocking::wait(arena, task, begin, |transaction, outcome| {
        transaction.end_suspension(task, outcome, is_timed)
    })
}

#[no_mangle]
pub(super) extern "C" fn rt_task_suspend(task: *mut c_void) -> c_int {
    of_task(task, |transaction, task, is_own| transaction.suspend(task, is_own), false)
}

#[no_mangle]
extern "C" fn rt_task_suspend_if(task: *mut c_void) -> c_int {
    of_task(task, |transaction, task, _| Begun::Done(transaction.suspend_if(task)), false)
}

#[no_mangle]
extern "C" fn rt_task_suspend_until(task: *mut c_void, time: Rtime) -> c_int {
    let begin = |transaction: &mut Transaction<'_>, task, is_own| {
        transaction.suspend_until(task, is_own, time, now())
    };
    of_task(task, begin, true)
}

#[no_mangle]
extern "C" fn rt_task_suspend_timed(task: *mut c_void, delay: Rtime) -> c_int {
    rt_task_suspend_until(task, now().saturating_add(delay))
}

#[no_mangle]
extern "C" fn rt_task_resume(task: *mut c_void) -> c_int {
    if task.is_null() {
        return -libc::EINVAL;
    }
    of_task(
        task,
        |transaction, task, _| {
            transaction.resume(task);
            Begun::Done(0)
        },
        false,
    )
}

#[no_mangle]
extern "C" fn rt_task_masked_unblock(task: *mut c_void, mask: c_ulong) -> c_int {
    if task.is_null() {
        return -libc::EINVAL;
    }
    let begin = |transaction: &mut Transaction<'_>, task, _| {
        let waited = transaction.unblock(task, mask);
        Begun::Done(if waited { crate::rte::UNBLKD } else { 0 })
    };
    of_task(task, begin, false)
}

#[no_mangle]
extern "C" fn rt_task_yield() -> c_int {
    let Some(calling) = current::calling_task() else { return -libc::EINVAL };
    if calling.arena.task(calling.task).is_hard.get() == 0 {
        // SAFETY: a system call without memory.
        return unsafe { libc::sched_yield() };
    }
    // Its host orders tasks of one priority by when they became ready.
    futex::sleep_until(clock::monotonic_ns() + 1);
    0
}

/// Sleeps until then, as a call of the calling task.
pub(super) fn sleep(until: Rtime, now: Rtime) -> c_int {
    let Some(calling) = current::calling_task() else { return -libc::EINVAL };
    let begin =
        |transaction: &mut Transaction<'_>| transaction.sleep_until(calling.task, until, now);
    blocking::wait(calling.arena, calling.task, begin, |_, outcome| Transaction::end_sleep(outcome))
}

#[no_mangle]
extern "C" fn rt_sleep(delay: Rtime) -> c_int {
    let now = now();
    sleep(now.saturating_add(delay), now)
}

#[no_mangle]
extern "C" fn rt_sleep_until(time: Rtime) -> c_int {
    sleep(time, now())
}

#[no_mangle]
extern "C" fn rt_change_prio(task: *mut c_void, priority: c_int) -> c_int {
    match named_task(task) {
        Ok((arena, task)) if priority >= 0 => {
            let change = |transaction: &mut Transaction<'_>| {
                transaction.change_priority(task, priority.into())
            };
            let before = arena.transact(change) as c_int;
            hard::change_priority(task, arena.task(task).base_priority.signed());
            before
        }
        _ => -libc::EINVAL,
    }
}

#[no_mangle]
extern "C" fn rt_spv_RMS(cpu: c_int) {
    let Some(arena) = arena() else { return };
    // SAFETY: system calls without memory.
    let (own, count) = unsafe { (libc::sched_getcpu(), libc::sysconf(libc::_SC_NPROCESSORS_ONLN)) };
    let is_one = (0..count.min(64)).contains(&cpu.into());
    let cpu = if is_one { cpu } else { own.clamp(0, 63) };
    let tasks = arena.transact(|transaction| transaction.set_rate_monotonic(cpu as u32));
    for task in tasks {
        hard::change_priority(task, arena.task(task).base_priority.signed());
    }
}

#[no_mangle]
unsafe extern "C" fn rt_task_get_info(task: *mut c_void, info: *mut CTaskInfo) -> c_int {
    let Ok((arena, task)) = named_task(task) else { return -libc::EINVAL };
    if info.is_null() {
        return -libc::EINVAL;
    }
    let slot = arena.task(task);
    let info_of = |_: &mut Transaction<'_>| CTaskInfo {
        period: slot.period.signed(),
        base_priority: slot.base_priority.signed(),
        priority: slot.priority.signed(),
    };
    // SAFETY: the caller's.
    unsafe { info.write(arena.transact(info_of)) };
    0
}

#[no_mangle]
unsafe extern "C" fn rt_get_priorities(
    task: *mut c_void,
    priority: *mut c_int,
    base_priority: *mut c_int,
) -> c_int {
    let mut info = CTaskInfo { period: 0, base_priority: 0, priority: 0 };
    if priority.is_null() || base_priority.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: memory of this function, and of the caller.
    unsafe {
        if rt_task_get_info(task, &mut info) != 0 {
            return -libc::EINVAL;
        }
        priority.write(info.priority as c_int);
        base_priority.write(info.base_priority as c_int);
    }
    0
}

/// One of a task's priorities.
fn priority_of(task: *mut c_void, which: impl Fn(&CTaskInfo) -> std::ffi::c_long) -> c_int {
    let mut info = CTaskInfo { period: 0, base_priority: 0, priority: 0 };
    // SAFETY: memory of this function.
    match unsafe { rt_task_get_info(task, &mut info) } {
        0 => which(&info) as c_int,
        error => error,
    }
}

#[no_mangle]
extern "C" fn rt_get_prio(task: *mut c_void) -> c_int {
    priority_of(task, |info| info.base_priority)
}

#[no_mangle]
extern "C" fn rt_get_inher_prio(task: *mut c_void) -> c_int {
    priority_of(task, |info| info.priority)
}

/// The CPUs on which a task may execute. A thread of this program that is not hard moves at once.
fn set_cpus(arena: &Arena, task: TaskIndex, cpus: u64) {
    let slot = arena.task(task);
    arena.transact(|transaction| transaction.set(&slot.cpus, cpus));
    let is_own = slot.head.process.get() == u64::from(std::process::id());
    if !is_own || slot.is_hard.get() != 0 {
        return;
    }
    let tid = slot.tid.get() as i32;
    let (Ok(may), Ok(has)) = (sched::affinity(0), sched::affinity(tid)) else { return };
    let mut mask = may;
    mask[0] &= cpus;
    mask[1..].fill(0);
    // CPUs that are not there leave it where it is, as do all CPUs.
    let is_some = mask[0] != 0 && !(cpus == u64::MAX || cpus == 0xFF);
    if is_some && mask != has {
        let _ = sched::set_affinity(tid, &mask);
    }
}

#[no_mangle]
extern "C" fn rt_set_runnable_on_cpus(task: *mut c_void, mask: c_ulong) {
    if let Ok((arena, task)) = named_task(task) {
        set_cpus(arena, task, mask);
    }
}

#[no_mangle]
extern "C" fn rt_set_runnable_on_cpuid(task: *mut c_void, cpu: c_uint) {
    if let (Ok((arena, task)), Some(mask)) = (named_task(task), 1u64.checked_shl(cpu)) {
        set_cpus(arena, task, mask);
    }
}

#[no_mangle]
extern "C" fn rt_task_use_fpu(task: *mut c_void, _use_fpu: c_int) -> c_int {
    named_task(task).map_or_else(|errno| errno, |_| 0)
}

/// The execution time of a thread, ns, where /proc or the clock of the thread has it.
fn execution_time(slot: &TaskSlot) -> Rtime {
    let (process, tid) = (slot.head.process.get(), slot.tid.get());
    if process == u64::from(std::process::id()) {
        return clock::CpuClock::of_thread(tid as i32).read().unwrap_or(0) as Rtime;
    }
    let path = format!("/proc/{process}/task/{tid}/schedstat");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[no_mangle]
unsafe extern "C" fn rt_get_exectime(task: *mut c_void, exectime: *mut Rtime) {
    if exectime.is_null() {
        return;
    }
    let times = match named_task(task) {
        Ok((arena, task)) => {
            let slot = arena.task(task);
            [execution_time(slot), slot.first_executed.signed(), now()]
        }
        Err(_) => [0; 3],
    };
    // SAFETY: the caller's, three of them.
    unsafe { exectime.cast::<[Rtime; 3]>().write_unaligned(times) };
}
