//! The header declares what is here: a compiler of C compares functions, structures and constants.

use std::ffi::{c_char, c_void};
use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual::jobs::{AddedJobEnd, JobRefusal};
use punctual::TaskEnd;

use crate::barrier::*;
use crate::cond::*;
use crate::current::*;
use crate::error::*;
use crate::fifo::*;
use crate::fifo_end::*;
use crate::group::*;
use crate::job::*;
use crate::mutex::*;
use crate::mutex_table::HandleOfMutex;
use crate::observer::{CReport, DROPPED, ENDED, MISSED, OVERRAN, PERIOD, WARNING};
use crate::program::*;
use crate::semaphore::*;
use crate::set::*;
use crate::shared_barrier::*;
use crate::shared_cond::*;
use crate::shared_lock::LOCK_PERSISTENT;
use crate::shared_mutex::*;
use crate::shared_sem::*;
use crate::stats::*;
use crate::task::*;
use crate::task_change::*;
use crate::thread::*;

/// A type as C writes it.
trait CType {
    fn name() -> String;
}

macro_rules! types {
    ($($type:ty = $name:literal,)*) => {$(
        impl CType for $type {
            fn name() -> String {
                $name.to_owned()
            }
        }
    )*};
}

types! {
    () = "void",
    bool = "_Bool",
    i32 = "int32_t",
    u32 = "uint32_t",
    i64 = "int64_t",
    u64 = "uint64_t",
    usize = "size_t",
    c_char = "char",
    c_void = "void",
    Option<Function> = "void *(*)(void *)",
    HandleOfSet = "struct punctual",
    HandleOfTask = "struct punctual_task",
    CGroup = "struct punctual_group",
    CBudgetGroup = "struct punctual_budget_group",
    CReport = "struct punctual_report",
    SetAttr = "struct punctual_attr",
    TaskAttr = "struct punctual_task_attr",
    CPeriod = "struct punctual_period",
    CEnd = "struct punctual_task_end",
    isize = "ssize_t",
    HandleOfFifo = "struct punctual_fifo",
    HandleOfWriter = "struct punctual_fifo_writer",
    HandleOfReader = "struct punctual_fifo_reader",
    CFifoAttr = "struct punctual_fifo_attr",
    CFifoInfo = "struct punctual_fifo_info",
    HandleOfMutex = "struct punctual_mutex",
    HandleOfCond = "struct punctual_cond",
    HandleOfSem = "struct punctual_sem",
    HandleOfBarrier = "struct punctual_barrier",
    HandleOfSharedMutex = "struct punctual_shared_mutex",
    HandleOfSharedCond = "struct punctual_shared_cond",
    HandleOfSharedSem = "struct punctual_shared_sem",
    HandleOfSharedBarrier = "struct punctual_shared_barrier",
    CMutexAttr = "struct punctual_mutex_attr",
    CSemAttr = "struct punctual_sem_attr",
    CSpread = "struct punctual_spread",
    HandleOfJobs = "struct punctual_jobs",
    HandleOfJobEvents = "struct punctual_job_events",
    CJobAttr = "struct punctual_job_attr",
    CJobEvent = "struct punctual_job_event",
    CTaskChange = "struct punctual_task_change",
    CTaskStats = "struct punctual_task_stats",
    CSetStats = "struct punctual_stats",
}

impl<T: CType> CType for *const T {
    fn name() -> String {
        format!("{} const *", T::name())
    }
}

impl<T: CType> CType for *mut T {
    fn name() -> String {
        format!("{} *", T::name())
    }
}

/// A function's type as C writes that of a pointer to it.
trait Signature {
    fn name() -> String;
}

macro_rules! signatures {
    ($(($($argument:ident),*))*) => {$(
        signatures!(extern "C" fn($($argument),*) -> R, $($argument)*);
        signatures!(unsafe extern "C" fn($($argument),*) -> R, $($argument)*);
    )*};
    ($function:ty, $($argument:ident)*) => {
        impl<R: CType, $($argument: CType),*> Signature for $function {
            fn name() -> String {
                let arguments: &[String] = &[$($argument::name()),*];
                let arguments = match arguments {
                    [] => "void".to_owned(),
                    arguments => arguments.join(", "),
                };
                format!("{} (*)({arguments})", R::name())
            }
        }
    };
}

signatures! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

fn signature<F: Signature>(_: F) -> String {
    F::name()
}

/// Assertions in C of types of functions, by name.
macro_rules! functions {
    ($lines:ident, $names:ident: $($name:ident as $type:ty,)*) => {$(
        $names.push(stringify!($name));
        writeln!(
            $lines,
            "_Static_assert(__builtin_types_compatible_p(__typeof__(&{0}), {1}), \"{0}\");",
            stringify!($name),
            signature($name as $type)
        )
        .expect("a string grows");
    )*};
}

/// Assertions in C of a structure's size, and of where each member is.
macro_rules! structures {
    ($lines:ident: $($type:ident { $($member:ident),* })*) => {$(
        writeln!(
            $lines,
            "_Static_assert(sizeof({0}) == {1}, \"{0}\");",
            $type::name(),
            size_of::<$type>()
        )
        .expect("a string grows");
        $(writeln!(
            $lines,
            "_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");",
            $type::name(),
            stringify!($member),
            offset_of!($type, $member)
        )
        .expect("a string grows");)*
    )*};
}

#[test]
fn the_header_declares_what_is_here() {
    let (mut lines, mut names) = ("#include <punctual.h>\n".to_owned(), Vec::new());
    functions! { lines, names:
        punctual_attach as unsafe extern "C" fn(_, _, _) -> _,
        punctual_barrier_create as unsafe extern "C" fn(_, _) -> _,
        punctual_barrier_destroy as extern "C" fn(_) -> _,
        punctual_barrier_wait as extern "C" fn(_) -> _,
        punctual_barrier_wait_until as extern "C" fn(_, _) -> _,
        punctual_clock as extern "C" fn() -> _,
        punctual_close as extern "C" fn(_) -> _,
        punctual_cond_broadcast as extern "C" fn(_) -> _,
        punctual_cond_create as unsafe extern "C" fn(_) -> _,
        punctual_cond_destroy as extern "C" fn(_) -> _,
        punctual_cond_signal as extern "C" fn(_) -> _,
        punctual_cond_wait as extern "C" fn(_, _) -> _,
        punctual_cond_wait_until as extern "C" fn(_, _, _) -> _,
        punctual_current_period as unsafe extern "C" fn(_) -> _,
        punctual_detach as extern "C" fn() -> _,
        punctual_fifo_close as extern "C" fn(_) -> _,
        punctual_fifo_create as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_get as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_get_some as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_get_some_until as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_fifo_get_until as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_fifo_info as unsafe extern "C" fn(_, _) -> _,
        punctual_fifo_open as unsafe extern "C" fn(_, _) -> _,
        punctual_fifo_put as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_put_until as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_fifo_reader_close as extern "C" fn(_) -> _,
        punctual_fifo_reader_fd as extern "C" fn(_) -> _,
        punctual_fifo_reader_open as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_reader_ready as extern "C" fn(_) -> _,
        punctual_fifo_remove as unsafe extern "C" fn(_) -> _,
        punctual_fifo_writer_close as extern "C" fn(_) -> _,
        punctual_fifo_writer_fd as extern "C" fn(_) -> _,
        punctual_fifo_writer_open as unsafe extern "C" fn(_, _, _) -> _,
        punctual_fifo_writer_ready as extern "C" fn(_, _) -> _,
        punctual_is_over as extern "C" fn() -> _,
        punctual_job_add as unsafe extern "C" fn(_, _, _) -> _,
        punctual_job_cancel as extern "C" fn(_, _) -> _,
        punctual_job_complete as extern "C" fn(_, _) -> _,
        punctual_job_event as unsafe extern "C" fn(_, _, _) -> _,
        punctual_job_events_close as extern "C" fn(_) -> _,
        punctual_job_events_fd as extern "C" fn(_) -> _,
        punctual_job_events_open as unsafe extern "C" fn(_, _) -> _,
        punctual_jobs_close as extern "C" fn(_) -> _,
        punctual_jobs_open as unsafe extern "C" fn(_, _) -> _,
        punctual_jobs_order as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_last_error as extern "C" fn() -> _,
        punctual_mutex_consistent as extern "C" fn(_) -> _,
        punctual_mutex_create as unsafe extern "C" fn(_) -> _,
        punctual_mutex_create_with as unsafe extern "C" fn(_, _) -> _,
        punctual_mutex_destroy as extern "C" fn(_) -> _,
        punctual_mutex_lock as extern "C" fn(_) -> _,
        punctual_mutex_lock_until as extern "C" fn(_, _) -> _,
        punctual_mutex_trylock as extern "C" fn(_) -> _,
        punctual_mutex_unlock as extern "C" fn(_) -> _,
        punctual_open as unsafe extern "C" fn(_, _) -> _,
        punctual_remaining_budget as extern "C" fn() -> _,
        punctual_self as extern "C" fn() -> _,
        punctual_sem_create as unsafe extern "C" fn(_, _) -> _,
        punctual_sem_destroy as extern "C" fn(_) -> _,
        punctual_sem_post as extern "C" fn(_) -> _,
        punctual_sem_trywait as extern "C" fn(_) -> _,
        punctual_sem_wait as extern "C" fn(_) -> _,
        punctual_sem_wait_until as extern "C" fn(_, _) -> _,
        punctual_shared_barrier_close as extern "C" fn(_) -> _,
        punctual_shared_barrier_create as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_shared_barrier_open as unsafe extern "C" fn(_, _) -> _,
        punctual_shared_barrier_remove as unsafe extern "C" fn(_) -> _,
        punctual_shared_barrier_wait as extern "C" fn(_) -> _,
        punctual_shared_barrier_wait_until as extern "C" fn(_, _) -> _,
        punctual_shared_cond_broadcast as extern "C" fn(_) -> _,
        punctual_shared_cond_close as extern "C" fn(_) -> _,
        punctual_shared_cond_create as unsafe extern "C" fn(_, _, _) -> _,
        punctual_shared_cond_open as unsafe extern "C" fn(_, _) -> _,
        punctual_shared_cond_remove as unsafe extern "C" fn(_) -> _,
        punctual_shared_cond_signal as extern "C" fn(_) -> _,
        punctual_shared_cond_wait as extern "C" fn(_, _) -> _,
        punctual_shared_cond_wait_until as extern "C" fn(_, _, _) -> _,
        punctual_shared_mutex_close as extern "C" fn(_) -> _,
        punctual_shared_mutex_consistent as extern "C" fn(_) -> _,
        punctual_shared_mutex_create as unsafe extern "C" fn(_, _, _) -> _,
        punctual_shared_mutex_lock as extern "C" fn(_) -> _,
        punctual_shared_mutex_lock_until as extern "C" fn(_, _) -> _,
        punctual_shared_mutex_open as unsafe extern "C" fn(_, _) -> _,
        punctual_shared_mutex_remove as unsafe extern "C" fn(_) -> _,
        punctual_shared_mutex_trylock as extern "C" fn(_) -> _,
        punctual_shared_mutex_unlock as extern "C" fn(_) -> _,
        punctual_shared_sem_close as extern "C" fn(_) -> _,
        punctual_shared_sem_create as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_shared_sem_open as unsafe extern "C" fn(_, _) -> _,
        punctual_shared_sem_post as extern "C" fn(_) -> _,
        punctual_shared_sem_remove as unsafe extern "C" fn(_) -> _,
        punctual_shared_sem_trywait as extern "C" fn(_) -> _,
        punctual_shared_sem_wait as extern "C" fn(_) -> _,
        punctual_shared_sem_wait_until as extern "C" fn(_, _) -> _,
        punctual_stats as unsafe extern "C" fn(_, _) -> _,
        punctual_suspend as unsafe extern "C" fn(_) -> _,
        punctual_task_change as unsafe extern "C" fn(_, _) -> _,
        punctual_task_close as extern "C" fn(_) -> _,
        punctual_task_command as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_task_create as unsafe extern "C" fn(_, _, _, _, _) -> _,
        punctual_task_join as unsafe extern "C" fn(_, _) -> _,
        punctual_task_pid as unsafe extern "C" fn(_, _, _, _) -> _,
        punctual_task_resume as extern "C" fn(_) -> _,
        punctual_task_set_budget as extern "C" fn(_, _) -> _,
        punctual_task_stats as unsafe extern "C" fn(_, _) -> _,
        punctual_task_stop as extern "C" fn(_) -> _,
        punctual_task_suspend as extern "C" fn(_) -> _,
        punctual_version as extern "C" fn() -> _,
        punctual_wait as extern "C" fn(_, _) -> _,
        punctual_wait_period as unsafe extern "C" fn(_) -> _,
    }
    structures! { lines:
        CGroup { size, name, parent, budget_group, period, budget, priority, policy, cpu }
        CBudgetGroup { size, name, parent, period, budget, cpu, reserved }
        SetAttr {
            size, cpus, cpu_count, policy, flags, task_limit, trace_records, owner, trace, groups,
            group_count, budget_groups, budget_group_count, observer, observer_argument, host,
            reserved
        }
        CReport {
            size, kind, flags, task, number, release, deadline, started, completed, received,
            assigned, how, code, text
        }
        TaskAttr {
            size, name, period, budget, deadline, offset, priority, overrun, cpu, stack, group,
            budget_group, overrun_handler, overrun_argument
        }
        CPeriod { number, release, deadline, lost, reserved }
        CEnd { size, how, code, value }
        CFifoAttr { size, capacity, flags, reserved }
        CFifoInfo { size, capacity, used, flags, in_use, sole_writer, sole_reader }
        CMutexAttr { size, flags, reserved, ceiling_deadline, ceiling_priority }
        CJobAttr { size, start, finish, budget, priority, cookie }
        CJobEvent { size, at, job, cookie, used, remaining, dropped, end, error }
        CSemAttr { size, units, maximum }
        CTaskChange { size, period, budget, deadline, priority, flags, reserved }
        CSpread { count, median, p99, worst }
        CTaskStats {
            size, period, budget, deadline, periods, misses, overruns, unreported, received,
            assigned, shortfall, latency, response
        }
        CSetStats {
            size, duration, tasks, alive, periods, misses, unreported, short_tasks,
            dispatcher_events, dispatcher_cpu
        }
    }
    let flags = [
        ("PUNCTUAL_OVERLOAD", OVERLOAD),
        ("PUNCTUAL_CHANGE_PRIORITY", CHANGE_PRIORITY),
        ("PUNCTUAL_REPORT_PERIOD", PERIOD),
        ("PUNCTUAL_REPORT_DROPPED", DROPPED),
        ("PUNCTUAL_REPORT_ENDED", ENDED),
        ("PUNCTUAL_REPORT_WARNING", WARNING),
        ("PUNCTUAL_PERIOD_MISSED", MISSED),
        ("PUNCTUAL_PERIOD_OVERRAN", OVERRAN),
        ("PUNCTUAL_FIFO_MESSAGES", MESSAGES),
        ("PUNCTUAL_FIFO_PERSISTENT", PERSISTENT),
        ("PUNCTUAL_FIFO_SHARED", SHARED),
        ("PUNCTUAL_LOCK_PERSISTENT", LOCK_PERSISTENT),
        ("PUNCTUAL_CEILING_DEADLINE", CEILING_DEADLINE),
        ("PUNCTUAL_CEILING_PRIORITY", CEILING_PRIORITY),
    ];
    for (name, flag) in flags {
        writeln!(lines, "_Static_assert({name} == {flag}, \"{name}\");").expect("it grows");
    }
    let constants = [
        ["PUNCTUAL_EDF", "PUNCTUAL_RM", "PUNCTUAL_DM", "PUNCTUAL_FP", "PUNCTUAL_JOBS"].as_slice(),
        &["PUNCTUAL_HOST_USER", "PUNCTUAL_HOST_AUTO", "PUNCTUAL_HOST_SERVICE"],
        &[
            "PUNCTUAL_ORDER_START",
            "PUNCTUAL_ORDER_FINISH",
            "PUNCTUAL_ORDER_BUDGET",
            "PUNCTUAL_ORDER_PRIORITY",
        ],
        &["PUNCTUAL_CARRY", "PUNCTUAL_SKIP", "PUNCTUAL_BACKGROUND", "PUNCTUAL_SIGNAL"],
    ];
    for (number, name) in constants.iter().flat_map(|names| names.iter().enumerate()) {
        writeln!(lines, "_Static_assert({name} == {number}, \"{name}\");").expect("it grows");
    }
    let ends = [
        ("PUNCTUAL_RETURNED", TaskEnd::Returned),
        ("PUNCTUAL_NEVER_RELEASED", TaskEnd::NeverReleased),
        ("PUNCTUAL_STOPPED", TaskEnd::Stopped),
        ("PUNCTUAL_EXITED", TaskEnd::Exited(1)),
        ("PUNCTUAL_SIGNALLED", TaskEnd::Signalled(9)),
        ("PUNCTUAL_GONE", TaskEnd::Gone),
        ("PUNCTUAL_REFUSED", TaskEnd::Refused),
    ];
    for (name, (number, _)) in ends.map(|(name, end)| (name, number_of(&end))) {
        writeln!(lines, "_Static_assert({name} == {number}, \"{name}\");").expect("it grows");
    }
    let ends = [
        ("PUNCTUAL_JOB_COMPLETED", AddedJobEnd::Completed),
        ("PUNCTUAL_JOB_EXHAUSTED", AddedJobEnd::Exhausted),
        ("PUNCTUAL_JOB_EXPIRED", AddedJobEnd::Expired),
        ("PUNCTUAL_JOB_CANCELLED", AddedJobEnd::Cancelled),
        ("PUNCTUAL_JOB_TASK_GONE", AddedJobEnd::TaskGone),
        ("PUNCTUAL_JOB_REFUSED", AddedJobEnd::Refused(JobRefusal::Busy)),
    ];
    for (name, (number, _)) in ends.map(|(name, end)| (name, number_of_job_end(end))) {
        writeln!(lines, "_Static_assert({name} == {number}, \"{name}\");").expect("it grows");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc")
        .args(["-x", "c", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"])
        .arg("-I")
        .arg(folder.join("include"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler is there");
    let stdin = compiler.stdin.take();
    stdin.expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    assert!(compiler.wait().expect("it ends").success(), "{lines}");

    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is there");
    let exported = read("libpunctual.map");
    let exported: Vec<&str> =
        exported.lines().filter_map(|line| line.trim().strip_suffix(';')).collect();
    let exported: Vec<&str> =
        exported.into_iter().filter(|name| name.starts_with("punctual_")).collect();
    assert_eq!(names, exported, "the functions of libpunctual.map, in the order of their names");
    let header = read("include/punctual.h");
    let declared = |name: &&str| header.contains(&format!("\n * {name} - "));
    let undescribed: Vec<_> = names.iter().filter(|name| !declared(name)).collect();
    assert!(undescribed.is_empty(), "the header does not describe {undescribed:?}");
}
