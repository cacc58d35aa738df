//! Whether the dispatchers of this process enforce budgets, as another process sees it; and the
//! demotion of their tasks where they do not.
//!
//! A dispatcher that is stopped (SIGSTOP, a debugger) or hangs leaves the tasks that are not parked
//! at their real-time levels, without a budget. Therefore each dispatcher publishes, in shared
//! memory, the time of its next event. `punctual-watch`, a process of the guardian's, demotes the
//! dispatcher's tasks when that time is long past:
//!
//! ```text
//!   dispatcher, each event                  punctual-watch, every 100 ms
//!   act_by = now                            act_by more than 100 ms ago?
//!   demotions changed? set all levels         lock the journal
//!   ...                                       demotions += 1
//!   act_by = next event, sleep                for each thread: act_by unchanged? SCHED_OTHER
//!                                             demotions += 1, unlock
//! ```
//!
//! # Invariant
//!
//! Of a thread's level the dispatcher has the last word: each demotion is followed by a change of
//! `demotions`, each change by an event at which the dispatcher sets all levels again.
//!
//! - A dispatcher that continues changes `act_by` first, so at most one more thread is demoted
//!   after it. The second change of `demotions` follows that demotion.
//! - Where `punctual-watch` is killed between a demotion and that change, the level returns with
//!   the program's next budget: from the first demotion of a run on, the dispatcher sets the levels
//!   of a program each time it unparks it.
//! - The lock of the journal keeps a demotion apart from a restoration: a restored thread is never
//!   demoted. The guardian kills `punctual-watch`, and so frees the lock, before it restores.

use crate::adopted_thread::OUR_POLICY;
use crate::cgroup;
use crate::journal::{Contents, Journal};
use crate::proc;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched;
use rustix::fd::AsFd;
use rustix::fs::{flock, FlockOperation};
use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// A dispatcher that is so late is stopped, ns. The jobs of a dispatcher that is late for another
/// cause, such as a hypervisor, have missed by then.
const OVERDUE: u64 = 100_000_000;

/// What the dispatcher of one CPU and `punctual-watch` share.
#[derive(Debug)]
struct Words {
    /// When the dispatcher will act at the latest, CLOCK_MONOTONIC ns.
    act_by: AtomicU64,
    /// Changes before and after each demotion.
    demotions: AtomicU64,
}

/// Words of several CPUs, in memory that forked processes share.
#[derive(Debug, Clone)]
pub(crate) struct Enforcement {
    cpus: Arc<[u32]>,
    words: Arc<Mapped>,
}

impl Enforcement {
    /// For these CPUs; nothing is overdue before a dispatcher has published a time.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> io::Result<Self> {
        let cpus: Arc<[u32]> = cpus.into_iter().collect();
        let words = Arc::new(Mapped::new(cpus.len())?);
        words.get().iter().for_each(|w| w.act_by.store(u64::MAX, SeqCst));
        Ok(Self { cpus, words })
    }

    /// The dispatchers' side, in the order of the CPUs.
    pub fn dispatchers(&self) -> impl Iterator<Item = Enforcing> + '_ {
        let dispatcher = |index| Enforcing { words: self.words.clone(), index, seen: 0 };
        (0..self.cpus.len()).map(dispatcher)
    }

    /// Demotes the tasks of dispatchers that are overdue. `journal` has a file that is not the
    /// owner's: its lock would not keep the two apart.
    pub fn demote_overdue(&self, journal: &Journal) {
        let overdue = |act_by: u64| monotonic_ns() >= act_by.saturating_add(OVERDUE);
        drop(self.demote(journal, threads, overdue));
    }

    /// The same for the guardian, which forks then, of each dispatcher that has tasks to bound: the
    /// owner ends. A fork waits while another process moves between cgroups; that one waits for
    /// each thread that is forking or exiting; and such a thread may wait for the CPU, below the
    /// tasks, for ever. So no name is looked up in /proc here, whose entries such a thread may be
    /// freeing; and `journal` has the file of `punctual-watch`, whose lock is this one, then.
    pub fn demote_before_fork<'j>(&self, journal: &'j Journal) -> Option<Locked<'j>> {
        self.demote(journal, threads_without_proc, |act_by| act_by != u64::MAX)
    }

    /// Of those dispatchers whose `act_by` is `lapsed`, and remains so.
    fn demote<'j>(
        &self,
        journal: &'j Journal,
        threads: fn(&Contents) -> Vec<i32>,
        lapsed: impl Fn(u64) -> bool,
    ) -> Option<Locked<'j>> {
        let is_lapsed = |words: &Words| lapsed(words.act_by.load(SeqCst));
        if !self.words.get().iter().any(is_lapsed) {
            return None;
        }
        // Otherwise another process restores the tasks.
        flock(journal, FlockOperation::NonBlockingLockExclusive).ok()?;
        let locked = Locked(journal);
        if rustix::fs::fstat(journal).is_ok_and(|s| s.st_nlink > 0) {
            let threads = threads(&Contents::of(journal.as_fd()));
            for (&cpu, words) in self.cpus.iter().zip(self.words.get()) {
                if is_lapsed(words) {
                    words.demotions.fetch_add(1, SeqCst);
                    demote(&threads, cpu, || is_lapsed(words));
                    words.demotions.fetch_add(1, SeqCst);
                }
            }
        }
        Some(locked)
    }
}

/// No other process restores the tasks while it lives.
pub(crate) struct Locked<'j>(&'j Journal);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Puts those of these threads that are real-time ones and may run on this CPU into the ordinary
/// class, `while_so`.
fn demote(threads: &[i32], cpu: u32, while_so: impl Fn() -> bool) {
    let is_level = |tid: i32, policy: i32| {
        matches!(policy & 0xff, libc::SCHED_FIFO | libc::SCHED_RR)
            && sched::affinity(tid).is_ok_and(|mask| sched::cpus(&mask).any(|c| c == cpu))
    };
    for &tid in threads {
        if !while_so() {
            return;
        }
        let Some(policy) = sched::policy(tid) else { continue };
        if is_level(tid, policy) {
            // The dispatcher may raise it again in the middle of a fork (`adopted_thread`).
            let flag = policy & libc::SCHED_RESET_ON_FORK;
            let _ = sched::set(tid, libc::SCHED_OTHER | flag, 0);
        }
    }
}

/// All threads of the tasks that are programs.
fn threads(c: &Contents) -> Vec<i32> {
    let processes = c.children.iter().chain(&c.stopping).chain(c.joined.iter().map(|(id, _)| id));
    let processes = processes.chain(c.adopted.iter().map(|p| &p.id)).filter(|id| id.is_alive());
    let mut all: Vec<i32> = processes.flat_map(|id| proc::threads_of(id.pid)).collect();
    all.extend(c.adopted_threads.iter().filter(|t| t.process.is_alive()).map(|t| t.thread.tid));
    all.extend(in_groups(c));
    all.sort_unstable();
    all.dedup();
    all
}

/// Those in cgroups, and those that were adopted alone, by their policy: no other thread that got
/// such a number has it.
fn threads_without_proc(c: &Contents) -> Vec<i32> {
    let alone = c.adopted_threads.iter().map(|t| t.thread.tid);
    let alone = alone.filter(|tid| sched::policy(*tid) == Some(OUR_POLICY));
    in_groups(c).chain(alone).collect()
}

fn in_groups(c: &Contents) -> impl Iterator<Item = i32> + '_ {
    c.groups.iter().flat_map(|(dir, _)| cgroup::list(dir, "cgroup.threads"))
}

/// The dispatcher's side. All of it is real-time safe.
#[derive(Debug)]
pub struct Enforcing {
    words: Arc<Mapped>,
    index: usize,
    /// `demotions` when they were last read.
    seen: u64,
}

impl Enforcing {
    fn words(&self) -> &Words {
        &self.words.get()[self.index]
    }

    /// The dispatcher handles an event now. Whether its tasks were demoted since the last one: then
    /// it sets all levels again.
    pub fn acts(&mut self, now: u64) -> bool {
        self.words().act_by.store(now, SeqCst);
        let demotions = self.words().demotions.load(SeqCst);
        std::mem::replace(&mut self.seen, demotions) != demotions
    }

    /// Its tasks were demoted at least once.
    pub fn was_interrupted(&self) -> bool {
        self.seen != 0
    }

    /// It sleeps until this time at the latest; `u64::MAX` when no task depends on it.
    pub fn sleeps_until(&self, at: u64) {
        self.words().act_by.store(at, SeqCst);
    }
}

impl Drop for Enforcing {
    /// A dispatcher that is gone enforces nothing, and has lowered its tasks.
    fn drop(&mut self) {
        self.words().act_by.store(u64::MAX, Relaxed);
    }
}

/// A shared mapping of so many words.
#[derive(Debug)]
struct Mapped(*mut Words, usize);

// SAFETY: the memory belongs to no thread and is unmapped by the last user; all of it is atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new(count: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let size = size_of::<Words>() * count.max(1);
        // SAFETY: a new mapping, which overlaps nothing. All zero is a value of `Words`.
        let memory =
            unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, MapFlags::SHARED)? };
        Ok(Self(memory.cast(), count))
    }

    fn get(&self) -> &[Words] {
        // SAFETY: so many were mapped, valid while `self` lives.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the last user is gone.
        let _ = unsafe { munmap(self.0.cast(), size_of::<Words>() * self.1.max(1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{AdoptedThreadRecord, Entry, ThreadRecord};
    use crate::proc::Identity;
    use punctual_sys::sched::{Attributes, Children};
    use std::sync::mpsc::channel;

    const IN_AN_HOUR: u64 = 3_600_000_000_000;

    /// `judge` of a journal that has one thread, which is a real-time one on this CPU.
    fn with_a_task(judge: impl FnOnce(&Journal, i32, u32)) {
        let (ready, is_ready) = channel();
        let (end, at_end) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = ready.send(sched::thread_id());
            let _ = at_end.recv();
        });
        let tid = is_ready.recv().expect("it runs");
        let affinity = sched::affinity(tid).expect("it lives");
        let cpu = sched::cpus(&affinity).next().expect("a CPU");
        let attr = Attributes::of(tid).expect("it lives");
        let record = ThreadRecord { tid, start: 0, attr, affinity };
        let (process, pinned) = (Identity::own(), false);
        let adopted = AdoptedThreadRecord { process, at: 0, cpu, pinned, thread: record };
        let journal = Journal::create().expect("a journal");
        journal.write(&Entry::AdoptedThread { thread: adopted }).expect("it is written");
        if sched::set_level(tid, 1, Children::AreOrdinary).is_ok() {
            judge(&journal, tid, cpu);
        } else {
            punctual_test_support::missing("SCHED_FIFO is refused");
        }
        drop(end);
        thread.join().expect("it ends");
        std::fs::remove_file(journal.path()).expect("it is there");
    }

    fn is_ordinary(tid: i32) -> bool {
        sched::policy(tid).is_some_and(|policy| policy & 0xff == libc::SCHED_OTHER)
    }

    #[test]
    fn a_dispatcher_that_ends_with_its_process_need_not_be_overdue() {
        with_a_task(|journal, tid, cpu| {
            let enforcement = Enforcement::new([cpu]).expect("memory");
            let dispatcher = enforcement.dispatchers().next().expect("one");
            dispatcher.sleeps_until(monotonic_ns() + IN_AN_HOUR);
            enforcement.demote_overdue(journal);
            assert!(!is_ordinary(tid), "it enforces the budget");
            drop(enforcement.demote_before_fork(journal));
            assert!(is_ordinary(tid));
        });
    }

    #[test]
    fn nothing_is_demoted_while_another_process_restores_but_beside_the_one_that_demotes() {
        with_a_task(|journal, tid, cpu| {
            let enforcement = Enforcement::new([cpu]).expect("memory");
            let dispatcher = enforcement.dispatchers().next().expect("one");
            dispatcher.sleeps_until(monotonic_ns());
            let shared = Journal::open(journal.path()).expect("it is there");
            flock(journal, FlockOperation::NonBlockingLockExclusive).expect("it is free");
            assert!(enforcement.demote_before_fork(&shared).is_none());
            assert!(!is_ordinary(tid));
            flock(journal, FlockOperation::Unlock).expect("it is ours");
            flock(&shared, FlockOperation::NonBlockingLockExclusive).expect("it is free");
            assert!(enforcement.demote_before_fork(&shared).is_some());
            assert!(is_ordinary(tid));
        });
    }
}
