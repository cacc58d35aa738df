//! The gate signal: how a thread of this process is parked (LXRT's SIGBUDGET, RTAI paper 3.3.2).
//!
//! The handler stands in the gate until the dispatcher opens it. No SIGSCHED is needed: the kernel
//! itself preempts. A dispatcher's thread gets it from the timer of its budgets.

use std::cell::Cell as ThreadLocal;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::Arc;

use punctual_sys::sched::thread_id;

use crate::doorbell::ring_own;
use crate::signal;
use crate::task_control::TaskControl;

/// Our own number: asking for it is a system call, and parking is short of time.
static PROCESS: AtomicI32 = AtomicI32::new(0);

thread_local! {
    static MINE: ThreadLocal<*const TaskControl> = const { ThreadLocal::new(ptr::null()) };
}

extern "C" fn stand_in_gate(_: i32) {
    // SAFETY: errno's place is this thread's own; the interrupted code must find its value again.
    let errno = unsafe { *libc::__errno_location() };
    ring_own();
    with_mine(TaskControl::pass);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Installs the handler, once per process.
///
/// # Errors
/// The program handles that signal itself already; its handler stays.
pub fn install() -> io::Result<()> {
    // SAFETY: no arguments.
    PROCESS.store(unsafe { libc::getpid() }, Relaxed);
    signal::handle(signal::gate(), stand_in_gate)
}

/// This thread's membership of its gate; dropping it ends it.
pub struct Membership {
    control: Arc<TaskControl>,
}

/// Makes this thread one that can be parked through `control`.
pub fn enter(control: Arc<TaskControl>) -> Membership {
    control.tid.store(thread_id() as u32, std::sync::atomic::Ordering::SeqCst);
    signal::unblock(signal::gate());
    MINE.with(|mine| mine.set(Arc::as_ptr(&control)));
    Membership { control }
}

/// Calls `f` with what the calling thread shares with its dispatcher, if it is a task.
/// Async-signal-safe, as far as `f` is.
pub fn with_mine(f: impl FnOnce(&TaskControl)) {
    let control = MINE.with(ThreadLocal::get);
    // SAFETY: set by `enter`, whose `Membership` keeps it alive until its drop, in this thread,
    // clears the pointer.
    if let Some(control) = unsafe { control.as_ref() } {
        f(control);
    }
}

/// Whether the calling thread has one.
pub fn is_member() -> bool {
    MINE.with(|mine| !mine.get().is_null())
}

impl Membership {
    /// The control block that the thread shares with its dispatcher.
    #[inline]
    pub fn control(&self) -> &Arc<TaskControl> {
        &self.control
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        MINE.with(|mine| mine.set(ptr::null()));
    }
}

/// Sends a thread of this process into its gate. Real-time safe.
pub fn send_in(tid: i32) {
    let (process, signal) = (PROCESS.load(Relaxed), signal::gate());
    // SAFETY: a system call; a thread that is gone is an error that changes nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) };
}
