//! The engine of one domain: discrete events in exact virtual time.
//!
//! ```text
//!       ┌──────────────────────────── next instant ─────────────────────────────┐
//!       v                                                                       │
//!  charge ─> next step of the task ─> wake-ups ─> advance, events ─> select ─> the earliest of:
//!            (done, sleep, spin)                  until none is left           timer, end of
//!                                                                              execution, wake-up
//! ```
//!
//! It is the order of `dispatcher/punctual_dispatcher.h`. Between two instants exactly one task
//! executes, or none, or the host itself does (overheads). Nothing in here allocates per event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_dispatcher::{Dispatcher, End, Event, JobId, TaskId, Wait, INFINITE};
use punctual_policies::{Allocators, LocalDispatcher, NewRelease, PolicySwap, ReleaseEvent};
use punctual_taskset::{Costs, TaskChange};
use punctual_workload::{Act, Demand};

use crate::error;
use crate::record::Recorder;
use crate::task::{State, Task};
use crate::{Interval, Watcher};
use punctual_diagnostic::Diagnostic;

/// No task.
const NO_TASK: u32 = u32::MAX;
/// Instants between two checks for an interruption.
const BETWEEN_LOOKS: u32 = 8_192;
/// This many instants in a row at one time, or events at one instant, are a policy that never comes
/// to an end: more than ten for each job that there can be.
const STUCK: u32 = 20_000_000;

/// One domain: a dispatcher with its allocators and tasks, and the CPU on which these execute.
pub(crate) struct Engine {
    dispatcher: Dispatcher,
    allocators: Allocators,
    /// By the dispatcher's task numbers.
    tasks: Vec<Task>,
    /// When self-suspended tasks wake up: time, ns, and task.
    wake_ups: BinaryHeap<Reverse<(u64, u32)>>,
    /// Tasks in the ordinary class (overrun policy `background`), in turn.
    background: Vec<u32>,
    now: u64,
    /// When the next instant is.
    next: u64,
    cpu: Cpu,
    costs: Costs,
    recorder: Option<Recorder>,
    pub(crate) count: Count,
}

/// What a CPU executes.
struct Cpu {
    number: u32,
    job: Option<JobId>,
    /// The task that executes.
    running: u32,
    /// The last one that executed.
    ran_last: u32,
    /// Time that the host still takes before a task can execute, ns.
    stolen: u64,
}

/// What happened, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Releases of tasks.
    pub releases: u64,
    /// Instants at which the dispatcher was asked.
    pub instants: u64,
    /// The CPU was given to another task.
    pub switches: u64,
    /// Time that the host took (overheads), ns.
    pub overhead: u64,
}

impl Engine {
    /// An engine whose tasks are the dispatcher's, in the order of their numbers.
    pub(crate) fn new(
        cpu: u32,
        dispatcher: Dispatcher,
        allocators: Allocators,
        tasks: Vec<Task>,
        costs: Costs,
        recorder: Option<Recorder>,
    ) -> Engine {
        Engine {
            dispatcher,
            allocators,
            wake_ups: BinaryHeap::with_capacity(tasks.len()),
            background: Vec::with_capacity(tasks.len()),
            tasks,
            now: 0,
            next: 0,
            cpu: Cpu { number: cpu, job: None, running: NO_TASK, ran_last: NO_TASK, stolen: 0 },
            costs,
            recorder,
            count: Count::default(),
        }
    }

    /// All instants before `end`. False when the watcher wants no more; then, and after errors, it
    /// stands at the last instant that was.
    pub(crate) fn run<W: Watcher>(
        &mut self,
        end: u64,
        watcher: &mut W,
    ) -> Result<bool, Diagnostic> {
        let mut until_look = BETWEEN_LOOKS;
        let mut in_place = 0;
        while self.next < end {
            in_place = if self.next > self.now { 0 } else { in_place + 1 };
            if in_place == STUCK {
                return Err(error::stuck(self.cpu.number, self.now));
            }
            self.instant(self.next, watcher)?;
            until_look -= 1;
            if until_look == 0 {
                until_look = BETWEEN_LOOKS;
                if !watcher.proceeds(self.now) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The time of the last instant.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The last instant, at `end`; tells of all releases, the cut-off ones too, and ends the trace.
    pub(crate) fn finish<W: Watcher>(
        &mut self,
        end: u64,
        watcher: &mut W,
    ) -> Result<(), Diagnostic> {
        self.instant(end.max(self.now), watcher)?;
        for period in self.tasks.iter_mut().filter_map(Task::close) {
            watcher.period(&period);
        }
        match self.recorder.take() {
            Some(mut recorder) => {
                recorder.stopped();
                recorder.drain(&self.dispatcher)
            }
            None => Ok(()),
        }
    }

    /// Swaps policies at `at`, ns, after all else of that time, and reselects.
    pub(crate) fn swap<W: Watcher>(
        &mut self,
        at: u64,
        swap: &mut PolicySwap,
        watcher: &mut W,
    ) -> Result<(), Diagnostic> {
        self.instant(at, watcher)?;
        if let Some(recorder) = &mut self.recorder {
            swap.changes().for_each(|(group, name)| recorder.policy(at, group, name));
        }
        let mut gsi = LocalDispatcher::new(&mut self.dispatcher, at);
        self.allocators.swap(&mut gsi, swap).map_err(|e| {
            let cause = format!("CPU {}: the dispatcher refuses a swap: {e}", self.cpu.number);
            Diagnostic::usage(cause, "report it with the task set")
        })?;
        self.instant(at, watcher)
    }

    /// Gives the task with this index in the set other parameters at `at`, ns, after all else of
    /// that time; whether it is a task of this engine.
    pub(crate) fn change<W: Watcher>(
        &mut self,
        at: u64,
        index: usize,
        change: &TaskChange,
        watcher: &mut W,
    ) -> Result<bool, Diagnostic> {
        let Some(slot) = self.tasks.iter().position(|task| task.index() as usize == index) else {
            return Ok(false);
        };
        self.run(at, watcher)?;
        self.instant(at, watcher)?;
        let mut gsi = LocalDispatcher::new(&mut self.dispatcher, at);
        self.allocators.change(&mut gsi, TaskId(slot as u32), change).map_err(|e| {
            let cause = format!("task {index} takes no other parameters: {e}");
            Diagnostic::usage(cause, "use a policy whose jobs are reservations, such as edf")
        })?;
        self.tasks[slot].change(change);
        self.instant(at, watcher)?;
        Ok(true)
    }

    fn instant<W: Watcher>(&mut self, now: u64, watcher: &mut W) -> Result<(), Diagnostic> {
        self.count.instants += 1;
        self.charge(now, watcher);
        if self.is_at_an_end() {
            self.proceed(self.cpu.running);
        }
        while let Some(&Reverse((at, slot))) = self.wake_ups.peek() {
            if at > now {
                break;
            }
            self.wake_ups.pop();
            self.wake(slot);
        }
        loop {
            self.deliver_events(watcher)?;
            self.select();
            // Its first step begins as soon as it has the CPU.
            if !self.is_at_an_end() || !self.proceed(self.cpu.running) {
                break;
            }
        }
        self.next = self.next_instant();
        match &mut self.recorder {
            Some(recorder) => recorder.drain(&self.dispatcher),
            None => Ok(()),
        }
    }

    /// Charges the execution since the last instant.
    fn charge<W: Watcher>(&mut self, now: u64, watcher: &mut W) {
        let lapse = now - self.now;
        self.now = now;
        if lapse == 0 {
            return;
        }
        let stolen = self.cpu.stolen.min(lapse);
        self.cpu.stolen -= stolen;
        self.count.overhead += stolen;
        let ran = lapse - stolen;
        if ran == 0 || self.cpu.running == NO_TASK {
            self.recorder.iter_mut().for_each(Recorder::stopped);
            return;
        }
        let task = &mut self.tasks[self.cpu.running as usize];
        if task.left != INFINITE {
            task.left -= ran;
        }
        if let Some(job) = self.cpu.job {
            // The job was selected at the last instant and is there: nothing can refuse.
            let _ = self.dispatcher.charge_job(job, ran, now);
            task.executed(ran, now);
        }
        let (from, background) = (now - ran, self.cpu.job.is_none());
        if let Some(recorder) = &mut self.recorder {
            recorder.executed(self.cpu.running, background, from, now);
        }
        watcher.executed(&Interval {
            cpu: self.cpu.number,
            task: task.index(),
            from,
            to: now,
            background,
        });
    }

    /// Whether the running task has nothing left to execute for now.
    fn is_at_an_end(&self) -> bool {
        self.cpu.running != NO_TASK
            && self.cpu.stolen == 0
            && self.tasks[self.cpu.running as usize].left == 0
    }

    /// A task that has the CPU and executed what it had to: on to what takes time. True when that
    /// changed something in the dispatcher.
    fn proceed(&mut self, slot: u32) -> bool {
        let (now, id) = (self.now, TaskId(slot));
        let task = &mut self.tasks[slot as usize];
        let mut changed = false;
        if task.state == State::Waiting {
            // It was done before; what its policy left it is of no use to it.
            if let Some(job) = self.cpu.job {
                let _ = self.dispatcher.complete_job(job, now);
            }
            return true;
        }
        loop {
            match task.act(now) {
                Act::Execute(Demand::For(0)) | Act::Sleep(0) => {}
                Act::Execute(Demand::For(ns)) => {
                    task.left = ns;
                    return changed;
                }
                Act::Execute(Demand::Forever) => {
                    task.left = INFINITE;
                    return changed;
                }
                Act::Sleep(ns) => {
                    task.sleep();
                    self.cpu.stolen += self.costs.command;
                    let _ = self.dispatcher.task_blocked(id, now);
                    self.wake_ups.push(Reverse((now.saturating_add(ns), slot)));
                    return true;
                }
                Act::Done => {
                    changed = true;
                    self.cpu.stolen += self.costs.command;
                    task.touched(now);
                    // The task is there; a wait that is ignored was a delayed one.
                    if self.allocators.done(&mut self.dispatcher, id, now) != Ok(Wait::Ignored) {
                        task.state = State::Waiting;
                        task.left = 0;
                        self.background.retain(|&b| b != slot);
                        return true;
                    }
                }
            }
        }
    }

    fn wake(&mut self, slot: u32) {
        self.tasks[slot as usize].state = State::Working;
        self.cpu.stolen += self.costs.command;
        let _ = self.dispatcher.task_ready(TaskId(slot), self.now);
    }

    /// Hands all events to the allocators, and those that their answers lead to.
    fn deliver_events<W: Watcher>(&mut self, watcher: &mut W) -> Result<(), Diagnostic> {
        let mut delivered = 0;
        loop {
            self.dispatcher.advance(self.now);
            let before = delivered;
            while let Some(event) = self.dispatcher.next_event() {
                delivered += 1;
                if delivered == STUCK {
                    return Err(error::stuck(self.cpu.number, self.now));
                }
                self.event(&event, watcher);
            }
            if delivered == before {
                return Ok(());
            }
        }
    }

    fn event<W: Watcher>(&mut self, event: &Event, watcher: &mut W) {
        let Engine {
            dispatcher,
            allocators,
            tasks,
            background,
            costs,
            cpu,
            count,
            now,
            recorder,
            ..
        } = self;
        cpu.stolen += match event {
            Event::Timer { .. } => costs.timer,
            Event::JobEnded { end: End::Exhausted | End::Expired, .. }
            | Event::WindowEnded { .. }
            | Event::SegmentEnded { .. } => costs.timer,
            // A server's or a budget group's; a task's is counted where its policy reports it.
            Event::Released { task: TaskId::NONE, .. } => costs.release,
            _ => 0,
        };
        allocators.handle(&mut LocalDispatcher::new(dispatcher, *now), event, &mut |event| {
            match event {
                ReleaseEvent::PolicyStopped(stop) => {
                    if let Some(recorder) = recorder {
                        recorder.policy_stopped(&stop);
                    }
                    watcher.policy_stopped(&stop);
                }
                ReleaseEvent::Released { task, number, release, deadline, assigned, .. } => {
                    cpu.stolen += costs.release;
                    count.releases += 1;
                    if !background.is_empty() {
                        background.retain(|&b| b != task.0);
                    }
                    let task = &mut tasks[task.0 as usize];
                    let next = NewRelease { number, release, deadline, assigned };
                    if let Some(period) = task.released(next) {
                        watcher.period(&period);
                    }
                }
                ReleaseEvent::Ended { task, end, at, unused, extended, .. } => {
                    tasks[task.0 as usize].ended(end, at, unused, extended)
                }
                ReleaseEvent::Replenished { task, at, unused, .. } => {
                    tasks[task.0 as usize].replenished(at, unused)
                }
                ReleaseEvent::Lost { task, first, count, .. } => {
                    let task = &mut tasks[task.0 as usize];
                    let before = task.close();
                    let lost = (first..first.saturating_add(count)).map(|number| task.lost(number));
                    before.into_iter().chain(lost).for_each(|period| watcher.period(&period));
                }
                ReleaseEvent::Background { task, .. } => background.push(task.0),
                // Synthetic tasks have no signal handler; the other events only concern counters.
                // Nothing adds jobs in the simulator.
                ReleaseEvent::JobEnded { .. }
                | ReleaseEvent::Overrun { .. }
                | ReleaseEvent::DelayedSaturated { .. }
                | ReleaseEvent::EventsLost { .. } => {}
            }
        });
    }

    /// The task that executes from now on.
    fn select(&mut self) {
        let job = self.dispatcher.select(0, self.now);
        if job.is_some() && job == self.cpu.job {
            return;
        }
        self.cpu.job = job;
        self.cpu.running = match job.and_then(|j| self.dispatcher.task_of(j)) {
            Some(task) => task.0,
            None => self.ordinary(),
        };
        if self.cpu.running != NO_TASK && self.cpu.running != self.cpu.ran_last {
            self.cpu.ran_last = self.cpu.running;
            self.count.switches += 1;
            self.cpu.stolen += self.costs.switch;
        }
    }

    /// The task without a job that executes in the ordinary class: the first that does not sleep.
    fn ordinary(&self) -> u32 {
        let is_working = |slot: &&u32| self.tasks[**slot as usize].state == State::Working;
        self.background.iter().find(is_working).copied().unwrap_or(NO_TASK)
    }

    fn next_instant(&mut self) -> u64 {
        let now = self.now;
        let mut next = match self.cpu.job {
            Some(_) if self.cpu.stolen == 0 => self.dispatcher.timer(0, 1, now),
            Some(job) => {
                let budget = self.cpu.stolen.saturating_add(self.dispatcher.allowance(job));
                self.dispatcher.timer(0, 0, now).min(now.saturating_add(budget))
            }
            None => self.dispatcher.timer(0, 0, now),
        };
        if self.cpu.running != NO_TASK {
            let left = self.cpu.stolen.saturating_add(self.tasks[self.cpu.running as usize].left);
            next = next.min(now.saturating_add(left));
        }
        if let Some(&Reverse((at, _))) = self.wake_ups.peek() {
            next = next.min(at);
        }
        next
    }
}
