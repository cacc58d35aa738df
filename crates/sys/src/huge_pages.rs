//! Transparent huge pages of this process.
//!
//! The kernel's thread `khugepaged` assembles them at nice 19 in the background, from memory that
//! is locked, too. Meanwhile the pages are not mapped, and who touches one waits for khugepaged,
//! which real-time tasks may keep from executing: a dispatcher at SCHED_FIFO 99 waited for 188 ms
//! (Linux 6.18, one CPU). So there are none while memory is locked.

/// None from now on, if there were; whether there were. Those that exist stay.
pub(crate) fn forbid() -> bool {
    // SAFETY: system calls without memory.
    let forbidden = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
    forbidden == 0 && set_forbidden(true)
}

/// As before [`forbid`] returned true.
pub(crate) fn permit() {
    set_forbidden(false);
}

fn set_forbidden(forbidden: bool) -> bool {
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(forbidden), 0, 0, 0) == 0 }
}
