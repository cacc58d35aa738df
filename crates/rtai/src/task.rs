//! Tasks: threads of programs that take part (RTAI, sched/api.c and sys.c).

use crate::arena::queue::{WaitOutcome, DELAYED, READY, SUSPENDED};
use crate::arena::{Owner, SlotKind, TaskIndex, Transaction};
use crate::blocking::Begun;
use crate::rte;

/// The least important priority of a task.
pub const LOWEST_PRIORITY: i64 = 0x3fff_ffff;
/// What the priority of a task that is not hard has more.
pub const SOFT: i64 = 1_000_000_000;

impl Transaction<'_> {
    /// Makes the calling thread a task; `None`: there is no room.
    pub fn new_task(&mut self, name: u64, priority: i64, cpus: u64) -> Option<TaskIndex> {
        let id = self.claim_task(true)?;
        let slot = self.task(id);
        self.reset(id, priority.min(LOWEST_PRIORITY) + SOFT);
        self.set(&slot.tid, punctual_sys::sched::thread_id() as u64);
        self.set(&slot.first_executed, punctual_sys::clock::monotonic_ns());
        self.set(&slot.cpus, cpus);
        self.register(&slot.head, SlotKind::Task, name, Owner::Process);
        Some(id)
    }

    /// A slot of the tasks for a proxy; `None`: there is no room.
    pub fn claim_proxy(&mut self, name: u64, priority: i64) -> Option<TaskIndex> {
        let id = self.claim_task(false)?;
        self.reset(id, priority);
        self.register(&self.task(id).head, SlotKind::Proxy, name, Owner::Process);
        Some(id)
    }

    /// What a slot of the tasks begins with.
    fn reset(&mut self, id: TaskIndex, priority: i64) {
        let slot = self.task(id);
        self.set_signed(&slot.priority, priority);
        self.set_signed(&slot.base_priority, priority);
        self.set(&slot.state, READY);
        for word in [
            &slot.tid,
            &slot.blocked_on,
            &slot.suspend_depth,
            &slot.next,
            &slot.previous,
            &slot.queue,
            &slot.owned,
            &slot.period,
            &slot.overruns,
            &slot.budget,
            &slot.changes,
            &slot.resume_time,
            &slot.periodic_resume_time,
            &slot.is_hard,
            &slot.partner,
            &slot.pending,
            &slot.senders.first,
            &slot.senders.last,
            &slot.callers.first,
            &slot.callers.last,
            &slot.incoming.length,
        ] {
            self.set(word, 0);
        }
    }

    /// Suspends a task in the middle of what it does.
    pub fn suspend_now(&mut self, task: TaskIndex) {
        let slot = self.task(task);
        self.set(&slot.state, slot.state.get() & !DELAYED | SUSPENDED);
    }

    /// As RTAI's `rt_task_suspend`, of the calling thread's task with `is_own`.
    pub fn suspend(&mut self, task: TaskIndex, is_own: bool) -> Begun<i32> {
        let slot = self.task(task);
        let depth = slot.suspend_depth.signed();
        if slot.owned.get() != 0 || depth != 0 {
            self.set_signed(&slot.suspend_depth, depth.saturating_add(1));
            return Begun::Done(slot.suspend_depth.signed() as i32);
        }
        self.set_signed(&slot.suspend_depth, 1);
        if is_own {
            self.wait_on_itself(task);
        }
        self.suspend_now(task);
        if is_own {
            Begun::Waits
        } else {
            Begun::Done(1)
        }
    }

    /// As RTAI's `rt_task_suspend_until`.
    pub fn suspend_until(
        &mut self,
        task: TaskIndex,
        is_own: bool,
        until: i64,
        now: i64,
    ) -> Begun<i32> {
        let slot = self.task(task);
        if slot.owned.get() == 0 && slot.suspend_depth.get() == 0 && until <= now {
            return Begun::Done(rte::TMROVRN);
        }
        let is_suspended = slot.suspend_depth.get() == 0 && slot.owned.get() == 0;
        let begun = self.suspend(task, is_own);
        if is_suspended {
            self.delay(task, until);
        }
        begun
    }

    /// How the suspension of the calling thread's task ended, which had an end with `is_timed`.
    pub fn end_suspension(&mut self, task: TaskIndex, outcome: WaitOutcome, is_timed: bool) -> i32 {
        match outcome {
            WaitOutcome::Done => self.task(task).suspend_depth.signed() as i32,
            WaitOutcome::TimedOut if is_timed => rte::TIMOUT,
            _ => rte::UNBLKD,
        }
    }

    /// As RTAI's `rt_task_suspend_if`.
    pub fn suspend_if(&mut self, task: TaskIndex) -> i32 {
        let slot = self.task(task);
        let depth = slot.suspend_depth.signed();
        if depth < 0 {
            self.set_signed(&slot.suspend_depth, depth + 1);
        }
        slot.suspend_depth.signed() as i32
    }

    /// As RTAI's `rt_task_resume`.
    pub fn resume(&mut self, task: TaskIndex) {
        let slot = self.task(task);
        let depth = slot.suspend_depth.signed().saturating_sub(1);
        self.set_signed(&slot.suspend_depth, depth.max(i64::from(i32::MIN)));
        if depth == 0 && self.make_ready(task, SUSPENDED | DELAYED) && !self.is_queued(task) {
            self.set(&slot.blocked_on, 0);
        }
    }

    /// The calling thread's task sleeps until then.
    pub fn sleep_until(&mut self, task: TaskIndex, until: i64, now: i64) -> Begun<i32> {
        if until <= now {
            return Begun::Done(rte::TMROVRN);
        }
        self.set(&self.task(task).blocked_on, 0);
        self.delay(task, until);
        Begun::Waits
    }

    /// How the sleep of a task ended.
    pub fn end_sleep(outcome: WaitOutcome) -> i32 {
        match outcome {
            WaitOutcome::Done => 0,
            _ => rte::UNBLKD,
        }
    }

    /// Gives a task a priority of its own, and returns the one before.
    pub fn change_priority(&mut self, task: TaskIndex, priority: i64) -> i64 {
        let slot = self.task(task);
        let before = slot.base_priority.signed();
        let soft = if slot.is_hard.get() == 0 && priority < SOFT { SOFT } else { 0 };
        self.set_signed(&slot.base_priority, priority + soft);
        self.renew_priority(task);
        before
    }

    /// Gives periodic tasks on a CPU priorities by their periods, the shortest one the best (Liu
    /// and Layland, 1973), and returns these tasks.
    pub fn set_rate_monotonic(&mut self, cpu: u32) -> Vec<TaskIndex> {
        let is_on_cpu = |task: &TaskIndex| {
            let slot = self.task(*task);
            slot.period.signed() > 0 && slot.cpus.get() >> cpu & 1 != 0
        };
        let mut tasks: Vec<TaskIndex> = self.tasks().filter(is_on_cpu).collect();
        tasks.sort_by_key(|task| self.task(*task).period.signed());
        for (priority, task) in (0..).zip(&tasks) {
            self.change_priority(*task, priority);
        }
        tasks
    }

    /// The task is hard from now on, or no more: hard ones come first in all queues.
    pub fn set_hard(&mut self, task: TaskIndex, is_hard: bool) {
        let slot = self.task(task);
        if is_hard == (slot.is_hard.get() != 0) {
            return;
        }
        let base = slot.base_priority.signed();
        let change = match (is_hard, base >= SOFT) {
            (true, true) => -SOFT,
            (false, false) => SOFT,
            _ => 0,
        };
        self.set(&slot.is_hard, u64::from(is_hard));
        // A budget of its own stays what it is.
        if slot.budget.get() == 0 {
            self.change_reservation(task);
        }
        self.set_signed(&slot.base_priority, base + change);
        self.renew_priority(task);
    }

    /// The task is periodic from `start` on, for which it waits first.
    pub fn make_periodic(&mut self, task: TaskIndex, start: i64, period: i64) {
        self.begin_periods(task, start, period, 0);
        self.delay(task, start);
    }

    /// The same with a budget: its thread waits for its first release.
    pub fn make_periodic_budget(&mut self, task: TaskIndex, start: i64, times: (i64, i64)) {
        let (period, budget) = times;
        self.begin_periods(task, start, period, budget);
        let slot = self.task(task);
        // Its thread becomes ready, and takes its reservation.
        self.set(&slot.blocked_on, 0);
        self.make_ready(task, SUSPENDED);
    }

    fn begin_periods(&mut self, task: TaskIndex, start: i64, period: i64, budget: i64) {
        let slot = self.task(task);
        self.set_signed(&slot.periodic_resume_time, start);
        self.set_signed(&slot.period, period);
        self.set(&slot.overruns, 0);
        self.set(&slot.suspend_depth, 0);
        self.set(&slot.state, slot.state.get() & !SUSPENDED);
        if budget != 0 || slot.budget.get() != 0 {
            self.set_signed(&slot.budget, budget);
            self.change_reservation(task);
        }
        // If it was suspended, it sleeps until it is woken.
        self.wake_later(task);
    }

    /// The thread of the task has another reservation to ask for.
    pub fn change_reservation(&mut self, task: TaskIndex) {
        let changes = &self.task(task).changes;
        self.set(changes, changes.get().wrapping_add(1));
    }

    /// As RTAI's `rt_task_wait_period` of a task without a budget.
    pub fn begin_period_wait(&mut self, task: TaskIndex, now: i64) -> Begun<i32> {
        let slot = self.task(task);
        let next = slot.periodic_resume_time.signed().saturating_add(slot.period.signed());
        self.set_signed(&slot.periodic_resume_time, next);
        self.sleep_until(task, next, now)
    }
}
