//! Synthetic tasks: a process each, whose sched_yield ends its job. Not threads of ours, so
//! that stopping the loader does not stop them.

use punctual_workload::{Spinner, Work};

use crate::start_barrier::{fork, StartBarrier};
use punctual_diagnostic::Diagnostic;

/// Starts one; it stands at the barrier. Its process id.
///
/// # Errors
/// The system's.
pub(crate) fn start(
    barrier: &StartBarrier,
    mut work: Work,
    spinner: &Spinner,
) -> Result<i32, Diagnostic> {
    match fork()? {
        Some(pid) => Ok(pid),
        None => live(barrier, &mut work, spinner),
    }
}

/// The child's whole life. It allocates nothing.
fn live(barrier: &StartBarrier, work: &mut Work, spinner: &Spinner) -> ! {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: plain system calls; the handler does nothing. The terminal's signals are the loader's
    // to handle, and the signal of an overrun (SIGXCPU) must not end the task. What keeps the
    // scheduler attached is the loader's alone.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        libc::signal(libc::SIGXCPU, nothing as *const () as libc::sighandler_t);
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
    }
    barrier.wait();
    while work.run_job(spinner, barrier.over()) {
        // SAFETY: takes nothing. It returns at the next release, or at once when the scheduler is
        // gone.
        unsafe { libc::sched_yield() };
    }
    // SAFETY: no destructor of what was inherited may run here.
    unsafe { libc::_exit(0) }
}
