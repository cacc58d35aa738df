//! Mailboxes (RTAI, ipc/mbx): bytes in order, with room for so many.
//!
//! One task at a time sends, and one receives: each has a resource, for which the others wait. A
//! task that finds not enough room, or not enough bytes, moves what it can and waits for the rest.
//! What fits is moved in one transaction, so that the death of a program divides no message that
//! fits.

use crate::arena::queue::{WaitOutcome, MAILBOX, POLL};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, TaskIndex, Transaction};
use crate::blocking::Begun;
use crate::rte;

/// The lowest bits of the type of a queue: of tasks that inherit priorities.
const INHERITS: i32 = 3;
/// A bit of it: tasks wait in the order in which they come.
const FIFO: i32 = 4;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Send,
    Receive,
}

/// What is left to be moved: its memory, and how many bytes.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    pub memory: *mut u8,
    pub length: usize,
}

impl Rest {
    fn advance(&mut self, moved: usize) {
        self.memory = self.memory.wrapping_add(moved);
        self.length -= moved;
    }
}

impl Transaction<'_> {
    /// Makes a mailbox; `None`: there is no room.
    pub fn new_mailbox(
        &mut self,
        name: u64,
        size: usize,
        queue: i32,
        owner: Owner,
    ) -> Option<Handle> {
        let id = self.claim_object()?;
        let object = self.object(id);
        if !self.reserve(&object.buffer, size.max(1)) {
            return None;
        }
        self.reset_object(id);
        self.set(&object.size, size as u64);
        for word in [&object.count, &object.sem_type, &object.is_fifo] {
            self.set(word, 0);
        }
        self.register(&object.head, SlotKind::Mailbox, name, owner);
        for word in [&object.send_lock, &object.receive_lock] {
            let Some(lock) = self.new_lock(queue, owner) else {
                self.delete_mailbox(id);
                return None;
            };
            self.set(word, lock.word());
        }
        Some(self.handle_of_object(id))
    }

    /// A resource of a mailbox.
    fn new_lock(&mut self, queue: i32, owner: Owner) -> Option<ObjectIndex> {
        let name = self.unused_name();
        let handle = self.new_semaphore(name, 1, INHERITS, owner)?;
        let lock = self.find_object(handle, SlotKind::Semaphore)?;
        let object = self.object(lock);
        self.set(&object.inherits, u64::from(queue & INHERITS == INHERITS));
        self.set(&object.is_fifo, u64::from(queue & INHERITS != INHERITS && queue & FIFO != 0));
        Some(lock)
    }

    /// Deletes a mailbox: tasks that wait for it return.
    pub fn delete_mailbox(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        for word in [&object.send_lock, &object.receive_lock] {
            if let Some(lock) = ObjectIndex::from_word(word.get()) {
                self.delete_semaphore(lock);
            }
            self.set(word, 0);
        }
        while let Some(task) = self.first(&object.waiters) {
            self.remove_from_under(task, MAILBOX);
        }
        self.release(&object.buffer);
        self.deregister(&object.head);
        self.wake_pollers();
    }

    /// The resource of a direction.
    pub fn lock_of(&self, id: ObjectIndex, direction: Direction) -> Option<ObjectIndex> {
        let object = self.object(id);
        ObjectIndex::from_word(match direction {
            Direction::Send => object.send_lock.get(),
            Direction::Receive => object.receive_lock.get(),
        })
    }

    /// No task sends, or receives.
    pub fn is_unlocked(&mut self, id: ObjectIndex, direction: Direction) -> bool {
        let lock = self.lock_of(id, direction);
        lock.is_some_and(|lock| {
            // The task that does may have died.
            if let Some(owner) = TaskIndex::from_word(self.object(lock).owner.get()) {
                self.reap_task(owner);
            }
            self.object(lock).count.signed() > 0
        })
    }

    /// How many bytes can be moved now.
    pub fn movable(&self, id: ObjectIndex, direction: Direction) -> usize {
        let object = self.object(id);
        let used = object.buffer.length.get();
        (match direction {
            Direction::Send => object.size.get().saturating_sub(used),
            Direction::Receive => used,
        }) as usize
    }

    /// Moves as many bytes as it can.
    ///
    /// # Safety
    /// The rest is memory to be read, or to be written.
    pub unsafe fn transfer(&mut self, id: ObjectIndex, direction: Direction, rest: &mut Rest) {
        let moved = rest.length.min(self.movable(id, direction));
        if moved == 0 {
            return;
        }
        let object = self.object(id);
        let (size, used) = (object.size.get() as usize, object.buffer.length.get() as usize);
        let first = object.position.get() as usize;
        match direction {
            Direction::Send => {
                // SAFETY: the caller's; nothing reads that part yet.
                unsafe { self.copy_around(id, (first + used) % size, *rest, moved, true) };
                self.set(&object.buffer.length, (used + moved) as u64);
            }
            Direction::Receive => {
                // SAFETY: the caller's.
                unsafe { self.copy_around(id, first % size, *rest, moved, false) };
                self.set(&object.position, ((first + moved) % size) as u64);
                self.set(&object.buffer.length, (used - moved) as u64);
            }
        }
        rest.advance(moved);
        self.wake_waiter(id);
    }

    /// Copies `length` bytes from `at` of a mailbox on, around its end.
    unsafe fn copy_around(
        &mut self,
        id: ObjectIndex,
        at: usize,
        rest: Rest,
        length: usize,
        is_in: bool,
    ) {
        let object = self.object(id);
        let straight = length.min(object.size.get() as usize - at);
        let parts = [(at, 0, straight), (0, straight, length - straight)];
        for (place, skipped, length) in parts {
            let memory = rest.memory.wrapping_add(skipped);
            // SAFETY: the caller's.
            unsafe {
                match is_in {
                    true => self.fill(&object.buffer, place, memory, length),
                    false => self.read(&object.buffer, place, memory, length),
                };
            }
        }
    }

    /// Copies what would be received, and leaves it there.
    ///
    /// # Safety
    /// The rest is memory to be written.
    pub unsafe fn peek_mailbox(&mut self, id: ObjectIndex, rest: &mut Rest) {
        let object = self.object(id);
        let length = rest.length.min(object.buffer.length.get() as usize);
        if length > 0 {
            // SAFETY: the caller's.
            unsafe { self.copy_around(id, object.position.get() as usize, *rest, length, false) };
            rest.advance(length);
        }
    }

    /// Drops the oldest bytes, so that there is room for `length`.
    pub fn make_room(&mut self, id: ObjectIndex, length: usize) {
        let object = self.object(id);
        let missing = length.saturating_sub(self.movable(id, Direction::Send));
        let (size, used) = (object.size.get() as usize, object.buffer.length.get() as usize);
        let dropped = missing.min(used);
        if dropped > 0 {
            self.set(&object.position, ((object.position.get() as usize + dropped) % size) as u64);
            self.set(&object.buffer.length, (used - dropped) as u64);
        }
    }

    /// Wakes the task that waits for room, or for bytes, and those that poll.
    fn wake_waiter(&mut self, id: ObjectIndex) {
        let waiters = &self.object(id).waiters;
        self.reap_queue(waiters);
        while let Some(task) = self.first(waiters) {
            self.grant(task, MAILBOX);
        }
        self.wake_pollers();
    }

    /// Wakes the tasks that poll: they look again.
    pub fn wake_pollers(&mut self) {
        let pollers = &self.layout().pollers;
        while let Some(task) = self.first(pollers) {
            self.grant(task, POLL);
        }
    }

    /// The task waits for a change of any mailbox.
    pub fn begin_poll(&mut self, task: TaskIndex, until: Option<i64>) {
        self.enqueue(task, &self.layout().pollers, true);
        self.suspend_for(task, POLL);
        if let Some(until) = until {
            self.delay(task, until);
        }
    }

    /// Moves what it can of the rest; when all is moved, the resource is released. The task waits
    /// for what is left.
    ///
    /// # Safety
    /// As of [`transfer`](Self::transfer).
    pub unsafe fn begin_transfer(
        &mut self,
        (mailbox, direction): (Handle, Direction),
        task: TaskIndex,
        rest: &mut Rest,
        until: Option<i64>,
        now: i64,
    ) -> Begun<i32> {
        let Some(id) = self.find_object(mailbox, SlotKind::Mailbox) else {
            return Begun::Done(rte::OBJREM);
        };
        // SAFETY: the caller's.
        unsafe { self.transfer(id, direction, rest) };
        if rest.length == 0 {
            self.unlock(id, direction, task);
            return Begun::Done(0);
        }
        if until.is_some_and(|until| until <= now) {
            self.unlock(id, direction, task);
            return Begun::Done(rte::TIMOUT);
        }
        self.enqueue(task, &self.object(id).waiters, true);
        self.suspend_for(task, MAILBOX);
        if let Some(until) = until {
            self.delay(task, until);
        }
        Begun::Waits
    }

    /// How the wait for room or bytes ended; `None`: look again.
    pub fn end_transfer(
        &mut self,
        (mailbox, direction): (Handle, Direction),
        task: TaskIndex,
        outcome: WaitOutcome,
    ) -> Option<i32> {
        let error = match outcome {
            WaitOutcome::Done => return None,
            WaitOutcome::Removed => return Some(rte::OBJREM),
            WaitOutcome::TimedOut => rte::TIMOUT,
            WaitOutcome::Unblocked => rte::UNBLKD,
        };
        self.withdraw(task);
        if let Some(id) = self.find_object(mailbox, SlotKind::Mailbox) {
            self.unlock(id, direction, task);
        }
        Some(error)
    }

    fn unlock(&mut self, id: ObjectIndex, direction: Direction, task: TaskIndex) {
        if let Some(lock) = self.lock_of(id, direction) {
            self.signal(lock, Some(task));
        }
    }
}
