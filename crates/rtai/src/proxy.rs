//! Proxies (RTAI, ipc/msg): objects in slots of tasks, without a thread, that send a message each
//! time they are triggered. What their receiver has not received yet is counted.

use crate::arena::{Handle, SlotKind, TaskIndex, Transaction};

impl Transaction<'_> {
    /// It has no thread.
    pub fn is_proxy(&self, task: TaskIndex) -> bool {
        SlotKind::of(&self.task(task).head) == Some(SlotKind::Proxy)
    }

    /// Makes a proxy: what sends the word, and the bytes, to `receiver` when it is triggered.
    ///
    /// # Safety
    /// `from` has `length` bytes.
    pub unsafe fn new_proxy(
        &mut self,
        receiver: TaskIndex,
        priority: i64,
        (from, length): (*const u8, usize),
    ) -> Option<Handle> {
        let name = self.unused_name();
        let proxy = self.claim_proxy(name, priority)?;
        let slot = self.task(proxy);
        // SAFETY: the caller's.
        if !unsafe { self.put_message(proxy, (from, length), Some(0)) } {
            self.delete_proxy(proxy);
            return None;
        }
        let mut word = [0; 8];
        let given = length.min(word.len());
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from, word.as_mut_ptr(), given) };
        self.set(&slot.message, u64::from_ne_bytes(word));
        self.set(&slot.partner, receiver.word());
        Some(self.handle_of_task(proxy))
    }

    /// Deletes a proxy, and the messages that its receiver has not received.
    pub fn delete_proxy(&mut self, proxy: TaskIndex) {
        if self.is_queued(proxy) {
            self.leave_queue(proxy);
        }
        let slot = self.task(proxy);
        self.release(&slot.outgoing);
        self.deregister(&slot.head);
    }

    /// Has a proxy send its message once more; its receiver, if it lives.
    pub fn trigger(&mut self, proxy: TaskIndex) -> Option<Handle> {
        let slot = self.task(proxy);
        let receiver = TaskIndex::from_word(slot.partner.get())?;
        if SlotKind::of(&self.task(receiver).head) != Some(SlotKind::Task) {
            return None;
        }
        if self.receives_from(receiver, proxy) {
            self.deliver(receiver, proxy, slot.message.get());
        } else {
            self.set(&slot.pending, slot.pending.get().saturating_add(1));
            if !self.is_queued(proxy) {
                self.enqueue(proxy, &self.task(receiver).senders, false);
                self.renew_priority(receiver);
            }
        }
        Some(self.handle_of_task(receiver))
    }

    /// One message of a proxy is received.
    pub fn receive_pending(&mut self, proxy: TaskIndex) {
        let slot = self.task(proxy);
        let receiver = TaskIndex::from_word(slot.partner.get());
        let left = slot.pending.get().saturating_sub(1);
        self.set(&slot.pending, left);
        self.dequeue(proxy);
        let Some(receiver) = receiver else { return };
        if left > 0 {
            self.enqueue(proxy, &self.task(receiver).senders, false);
        }
        self.renew_priority(receiver);
    }
}
