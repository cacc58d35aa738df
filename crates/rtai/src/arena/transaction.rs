//! Operations on the arena.

use std::mem::{size_of, MaybeUninit};
use std::sync::atomic::Ordering;

use punctual_sys::futex;

use super::layout::{Layout, WatchdogSettings, Word, CHANGES};
use super::{Arena, ObjectIndex, ObjectSlot, TaskIndex, TaskSlot, TASKS};

/// An operation that holds the lock of the arena.
pub struct Transaction<'a> {
    pub(super) arena: &'a Arena,
    /// A bit for each task to be woken afterwards.
    woken: [u64; TASKS / 64],
}

impl Arena {
    /// Executes `operation` with the arena locked, as a whole or not at all. Real-time safe but for
    /// those that hold the lock, which execute at the priority of this thread meanwhile.
    ///
    /// All signals are blocked: a task is parked by one, and a handler may call what locks.
    pub fn transact<T>(&self, operation: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let _signals = BlockedSignals::new();
        let mut transaction = Transaction { arena: self, woken: [0; TASKS / 64] };
        let layout = self.layout();
        let locked = match layout.lock.lock() {
            Ok(locked) => locked,
            // Another program has written into the arena.
            Err(error) => {
                eprintln!("liblxrt: the memory of the RTAI programs is damaged: {error}");
                std::process::abort();
            }
        };
        if layout.undo.length.get() != 0 || locked.owner_died {
            layout.roll_back();
            // It may have been about to wake others.
            transaction.woken = [u64::MAX; TASKS / 64];
        }
        let result = operation(&mut transaction);
        layout.undo.length.store(0);
        drop(locked);
        transaction.wake();
        result
    }
}

impl Layout {
    /// Withdraws the changes of an operation whose program died.
    fn roll_back(&self) {
        let length = (self.undo.length.get() as usize).min(CHANGES);
        for entry in self.undo.entries[..length].iter().rev() {
            if let Some(word) = self.word(entry.offset.get()) {
                word.store(entry.value.get());
            }
        }
        self.undo.length.store(0);
    }

    /// The word at an offset; `None`: there is none.
    pub(super) fn word(&self, offset: u64) -> Option<&Word> {
        let offset = usize::try_from(offset).ok()?;
        let good = offset % size_of::<Word>() == 0 && offset < size_of::<Layout>();
        // SAFETY: aligned, and within the layout, all of which is atomic or a mutex; an offset that
        // another program has damaged may damage a mutex, as that program could itself.
        good.then(|| unsafe { &*std::ptr::from_ref(self).cast::<Word>().byte_add(offset) })
    }

    /// Where a word is.
    pub(super) fn offset<T>(&self, of: &T) -> u64 {
        (std::ptr::from_ref(of).addr() - std::ptr::from_ref(self).addr()) as u64
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn layout(&self) -> &'a Layout {
        self.arena.layout()
    }

    pub fn task(&self, task: TaskIndex) -> &'a TaskSlot {
        self.arena.task(task)
    }

    pub fn object(&self, object: ObjectIndex) -> &'a ObjectSlot {
        self.arena.object(object)
    }

    /// Whether the timer was started.
    pub fn watchdog(&self) -> &'a WatchdogSettings {
        &self.layout().watchdog
    }

    pub fn timer_runs(&self) -> &'a Word {
        &self.layout().timer_runs
    }

    /// Changes a word.
    ///
    /// # Panics
    /// There are more changes than a transaction can have, which no operation makes; the next
    /// transaction withdraws them.
    pub fn set(&mut self, word: &Word, value: u64) {
        let layout = self.layout();
        let undo = &layout.undo;
        let length = undo.length.get();
        let entry = &undo.entries[length as usize];
        entry.offset.store(layout.offset(word));
        entry.value.store(word.get());
        #[cfg(test)]
        super::dying_tests::die_if_due();
        undo.length.store(length + 1);
        #[cfg(test)]
        super::dying_tests::die_if_due();
        word.store(value);
    }

    /// The same with a number that may be negative.
    pub fn set_signed(&mut self, word: &Word, value: i64) {
        self.set(word, value as u64);
    }

    /// What was done so far has happened, whatever becomes of the rest.
    pub fn commit_so_far(&mut self) {
        self.layout().undo.length.store(0);
    }

    /// Has the thread of a task look again when this operation is over.
    pub fn wake_later(&mut self, task: TaskIndex) {
        self.task(task).wake.fetch_add(1, Ordering::Release);
        self.woken[task.index() / 64] |= 1 << (task.index() % 64);
    }

    fn wake(&self) {
        for (n, &word) in self.woken.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                let index = n * 64 + bits.trailing_zeros() as usize;
                futex::wake_shared(&self.layout().tasks[index].wake);
                bits &= bits - 1;
            }
        }
    }
}

/// All signals of the calling thread, blocked until this is dropped.
pub struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    pub fn new() -> BlockedSignals {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: `sigfillset` makes the first one, `pthread_sigmask` the other.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            BlockedSignals { before: before.assume_init() }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: what `new` found.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
