//! Wakes dispatchers, and holds what their tasks request.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::OnceLock;

use punctual_program_jobs::JobDoorbell;
use punctual_sys::futex;

use crate::budget_timer::BudgetTimer;
use crate::pause::PauseRequest;
use crate::task_control::TaskControl;

/// What a dispatcher sleeps on, apart from it: any thread that saw it once may ring, also when it
/// is gone. Then, and where dispatchers share one, it wakes one for nothing.
#[derive(Debug)]
#[repr(align(64))]
struct Ring(AtomicU32);

const RINGS: usize = 64;
static ALL_RINGS: [Ring; RINGS] = [const { Ring(AtomicU32::new(0)) }; RINGS];

thread_local! {
    /// Of the dispatcher whose thread this is.
    static OWN: Cell<Option<&'static Ring>> = const { Cell::new(None) };
}

/// From a handler of a signal: rings for the dispatcher whose thread was interrupted, if it is one.
/// On its way to sleep it does not sleep then. Async-signal-safe.
pub fn ring_own() {
    if let Some(ring) = OWN.get() {
        ring.0.fetch_add(1, SeqCst);
    }
}

/// Rings for the dispatchers of these bits ([`Doorbell::ring_bit`]).
pub fn ring(mut bits: u64) {
    while bits != 0 {
        ALL_RINGS[bits.trailing_zeros() as usize].ring();
        bits &= bits - 1;
    }
}

impl Ring {
    fn ring(&self) {
        self.0.fetch_add(1, SeqCst);
        futex::wake(&self.0);
    }
}

/// Wakes a sleeping dispatcher, and holds the stack of tasks with a request. Any thread may ring.
#[derive(Debug)]
pub struct Doorbell {
    /// Names the dispatcher among all that this process ever had; from 1 on.
    id: u32,
    ring: &'static Ring,
    /// Slot + 1 of the task that was pushed last; 0 when there is none.
    first: AtomicU32,
    /// The dispatcher is to end: a flag and no message, so that no full ring can lose it.
    stop: AtomicBool,
    /// A task was suspended or resumed.
    suspensions: AtomicBool,
    /// The program sent a request about jobs that it adds, or asked for the end of their task.
    jobs: AtomicBool,
    pub pause: PauseRequest,
    /// Where the kernel has one that serves.
    pub budget_timer: OnceLock<BudgetTimer>,
}

impl Doorbell {
    pub fn new() -> Doorbell {
        static IDS: AtomicU32 = AtomicU32::new(1);
        let id = IDS.fetch_add(1, Relaxed);
        Doorbell {
            id,
            ring: &ALL_RINGS[id as usize % RINGS],
            first: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            suspensions: AtomicBool::new(false),
            jobs: AtomicBool::new(false),
            pause: PauseRequest::default(),
            budget_timer: OnceLock::new(),
        }
    }

    /// The calling thread is the dispatcher that sleeps here. Makes its timer.
    pub fn enter(&self) {
        OWN.set(Some(self.ring));
        // Without one its own sleep ends with each budget.
        if let Ok(timer) = BudgetTimer::of_this_thread() {
            let _ = self.budget_timer.set(timer);
        }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// To be read before looking for work; [`Doorbell::sleep`] returns at once if it rang since.
    pub fn rings(&self) -> u32 {
        self.ring.0.load(SeqCst)
    }

    pub fn sleep(&self, seen: u32, until: u64) {
        futex::wait(&self.ring.0, seen, until);
    }

    pub fn ring(&self) {
        self.ring.ring();
    }

    /// Its bit for [`ring`].
    pub fn ring_bit(&self) -> u64 {
        1 << (self.id as usize % RINGS)
    }

    /// Requests the end of the dispatcher, and wakes it for that.
    pub fn request_stop(&self) {
        self.stop.store(true, SeqCst);
        self.ring();
    }

    /// The dispatcher is to end.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(SeqCst)
    }

    pub fn push(&self, control: &TaskControl) {
        let mine = control.slot.load(Relaxed) + 1;
        let mut first = self.first.load(Relaxed);
        loop {
            control.next.store(first, Relaxed);
            match self.first.compare_exchange_weak(first, mine, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// The count of a suspension has changed: wakes the dispatcher for that.
    pub fn note_suspension(&self) {
        self.suspensions.store(true, SeqCst);
        self.ring();
    }

    /// Whether one has since the last call.
    pub fn take_suspensions(&self) -> bool {
        self.suspensions.load(Relaxed) && self.suspensions.swap(false, SeqCst)
    }

    /// Whether there was one since the last call.
    pub fn take_jobs(&self) -> bool {
        self.jobs.load(Relaxed) && self.jobs.swap(false, SeqCst)
    }

    /// No request is pending.
    pub fn is_quiet(&self) -> bool {
        let flags = [&self.suspensions, &self.jobs];
        self.first.load(Acquire) == 0 && !flags.into_iter().any(|flag| flag.load(Relaxed))
    }

    /// Takes all requests: the slot of the first task, whose `next` leads on.
    pub fn take(&self) -> Option<u32> {
        self.first.swap(0, Acquire).checked_sub(1)
    }
}

impl JobDoorbell for Doorbell {
    fn note_jobs(&self) {
        self.jobs.store(true, SeqCst);
        self.ring();
    }

    fn is_over(&self) -> bool {
        self.stop_requested()
    }
}
