//! Handlers of signals that threads of this process get.

use std::io;
use std::ptr;

/// The gate signal, which parks threads ([`park_signal`](crate::park_signal)): the last but one of
/// the real-time signals, which programs seldom use.
pub fn gate() -> i32 {
    libc::SIGRTMAX() - 1
}

/// Installs a handler, once per process. System calls that can be restarted are. The handler must
/// be async-signal-safe.
///
/// # Errors
/// The program handles that signal itself already; its handler stays.
pub fn handle(signal: i32, handler: extern "C" fn(i32)) -> io::Result<()> {
    // SAFETY: a zeroed sigaction with handler, mask and flags set is valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, &action, &mut old) != 0 {
            return Err(io::Error::last_os_error());
        }
        let free = [action.sa_sigaction, libc::SIG_DFL, libc::SIG_IGN];
        if !free.contains(&old.sa_sigaction) {
            libc::sigaction(signal, &old, ptr::null_mut());
            return Err(io::Error::other(format!(
                "this program has a handler of its own for signal {signal}"
            )));
        }
    }
    Ok(())
}

/// Lets the calling thread have this signal.
pub fn unblock(signal: i32) {
    // SAFETY: the set is on the stack, and initialised.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
    }
}
