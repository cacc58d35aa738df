//! Messages between tasks (RTAI, ipc/msg): of a word, and of bytes.
//!
//! A task that sends waits in the queue of its receiver until that receives; one that calls waits
//! on until the receiver has returned. A receiver has the best priority of those that wait for it.

use crate::arena::queue::{WaitOutcome, DELAYED, RECEIVE, RETURN, RPC, SEND};
use crate::arena::{Handle, TaskIndex, TaskSlot, Transaction};
use crate::blocking::Begun;
use crate::rte;

/// How a sender waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Until it is received.
    Send,
    /// Until the receiver has returned.
    Call,
}

/// What a call returns in place of a task.
pub type MessageResult = Result<Handle, i32>;

/// A message that was received.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    pub from: TaskIndex,
    pub message: u64,
}

impl<'a> Transaction<'a> {
    /// The living task, or proxy, of a handle.
    pub fn find_partner(&self, handle: Handle) -> Option<TaskIndex> {
        self.find_task(handle).or_else(|| self.find_proxy(handle))
    }

    /// The task waits for a message that this one may send.
    pub fn receives_from(&self, to: TaskIndex, from: TaskIndex) -> bool {
        let slot = self.task(to);
        let partner = slot.partner.get();
        slot.state.get() & RECEIVE != 0 && (partner == 0 || partner == from.word())
    }

    /// A task that waits for a message has it.
    pub fn deliver(&mut self, to: TaskIndex, from: TaskIndex, message: u64) {
        let slot = self.task(to);
        self.set(&slot.message, message);
        self.set(&slot.partner, from.word());
        self.set(&slot.has_received, 1);
        self.set(&slot.blocked_on, 0);
        self.make_ready(to, RECEIVE | DELAYED);
    }

    /// The task sends a word; with `is_if` only where the receiver waits for it, with `until` no
    /// longer than that. What it sends of bytes is in its buffer.
    pub fn begin_send(
        &mut self,
        from: TaskIndex,
        to: TaskIndex,
        (message, mode): (u64, SendMode),
        (is_if, until): (bool, Option<i64>),
        now: i64,
    ) -> Begun<MessageResult> {
        let is_past = until.is_some_and(|until| until <= now);
        let receives = self.receives_from(to, from);
        if is_past && mode == SendMode::Call {
            return Begun::Done(Err(0));
        }
        if !receives && is_if {
            return Begun::Done(Err(0));
        }
        let (slot, receiver) = (self.task(from), self.task(to));
        self.set(&slot.message, message);
        if receives {
            self.deliver(to, from, message);
            if mode == SendMode::Send {
                return Begun::Done(Ok(self.handle_of_task(to)));
            }
        } else if is_past {
            return Begun::Done(Err(rte::TIMOUT));
        }
        self.set(&slot.partner, to.word());
        let (queue, bit) = match (mode, receives) {
            (SendMode::Call, true) => (&receiver.callers, RETURN),
            (SendMode::Call, false) => (&receiver.senders, RPC),
            (SendMode::Send, _) => (&receiver.senders, SEND),
        };
        self.enqueue(from, queue, false);
        self.suspend_for(from, bit);
        if let Some(until) = until {
            self.delay(from, until);
        }
        self.renew_priority(to);
        Begun::Waits
    }

    /// The wait of a sender is over: what RTAI returns, and for a call its result.
    pub fn end_send(
        &mut self,
        from: TaskIndex,
        to: Handle,
        outcome: WaitOutcome,
    ) -> (MessageResult, u64) {
        let slot = self.task(from);
        let result = match outcome {
            WaitOutcome::Done => Ok(to),
            WaitOutcome::Removed => Err(rte::OBJREM),
            WaitOutcome::TimedOut => Err(rte::TIMOUT),
            WaitOutcome::Unblocked => Err(rte::UNBLKD),
        };
        if matches!(outcome, WaitOutcome::TimedOut | WaitOutcome::Unblocked) {
            self.leave_queue(from);
        }
        self.set(&slot.partner, 0);
        (result, slot.message.get())
    }

    /// The first message that waits for the task, of `from` alone if it is given.
    fn waiting_message(&mut self, task: TaskIndex, from: Option<TaskIndex>) -> Option<TaskIndex> {
        let slot = self.task(task);
        self.reap_queue(&slot.senders);
        // The wait of others is over, though they are in the queue still.
        let sends = |sender: &TaskIndex| {
            self.is_proxy(*sender) || self.task(*sender).state.get() & (SEND | RPC) != 0
        };
        let mut senders = self.waiting(&slot.senders).filter(sends);
        match from {
            None => senders.next(),
            Some(from) => senders.find(|sender| *sender == from),
        }
    }

    /// Takes a message that waits: the sender continues, or waits for what is returned.
    fn receive_waiting(&mut self, task: TaskIndex, from: TaskIndex) -> Received {
        let (slot, sender) = (self.task(task), self.task(from));
        let message = sender.message.get();
        self.set(&slot.incoming.length, 0);
        if self.is_proxy(from) {
            self.receive_pending(from);
            return Received { from, message };
        }
        let is_call = sender.state.get() & RPC != 0;
        self.dequeue(from);
        if is_call {
            self.set(&sender.state, sender.state.get() & !(RPC | DELAYED) | RETURN);
            self.enqueue(from, &slot.callers, false);
        } else {
            self.make_ready(from, SEND | DELAYED);
        }
        self.renew_priority(task);
        Received { from, message }
    }

    /// The task receives a message, of `from` alone if it is given, or waits for one.
    pub fn begin_receive(
        &mut self,
        task: TaskIndex,
        from: Option<TaskIndex>,
        (is_if, until): (bool, Option<i64>),
        now: i64,
    ) -> Begun<Result<Received, i32>> {
        let from = from.filter(|from| *from != task);
        if let Some(sender) = self.waiting_message(task, from) {
            return Begun::Done(Ok(self.receive_waiting(task, sender)));
        }
        if is_if {
            return Begun::Done(Err(0));
        }
        if until.is_some_and(|until| until <= now) {
            return Begun::Done(Err(rte::TIMOUT));
        }
        let slot = self.task(task);
        self.set(&slot.has_received, 0);
        self.set(&slot.partner, from.map_or(0, TaskIndex::word));
        self.set(&slot.incoming.length, 0);
        self.wait_on_itself(task);
        self.suspend_for(task, RECEIVE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        Begun::Waits
    }

    /// The wait of a receiver is over.
    pub fn end_receive(&mut self, task: TaskIndex, outcome: WaitOutcome) -> Result<Received, i32> {
        let slot = self.task(task);
        let from = TaskIndex::from_word(slot.partner.get());
        self.set(&slot.partner, 0);
        match from.filter(|_| slot.has_received.get() != 0) {
            Some(from) => Ok(Received { from, message: slot.message.get() }),
            None => Err(match outcome {
                WaitOutcome::Unblocked => rte::UNBLKD,
                WaitOutcome::Removed => rte::OBJREM,
                WaitOutcome::Done | WaitOutcome::TimedOut => rte::TIMOUT,
            }),
        }
    }

    /// The first message that waits, without taking it.
    pub fn peek(&mut self, task: TaskIndex, from: Option<TaskIndex>) -> Option<Received> {
        let from = self.waiting_message(task, from)?;
        Some(Received { from, message: self.task(from).message.get() })
    }

    /// The caller waits for what this task returns.
    pub fn waits_for_return(&self, caller: TaskIndex, task: TaskIndex) -> bool {
        let slot = self.task(caller);
        slot.state.get() & RETURN != 0 && slot.partner.get() == task.word()
    }

    /// Returns a word, and no bytes, to a caller; false: it does not wait for that.
    pub fn give_back(&mut self, task: TaskIndex, caller: TaskIndex, result: u64) -> bool {
        let is_awaited = self.waits_for_return(caller, task);
        if is_awaited {
            self.set(&self.task(caller).outgoing.length, 0);
            self.answer(task, caller, result);
        }
        is_awaited
    }

    fn answer(&mut self, task: TaskIndex, caller: TaskIndex, result: u64) {
        self.set(&self.task(caller).message, result);
        self.grant(caller, RETURN);
        self.renew_priority(task);
    }

    /// Has a long message in the task's buffer, with room for a reply; false: there is no memory.
    ///
    /// # Safety
    /// `from` has `length` bytes.
    pub unsafe fn put_message(
        &mut self,
        task: TaskIndex,
        (from, length): (*const u8, usize),
        reply_room: Option<usize>,
    ) -> bool {
        let slot = self.task(task);
        let room = length.max(reply_room.unwrap_or(0));
        if !self.reserve(&slot.outgoing, room) {
            return false;
        }
        // SAFETY: the caller's.
        unsafe { self.fill(&slot.outgoing, 0, from, length) };
        self.set(&slot.outgoing.length, length as u64);
        self.set(&slot.reply_room, reply_room.unwrap_or(0) as u64);
        self.set(&slot.wants_no_reply, u64::from(reply_room.is_none()));
        true
    }

    /// The task sends no bytes.
    pub fn put_nothing(&mut self, task: TaskIndex) {
        let slot = self.task(task);
        for word in [&slot.outgoing.length, &slot.reply_room, &slot.wants_no_reply] {
            self.set(word, 0);
        }
    }

    /// Puts bytes into the buffer of a task that waits for a message; false: there is no memory.
    ///
    /// # Safety
    /// `from` has `length` bytes.
    pub unsafe fn put_incoming(&mut self, to: TaskIndex, from: *const u8, length: usize) -> bool {
        let incoming = &self.task(to).incoming;
        if !self.reserve(incoming, length) {
            return false;
        }
        // SAFETY: the caller's.
        unsafe { self.fill(incoming, 0, from, length) };
        self.set(&incoming.length, length as u64);
        true
    }

    /// Copies the bytes of a message that was received; how many. A sender that waits for no reply
    /// continues, if `is_taken`.
    ///
    /// # Safety
    /// `to` has room for `room` bytes.
    pub unsafe fn take_bytes(
        &mut self,
        task: TaskIndex,
        from: TaskIndex,
        (to, room): (*mut u8, usize),
        is_taken: bool,
    ) -> usize {
        let own: &TaskSlot = self.task(task);
        let sender = self.task(from);
        let incoming = own.incoming.length.get() != 0;
        let buffer = if incoming { &own.incoming } else { &sender.outgoing };
        let length = room.min(buffer.length.get() as usize);
        // SAFETY: the caller's.
        let read = unsafe { self.read(buffer, 0, to, length) };
        if is_taken {
            self.set(&own.incoming.length, 0);
            if !incoming && sender.wants_no_reply.get() != 0 {
                self.give_back(task, from, 0);
            }
        }
        read
    }

    /// Returns bytes to a caller; false: it does not wait for that.
    ///
    /// # Safety
    /// `from` has `length` bytes.
    pub unsafe fn give_back_bytes(
        &mut self,
        task: TaskIndex,
        caller: TaskIndex,
        from: *const u8,
        length: usize,
    ) -> bool {
        if !self.waits_for_return(caller, task) {
            return false;
        }
        let slot = self.task(caller);
        let length = length.min(slot.reply_room.get() as usize);
        // SAFETY: the caller's.
        let written = unsafe { self.fill(&slot.outgoing, 0, from, length) };
        self.set(&slot.outgoing.length, written as u64);
        self.answer(task, caller, 0);
        true
    }
}
