//! The list of robust futexes that the kernel keeps for each thread (get_robust_list(2)): when the
//! thread ends in whatever way, the kernel marks each futex on it that the thread owns.
//!
//! A thread has one list, which its C library has registered, and which its robust mutexes are on.
//! Entries of others can be on it if they keep to the rules of the C library: an entry has the
//! pointer to the next one and, directly before it, the pointer to the one before; its futex is at
//! the list's offset from it. This is so in glibc on 64-bit machines.

use std::ptr;
use std::sync::atomic::compiler_fence;
use std::sync::atomic::Ordering::SeqCst;

/// The head of a thread's list, of linux/futex.h.
#[repr(C)]
struct Head {
    first: usize,
    offset: isize,
    pending: usize,
}

/// In a pointer to an entry: its futex inherits priority.
const INHERITS: usize = 1;

/// The robust list of the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RobustList {
    head: *mut Head,
}

/// The links of an entry, which the list has while the entry is on it. An entry is the address of
/// `next`.
#[repr(C)]
#[derive(Debug)]
pub struct Links {
    previous: usize,
    next: usize,
}

impl Links {
    /// From the links to the entry, in bytes.
    pub const ENTRY: usize = std::mem::offset_of!(Self, next);
}

impl RobustList {
    /// That of the calling thread, for which alone it may be used; `None`: it has none, or not one
    /// to which others can add. Real-time safe.
    #[must_use]
    pub fn of_thread() -> Option<Self> {
        let mut head: *mut Head = ptr::null_mut();
        let mut length = 0usize;
        // SAFETY: both results outlive the call; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
        let usable = cfg!(all(target_pointer_width = "64", target_env = "gnu"));
        let found = result == 0 && !head.is_null() && length == size_of::<Head>();
        (usable && found).then_some(Self { head })
    }

    /// From an entry to its futex, in bytes.
    #[must_use]
    pub fn offset(self) -> isize {
        // SAFETY: the list of this thread, which is there as long as it is.
        unsafe { (*self.head).offset }
    }

    /// The kernel also looks at this entry when the thread ends, until [`RobustList::end`]: call
    /// before its futex is locked or unlocked. One at a time. Real-time safe.
    #[inline]
    pub fn begin(self, links: *mut Links) {
        // SAFETY: as in `offset`. The kernel reads it at a signal that kills, so the compiler may
        // not move it; `end` has the fence of the other side.
        unsafe { (&raw mut (*self.head).pending).write_volatile(entry_of(links) | INHERITS) };
        compiler_fence(SeqCst);
    }

    /// The locking or unlocking is over. Real-time safe.
    #[inline]
    pub fn end(self) {
        compiler_fence(SeqCst);
        // SAFETY: as in `begin`.
        unsafe { (&raw mut (*self.head).pending).write_volatile(0) };
    }

    /// Adds an entry. Between [`RobustList::begin`] and [`RobustList::end`]. Real-time safe.
    ///
    /// # Safety
    /// The links are on no list, in memory that is there until they are removed, and no other
    /// thread uses them meanwhile.
    #[inline]
    pub unsafe fn add(self, links: *mut Links) {
        // SAFETY: the caller's, as to the links; the others on the list keep to the same.
        unsafe {
            let first_of_list = &raw mut (*self.head).first;
            let first = first_of_list.read_volatile();
            links.write_volatile(Links { previous: first_of_list as usize, next: first });
            if first & !INHERITS != first_of_list as usize {
                previous_of(first).write_volatile(entry_of(links));
            }
            // The kernel walks the list from the head: an entry is complete before it is on it.
            compiler_fence(SeqCst);
            first_of_list.write_volatile(entry_of(links) | INHERITS);
        }
    }

    /// Removes an entry. Between [`RobustList::begin`] and [`RobustList::end`]. Real-time safe.
    ///
    /// # Safety
    /// This thread added the links, and did not remove them.
    #[inline]
    pub unsafe fn remove(self, links: *mut Links) {
        // SAFETY: as in `add`.
        unsafe {
            let first_of_list = &raw mut (*self.head).first;
            let Links { previous, next } = links.read_volatile();
            if next & !INHERITS != first_of_list as usize {
                previous_of(next).write_volatile(previous);
            }
            ((previous & !INHERITS) as *mut usize).write_volatile(next);
            links.write_volatile(Links { previous: 0, next: 0 });
        }
    }
}

#[inline]
fn entry_of(links: *mut Links) -> usize {
    links as usize + Links::ENTRY
}

/// Where an entry has the pointer to the one before it.
#[inline]
fn previous_of(entry: usize) -> *mut usize {
    ((entry & !INHERITS) - Links::ENTRY) as *mut usize
}
