//! The engine: one dispatcher thread of one CPU.
//!
//! It sleeps until the dispatcher's timer expires or its doorbell rings. Then, at one instant, it
//! charges the execution of every unparked member; takes the tasks' requests and the control side's
//! commands; advances the dispatcher and passes its events to the allocators; and parks and unparks
//! so that the best few ready jobs may run, at levels in selection order. Nothing in here
//! allocates, locks, logs or panics.

mod commands;

pub use commands::Command;

use std::sync::Arc;

use punctual_dispatcher::{Dispatcher, TaskId, Wait};
use punctual_policies::{Allocators, ReleaseEvent};
use punctual_process::Enforcing;
use punctual_program_jobs::{GroupRequests, JobEventSender};
use punctual_sys::clock;

use crate::anticipation::Anticipation;
use crate::command_ring::CommandReceiver;
use crate::direct::DirectHandOver;
use crate::dispatch::UNPARKED;
use crate::doorbell::Doorbell;
use crate::freezer::FreezerQueue;
use crate::inheritance::SampleTimes;
use crate::lending::Waiter;
use crate::member::{Member, MemberKind, RunMode};
use crate::page_waits::PageWaits;
use crate::queued::QueuedTask;
use crate::reports::{NoticeSender, ReportSender};
use crate::stats::EngineStats;
use crate::stuck_policy;
use crate::task_control::Request;
use crate::trace::RecordSender;

/// An event that comes this much after its time marks the periods whose budgets it may have
/// spoilt, ns; for large budgets, a hundredth of them.
pub(crate) const LATE: u64 = 50_000;
/// Idle time in an interval that switches alone explain, ns.
pub(crate) const SWITCHING: u64 = 30_000;

/// An engine's ends of what it shares with the control side.
pub struct Ends {
    pub doorbell: Arc<Doorbell>,
    pub commands: CommandReceiver,
    pub notices: NoticeSender,
    pub reports: ReportSender,
    pub stats: Arc<EngineStats>,
    pub freezer: FreezerQueue,
    pub enforcing: Enforcing,
    /// Where the ends of jobs that the program adds go, if it may add some.
    pub job_events: Option<JobEventSender>,
    /// Requests of the program for its groups, if it has some.
    pub group_requests: Option<GroupRequests>,
    /// Where the trace goes, if there is one.
    pub trace: Option<RecordSender>,
}

/// Everything a domain's thread owns.
pub struct Engine {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) allocators: Allocators,
    /// How many tasks the set has.
    of_the_set: usize,
    /// What the allocators report at one event.
    pub(crate) release_events: Vec<ReleaseEvent>,
    pub(crate) granularity: u64,
    /// By task number.
    pub(crate) members: Vec<Option<Box<Member>>>,
    /// Members whose clocks are read: unparked, or not yet at rest.
    pub(crate) moving: Vec<u32>,
    /// Members that wait by pages, and those of them whose waits this event handles.
    pub(crate) pages: PageWaits,
    pub(crate) cpu: Cpu,
    pub(crate) doorbell: Arc<Doorbell>,
    commands: CommandReceiver,
    pub(crate) notices: NoticeSender,
    pub(crate) reports: ReportSender,
    pub(crate) stats: Arc<EngineStats>,
    pub(crate) freezer: FreezerQueue,
    pub(crate) enforcing: Enforcing,
    pub(crate) job_events: Option<JobEventSender>,
    pub(crate) group_requests: Option<GroupRequests>,
    pub(crate) trace: Option<RecordSender>,
    /// Policies were swapped: tasks may be of another one than when they were added.
    pub(crate) swapped: bool,
    /// Tasks that wait for a mutex, the first that came first.
    pub(crate) waiters: Vec<Waiter>,
    /// The task that executes may hand over its mutex.
    pub(crate) direct: Option<DirectHandOver>,
    /// Tasks that wait in queues, the first that came first.
    pub(crate) queued: Vec<QueuedTask>,
    /// The time of the last instant, CLOCK_MONOTONIC ns: what was due then was handled.
    pub(crate) advanced_to: u64,
    anticipation: Anticipation,
    pub(crate) sample_times: SampleTimes,
    /// Of one event: execution on the budgets of other tasks, ns.
    pub(crate) lent: Vec<(TaskId, u64)>,
    stop: bool,
}

/// What the domain's CPU executes; the engine's thread is pinned to it.
pub(crate) struct Cpu {
    /// The unparked, best first, as last decided.
    pub(crate) ranked: Vec<u32>,
    /// No ready job waits for a place among them.
    pub(crate) all_ranked: bool,
    /// Since the last event, ns: time that the ranked tasks could execute in.
    pub(crate) available: u64,
    /// Since the last event, ns: time in which no ranked task executed, nor was charged for it.
    pub(crate) unused: u64,
    /// When the engine last went to sleep.
    pub(crate) slept_at: u64,
    /// From the time of an event until it is handled, ns: about the least of late.
    pub(crate) delay: u64,
}

impl Cpu {
    fn note_delay(&mut self, delay: u64) {
        self.delay = delay.min(self.delay + self.delay / 16 + 100);
    }
}

impl Engine {
    /// An engine over an empty dispatcher and its allocators.
    pub fn new(
        mut dispatcher: Dispatcher,
        allocators: Allocators,
        of_the_set: usize,
        granularity: u64,
        ends: Ends,
    ) -> Engine {
        let Ends { doorbell, commands, notices, reports, stats, freezer, enforcing, .. } = ends;
        let Ends { job_events, group_requests, trace, .. } = ends;
        let _ = dispatcher.set_granularity(granularity);
        let limit = dispatcher.limits().tasks as usize;
        let mut members = Vec::with_capacity(limit);
        members.resize_with(limit, || None);
        let ranked = Vec::with_capacity(limit.max(UNPARKED) + 1);
        let slept_at = clock::monotonic_ns();
        let cpu = Cpu { ranked, all_ranked: false, available: 0, unused: 0, slept_at, delay: 0 };
        Engine {
            dispatcher,
            allocators,
            of_the_set,
            // One event may cause reports of all tasks, when events had no room.
            release_events: Vec::with_capacity(4 * limit + 16),
            granularity,
            members,
            moving: Vec::with_capacity(limit),
            pages: PageWaits::new(limit),
            cpu,
            doorbell,
            commands,
            notices,
            reports,
            stats,
            freezer,
            enforcing,
            job_events,
            group_requests,
            trace,
            swapped: false,
            waiters: Vec::with_capacity(limit),
            direct: None,
            queued: Vec::with_capacity(limit),
            advanced_to: 0,
            anticipation: Anticipation::new(),
            sample_times: SampleTimes::new(),
            lent: Vec::with_capacity(limit),
            stop: false,
        }
    }

    /// Runs until it is asked to stop. The calling thread is pinned and at the dispatcher's level.
    pub fn run(mut self) {
        let mut until = u64::MAX;
        loop {
            let woken = self.anticipation.woken();
            let seen = self.doorbell.rings();
            let paused = self.pause();
            let now = if paused.is_some() { clock::monotonic_ns() } else { woken };
            let due = paused.unwrap_or_else(|| self.expired(now).min(until));
            let late = now.saturating_sub(due);
            self.take_over(now, if paused.is_some() { 0 } else { late });
            self.instant(now, late);
            stuck_policy::restore_level();
            if self.stop {
                break;
            }
            let after = clock::monotonic_ns();
            let timed = due != u64::MAX && now >= due && paused.is_none();
            self.stats.handled(after - now, timed, late);
            if timed {
                self.cpu.note_delay(after - due);
            }
            let sleep = self.prepare_sleep(now, after);
            until = sleep.until;
            self.enforcing.sleeps_until(sleep.act_by);
            self.cpu.slept_at = after;
            let set_to = match sleep.is_own {
                true => self.anticipation.set(after, until),
                false => self.anticipation.set_exactly(until),
            };
            self.doorbell.sleep(seen, set_to);
        }
        self.release_all();
    }

    /// When the timer of budgets expired; `u64::MAX`: it did not.
    fn expired(&self, now: u64) -> u64 {
        self.doorbell.budget_timer.get().map_or(u64::MAX, |timer| timer.take_expired(now))
    }

    fn instant(&mut self, now: u64, late: u64) {
        let handed_over_to = self.withdraw_direct(now);
        self.forbid_silence();
        self.find_page_waits();
        self.charge(now, late, handed_over_to.is_some());
        if let Some(waiter) = handed_over_to {
            self.handed_over(waiter, now);
        }
        self.follow_ceilings(now);
        self.find_unresponsive(now);
        self.drain_requests(now);
        self.drain_page_waits(now);
        self.process_commands(now);
        self.process_jobs(now, late);
        self.follow_suspensions(now);
        self.give_tokens(now);
        self.end_timed_locks(now);
        if late > LATE {
            self.mark_late(late);
        }
        self.dispatcher.advance(now);
        self.advanced_to = now;
        self.follow_events(now, late);
        self.dispatch(now);
        self.wake_page_waits();
        self.end_slices();
        self.post_freezer_requests();
        self.retain_moving();
        self.plan_samples(now);
        self.permit_direct();
        if let Some(trace) = &mut self.trace {
            trace.send_new(&self.dispatcher);
        }
    }

    /// Takes the requests of the tasks that are threads of this process.
    fn drain_requests(&mut self, now: u64) {
        let mut next = self.doorbell.take();
        while let Some(i) = next {
            let Some(m) = self.members.get_mut(i as usize).and_then(|m| m.as_deref_mut()) else {
                break;
            };
            let MemberKind::Thread(control) = &m.kind else { break };
            let (request, following) = control.take_request();
            next = following;
            match request {
                Request::Wait => {
                    m.periods.waits();
                    let wait = self.allocators.done(&mut self.dispatcher, m.task, now);
                    m.waiting = wait != Ok(Wait::Ignored) || m.suspension.is_wanted();
                    match wait {
                        // If its budget ran out on the way here, it is opened with the next one.
                        _ if m.run_mode != RunMode::Parked && !m.waiting => control.open(),
                        // It stands in its gate by itself. Its next release may come at this very
                        // instant, and must find the request to open the gate.
                        _ if m.run_mode == RunMode::Background => m.park(),
                        _ => {
                            control.close();
                            m.run_mode = RunMode::Parked;
                        }
                    }
                    if let MemberKind::Thread(control) = &m.kind {
                        control.answered();
                    }
                    self.follow_suspension(i, now);
                    self.dismiss_waiting(i as usize);
                }
                Request::Exit => {
                    control.answered();
                    self.remove(i, now, true);
                }
                Request::Lock | Request::Unlock | Request::Enqueue => {
                    let control = control.clone();
                    match request {
                        Request::Lock => self.lock(i, control.until(), now),
                        Request::Unlock => self.unlock(i, now),
                        _ => self.enqueue(i, now),
                    }
                    control.answered();
                }
                Request::Nothing => {}
            }
        }
    }

    /// Marks the periods that a late instant may have spoilt: a task that ran may have run too
    /// long, and a task with a job may have lost more time than the slack of its period.
    fn mark_late(&mut self, late: u64) {
        for m in self.members.iter_mut().flatten() {
            let slack = (m.periods.params().deadline - m.periods.params().budget) / 2;
            let ran_on = m.run_mode == RunMode::Unparked
                && m.ran > 0
                && late > m.periods.params().budget / 100;
            if ran_on || late > slack && self.dispatcher.job_of_task(m.task).is_some() {
                m.periods.woken_late();
            }
        }
    }

    /// At the end of a run no task keeps a level or waits in a gate. Programs stay as they are, in
    /// the ordinary class, where no budget has to bound them; the process layer restores or ends
    /// them.
    fn release_all(&mut self) {
        let _ = self.withdraw_direct(clock::monotonic_ns());
        self.leave_queues();
        for m in self.members.iter_mut().flatten() {
            match &m.kind {
                MemberKind::Thread(control) => {
                    control.detach();
                    m.send_to_background();
                }
                MemberKind::Program(_) => m.set_level(0),
                MemberKind::AdoptedThread(_) => m.send_to_background(),
            }
        }
    }
}
