//! The kernel keeps the scheduler as long as a process has the descriptor of its link. A program
//! that forks must not leave it to its children: they may live on when it is killed.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::Once;

use libbpf_rs::Link;

/// The link of this process; -1: none. The kernel has one scheduler at a time.
static LINK: AtomicI32 = AtomicI32::new(-1);

extern "C" fn in_child() {
    let link = LINK.swap(-1, Relaxed);
    if link >= 0 {
        // SAFETY: the child's own descriptor, which nothing in it uses.
        unsafe { libc::close(link) };
    }
}

/// Children that are forked from here on do not have `link`.
pub(crate) fn close_in_children(link: &Link) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler makes a system call, which is safe in the child of a fork.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    LINK.store(link.as_fd().as_raw_fd(), Relaxed);
}

/// Before the link is closed. A child that is forked in between has the descriptor, but the link
/// is detached then.
pub(crate) fn forget() {
    LINK.store(-1, Relaxed);
}
