//! The way of a command from clone to exec. Between the two it shares our memory, so it makes
//! system calls only.

use crate::child::{arrange_streams, ordinary_signals};
use crate::guardian::SignalMask;
use std::ffi::{c_char, c_int, c_void};
use std::io;

/// What the child needs, all made before it. It shares our memory, so its error comes back here.
pub(crate) struct Plan {
    pub programs: Vec<*const c_char>,
    pub argv: *const *const c_char,
    pub envp: *const *const c_char,
    pub directory: *const c_char,
    pub streams: [i32; 3],
    pub procs: i32,
    pub parent: i32,
    pub own_group: bool,
    pub trace: bool,
    pub failed: Step,
    pub errno: c_int,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    None,
    Parent,
    Group,
    Directory,
    Stream,
    Cgroup,
    Trace,
    Exec,
}

/// Makes the child and sleeps until it has executed its program or failed; `plan` then says which.
pub(crate) fn clone_and_exec(plan: &mut Plan) -> io::Result<i32> {
    let mut stack = vec![0u128; 8 * 1024];
    let plan = &raw mut *plan;
    let mask = SignalMask::block_all();
    // SAFETY: CLONE_VFORK keeps us asleep until the child has left our memory (exec or exit), so
    // `plan`, what it points to and `stack` outlive the child's use; the top of the stack is
    // 16-byte aligned; no signal handler runs in it. The child writes to `plan` through the
    // pointer that this opaque call was given, so its writes are seen.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        libc::clone(child, top, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, plan.cast())
    };
    let error = io::Error::last_os_error();
    drop(mask);
    if pid < 0 {
        return Err(error);
    }
    Ok(pid)
}

/// The child, from clone to exec: system calls only.
extern "C" fn child(plan: *mut c_void) -> c_int {
    // SAFETY: our parent passed its Plan and sleeps until we exec or exit; all pointers in it are
    // alive and terminated.
    unsafe {
        let plan = plan.cast::<Plan>();
        (*plan).failed = prepare(&*plan);
        if (*plan).failed == Step::None {
            execute(&mut *plan);
        }
        (*plan).errno = *libc::__errno_location();
        if (*plan).failed == Step::None {
            (*plan).failed = Step::Exec;
        }
        libc::_exit(127)
    }
}

/// # Safety
/// In the child only; the plan's pointers are alive and terminated.
unsafe fn prepare(plan: &Plan) -> Step {
    // SAFETY: plain system calls; pointers as `child` promises.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Our parent may have died before that took hold.
        if libc::getppid() != plan.parent {
            return Step::Parent;
        }
        ordinary_signals();
        if plan.own_group && libc::setpgid(0, 0) != 0 {
            return Step::Group;
        }
        if !arrange_streams(plan.streams) {
            return Step::Stream;
        }
        if !plan.directory.is_null() && libc::chdir(plan.directory) != 0 {
            return Step::Directory;
        }
        if plan.procs >= 0 && libc::write(plan.procs, c"0".as_ptr().cast(), 1) != 1 {
            return Step::Cgroup;
        }
        if plan.trace && libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            return Step::Trace;
        }
        Step::None
    }
}

/// Tries each candidate, as execvp does; returns only with an error, in errno.
///
/// # Safety
/// In the child only; the plan's pointers are alive and terminated.
unsafe fn execute(plan: &mut Plan) {
    // SAFETY: as in `child`.
    unsafe {
        let mut denied = false;
        for program in &plan.programs {
            libc::execve(*program, plan.argv, plan.envp);
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => denied = true,
                _ => return,
            }
        }
        *libc::__errno_location() = if denied { libc::EACCES } else { libc::ENOENT };
    }
}

/// Waits until a child has ended, and reaps it.
pub(crate) fn wait_blocking(pid: i32) -> Option<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: writes one int.
        let r = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
        if r == pid {
            return Some(status);
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

/// Waits until the child stands at its exec; other signals that reach it before are passed on.
/// `false`: it ended.
pub(crate) fn wait_for_exec(pid: i32) -> bool {
    loop {
        match stop_of(pid) {
            Some(sig) if sig == libc::SIGTRAP => return true,
            Some(sig) => {
                // SAFETY: our tracee, stopped; no memory is passed.
                unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, sig) };
            }
            None => return false,
        }
    }
}

/// The signal that a tracee stopped for; `None` when it ended, which is left for `try_wait` to see.
pub(crate) fn stop_of(pid: i32) -> Option<c_int> {
    // SAFETY: writes one siginfo_t, zero being a valid value of it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
        // SAFETY: as above.
        let r = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) };
        if r == 0 {
            // SAFETY: waitid filled it for a child, so its status field is the one in use.
            return matches!(info.si_code, libc::CLD_TRAPPED | libc::CLD_STOPPED)
                .then(|| unsafe { info.si_status() } & 0x7f);
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}
