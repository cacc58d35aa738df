//! What a task of this process and its dispatcher share.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use punctual_sys::{clock, futex};

use crate::ceiling::HeldCeilings;
use crate::direct::Permission;
use crate::doorbell::Doorbell;
use crate::holder::HolderName;
use crate::mutex::{LendingMutex, LockError};
use crate::overrun_signal::OverrunHandler;
use crate::suspension::Suspension;
use crate::wait_queue::{WaitError, WaitQueue, Waited};

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
    /// Its wait for the next release may be found at the dispatcher's next event.
    pub waits_silently: AtomicBool,
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
            waits_silently: AtomicBool::new(false),
            ceilings: HeldCeilings::default(),
            suspension: Arc::new(Suspension::new(doorbell.clone())),
            overrun_handler: OnceLock::new(),
            doorbell,
        }
    }

    // The thread's side.

    /// Stands in the gate until it is open. Async-signal-safe.
    ///
    /// `inside` goes down before the gate is looked at again, so that a dispatcher that closes the
    /// gate in between sends its signal.
    pub fn pass(&self) {
        loop {
            while self.gate.load(SeqCst) == CLOSED {
                self.inside.store(1, SeqCst);
                futex::wait(&self.gate, CLOSED, u64::MAX);
            }
            self.inside.store(0, SeqCst);
            if self.gate.load(SeqCst) == OPEN {
                break;
            }
        }
        if self.stamp.load(Relaxed) == 1 {
            self.stamp.store(0, Relaxed);
            self.started.store(clock::monotonic_ns(), Release);
        }
    }

    /// `wait_period`: tells the dispatcher and stands in the gate until the next release, or goes
    /// on at once when this wait was a delayed one.
    pub fn wait_period(&self) {
        if self.over.load(Relaxed) {
            return;
        }
        self.done.store(clock::monotonic_ns(), Release);
        self.stand_in_gate(|| {
            self.post(Request::Wait);
            // Looked at last: at an event in between the dispatcher took the request, or it does
            // not permit silence any more.
            if !self.waits_silently.load(SeqCst) {
                self.ring_for_answer();
            }
        });
    }

    /// Closes its own gate, sends a request, and stands in the gate until the dispatcher opens it.
    fn stand_in_gate(&self, send: impl FnOnce()) {
        self.inside.store(1, SeqCst);
        self.gate.store(CLOSED, SeqCst);
        send();
        if self.detached.load(SeqCst) {
            self.gate.store(OPEN, SeqCst);
        }
        self.pass();
    }

    /// Waits for a mutex that another task holds, to which the dispatcher lends this one's jobs
    /// meanwhile, until `until`. `None`: the run is over.
    pub fn await_mutex(&self, mutex: &LendingMutex, until: u64) -> Option<Result<(), LockError>> {
        if self.detached.load(SeqCst) {
            return None;
        }
        self.mutex.store(ptr::from_ref(mutex).cast_mut(), SeqCst);
        self.until.store(until, SeqCst);
        match self.await_answer(Request::Lock)? {
            Answer::Deadlock => Some(Err(LockError::Deadlock)),
            Answer::OnOtherCpu => Some(Err(LockError::OtherCpu)),
            Answer::TimedOut => Some(Err(LockError::TimedOut)),
            _ => Some(Ok(())),
        }
    }

    /// Waits for a token, and gives up a mutex meanwhile, if there is one.
    pub fn await_token(
        &self,
        queue: &WaitQueue,
        mutex: Option<&LendingMutex>,
        until: u64,
    ) -> Waited {
        self.phase.store(NO_PHASE, SeqCst);
        self.await_queue(queue, mutex, until)
    }

    /// Waits for the end of a phase.
    pub fn await_phase(&self, queue: &WaitQueue, phase: u32, until: u64) -> Waited {
        self.phase.store(phase.into(), SeqCst);
        self.await_queue(queue, None, until)
    }

    fn await_queue(&self, queue: &WaitQueue, mutex: Option<&LendingMutex>, until: u64) -> Waited {
        if self.detached.load(SeqCst) {
            return Waited::NotBegun(WaitError::Over);
        }
        let mutex_address = mutex.map_or(ptr::null(), ptr::from_ref);
        self.mutex.store(mutex_address.cast_mut(), SeqCst);
        self.queue.store(ptr::from_ref(queue).cast_mut(), SeqCst);
        self.until.store(until, SeqCst);
        self.timed_out.store(false, SeqCst);
        let answer = self.await_answer(Request::Enqueue);
        if self.request.load(SeqCst) != 0 {
            // The dispatcher ended before it saw the request.
            return Waited::NotBegun(WaitError::Over);
        }
        match answer {
            // In the queue, or of the mutex that it was to lock again.
            Some(Answer::OnOtherCpu) => match mutex {
                Some(mutex) if !mutex.is_held_by(Some(self)) => {
                    Waited::Unlocked(LockError::OtherCpu.into())
                }
                _ => Waited::NotBegun(LockError::OtherCpu.into()),
            },
            Some(Answer::Deadlock) => Waited::Unlocked(LockError::Deadlock.into()),
            Some(Answer::TimedOut) => Waited::Unlocked(WaitError::TimedOut),
            Some(Answer::Over) | None => Waited::Unlocked(WaitError::Over),
            Some(Answer::Granted | Answer::Waits) => Waited::Locked {
                consistent: !mutex.is_some_and(LendingMutex::is_poisoned),
                timed_out: self.timed_out.load(SeqCst),
            },
        }
    }

    /// Sends a request, and stands in the gate until it is answered; `None`: the run is over, and
    /// it was not.
    fn await_answer(&self, request: Request) -> Option<Answer> {
        self.answer.store(Answer::Waits as u32, SeqCst);
        self.stand_in_gate(|| {
            self.send_request(request);
        });
        loop {
            match self.answer.swap(Answer::Waits as u32, SeqCst) {
                1 => return Some(Answer::Granted),
                2 => return Some(Answer::Deadlock),
                3 => return Some(Answer::OnOtherCpu),
                4 => return Some(Answer::TimedOut),
                5 => return Some(Answer::Over),
                _ if self.detached.load(SeqCst) => return None,
                // In the background, after an overrun.
                waits => futex::wait(&self.answer, waits, clock::monotonic_ns() + 1_000_000),
            }
        }
    }

    /// Hands over a mutex to the only task that waits for it; false: that is the dispatcher's.
    pub fn hand_over_directly(&self, mutex: &LendingMutex) -> bool {
        let Some(to) = self.permission.take(mutex) else { return false };
        // SAFETY: named by the dispatcher with the mutex, for which it waits until its gate opens.
        let to = unsafe { &*to };
        // The dispatcher may come in between at any point: until `handed_over` it waits for the
        // rest. The other task does so until it has the answer; then it may end, and its gate is
        // an address only.
        let gate = &to.gate;
        gate.store(OPEN, SeqCst);
        mutex.give(to, false);
        to.answer.store(Answer::Granted as u32, SeqCst);
        self.permission.used();
        futex::wake(gate);
        // Preempted until now, unless the other one sleeps: then the dispatcher knows nothing yet.
        if self.permission.is_used() {
            self.doorbell.ring();
        }
        true
    }

    /// Hands over a mutex for which others wait; false: the run is over, and nothing was done.
    pub fn hand_over_mutex(&self, mutex: &LendingMutex) -> bool {
        if self.detached.load(SeqCst) {
            return false;
        }
        self.mutex.store(ptr::from_ref(mutex).cast_mut(), SeqCst);
        self.send_request(Request::Unlock)
    }

    /// Sends a request and waits for its answer; false: the dispatcher ended without one.
    fn send_request(&self, request: Request) -> bool {
        self.post(request);
        self.ring_for_answer()
    }

    /// Puts a request where the dispatcher finds it at its next event.
    fn post(&self, request: Request) {
        self.request.store(request as u32, SeqCst);
        self.doorbell.push(self);
    }

    /// Makes that event now, and waits for the answer; false: the dispatcher ended without one. It
    /// has a higher priority on the same CPU and answers before `ring` returns; the loop is for a
    /// thread that was moved away.
    fn ring_for_answer(&self) -> bool {
        self.doorbell.ring();
        loop {
            let request = self.request.load(SeqCst);
            if request == 0 {
                return true;
            }
            if self.detached.load(SeqCst) {
                // It may have answered last of all.
                return self.request.load(SeqCst) == 0;
            }
            futex::wait(&self.request, request, clock::monotonic_ns() + 1_000_000);
        }
    }

    /// The thread is at its end.
    pub fn exit(&self) {
        if !self.detached.load(Relaxed) {
            self.done.store(clock::monotonic_ns(), Release);
            self.send_request(Request::Exit);
        }
        self.name.end();
    }

    // The dispatcher's side.

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
