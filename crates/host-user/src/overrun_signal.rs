//! The overrun signal in a program that has no handler for it.

use std::io;
use std::ptr;

/// SIGXCPU would end the process of a synthetic task that overruns with the policy `signal`. Unless
/// the program does something about that signal already, it does nothing from here on; in commands
/// that are started it is as ever.
///
/// # Errors
/// The system's.
pub fn survive() -> io::Result<()> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a zeroed sigaction with handler, mask and flags set is valid; the handler is empty.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGXCPU, ptr::null(), &mut old) != 0 {
            return Err(io::Error::last_os_error());
        }
        if old.sa_sigaction != libc::SIG_DFL {
            return Ok(());
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        // A handler and not SIG_IGN, which commands would inherit.
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        if libc::sigaction(libc::SIGXCPU, &action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_handler_survives_its_overrun_signal() {
        survive().expect("the system permits it");
        // SAFETY: signals this thread; its handler does nothing.
        assert_eq!(unsafe { libc::raise(libc::SIGXCPU) }, 0);
    }
}
