//! What a task of this process and its dispatcher share. What the task does with it is in
//! [`thread_side`], what the dispatcher does is here.

mod thread_side;

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use punctual_sys::futex;

use crate::ceiling::HeldCeilings;
use crate::direct::Permission;
use crate::doorbell::Doorbell;
use crate::holder::HolderName;
use crate::mutex::LendingMutex;
use crate::overrun_signal::OverrunHandler;
use crate::suspension::Suspension;
use crate::wait_queue::WaitQueue;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const NO_PHASE: u64 = u64::MAX;

/// A task's request to its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    Nothing = 0,
    /// `wait_period`.
    Wait = 1,
    /// The thread is at its end.
    Exit = 2,
    /// It waits for a mutex that another task holds.
    Lock = 3,
    /// It no longer holds a mutex for which others wait.
    Unlock = 4,
    /// It waits in a queue, and gives up a mutex meanwhile, if it names one.
    Enqueue = 5,
}

/// The dispatcher's answer to a request to lock or to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// None yet.
    Waits = 0,
    /// The task holds the mutex, or has the token.
    Granted = 1,
    Deadlock = 2,
    OnOtherCpu = 3,
    TimedOut = 4,
    Over = 5,
}

/// A task of this process, as its dispatcher and it see each other. All times are ns.
#[derive(Debug)]
#[repr(align(64))]
pub struct TaskControl {
    gate: AtomicU32,
    /// The thread is in the gate, or on its way in: it needs no signal.
    inside: AtomicU32,
    request: AtomicU32,
    /// Its place among its dispatcher's members.
    pub slot: AtomicU32,
    /// Names it as the holder of mutexes.
    pub name: HolderName,
    /// Of the stack of tasks with a request: slot + 1 of the one below.
    pub next: AtomicU32,
    pub tid: AtomicU32,
    /// Releases that the wait which returns next has missed.
    pub lost: AtomicU32,
    /// The dispatcher wants to know when the thread runs next.
    stamp: AtomicU32,
    started: AtomicU64,
    done: AtomicU64,
    pub release: AtomicU64,
    pub number: AtomicU64,
    pub deadline: AtomicU64,
    /// The reading of the thread's CPU clock at which its budget is used up.
    pub exhausted_at: AtomicU64,
    /// The task is to end: its run is over, or it was asked to.
    pub over: AtomicBool,
    /// The dispatcher is gone, or never had it: nothing opens the gate or answers any more.
    detached: AtomicBool,
    /// The mutex of its request.
    mutex: AtomicPtr<LendingMutex>,
    /// The queue of its request.
    queue: AtomicPtr<WaitQueue>,
    /// The phase for whose end it waits there; [`NO_PHASE`]: it waits for a token.
    phase: AtomicU64,
    /// How long its request waits.
    until: AtomicU64,
    /// The time had come when it was to lock the mutex again.
    timed_out: AtomicBool,
    /// An [`Answer`].
    answer: AtomicU32,
    /// What it may hand over by itself.
    pub permission: Permission,
    /// Its wait for the next release may be found at the dispatcher's next event, if it moves the
    /// timer of budgets to this time before, ns; 0: it rings.
    pub silent_until: AtomicU64,
    /// Of the mutexes that it holds.
    pub ceilings: HeldCeilings,
    pub suspension: Arc<Suspension>,
    /// What its thread calls after an overrun.
    pub overrun_handler: OnceLock<OverrunHandler>,
    pub doorbell: Arc<Doorbell>,
}

impl TaskControl {
    pub fn new(doorbell: Arc<Doorbell>, name: HolderName) -> TaskControl {
        TaskControl {
            gate: AtomicU32::new(CLOSED),
            inside: AtomicU32::new(0),
            request: AtomicU32::new(0),
            slot: AtomicU32::new(0),
            name,
            next: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            stamp: AtomicU32::new(0),
            started: AtomicU64::new(0),
            done: AtomicU64::new(0),
            release: AtomicU64::new(0),
            number: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            exhausted_at: AtomicU64::new(0),
            over: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            mutex: AtomicPtr::new(ptr::null_mut()),
            queue: AtomicPtr::new(ptr::null_mut()),
            phase: AtomicU64::new(NO_PHASE),
            until: AtomicU64::new(u64::MAX),
            timed_out: AtomicBool::new(false),
            answer: AtomicU32::new(Answer::Waits as u32),
            permission: Permission::default(),
            silent_until: AtomicU64::new(0),
            ceilings: HeldCeilings::default(),
            suspension: Arc::new(Suspension::new(doorbell.clone())),
            overrun_handler: OnceLock::new(),
            doorbell,
        }
    }

    /// It has this place among its dispatcher's members.
    pub fn set_slot(&self, slot: u32) {
        self.slot.store(slot, Relaxed);
        self.name.set_slot(slot);
    }

    /// The request, and the slot of the next task in the stack.
    pub fn take_request(&self) -> (Request, Option<u32>) {
        let next = self.next.load(Relaxed).checked_sub(1);
        let request = match self.request.load(SeqCst) {
            1 => Request::Wait,
            2 => Request::Exit,
            3 => Request::Lock,
            4 => Request::Unlock,
            5 => Request::Enqueue,
            _ => Request::Nothing,
        };
        (request, next)
    }

    /// It waits for its next release, and the dispatcher has not taken that request yet.
    pub fn has_asked_to_wait(&self) -> bool {
        self.request.load(SeqCst) == Request::Wait as u32
    }

    /// The thread may read its answer (the gate is as it should be).
    pub fn answered(&self) {
        self.request.store(0, SeqCst);
    }

    /// The mutex of the request; null: it has none.
    pub fn mutex(&self) -> *const LendingMutex {
        self.mutex.load(SeqCst)
    }

    /// The queue of the request.
    pub fn queue(&self) -> *const WaitQueue {
        self.queue.load(SeqCst)
    }

    /// The phase for whose end it waits there; `None`: it waits for a token.
    pub fn phase(&self) -> Option<u32> {
        u32::try_from(self.phase.load(SeqCst)).ok()
    }

    /// How long its request waits, CLOCK_MONOTONIC ns.
    pub fn until(&self) -> u64 {
        self.until.load(SeqCst)
    }

    /// It locks the mutex because the time has come, or not.
    pub fn set_timed_out(&self, timed_out: bool) {
        self.timed_out.store(timed_out, SeqCst);
    }

    /// It has an answer that it has not read yet.
    pub fn has_answer(&self) -> bool {
        self.answer.load(SeqCst) != Answer::Waits as u32
    }

    /// Waits for the answer of a task that hands over its mutex to this one.
    pub fn await_direct(&self) {
        while !self.has_answer() {
            std::thread::yield_now();
        }
    }

    /// Answers its request. The caller opens the gate.
    pub fn answer(&self, answer: Answer) {
        self.answer.store(answer as u32, SeqCst);
        futex::wake(&self.answer);
    }

    /// The run is over for this task: from here on its thread is on its own. The caller opens the
    /// gate.
    pub fn detach(&self) {
        self.detached.store(true, SeqCst);
        self.over.store(true, SeqCst);
    }

    pub fn open(&self) {
        self.gate.store(OPEN, SeqCst);
        if self.inside.load(SeqCst) == 1 {
            futex::wake(&self.gate);
        }
    }

    /// Closes the gate; true when the thread must be sent in by a signal.
    pub fn close(&self) -> bool {
        self.gate.store(CLOSED, SeqCst);
        self.inside.load(SeqCst) == 0
    }

    pub fn is_inside(&self) -> bool {
        self.inside.load(SeqCst) == 1
    }

    /// Requests the time of the thread's next execution.
    pub fn want_stamp(&self) {
        self.stamp.store(1, Relaxed);
        self.started.store(0, Relaxed);
    }

    /// It runs already: no stamp is needed.
    pub fn stamp_now(&self, at: u64) {
        self.stamp.store(0, Relaxed);
        self.started.store(at, Relaxed);
    }

    /// When it first ran since the stamp was wanted; 0 if it did not.
    pub fn started(&self) -> u64 {
        self.started.load(Acquire)
    }

    /// The time of the thread's latest request.
    pub fn done(&self) -> u64 {
        self.done.load(Acquire)
    }
}
