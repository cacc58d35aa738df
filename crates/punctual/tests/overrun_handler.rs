//! The overrun handlers of tasks. A program of its own, because of its handler of SIGXCPU.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

use common::{start, turn, MS};
use punctual::{ErrorKind, Overrun, Punctual, Task};
use punctual_test_support::execute_briefly;

/// What the handler of a task has seen.
#[derive(Default)]
struct Calls {
    count: AtomicU64,
    thread: AtomicI32,
}

static CALLS: [Calls; 2] =
    [const { Calls { count: AtomicU64::new(0), thread: AtomicI32::new(0) } }; 2];

extern "C" fn note(calls: *mut c_void) {
    // SAFETY: one of `CALLS`.
    let calls = unsafe { &*calls.cast::<Calls>() };
    calls.count.fetch_add(1, SeqCst);
    // SAFETY: a system call without arguments.
    calls.thread.store(unsafe { libc::gettid() }, SeqCst);
}

fn argument(n: usize) -> *mut c_void {
    std::ptr::from_ref(&CALLS[n]).cast_mut().cast()
}

/// Executes until its handler was called twice; the thread.
fn overruns(task: &Task<'_>, n: usize) -> i32 {
    while CALLS[n].count.load(SeqCst) < 2 && !task.is_over() {
        execute_briefly();
    }
    // SAFETY: a system call without arguments.
    unsafe { libc::gettid() }
}

#[test]
fn each_task_calls_its_own_handler_in_its_own_thread_while_no_program_handles_the_signal() {
    let _turn = turn();
    let Some(running) = start(|set: Punctual| set) else { return };
    let draft = |name: &str| running.task(name).period(10 * MS).budget(MS);
    // SAFETY: here and below the handler stores to atomics and makes a system call.
    let first = unsafe { draft("first").overrun_handler(note, argument(0)) };
    let first = first.spawn(|task| overruns(task, 0)).expect("it fits");
    // SAFETY: as above.
    let second = unsafe { draft("second").overrun_handler(note, argument(1)) };
    let thread = second.enter(|task| overruns(task, 1)).expect("it fits");
    assert_eq!(first.join(), Ok(CALLS[0].thread.load(SeqCst)));
    assert_eq!(thread, CALLS[1].thread.load(SeqCst));
    // A thread that is no task any more, and any other, has none.
    let before = CALLS[1].count.load(SeqCst);
    // SAFETY: signals this thread.
    assert_eq!(unsafe { libc::raise(libc::SIGXCPU) }, 0);
    assert_eq!(CALLS[1].count.load(SeqCst), before);

    // SAFETY: as above.
    let carried = unsafe { draft("x").overrun_handler(note, argument(0)) }.overrun(Overrun::Carry);
    let refusal = carried.spawn(|_| ()).expect_err("the signal is never sent");
    assert_eq!(refusal.kind, ErrorKind::Usage, "{refusal}");
    // SAFETY: as above.
    let command = unsafe { draft("x").overrun_handler(note, argument(0)) }.command(["true"]);
    assert!(command.is_err_and(|e| e.kind == ErrorKind::Usage && e.cause.contains("\"x\"")));
    extern "C" fn own(_: i32) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGXCPU, own as *const () as libc::sighandler_t) };
    // SAFETY: as above.
    let other = unsafe { draft("x").overrun_handler(note, argument(0)) }.spawn(|_| ());
    let refusal = other.expect_err("the program has a handler");
    assert!(refusal.kind == ErrorKind::Usage && refusal.cause.contains("its own"), "{refusal}");
    running.stop().expect("it runs");
}
