//! Queues of tasks that wait, and who gets which priority for that.

use super::layout::{Queue, Word, TASKS};
use super::{ObjectIndex, TaskIndex, Transaction};

/// Bits of the state of a task (RTAI, rtai_sched.h). It executes with [`READY`] alone.
pub const READY: u64 = 1;
/// It was suspended.
pub const SUSPENDED: u64 = 2;
/// It waits for a time.
pub const DELAYED: u64 = 4;
/// It waits for a semaphore.
pub const SEMAPHORE: u64 = 8;
/// It sends, and its receiver has not received.
pub const SEND: u64 = 16;
/// It waits for a message.
pub const RECEIVE: u64 = 32;
/// It calls, and its receiver has not received.
pub const RPC: u64 = 64;
/// It waits for what is returned.
pub const RETURN: u64 = 128;
/// It waits for room in a mailbox, or for something in it.
pub const MAILBOX: u64 = 256;
/// It waits for any of some objects.
pub const POLL: u64 = 1024;
/// All that the time ends for which a task waits.
const WAITS: u64 = 0xFFFF & !READY;

/// How a wait ended: what `blocked_on` says when the task is ready again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It has what it waited for.
    Done,
    /// The time has come.
    TimedOut,
    /// Another task, or a signal, ended it.
    Unblocked,
    /// What it waited for was deleted.
    Removed,
}

/// Values of `blocked_on`, as RTAI's; greater ones are what a task waits for.
const DONE: u64 = 0;
const UNBLOCKED: u64 = 2;
const REMOVED: u64 = 4;
const LAST_OUTCOME: u64 = 11;
/// A task that waits for nothing but a time or its resumption.
const ON_ITSELF: u64 = LAST_OUTCOME + 1;

impl WaitOutcome {
    fn of(word: u64) -> WaitOutcome {
        match word {
            DONE => WaitOutcome::Done,
            REMOVED => WaitOutcome::Removed,
            word if word <= LAST_OUTCOME => WaitOutcome::Unblocked,
            _ => WaitOutcome::TimedOut,
        }
    }
}

impl<'a> Transaction<'a> {
    /// What the wait of a task that is ready came to.
    pub fn outcome(&self, task: TaskIndex) -> WaitOutcome {
        WaitOutcome::of(self.task(task).blocked_on.get())
    }

    /// The first task that waits in a queue.
    pub fn first(&self, queue: &Queue) -> Option<TaskIndex> {
        TaskIndex::from_word(queue.first.get())
    }

    /// The tasks that wait in a queue, the first one first.
    pub fn waiting(&self, queue: &Queue) -> impl Iterator<Item = TaskIndex> + 'a {
        let layout = self.layout();
        let next = |task: &TaskIndex| TaskIndex::from_word(layout.tasks[task.index()].next.get());
        // Bounded, should the memory be damaged.
        std::iter::successors(self.first(queue), next).take(TASKS)
    }

    /// The task waits in `queue`, behind others of its priority or, with `is_fifo`, behind all.
    pub fn enqueue(&mut self, task: TaskIndex, queue: &'a Queue, is_fifo: bool) {
        self.link(task, queue, is_fifo);
        self.set(&self.task(task).blocked_on, self.layout().offset(queue));
    }

    fn link(&mut self, task: TaskIndex, queue: &'a Queue, is_fifo: bool) {
        let layout = self.layout();
        let slot = self.task(task);
        let priority = slot.priority.get();
        let later = |other: &TaskIndex| !is_fifo && self.task(*other).priority.get() > priority;
        let after = self.waiting(queue).find(later);
        let before = match after {
            Some(after) => TaskIndex::from_word(self.task(after).previous.get()),
            None => TaskIndex::from_word(queue.last.get()),
        };
        let word = |task: Option<TaskIndex>| task.map_or(0, TaskIndex::word);
        self.set(&slot.next, word(after));
        self.set(&slot.previous, word(before));
        self.set(before.map_or(&queue.first, |b| &layout.tasks[b.index()].next), task.word());
        self.set(after.map_or(&queue.last, |a| &layout.tasks[a.index()].previous), task.word());
        self.set(&slot.queue, layout.offset(queue));
    }

    /// Takes the task out of the queue in which it waits.
    fn unlink(&mut self, task: TaskIndex) {
        let layout = self.layout();
        let slot = self.task(task);
        let Some(queue) = self.queue_of(task) else { return };
        let (next, previous) = (slot.next.get(), slot.previous.get());
        let of = |word| TaskIndex::from_word(word).map(|task| &layout.tasks[task.index()]);
        self.set(of(previous).map_or(queue.0, |slot| &slot.next), next);
        self.set(of(next).map_or(queue.1, |slot| &slot.previous), previous);
        self.set(&slot.next, 0);
        self.set(&slot.previous, 0);
        self.set(&slot.queue, 0);
    }

    /// The ends of the queue in which a task waits.
    fn queue_of(&self, task: TaskIndex) -> Option<(&'a Word, &'a Word)> {
        let layout = self.layout();
        let offset = self.task(task).queue.get();
        if offset == 0 {
            return None;
        }
        layout.word(offset).zip(layout.word(offset + size_of::<Word>() as u64))
    }

    /// Takes the task out of the queue in which it waits: it has what it waited for.
    pub fn dequeue(&mut self, task: TaskIndex) {
        self.unlink(task);
        self.set(&self.task(task).blocked_on, DONE);
    }

    /// The task waits in a queue still.
    pub fn is_queued(&self, task: TaskIndex) -> bool {
        self.task(task).queue.get() != 0
    }

    /// The task, which is ready, waits: for these bits of its state.
    pub fn suspend_for(&mut self, task: TaskIndex, bits: u64) {
        let slot = self.task(task);
        self.set(&slot.state, slot.state.get() | bits);
    }

    /// The task waits for nothing but a time, or its resumption.
    pub fn wait_on_itself(&mut self, task: TaskIndex) {
        self.set(&self.task(task).blocked_on, ON_ITSELF);
    }

    /// The wait of the task is over, if these bits were all that it waited for; whether it is.
    pub fn make_ready(&mut self, task: TaskIndex, bits: u64) -> bool {
        let slot = self.task(task);
        let state = slot.state.get();
        if state == READY {
            return false;
        }
        let left = state & !bits | READY;
        self.set(&slot.state, left);
        let is_ready = left == READY;
        if is_ready {
            self.wake_later(task);
        }
        is_ready
    }

    /// The task has what it waited for in a queue, as a semaphore.
    pub fn grant(&mut self, task: TaskIndex, bits: u64) {
        self.dequeue(task);
        self.make_ready(task, bits | DELAYED);
    }

    /// What the task waited for in a queue is deleted.
    pub fn remove_from_under(&mut self, task: TaskIndex, bits: u64) {
        self.unlink(task);
        self.set(&self.task(task).blocked_on, REMOVED);
        self.make_ready(task, bits | DELAYED);
    }

    /// Ends what the task waits for, as far as it is in `bits`; whether it waited.
    pub fn unblock(&mut self, task: TaskIndex, bits: u64) -> bool {
        let slot = self.task(task);
        let state = slot.state.get();
        if state == READY {
            return false;
        }
        if bits & state & SUSPENDED != 0 && slot.suspend_depth.signed() > 0 {
            self.set(&slot.suspend_depth, 0);
        }
        if self.make_ready(task, bits) {
            self.set(&slot.blocked_on, UNBLOCKED);
        }
        true
    }

    /// The time has come for which the task waits; it waits for nothing else any more.
    pub fn expire(&mut self, task: TaskIndex) {
        let slot = self.task(task);
        if slot.state.get() & SUSPENDED != 0 && slot.suspend_depth.signed() > 0 {
            self.set(&slot.suspend_depth, 0);
        }
        self.make_ready(task, WAITS);
    }

    /// Takes the task out of the queue in which it waited without success.
    pub fn withdraw(&mut self, task: TaskIndex) {
        self.unlink(task);
    }

    /// The resource semaphores that a task owns.
    pub fn owned(&self, task: TaskIndex) -> impl Iterator<Item = ObjectIndex> + 'a {
        let layout = self.layout();
        let first = ObjectIndex::from_word(self.task(task).owned.get());
        let next = |object: &ObjectIndex| {
            ObjectIndex::from_word(layout.objects[object.index()].next_owned.get())
        };
        std::iter::successors(first, next).take(super::OBJECTS)
    }

    /// Computes the priority of a task: its own, or the best one of those that wait for what it
    /// owns, or for it. What changes is passed on to the task for which it waits itself.
    pub fn renew_priority(&mut self, task: TaskIndex) {
        let mut task = task;
        for _ in 0..TASKS {
            let slot = self.task(task);
            let waits_for = |object| self.first(&self.object(object).waiters);
            let callers = [self.first(&slot.senders), self.first(&slot.callers)];
            let lends = |object: &ObjectIndex| self.object(*object).inherits.get() != 0;
            let heirs = self
                .owned(task)
                .filter(lends)
                .filter_map(waits_for)
                .chain(callers.into_iter().flatten());
            let best = heirs.map(|heir| self.task(heir).priority.get()).min();
            let base = slot.base_priority.get();
            let priority = best.map_or(base, |best| best.min(base));
            if priority == slot.priority.get() {
                return;
            }
            self.set(&slot.priority, priority);
            let Some(next) = self.requeue(task) else { return };
            task = next;
        }
    }

    /// Puts a task that waits into its place after a change of its priority. The task for which it
    /// waits, if that inherits its priority.
    fn requeue(&mut self, task: TaskIndex) -> Option<TaskIndex> {
        if let Some((receiver, queue)) = self.receiver_of(task) {
            self.unlink(task);
            self.link(task, queue, false);
            return Some(receiver);
        }
        let object = self.object(self.semaphore_of(task)?);
        if object.is_fifo.get() == 0 {
            self.unlink(task);
            self.link(task, &object.waiters, false);
        }
        let is_resource = object.sem_type.signed() > 0;
        TaskIndex::from_word(object.owner.get()).filter(|_| is_resource)
    }

    /// The task to which this one sends, or from which it waits for a return; and in which queue.
    pub fn receiver_of(&self, task: TaskIndex) -> Option<(TaskIndex, &'a Queue)> {
        let layout = self.layout();
        let offset = self.task(task).queue.get();
        let begin = layout.offset(&layout.tasks);
        let index = offset.checked_sub(begin)? / size_of::<super::TaskSlot>() as u64;
        let receiver = TaskIndex::from_word(index + 1)?;
        let slot = &layout.tasks[receiver.index()];
        let queues = [&slot.senders, &slot.callers];
        let queue = queues.into_iter().find(|queue| layout.offset(*queue) == offset)?;
        Some((receiver, queue))
    }

    /// The semaphore in whose queue a task waits.
    pub fn semaphore_of(&self, task: TaskIndex) -> Option<ObjectIndex> {
        let layout = self.layout();
        let queue = self.task(task).queue.get();
        let first = layout.offset(&layout.objects[0].waiters);
        let size = size_of::<super::ObjectSlot>() as u64;
        let distance = queue.checked_sub(first)?;
        (distance % size == 0).then(|| ObjectIndex::from_word(distance / size + 1)).flatten()
    }
}
