//! Queues of messages with priorities, also known as typed mailboxes (RTAI, ipc/tbx): the smaller
//! number is received first, and equal ones in the order in which they were sent.
//!
//! A message goes to the task that waits for one, else into the queue. A task that finds the queue
//! full keeps its message in its own buffer, from which the next receiver takes it into the queue.

use crate::arena::queue::{WaitOutcome, SEMAPHORE};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, TaskIndex, Transaction, Word};
use crate::blocking::Begun;
use crate::rte;

/// Words before the bytes of a message in its blocks.
const NEXT: usize = 0;
const LENGTH: usize = 1;
const PRIORITY: usize = 2;
const HEADER: usize = 4 * size_of::<Word>();

/// A message of a program: its bytes, how many, and its priority.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    pub bytes: *const u8,
    pub length: usize,
    pub priority: i32,
}

/// Room for a message.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    pub bytes: *mut u8,
    pub room: usize,
}

/// What was received: how many bytes, and the priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub length: usize,
    pub priority: i32,
}

impl Transaction<'_> {
    /// Makes a queue for so many messages; `None`: there is no room.
    pub fn new_message_queue(&mut self, name: u64, most: u64, owner: Owner) -> Option<Handle> {
        let id = self.claim_object()?;
        let object = self.object(id);
        self.reset_object(id);
        let words = [&object.count, &object.sem_type, &object.is_fifo, &object.first_message];
        let ends = [&object.messages, &object.senders.first, &object.senders.last];
        for word in words.into_iter().chain(ends) {
            self.set(word, 0);
        }
        self.set(&object.size, most);
        self.register(&object.head, SlotKind::MessageQueue, name, owner);
        Some(self.handle_of_object(id))
    }

    /// Deletes a queue: tasks that wait return.
    pub fn delete_message_queue(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        for queue in [&object.waiters, &object.senders] {
            while let Some(task) = self.first(queue) {
                self.remove_from_under(task, SEMAPHORE);
            }
        }
        for _ in 0..object.messages.get() {
            self.drop_message(id);
        }
        self.deregister(&object.head);
    }

    /// The block of the first message.
    fn first_message(&self, id: ObjectIndex) -> Option<usize> {
        let first = self.object(id).first_message.get().checked_sub(1)?;
        usize::try_from(first).ok()
    }

    fn message_word(&self, block: usize, number: usize) -> u64 {
        self.word_of_block(block, number).map_or(0, Word::get)
    }

    /// Frees the first message.
    fn drop_message(&mut self, id: ObjectIndex) -> Option<()> {
        let block = self.first_message(id)?;
        let object = self.object(id);
        let bytes = HEADER + self.message_word(block, LENGTH) as usize;
        self.set(&object.first_message, self.message_word(block, NEXT));
        self.set(&object.messages, object.messages.get().saturating_sub(1));
        self.free(block, bytes);
        Some(())
    }

    /// Puts a message into the queue, behind those of its priority; false: there is no memory.
    unsafe fn append(&mut self, id: ObjectIndex, message: Outgoing) -> bool {
        let object = self.object(id);
        let bytes = HEADER + message.length;
        let Some(block) = self.allocate(bytes) else { return false };
        let (memory, room) = self.memory_of_blocks(block, HEADER, bytes);
        // SAFETY: blocks of this message alone; the caller's.
        unsafe {
            let length = message.length.min(room);
            std::ptr::copy_nonoverlapping(message.bytes, memory, length);
        }
        let mut place = &object.first_message;
        for _ in 0..object.messages.get() {
            let Some(next) = place.get().checked_sub(1) else { break };
            let next = next as usize;
            if self.message_word(next, PRIORITY) as i32 > message.priority {
                break;
            }
            let Some(word) = self.word_of_block(next, NEXT) else { break };
            place = word;
        }
        let fields = [(NEXT, place.get()), (LENGTH, message.length as u64)];
        for (number, value) in fields.into_iter().chain([(PRIORITY, message.priority as u64)]) {
            if let Some(word) = self.word_of_block(block, number) {
                self.set(word, value);
            }
        }
        self.set(place, block as u64 + 1);
        self.set(&object.messages, object.messages.get() + 1);
        true
    }

    /// Gives a message to a task that waits for one; false: there is no memory.
    unsafe fn hand_over(&mut self, to: TaskIndex, message: Outgoing) -> bool {
        // SAFETY: the caller's.
        if !unsafe { self.put_incoming(to, message.bytes, message.length) } {
            return false;
        }
        self.set(&self.task(to).message, message.priority as u64);
        self.grant(to, SEMAPHORE);
        true
    }

    /// Sends a message, or waits until there is room for it: what RTAI returns.
    ///
    /// # Safety
    /// The message has its bytes.
    pub unsafe fn begin_queue_send(
        &mut self,
        queue: Handle,
        task: TaskIndex,
        message: Outgoing,
        (is_if, until): (bool, Option<i64>),
        now: i64,
    ) -> Begun<i32> {
        let Some(id) = self.find_object(queue, SlotKind::MessageQueue) else {
            return Begun::Done(rte::OBJINV);
        };
        let object = self.object(id);
        let result = |is_done| Begun::Done(if is_done { 0 } else { -libc::ENOMEM });
        self.reap_queue(&object.waiters);
        self.reap_queue(&object.senders);
        if let Some(receiver) = self.first(&object.waiters) {
            // SAFETY: the caller's.
            return result(unsafe { self.hand_over(receiver, message) });
        }
        let has_room = object.messages.get() < object.size.get();
        if has_room && self.first(&object.senders).is_none() {
            // SAFETY: the caller's.
            return result(unsafe { self.append(id, message) });
        }
        if is_if {
            return Begun::Done(message.length as i32);
        }
        if until.is_some_and(|until| until <= now) {
            return Begun::Done(rte::TIMOUT);
        }
        // SAFETY: the caller's.
        if !unsafe { self.put_message(task, (message.bytes, message.length), None) } {
            return result(false);
        }
        self.set(&self.task(task).message, message.priority as u64);
        self.enqueue(task, &object.senders, false);
        self.suspend_for(task, SEMAPHORE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        Begun::Waits
    }

    /// How a wait of a sender ended.
    pub fn end_queue_send(&mut self, task: TaskIndex, outcome: WaitOutcome) -> i32 {
        match outcome {
            // The receiver that took it into the queue wrote the result.
            WaitOutcome::Done => self.task(task).message.get() as i32,
            _ => self.end_queue_wait(task, outcome),
        }
    }

    fn end_queue_wait(&mut self, task: TaskIndex, outcome: WaitOutcome) -> i32 {
        if outcome == WaitOutcome::Removed {
            return rte::OBJREM;
        }
        self.withdraw(task);
        if outcome == WaitOutcome::TimedOut {
            rte::TIMOUT
        } else {
            rte::UNBLKD
        }
    }

    /// There is room in the queue: the messages of the senders that wait first come into it.
    fn admit_senders(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        self.reap_queue(&object.senders);
        while object.messages.get() < object.size.get() {
            let Some(sender) = self.first(&object.senders) else { break };
            let slot = self.task(sender);
            let (memory, room) = self.memory(&slot.outgoing);
            let length = (slot.outgoing.length.get() as usize).min(room);
            let priority = slot.message.get() as i32;
            let message = Outgoing { bytes: memory, length, priority };
            // SAFETY: the buffer of the sender, which waits.
            let result = if unsafe { self.append(id, message) } { 0 } else { -libc::ENOMEM };
            self.set_signed(&slot.message, result.into());
            self.grant(sender, SEMAPHORE);
        }
    }

    /// Copies the first message, and takes it unless `is_peek`.
    ///
    /// # Safety
    /// There is the room.
    pub unsafe fn take_first(
        &mut self,
        id: ObjectIndex,
        to: Incoming,
        is_peek: bool,
    ) -> Option<Taken> {
        let block = self.first_message(id)?;
        let whole = self.message_word(block, LENGTH) as usize;
        let priority = self.message_word(block, PRIORITY) as i32;
        let (memory, room) = self.memory_of_blocks(block, HEADER, HEADER + whole);
        let length = to.room.min(whole).min(room);
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(memory, to.bytes, length) };
        if !is_peek {
            self.drop_message(id);
            self.admit_senders(id);
        }
        Some(Taken { length, priority })
    }

    /// Receives a message, or waits for one.
    ///
    /// # Safety
    /// As of [`take_first`](Self::take_first).
    pub unsafe fn begin_queue_receive(
        &mut self,
        queue: Handle,
        task: TaskIndex,
        to: Incoming,
        (is_if, until): (bool, Option<i64>),
        now: i64,
    ) -> Begun<Result<Taken, i32>> {
        let Some(id) = self.find_object(queue, SlotKind::MessageQueue) else {
            return Begun::Done(Err(rte::OBJINV));
        };
        // SAFETY: the caller's.
        if let Some(taken) = unsafe { self.take_first(id, to, false) } {
            return Begun::Done(Ok(taken));
        }
        if is_if {
            return Begun::Done(Err(to.room as i32));
        }
        if until.is_some_and(|until| until <= now) {
            return Begun::Done(Err(rte::TIMOUT));
        }
        self.set(&self.task(task).incoming.length, 0);
        self.enqueue(task, &self.object(id).waiters, false);
        self.suspend_for(task, SEMAPHORE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        Begun::Waits
    }

    /// How a wait of a receiver ended.
    ///
    /// # Safety
    /// As of [`take_first`](Self::take_first).
    pub unsafe fn end_queue_receive(
        &mut self,
        task: TaskIndex,
        to: Incoming,
        outcome: WaitOutcome,
    ) -> Result<Taken, i32> {
        if outcome != WaitOutcome::Done {
            return Err(self.end_queue_wait(task, outcome));
        }
        let slot = self.task(task);
        let length = to.room.min(slot.incoming.length.get() as usize);
        // SAFETY: the caller's.
        let length = unsafe { self.read(&slot.incoming, 0, to.bytes, length) };
        self.set(&slot.incoming.length, 0);
        Ok(Taken { length, priority: slot.message.get() as i32 })
    }

    /// Gives a message to all tasks that wait for one; how many, or what RTAI returns.
    ///
    /// # Safety
    /// The message has its bytes.
    pub unsafe fn broadcast_message(&mut self, id: ObjectIndex, message: Outgoing) -> i32 {
        let waiters = &self.object(id).waiters;
        self.reap_queue(waiters);
        // All of them, or none.
        let mut next = self.first(waiters);
        for _ in 0..crate::arena::TASKS {
            let Some(task) = next else { break };
            let slot = self.task(task);
            next = TaskIndex::from_word(slot.next.get());
            if !self.reserve(&slot.incoming, message.length) {
                return -libc::ENOMEM;
            }
        }
        let mut count = 0;
        while let Some(task) = self.first(waiters) {
            // SAFETY: the caller's. It has the memory.
            unsafe { self.hand_over(task, message) };
            count += 1;
        }
        count
    }
}
