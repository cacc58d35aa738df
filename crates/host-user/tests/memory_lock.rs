//! What is locked before, during and after the locks of a process.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_sys::memory::{map_unlocked, with_huge_pages, Extent, MemoryLock};
use punctual_test_support::missing;

/// One test at a time, with nothing locked; `None` where locking is not permitted.
fn unlocked() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let permitted = mlockall(libc::MCL_CURRENT);
    // SAFETY: a system call without arguments.
    unsafe { libc::munlockall() };
    if !permitted {
        missing("locked memory (CAP_IPC_LOCK or RLIMIT_MEMLOCK)");
        return None;
    }
    Some(alone)
}

fn mlockall(flags: i32) -> bool {
    // SAFETY: a system call without pointers.
    unsafe { libc::mlockall(flags) == 0 }
}

/// A new mapping, which is not used.
struct Mapping(*mut libc::c_void);

impl Mapping {
    const SIZE: usize = 256 << 10;

    fn new() -> Self {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which overlaps nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), Self::SIZE, access, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED, "memory");
        Self(at)
    }

    fn is_resident(&self) -> bool {
        let mut pages = [0u8; Self::SIZE / 4096];
        // SAFETY: the mapping is ours, and there is a byte for each page.
        unsafe { libc::mincore(self.0, Self::SIZE, pages.as_mut_ptr()) };
        pages.iter().all(|page| page & 1 == 1)
    }

    /// From the flags of the kernel's own description of this mapping: what the process has locked
    /// in sum also changes by its other threads, whose stacks come and go.
    fn is_locked(&self) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut ours = false;
        for line in maps.lines() {
            if let Some(range) = address_range(line) {
                ours = range.contains(&(self.0 as usize));
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| ours) {
                return flags.split_whitespace().any(|flag| flag == "lo");
            }
        }
        panic!("{:p} is not in /proc/self/smaps", self.0);
    }
}

/// The addresses of a mapping, from the first line of its description.
fn address_range(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { libc::munmap(self.0, Self::SIZE) };
    }
}

fn locked_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    value.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

fn locks_new_mappings() -> bool {
    Mapping::new().is_locked()
}

#[test]
fn the_last_lock_of_a_process_unlocks_what_it_locked() {
    let Some(_alone) = unlocked() else { return };
    let first = MemoryLock::take(Extent::Touched).unwrap();
    assert!(locks_new_mappings() && !Mapping::new().is_resident());
    let second = MemoryLock::take(Extent::All).unwrap();
    assert!(Mapping::new().is_resident());
    drop(second);
    assert!(locks_new_mappings(), "one is left");
    // A weaker one takes nothing away.
    drop(MemoryLock::take(Extent::Present).unwrap());
    assert!(locks_new_mappings() && locked_kib() > 0);
    drop(first);
    assert_eq!(locked_kib(), 0);
    assert!(!locks_new_mappings());
    drop(MemoryLock::take(Extent::Present).unwrap());
    assert_eq!(locked_kib(), 0);
}

#[test]
fn what_the_program_has_locked_itself_stays_locked() {
    let Some(_alone) = unlocked() else { return };
    let own = Mapping::new();
    // SAFETY: the mapping is ours.
    assert_eq!(unsafe { libc::mlock(own.0, Mapping::SIZE) }, 0);
    drop(MemoryLock::take(Extent::Touched).unwrap());
    assert!(own.is_locked());
    assert!(!locks_new_mappings(), "it did not lock later mappings");

    for (flags, resident) in
        [(libc::MCL_FUTURE, true), (libc::MCL_FUTURE | libc::MCL_ONFAULT, false)]
    {
        assert!(mlockall(flags));
        let lock = MemoryLock::take(Extent::Touched).unwrap();
        assert_eq!(Mapping::new().is_resident(), resident, "the stronger one holds");
        drop(lock);
        assert!(locks_new_mappings());
        assert_eq!(Mapping::new().is_resident(), resident);
    }
    // SAFETY: a system call without arguments.
    unsafe { libc::munlockall() };
}

#[test]
fn a_process_has_no_huge_pages_while_its_memory_is_locked_and_those_that_it_starts_have_them() {
    let Some(_alone) = unlocked() else { return };
    let own = || has_huge_pages("self");
    let started = || {
        let child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let has = has_huge_pages(&child.id().to_string());
        kill(child);
        has
    };
    assert!(own() && started());
    let (first, second) = (MemoryLock::take(Extent::Touched), MemoryLock::take(Extent::Present));
    assert!(!own() && !started());
    assert!(with_huge_pages(started) && !own());
    drop(first.unwrap());
    assert!(!own(), "one is left");
    drop(second.unwrap());
    assert!(own() && started());
}

fn has_huge_pages(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().any(|line| line == "THP_enabled:\t1")
}

fn kill(mut child: std::process::Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_mapped_unlocked_is_not_brought_in() {
    let Some(_alone) = unlocked() else { return };
    let lock = MemoryLock::take(Extent::All).unwrap();
    let mapping = map_unlocked(Mapping::new);
    assert!(!mapping.is_resident());
    assert!(locks_new_mappings() && Mapping::new().is_resident());
    drop(lock);
    assert_eq!(locked_kib(), 0);
    // Of the program's own lock, too.
    assert!(mlockall(libc::MCL_FUTURE));
    assert!(!map_unlocked(Mapping::new).is_resident());
    assert!(Mapping::new().is_resident());
    // SAFETY: a system call without arguments.
    unsafe { libc::munlockall() };
}
