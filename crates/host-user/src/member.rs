//! A task as the engine moves it: parked or not, at which level, with how much executed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;

use punctual_dispatcher::TaskId;
use punctual_policies::{Allocators, PeriodBuilder};
use punctual_process::{AdoptedThread, Park, Threads};
use punctual_program_jobs::TaskRequests;
use punctual_taskset::TaskSpec;
use punctual_wait_page::DispatcherPage;

use crate::freezer::FreezerState;
use crate::inheritance::WaitSamples;
use crate::suspension::Suspension;
use crate::task_control::TaskControl;
use crate::time_slices::TimeSlice;
use crate::unresponsive::ParkWatch;
use crate::{park_signal, sched};
use punctual_sys::clock::{self, CpuClock};

/// The executing thread or processes of a task.
pub enum MemberKind {
    /// A thread of this process.
    Thread(Arc<TaskControl>),
    /// Processes of another program.
    Program(Arc<Program>),
    /// A thread of another program.
    AdoptedThread(Arc<AdoptedThread>),
}

/// Processes that share one task.
#[derive(Debug)]
pub struct Program {
    pub park: Park,
    /// Of the cgroup; not used with stop signals.
    pub freezer: FreezerState,
    /// Its threads, kept up to date by the housekeeper.
    pub threads: Threads,
    /// Its first process, which gets the overrun signal.
    pub leader: i32,
    /// The housekeeper found no other process in it.
    pub alone: AtomicBool,
    /// The leader's own clock when the program's was last read, ns.
    leader_clock: AtomicU64,
    /// When that was, ns.
    read_at: AtomicU64,
}

/// How long the leader's clock alone is read of a program that had one process, ns: it may have
/// forked since. In a group all clocks are read: the budgets there may be far smaller.
const LEADER_ONLY_NS: u64 = 2_000_000;

impl Program {
    /// Processes that were just registered, frozen.
    pub fn new(park: Park, threads: Threads, leader: i32) -> Program {
        Program {
            park,
            freezer: FreezerState::frozen(),
            threads,
            leader,
            alone: AtomicBool::new(false),
            leader_clock: AtomicU64::new(u64::MAX),
            read_at: AtomicU64::new(0),
        }
    }

    /// What all its processes executed, ns. Reading that costs some 2 us; reading the clock of the
    /// only process, which shows whether it executed at all, 0.4 us.
    fn clock(&self, charged: u64, now: u64, leader_only_ns: u64) -> u64 {
        if self.alone.load(Relaxed)
            && now.saturating_sub(self.read_at.load(Relaxed)) < leader_only_ns
        {
            let leader = CpuClock::of_process(self.leader).read();
            if leader.is_some_and(|l| l == self.leader_clock.swap(l, Relaxed)) {
                return charged;
            }
        }
        self.read_at.store(now, Relaxed);
        self.park.usage_ns().unwrap_or(charged).max(charged)
    }

    fn set_level(&self, level: i32) {
        self.park.set_level(level);
        drop(self.threads.set_level(level));
    }
}

/// Whether a member may execute, and in which class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// Kept from executing.
    Parked,
    /// May execute, at its level.
    Unparked,
    /// May execute in the ordinary class (overrun policy `background`).
    Background,
}

/// One task of an engine.
pub struct Member {
    pub task: TaskId,
    /// Its parameters, if it is not one of the set's tasks.
    pub other: Option<TaskSpec>,
    /// It stands in a scheduling group or under a budget group.
    pub confined: bool,
    /// The least of the budgets that limit it, ns: what is far less matters to none.
    pub grain: u64,
    pub kind: MemberKind,
    /// How it waits for its releases, if it is a thread of another program that does.
    pub page: Option<DispatcherPage>,
    /// Releases lost that its page does not show yet.
    pub lost: u32,
    /// A thread that waits for its next release, the first one too.
    pub waiting: bool,
    /// Its releases end at once.
    pub suspended: bool,
    pub suspension: Arc<Suspension>,
    /// Requests of the program, where it adds the task's jobs.
    pub jobs: Option<TaskRequests>,
    pub run_mode: RunMode,
    /// SCHED_FIFO level when unparked.
    pub level: i32,
    /// The next event sets the levels of its threads even where its own level stays: the order of
    /// the threads changed, or another process demoted them.
    pub reranked: bool,
    pub slice: TimeSlice,
    /// Its CPU clock, as far as it is charged, ns.
    pub charged: u64,
    /// A freezer write is wanted that the freezer thread has not received yet.
    pub freezer_requested: bool,
    /// Its clock may still move: it is unparked, or was when last looked at.
    pub moving: bool,
    /// Found asleep in mid-job: it holds no place among the unparked few.
    pub asleep: bool,
    /// It was found suspended (it did not run while a task of lower rank did, or for long), and has
    /// not run since.
    pub quiet: bool,
    /// It may suspend itself in mid-job, and the wake-up rule applies: idle time is charged.
    pub charges_idle: bool,
    /// When it was last unparked or found to have run, CLOCK_MONOTONIC ns.
    pub ran_at: u64,
    /// Its execution since the last event, ns.
    pub ran: u64,
    /// Execution on its way to rest is charged before it next runs: its servers and segments may
    /// have ended, and only a reservation of its own in group 0 carries such execution over.
    pub defers_charges: bool,
    /// That execution, and execution found at rest, ns.
    pub deferred: u64,
    /// The dispatcher has raised it, for mutexes of which it locked the first after this time, ns.
    pub raised_since: Option<u64>,
    pub periods: PeriodBuilder,
    /// Periods whose reports were dropped since the housekeeper last took this count.
    pub unreported: Arc<AtomicU64>,
    /// [`Notice::Saturated`](crate::reports::Notice::Saturated) was sent.
    pub saturated: bool,
    pub park_watch: ParkWatch,
    pub wait_samples: WaitSamples,
}

impl Member {
    /// Decides what depends on the policy of its next release.
    pub fn by_policy(&mut self, allocators: &Allocators) {
        let suspends = self.periods.params().suspends;
        self.charges_idle = !self.confined && suspends && allocators.cuts_on_waking(self.task);
        self.defers_charges = self.confined || allocators.reservation_of(self.task).is_none();
        self.follow_own_ceiling(allocators);
    }

    /// Its parameters or its policy may be others: which mutexes it may lock.
    pub fn follow_own_ceiling(&self, allocators: &Allocators) {
        if let MemberKind::Thread(control) = &self.kind {
            control.ceilings.set_own(allocators.own_ceiling(self.task));
        }
    }

    /// What it shares with the engine, if it is a thread of this process.
    pub fn control(&self) -> Option<&TaskControl> {
        match &self.kind {
            MemberKind::Thread(control) => Some(control),
            _ => None,
        }
    }

    /// Its CPU clock, ns; what was last read when it is gone. Real-time safe.
    pub fn clock(&self, now: u64) -> u64 {
        match &self.kind {
            MemberKind::Thread(control) => {
                let tid = control.tid.load(Relaxed) as i32;
                CpuClock::of_thread(tid).read().unwrap_or(self.charged)
            }
            MemberKind::Program(p) => {
                p.clock(self.charged, now, if self.confined { 0 } else { LEADER_ONLY_NS })
            }
            MemberKind::AdoptedThread(thread) => thread.clock().unwrap_or(self.charged),
        }
    }

    /// It executed for `ran` ns on the budget of a task that waits for its mutex: what is left of
    /// its own is as before.
    pub fn executed_for_another(&mut self, ran: u64) {
        if let MemberKind::Thread(control) = &self.kind {
            control.exhausted_at.fetch_add(ran, Relaxed);
        }
    }

    /// The holder of a mutex for which it waits executed for `ran` ns on its budget.
    pub fn executed_by_another(&mut self, ran: u64) {
        self.periods.executed(ran);
        if let MemberKind::Thread(control) = &self.kind {
            let left = |at: u64| Some(at.saturating_sub(ran));
            let _ = control.exhausted_at.fetch_update(Relaxed, Relaxed, left);
        }
    }

    /// Keeps it from executing; a program in a cgroup from the freezer thread's write on.
    pub fn park(&mut self) {
        let before = self.run_mode;
        self.leave_background();
        self.run_mode = RunMode::Parked;
        self.asleep = false;
        self.moving = true;
        self.wait_samples.end();
        match &self.kind {
            MemberKind::Thread(control) => {
                if control.close() {
                    park_signal::send_in(control.tid.load(Relaxed) as i32);
                    self.watch(clock::monotonic_ns());
                }
            }
            MemberKind::Program(p) => {
                let now = clock::monotonic_ns();
                match &p.park {
                    Park::Stop(group) => drop(group.park()),
                    Park::Freezer(_) => {
                        p.freezer.request(true, now);
                        self.freezer_requested = true;
                    }
                }
                self.watch(now);
            }
            MemberKind::AdoptedThread(thread) => {
                thread.park();
                // It may have executed since its clock was read: charged before it next runs.
                let clock = thread.clock().unwrap_or(self.charged);
                if before == RunMode::Unparked {
                    let ran = clock.saturating_sub(self.charged);
                    self.periods.executed(ran);
                    self.deferred += ran;
                }
                self.charged = clock;
                self.park_watch.demote_parked();
            }
        }
    }

    /// Lets it execute, at its level.
    pub fn unpark(&mut self) {
        self.run_mode = RunMode::Unparked;
        self.moving = true;
        self.unwatch();
        self.quiet = false;
        match &self.kind {
            MemberKind::Thread(control) => control.open(),
            MemberKind::Program(p) => match &p.park {
                Park::Stop(group) => {
                    drop(group.resume());
                    p.threads.restore_order();
                }
                Park::Freezer(_) => {
                    p.freezer.request(false, clock::monotonic_ns());
                    self.freezer_requested = true;
                }
            },
            // Whatever its level was: the thread may leave SCHED_FIFO by itself.
            MemberKind::AdoptedThread(thread) => thread.set_level(self.level),
        }
    }

    /// Lets it execute below every job.
    pub fn send_to_background(&mut self) {
        self.apply_level(0);
        self.level = 0;
        self.unpark();
        self.run_mode = RunMode::Background;
    }

    fn leave_background(&mut self) {
        if self.run_mode == RunMode::Background {
            self.level = sched::LOWEST;
            self.apply_level(self.level);
        }
    }

    /// Ranks the program's threads by the priorities that the program chose for them;
    /// [`set_level`](Self::set_level) then sets their levels.
    pub fn rank_threads(&mut self) {
        if let MemberKind::Program(p) = &self.kind {
            self.reranked |= p.threads.rank_choices();
        }
    }

    /// The highest level that a thread of it has.
    pub fn top_level(&self) -> i32 {
        match &self.kind {
            MemberKind::Program(p) => self.level + p.threads.height(),
            _ => self.level,
        }
    }

    /// Its level among the jobs; a system call only when it changes.
    pub fn set_level(&mut self, level: i32) {
        if level != self.level || self.reranked {
            self.level = level;
            self.reranked = false;
            self.apply_level(level);
        }
    }

    fn apply_level(&self, level: i32) {
        match &self.kind {
            MemberKind::Thread(control) => {
                let tid = control.tid.load(Relaxed) as i32;
                drop(sched::set_level(tid, level));
            }
            MemberKind::Program(p) => p.set_level(level),
            // A level would end SCHED_IDLE.
            MemberKind::AdoptedThread(_) if self.run_mode == RunMode::Parked => {}
            MemberKind::AdoptedThread(thread) => thread.set_level(level),
        }
    }

    /// The overrun signal (as SCHED_DEADLINE's): its handler runs on the next budget.
    pub fn signal_overrun(&self) {
        // SAFETY: system calls without memory; a thread or process that is gone is an error that
        // changes nothing.
        unsafe {
            match &self.kind {
                MemberKind::Thread(control) => {
                    let tid = control.tid.load(Relaxed) as i32;
                    libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGXCPU);
                }
                MemberKind::Program(p) => {
                    libc::kill(p.leader, libc::SIGXCPU);
                }
                MemberKind::AdoptedThread(thread) => thread.signal(libc::SIGXCPU),
            }
        }
    }

    /// Ends a thread that no engine has. It still waits in its gate and executes nothing.
    pub fn dismiss(&self) {
        if let MemberKind::Thread(control) = &self.kind {
            control.detach();
            self.apply_level(0);
            control.open();
        }
    }

    /// Whether its clock has stopped: the thread waits in its gate, or no process of the program
    /// executes.
    pub fn at_rest(&self) -> bool {
        self.run_mode == RunMode::Parked
            && match &self.kind {
                MemberKind::Thread(control) => control.is_inside(),
                MemberKind::Program(p) => !p.freezer.is_pending() && self.has_settled(&p.park),
                // What it executes in SCHED_IDLE is not charged.
                MemberKind::AdoptedThread(_) => true,
            }
    }
}
