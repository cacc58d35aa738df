//! What a child does to itself before it executes a program: system calls only, for it may share
//! its parent's memory, or be the copy of a thread among others.

/// All signals as a program expects them: their default actions, none blocked.
///
/// # Safety
/// In a child that is to execute a program: the handlers, the mask and the actions are its own to
/// change.
pub(crate) unsafe fn ordinary_signals() {
    // SAFETY: a zeroed action with the default handler is valid; masks are valid for the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        for signal in 1..=64 {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Makes these files the standard streams; one that is closed stays closed. `false`: the system
/// refused, errno says why.
///
/// # Safety
/// In a child that is to execute a program: its standard streams are replaced.
pub(crate) unsafe fn arrange_streams(streams: [i32; 3]) -> bool {
    // Copies first: a stream's file may itself have the number of another stream.
    // SAFETY: numbers only.
    let copies = streams.map(|fd| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) });
    // SAFETY: as above.
    copies.into_iter().zip(0..).all(|(copy, n)| copy < 0 || unsafe { libc::dup2(copy, n) } >= 0)
}
