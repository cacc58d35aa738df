//! The threads of one task, all at its FIFO level and on one CPU.
//!
//! The real-time path goes through a fixed table of thread ids; the housekeeper looks for new
//! threads and fills it. A new thread inherits level and CPU from the thread that made it, so one
//! that is not in the table yet can only lag behind one change of level. In a task that is parked
//! by stop signals a new thread is an ordinary one until then ([`Children`]).
//!
//! Two files more see to it that threads of one level get the CPU in turns (turns.rs), and that
//! those with a priority of their own go before the others (own_priority.rs).

use crate::exec_clock;
use crate::own_priority::OwnPriorities;
use crate::park::Park;
use crate::slot::Slot;
use crate::turns::Turns;
use crate::wait_place::{self, ObservedWait};
use punctual_sys::sched::{self, Children};
use rustix::process::{getrlimit, Resource};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Slots whose threads' clocks are kept open. Threads in further ones take no turns.
pub(crate) const CLOCKS: usize = 64;

/// What a slot has in place of a file that would be one too many.
pub(crate) const TOO_MANY: i32 = -2;

/// A table of thread ids with the FIFO level that all of them have.
#[derive(Debug)]
pub struct Threads {
    pub(crate) slots: Box<[Slot]>,
    /// No slot from here on was ever used.
    used: AtomicUsize,
    /// How many threads the housekeeper found last.
    count: AtomicUsize,
    level: AtomicI32,
    mask: sched::Mask,
    pub(crate) turns: Turns,
    pub(crate) own: OwnPriorities,
    /// For so many more calls of [`rescan`](Self::rescan) its new threads count as waiting ones.
    pub(crate) new_waiters: AtomicUsize,
    housekeeper: Mutex<Files>,
    /// Files from this number on are not kept: half of the limit is left to the rest of the
    /// process.
    file_limit: i32,
}

/// The files of the threads: their clocks, and what they wait in.
#[derive(Debug, Default)]
struct Files {
    /// By slot.
    clocks: Vec<Option<File>>,
    wait_places: Vec<Option<File>>,
    /// Files of ended threads, closed at the next rescan, because the dispatcher may be about to
    /// read one: delayed for that long, it reads another file, and a thread gets one time slice too
    /// many or too few. An exiting thread retries removing its /proc entries while another thread
    /// frees one of them (demote.rs).
    retired: Vec<File>,
}

fn file_limit() -> i32 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from(limit / 2).unwrap_or(i32::MAX)
}

impl Files {
    /// Keeps the files of a slot no longer.
    fn retire(&mut self, slot: usize) {
        let Files { clocks, wait_places, retired } = self;
        retired.extend([clocks, wait_places].into_iter().filter_map(|f| f.get_mut(slot)?.take()));
    }
}

impl Threads {
    /// A table for `capacity` threads of a task that `park` stops, which are to run on `cpu`, at
    /// level 0 (SCHED_OTHER) until [`set_level`](Self::set_level).
    pub fn new(park: &Park, capacity: usize, cpu: u32) -> Self {
        Self::with_children(park.children(), capacity, cpu)
    }

    pub(crate) fn with_children(children: Children, capacity: usize, cpu: u32) -> Self {
        Self {
            slots: (0..capacity).map(|_| Slot::new(children)).collect(),
            used: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            level: AtomicI32::new(0),
            mask: sched::only(cpu),
            turns: Turns::new(capacity),
            own: OwnPriorities::new(),
            new_waiters: AtomicUsize::new(0),
            housekeeper: Mutex::default(),
            file_limit: file_limit(),
        }
    }

    /// Gives all threads this SCHED_FIFO level (1 to 90), or SCHED_OTHER when it is 0. Threads for
    /// which the program chose real-time priorities get up to [`OWN_LEVELS`](crate::OWN_LEVELS)
    /// more. Real-time safe: one system call for each thread, two where there are several. Every
    /// thread is tried; the first error is returned, a thread that is gone is none. Only the
    /// dispatcher calls it, and before it the thread that made the table.
    pub fn set_level(&self, level: i32) -> io::Result<()> {
        self.own.note_level(level);
        let before = self.level.swap(level, Ordering::SeqCst);
        // The ordinary class of a demoted thread is no choice of the program's.
        let several = self.count() > 1 && !self.own.demoted.swap(false, Ordering::Relaxed);
        let mut first = Ok(());
        let mut give = |n: usize| {
            let slot = &self.slots[n];
            let Some(tid) = slot.tid() else { return };
            if several {
                self.notice_choice(slot, tid);
            }
            match slot.give(tid, level) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    // Only if the housekeeper has not given the slot to another thread meanwhile.
                    let _ = slot.tid.compare_exchange(tid, 0, Ordering::SeqCst, Ordering::SeqCst);
                }
                Err(e) if first.is_ok() => first = Err(e),
                _ => {}
            }
        };
        // The kernel puts a raised thread at the tail of its level, a lowered one at the head.
        match level < before {
            true => self.in_turn().rev().for_each(&mut give),
            false => self.in_turn().for_each(&mut give),
        }
        first
    }

    /// Another process has put the threads into the ordinary class, until
    /// [`set_level`](Self::set_level) is called. Real-time safe. Only the dispatcher calls it.
    pub fn note_demoted(&self) {
        self.own.demoted.store(true, Ordering::Relaxed);
    }

    /// The level that was set last. Real-time safe.
    pub fn level(&self) -> i32 {
        self.level.load(Ordering::Relaxed)
    }

    /// How many threads the latest [`rescan`](Self::rescan) found. Real-time safe.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many threads take turns, at most. Real-time safe.
    pub fn count_in_turns(&self) -> usize {
        self.count().min(CLOCKS)
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(crate) fn set_used(&self, used: usize) {
        self.used.store(used, Ordering::SeqCst);
        self.count.store(used, Ordering::SeqCst);
    }

    /// Housekeeping: makes the table hold just these threads
    /// ([`Park::threads`](crate::Park::threads)) and gives new ones the CPU and the level. Returns
    /// how many were new. Not real-time safe.
    ///
    /// # Errors
    /// A level or an affinity is refused, or the table is full (ENOSPC): the threads beyond it keep
    /// what they inherited.
    pub fn rescan(&self, now: &[i32]) -> io::Result<usize> {
        let mut files = self.housekeeper.lock().unwrap_or_else(|e| e.into_inner());
        files.retired.clear();
        let mut known = Vec::new();
        for (n, slot) in self.slots[..self.used()].iter().enumerate() {
            match slot.tid() {
                Some(tid) if now.contains(&tid) => {
                    known.push(tid);
                    self.pin_again(tid);
                }
                _ => {
                    slot.tid.store(0, Ordering::SeqCst);
                    slot.chosen.store(0, Ordering::SeqCst);
                    slot.clock.store(-1, Ordering::SeqCst);
                    slot.wait_place.store(-1, Ordering::SeqCst);
                    files.retire(n);
                }
            }
        }
        let (mut new, mut first) = (0, Ok(()));
        for &tid in now.iter().filter(|t| !known.contains(t)) {
            new += 1;
            let result = match self.publish(tid) {
                Some(slot) => {
                    sched::set_affinity(tid, &self.mask).and_then(|()| self.settle(slot, tid))
                }
                None => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            };
            match result {
                Err(e) if e.raw_os_error() != Some(libc::ESRCH) && first.is_ok() => first = Err(e),
                _ => {}
            }
        }
        if now.len() > 1 {
            self.open_clocks(&mut files.clocks);
        }
        let some_waits = self.open_wait_places(&mut files.wait_places);
        self.note_new_waiters(some_waits);
        self.count.store(now.len(), Ordering::SeqCst);
        first.map(|()| new)
    }

    /// Pins a thread that has moved itself to another CPU, which needs no privileges: at its level
    /// it would delay the tasks there.
    fn pin_again(&self, tid: i32) {
        if sched::affinity(tid).is_ok_and(|mask| mask != self.mask) {
            let _ = sched::set_affinity(tid, &self.mask);
        }
    }

    fn publish(&self, tid: i32) -> Option<&Slot> {
        let n = self.slots.iter().position(|s| s.tid().is_none())?;
        let slot = &self.slots[n];
        slot.slice.store(0, Ordering::SeqCst);
        self.notice_new(slot, tid);
        slot.tid.store(tid, Ordering::SeqCst);
        self.used.fetch_max(n + 1, Ordering::SeqCst);
        Some(slot)
    }

    /// Opens the clocks of threads that have none yet.
    fn open_clocks(&self, clocks: &mut Vec<Option<File>>) {
        let used = self.used().min(CLOCKS);
        clocks.resize_with(used.max(clocks.len()), || None);
        for (slot, open) in self.slots[..used].iter().zip(clocks).filter(|(_, open)| open.is_none())
        {
            let file = slot.tid().and_then(exec_clock::open);
            let Some(file) = file.filter(|f| f.as_raw_fd() < self.file_limit) else { continue };
            slot.clock_at_slice.store(exec_clock::read_file(&file).unwrap_or(0), Ordering::SeqCst);
            slot.clock.store(file.as_raw_fd(), Ordering::SeqCst);
            *open = Some(file);
        }
    }

    /// Opens what threads wait in of those of which it is not open; whether one of these waits with
    /// inheritance.
    fn open_wait_places(&self, wait_places: &mut Vec<Option<File>>) -> bool {
        let (used, mut some_waits) = (self.used(), false);
        wait_places.resize_with(used.max(wait_places.len()), || None);
        for (slot, open) in
            self.slots[..used].iter().zip(wait_places).filter(|(_, open)| open.is_none())
        {
            let file = slot.tid().map(wait_place::open);
            let fd = match &file {
                Some(Ok(file)) if file.as_raw_fd() < self.file_limit => file.as_raw_fd(),
                Some(Ok(_)) => TOO_MANY,
                Some(Err(e)) if e.raw_os_error() == Some(libc::EMFILE) => TOO_MANY,
                _ => continue,
            };
            // The first read allocates memory.
            some_waits |= wait_place::read(fd) == ObservedWait::Inherits;
            slot.wait_place.store(fd, Ordering::SeqCst);
            *open = file.and_then(Result::ok).filter(|_| fd >= 0);
        }
        some_waits
    }

    /// Sets the level of a thread that is already in the table, so that a change at the same time
    /// is not overwritten by an older value: repeat until the level stayed the same.
    fn settle(&self, slot: &Slot, tid: i32) -> io::Result<()> {
        for _ in 0..16 {
            let level = self.level.load(Ordering::SeqCst);
            slot.give(tid, level)?;
            if self.level.load(Ordering::SeqCst) == level {
                break;
            }
        }
        Ok(())
    }
}
