//! Semaphores: counting, binary and resources, barriers and condition variables (RTAI, ipc/sem).
//!
//! The count of a semaphore is negative by the tasks that wait for it. A resource has an owner,
//! who has the best priority of those that wait for what it owns.

use crate::arena::queue::{WaitOutcome, DELAYED, SEMAPHORE};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, TaskIndex, Transaction, Word};
use crate::blocking::Begun;
use crate::rte;

/// Values of a type, in its lowest two bits.
const RESOURCE: i32 = 3;
/// A bit of a type: tasks wait in the order in which they come.
const FIFO_QUEUE: i32 = 4;

/// What a wait of a task for a semaphore needs.
#[derive(Debug, Clone, Copy)]
pub struct SemaphoreWait {
    pub semaphore: Handle,
    pub task: TaskIndex,
    /// CLOCK_MONOTONIC ns; `None`: for ever.
    pub until: Option<i64>,
}

impl Transaction<'_> {
    /// Makes a semaphore; `None`: there is no room.
    pub fn new_semaphore(
        &mut self,
        name: u64,
        value: i32,
        kind: i32,
        owner: Owner,
    ) -> Option<Handle> {
        let id = self.claim_object()?;
        let object = self.object(id);
        let is_resource = kind & RESOURCE == RESOURCE;
        // -1, 0 and 1: binary, counting, a resource. Without any of these bits it is binary.
        let semaphore_type = i64::from((kind & 3) - 2).max(-1);
        let (count, resource_type) = match (is_resource, semaphore_type) {
            (true, _) => (1, i64::from(value)),
            (false, 0) => (i64::from(value), 0),
            (false, _) => (i64::from(value.min(1)), 0),
        };
        self.set_signed(&object.count, count);
        self.set_signed(&object.sem_type, semaphore_type);
        self.set_signed(&object.resource_type, resource_type);
        self.set(&object.is_fifo, u64::from(!is_resource && kind & FIFO_QUEUE != 0));
        self.set(&object.inherits, u64::from(is_resource));
        self.reset_object(id);
        self.register(&object.head, SlotKind::Semaphore, name, owner);
        Some(self.handle_of_object(id))
    }

    /// Deletes a semaphore: tasks that wait for it return.
    pub fn delete_semaphore(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        while let Some(task) = self.first(&object.waiters) {
            self.remove_from_under(task, SEMAPHORE);
        }
        if let Some(owner) = self.owner_of(id) {
            self.disown(id, owner);
        }
        self.deregister(&object.head);
    }

    fn is_resource(&self, id: ObjectIndex) -> bool {
        self.object(id).sem_type.signed() > 0
    }

    /// The owner of a resource.
    fn owner_of(&self, id: ObjectIndex) -> Option<TaskIndex> {
        let owner = TaskIndex::from_word(self.object(id).owner.get());
        owner.filter(|_| self.is_resource(id))
    }

    /// The task owns the resource from now on.
    fn own(&mut self, id: ObjectIndex, task: TaskIndex) {
        let (object, slot) = (self.object(id), self.task(task));
        self.set(&object.owner, task.word());
        self.set(&object.next_owned, slot.owned.get());
        self.set(&slot.owned, id.word());
        self.renew_priority(task);
    }

    /// The task owns the resource no more. Where it was to be suspended meanwhile, it is now.
    fn disown(&mut self, id: ObjectIndex, task: TaskIndex) {
        let mut place: &Word = &self.task(task).owned;
        for owned in self.owned(task) {
            if owned == id {
                break;
            }
            place = &self.object(owned).next_owned;
        }
        if place.get() == id.word() {
            self.set(place, self.object(id).next_owned.get());
        }
        self.set(&self.object(id).next_owned, 0);
        self.set(&self.object(id).owner, 0);
        self.renew_priority(task);
        let slot = self.task(task);
        if slot.suspend_depth.signed() > 0 && slot.owned.get() == 0 {
            self.suspend_now(task);
        }
    }

    fn add_unit(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        let count = object.count.signed().saturating_add(1).min(i64::from(i32::MAX));
        let most = if object.sem_type.signed() == 0 { count } else { count.min(1) };
        self.set_signed(&object.count, most);
    }

    /// Adds a unit, or unlocks a resource; what RTAI returns.
    pub fn signal(&mut self, id: ObjectIndex, caller: Option<TaskIndex>) -> i32 {
        let object = self.object(id);
        self.reap_queue(&object.waiters);
        let sem_type = object.sem_type.signed();
        if sem_type != 0 {
            let owner = TaskIndex::from_word(object.owner.get());
            let is_owner = owner.is_some() && owner == caller;
            if object.resource_type.get() != 0 && !is_owner {
                return rte::PERM;
            }
            if sem_type > 1 {
                self.set_signed(&object.sem_type, sem_type - 1);
                return 0;
            }
        }
        match self.owner_of(id) {
            Some(owner) => self.release_resource(id, owner),
            None => {
                self.add_unit(id);
                if let Some(next) = self.first(&object.waiters) {
                    self.grant(next, SEMAPHORE);
                }
            }
        }
        0
    }

    /// The owner of a resource, which may be dead, gives it to the task that waits first.
    pub fn release_resource(&mut self, id: ObjectIndex, owner: TaskIndex) {
        let object = self.object(id);
        self.set_signed(&object.sem_type, 1);
        self.reap_queue(&object.waiters);
        self.add_unit(id);
        let next = self.first(&object.waiters);
        if let Some(next) = next {
            self.grant(next, SEMAPHORE);
        }
        let resource_owner = object.owner.get();
        if resource_owner == owner.word() {
            self.disown(id, owner);
        }
        if let Some(next) = next {
            self.own(id, next);
        }
    }

    /// Wakes all tasks that wait.
    pub fn broadcast(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        while let Some(task) = self.first(&object.waiters) {
            self.grant(task, SEMAPHORE);
        }
        self.set_signed(&object.count, 0);
    }

    /// The units, or how many tasks wait: RTAI's `rt_sem_count`.
    pub fn units(&mut self, id: ObjectIndex) -> i32 {
        let object = self.object(id);
        self.reap_queue(&object.waiters);
        object.count.signed() as i32
    }

    /// Takes a unit at once, or says that there is none.
    fn take(&mut self, id: ObjectIndex, caller: Option<TaskIndex>) -> Option<i32> {
        let object = self.object(id);
        let count = object.count.signed();
        if count > 0 {
            self.set_signed(&object.count, count - 1);
            if let (true, Some(caller)) = (self.is_resource(id), caller) {
                self.own(id, caller);
            }
            return Some(count as i32);
        }
        let owner = self.owner_of(id);
        let resource_type = object.resource_type.signed();
        if resource_type == 0 || owner.is_none() || owner != caller {
            return None;
        }
        if resource_type < 0 {
            return Some(rte::DEADLOK);
        }
        let depth = object.sem_type.signed();
        self.set_signed(&object.sem_type, depth + 1);
        Some(depth as i32 + 1)
    }

    /// As RTAI's `rt_sem_wait_if`: what it returns.
    pub fn wait_if(&mut self, id: ObjectIndex, caller: Option<TaskIndex>) -> i32 {
        let none = self.object(id).count.signed() as i32;
        self.take(id, caller).unwrap_or(none)
    }

    /// The task takes a unit, or waits.
    pub fn begin_semaphore_wait(&mut self, wait: SemaphoreWait, now: i64) -> Begun<i32> {
        let SemaphoreWait { semaphore, task, until } = wait;
        let Some(id) = self.find_object(semaphore, SlotKind::Semaphore) else {
            return Begun::Done(rte::OBJINV);
        };
        let object = self.object(id);
        let is_past = until.is_some_and(|until| until <= now);
        if is_past && object.count.signed() <= 0 {
            return Begun::Done(rte::TIMOUT);
        }
        if let Some(result) = self.take(id, Some(task)) {
            return Begun::Done(result);
        }
        self.set_signed(&object.count, object.count.signed() - 1);
        self.enqueue(task, &object.waiters, object.is_fifo.get() != 0);
        self.suspend_for(task, SEMAPHORE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        if let Some(owner) = self.owner_of(id) {
            self.renew_priority(owner);
        }
        Begun::Waits
    }

    /// The wait of a task is over.
    pub fn end_semaphore_wait(&mut self, wait: SemaphoreWait, outcome: WaitOutcome) -> i32 {
        let SemaphoreWait { semaphore, task, .. } = wait;
        match outcome {
            // A resource is the task's already. What was deleted since has no count.
            WaitOutcome::Done => match self.find_object(semaphore, SlotKind::Semaphore) {
                Some(id) => self.object(id).count.signed() as i32,
                None => 0,
            },
            WaitOutcome::Removed => rte::OBJREM,
            WaitOutcome::TimedOut | WaitOutcome::Unblocked => {
                self.leave_semaphore(task);
                if outcome == WaitOutcome::TimedOut {
                    rte::TIMOUT
                } else {
                    rte::UNBLKD
                }
            }
        }
    }

    /// The task waits no more, without a unit.
    pub fn leave_semaphore(&mut self, task: TaskIndex) {
        let Some(id) = self.semaphore_of(task) else { return self.withdraw(task) };
        self.withdraw(task);
        // A task that waits for a condition asks for no unit.
        if self.object(id).count.signed() < 0 {
            self.add_unit(id);
        }
        if let Some(owner) = self.owner_of(id) {
            self.renew_priority(owner);
        }
    }

    /// The task waits until then, too.
    pub fn delay(&mut self, task: TaskIndex, until: i64) {
        self.set_signed(&self.task(task).resume_time, until);
        self.suspend_for(task, DELAYED);
    }

    /// One task more is at a barrier; true: it waits as for a unit.
    pub fn arrive(&mut self, id: ObjectIndex) -> bool {
        let object = self.object(id);
        if object.owner.get() == 0 {
            self.set_signed(&object.owner, object.count.signed().max(1));
            self.set(&object.count, 0);
            self.set(&object.sem_type, 0);
        }
        if 1 - object.count.signed() < object.owner.signed() {
            return true;
        }
        self.broadcast(id);
        false
    }

    /// Wakes the first task that waits for a condition.
    pub fn signal_condition(&mut self, id: ObjectIndex) {
        let waiters = &self.object(id).waiters;
        self.reap_queue(waiters);
        if let Some(task) = self.first(waiters) {
            self.grant(task, SEMAPHORE);
        }
    }

    /// The task unlocks `mutex`, which it owns, and waits for a condition: how often it had locked
    /// the mutex, or what RTAI returns where it does not wait.
    pub fn begin_condition_wait(
        &mut self,
        condition: ObjectIndex,
        mutex: ObjectIndex,
        wait: (TaskIndex, Option<i64>),
        now: i64,
    ) -> Result<i64, i32> {
        let (task, until) = wait;
        if self.owner_of(mutex) != Some(task) {
            return Err(rte::PERM);
        }
        if until.is_some_and(|until| until <= now) {
            return Err(rte::TIMOUT);
        }
        let depth = self.object(mutex).sem_type.signed();
        let object = self.object(condition);
        self.enqueue(task, &object.waiters, object.is_fifo.get() != 0);
        self.suspend_for(task, SEMAPHORE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        self.release_resource(mutex, task);
        Ok(depth)
    }

    /// The wait of a task for a condition is over.
    pub fn end_condition_wait(&mut self, task: TaskIndex, outcome: WaitOutcome) -> i32 {
        match outcome {
            WaitOutcome::Done => 0,
            WaitOutcome::Removed => rte::OBJREM,
            WaitOutcome::TimedOut | WaitOutcome::Unblocked => {
                self.withdraw(task);
                if outcome == WaitOutcome::TimedOut {
                    rte::TIMOUT
                } else {
                    rte::UNBLKD
                }
            }
        }
    }

    /// The task, which has locked a mutex again after a wait for a condition, has locked it as
    /// often as before.
    pub fn restore_depth(&mut self, mutex: ObjectIndex, task: TaskIndex, depth: i64) {
        if self.owner_of(mutex) == Some(task) {
            self.set_signed(&self.object(mutex).sem_type, depth);
        }
    }
}
