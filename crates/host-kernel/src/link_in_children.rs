//! The kernel keeps the scheduler as long as a process has the descriptor of its link. A program
//! that forks must not leave it to its children: they may live on when it is killed.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::Once;

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
pub(crate) fn close_in_children(link: &impl AsFd) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Whether a child that is forked now has this descriptor.
    fn child_has(file: &File) -> bool {
        // SAFETY: the child makes two system calls.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(libc::fcntl(file.as_raw_fd(), libc::F_GETFD).min(0)) };
        }
        assert!(pid > 0, "a child");
        let mut status = 0;
        // SAFETY: a child of ours.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        libc::WEXITSTATUS(status) == 0
    }

    #[test]
    fn children_have_the_link_neither_open_nor_closed_by_chance() {
        let file = File::open("/dev/null").expect("it is there");
        assert!(child_has(&file));
        close_in_children(&file);
        assert!(!child_has(&file));
        forget();
        assert!(child_has(&file), "it may be another one's by then");
        assert!(file.metadata().is_ok(), "it is still open here");
    }
}
