//! What threads and processes leave that end without deleting it.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_process::Identity;
use punctual_sys::clock;

use super::layout::{Queue, SlotHead, SlotKind};
use super::queue::{RECEIVE, RETURN, RPC, SEND};
use super::{Arena, ObjectIndex, TaskIndex, Transaction};

/// Between two searches, ns: each thread that waits asks for one once a second.
const PERIOD: u64 = 900_000_000;

/// A process, in words of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    pub id: u64,
    pub start: u64,
}

impl ProcessId {
    fn of(head: &SlotHead) -> ProcessId {
        ProcessId { id: head.process.get(), start: head.process_start.get() }
    }

    /// It has ended. One whose start is unknown, without /proc, has not.
    fn has_ended(self) -> bool {
        let known = self.id != 0 && self.start != 0 && self != this_process();
        known && !Identity { pid: self.id as i32, start: self.start }.is_alive()
    }
}

/// This process. The first call in a process reads /proc.
pub fn this_process() -> ProcessId {
    static ID: AtomicU64 = AtomicU64::new(0);
    static START: AtomicU64 = AtomicU64::new(0);
    let id = u64::from(std::process::id());
    // The child of a fork is another process.
    if ID.load(Ordering::Acquire) != id {
        START.store(Identity::own().start, Ordering::Relaxed);
        ID.store(id, Ordering::Release);
    }
    ProcessId { id, start: START.load(Ordering::Relaxed) }
}

impl Arena {
    /// The same, unless another thread has just done it.
    pub fn reap_sometimes(&self) {
        let reaped_at = &self.layout().reaped_at;
        let now = clock::monotonic_ns();
        if now.saturating_sub(reaped_at.get()) < PERIOD {
            return;
        }
        // Two threads at once do it twice, which is harmless.
        reaped_at.store(now);
        self.reap();
    }

    /// Deletes the tasks of threads that have ended, and the objects of processes that have: tasks
    /// that wait for these return.
    pub fn reap(&self) {
        self.transact(|transaction| transaction.reap_tasks());
        let layout = self.layout();
        let living = |head: &&SlotHead| head.kind.get() != SlotKind::Free as u64;
        let is_proxy = |head: &&SlotHead| head.kind.get() == SlotKind::Proxy as u64;
        let heads = layout.objects.iter().map(|object| &object.head).filter(living);
        let heads = heads.chain(layout.tasks.iter().map(|task| &task.head).filter(is_proxy));
        let mut processes: Vec<ProcessId> = heads.map(ProcessId::of).collect();
        processes.sort_unstable_by_key(|process| (process.id, process.start));
        processes.dedup();
        processes.retain(|process| process.has_ended());
        if processes.is_empty() {
            return;
        }
        for index in 1..=super::TASKS as u64 {
            let Some(proxy) = TaskIndex::from_word(index) else { break };
            self.transact(|transaction| {
                let head = &transaction.task(proxy).head;
                let is_proxy = SlotKind::of(head) == Some(SlotKind::Proxy);
                if is_proxy && processes.contains(&ProcessId::of(head)) {
                    transaction.delete_proxy(proxy);
                }
            });
        }
        for index in 1..=super::OBJECTS as u64 {
            let Some(object) = ObjectIndex::from_word(index) else { break };
            self.transact(|transaction| {
                let head = &transaction.object(object).head;
                let dead = processes.contains(&ProcessId::of(head));
                if let (true, Some(kind)) = (dead, SlotKind::of(head)) {
                    transaction.delete_object(object, kind);
                }
            });
        }
    }
}

impl Transaction<'_> {
    fn reap_tasks(&mut self) {
        for index in 1..=self.layout().tasks_used.get() {
            let Some(task) = TaskIndex::from_word(index) else { break };
            let slot = self.task(task);
            if slot.head.kind.get() != SlotKind::Task as u64 {
                continue;
            }
            // Its thread holds it until it ends.
            self.reap_task(task);
        }
    }

    /// Deletes a task whose thread has ended.
    pub fn reap_task(&mut self, task: TaskIndex) {
        if let Ok(Some(_life)) = self.task(task).life.try_lock() {
            self.delete_task(task);
        }
    }

    /// Deletes the tasks of a queue whose threads have ended: nothing is given to them.
    pub fn reap_queue(&mut self, queue: &Queue) {
        let arena = self.arena;
        let is_dead = |task: &TaskIndex| {
            let slot = arena.task(*task);
            let has_thread = slot.head.kind.get() == SlotKind::Task as u64;
            has_thread && matches!(slot.life.try_lock(), Ok(Some(_)))
        };
        while let Some(task) = self.waiting(queue).find(is_dead) {
            self.delete_task(task);
        }
    }

    /// Deletes a task, whose thread is this one or has ended: what it owns goes to the next one.
    pub fn delete_task(&mut self, task: TaskIndex) {
        let slot = self.task(task);
        if self.is_queued(task) {
            self.leave_queue(task);
        }
        while let Some(semaphore) = self.owned(task).next() {
            self.release_resource(semaphore, task);
        }
        for (queue, bits) in [(&slot.senders, SEND | RPC), (&slot.callers, RETURN)] {
            while let Some(sender) = self.first(queue) {
                self.remove_from_under(sender, bits);
            }
        }
        self.forget_partner(task);
        self.release(&slot.outgoing);
        self.release(&slot.incoming);
        self.deregister(&slot.head);
    }

    /// Tasks that wait for a message of this one alone return; its proxies have no receiver.
    fn forget_partner(&mut self, task: TaskIndex) {
        for index in 1..=self.layout().tasks_used.get() {
            let Some(other) = TaskIndex::from_word(index) else { break };
            let slot = self.task(other);
            if slot.partner.get() != task.word() {
                continue;
            }
            match SlotKind::of(&slot.head) {
                Some(SlotKind::Proxy) => self.set(&slot.partner, 0),
                Some(SlotKind::Task) if slot.state.get() & RECEIVE != 0 => {
                    self.set(&slot.partner, 0);
                    self.remove_from_under(other, RECEIVE);
                }
                _ => {}
            }
        }
    }

    /// The task waits no more in its queue, without what it waited for.
    pub fn leave_queue(&mut self, task: TaskIndex) {
        match self.receiver_of(task) {
            Some((receiver, _)) => {
                self.withdraw(task);
                self.renew_priority(receiver);
            }
            None => self.leave_semaphore(task),
        }
    }

    /// Deletes an object: tasks that wait for it return.
    pub fn delete_object(&mut self, object: ObjectIndex, kind: SlotKind) {
        match kind {
            SlotKind::Semaphore => self.delete_semaphore(object),
            SlotKind::Mailbox => self.delete_mailbox(object),
            SlotKind::Bits => self.delete_bits(object),
            SlotKind::MessageQueue => self.delete_message_queue(object),
            SlotKind::Task | SlotKind::Proxy | SlotKind::Free => {}
        }
    }
}
