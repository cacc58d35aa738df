//! The threads of this program that take part: those that `pthread_create` of these headers made,
//! and those that called one of the paper's functions.
//!
//! A thread has a slot. POSIX's rule for a `pthread_t` holds: it is valid until the thread was
//! joined, or, if it is detached, has ended; what is not valid is refused.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use punctual_classic::PiMutex;

/// Threads of a program, at most.
pub const THREADS: usize = 256;

/// No time.
pub const NEVER: i64 = i64::MAX;

/// Which slot a thread has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadIndex(usize);

/// What a thread does in this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadWait {
    /// It executes.
    None,
    /// It waits for its next period.
    Period,
    /// It is suspended.
    Suspended,
    /// It sleeps until a time.
    Sleep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Free,
    /// The thread is alive, or begins.
    Alive,
    /// It has ended, and is to be joined.
    Ended,
}

/// What is known of a thread. Times are CLOCK_MONOTONIC ns.
pub struct Thread {
    state: SlotState,
    /// As the C library has it; 0: the thread has not begun.
    pthread: libc::pthread_t,
    /// Unlike all others of the process.
    pub id: u64,
    detached: bool,
    joining: bool,
    /// As a dispatcher has it: larger first.
    pub priority: i64,
    /// The CPU that it is for; `None`: any.
    pub cpu: Option<u32>,
    /// When its next period begins; [`NEVER`]: no time ends its waits.
    pub release: i64,
    /// 0: it has none.
    pub period: i64,
    pub wait: ThreadWait,
    /// The wait is over by `pthread_wakeup_np`.
    pub is_woken: bool,
    /// It was woken before its wait.
    pub woken_early: bool,
    /// Another thread has suspended it.
    pub is_to_suspend: bool,
    /// It has had other periods since it was suspended, the first of which ends that.
    pub has_new_periods: bool,
    pub is_cancelled: bool,
}

impl Thread {
    const FREE: Thread = Thread {
        state: SlotState::Free,
        pthread: 0,
        id: 0,
        detached: false,
        joining: false,
        priority: 0,
        cpu: None,
        release: NEVER,
        period: 0,
        wait: ThreadWait::None,
        is_woken: false,
        woken_early: false,
        is_to_suspend: false,
        has_new_periods: false,
        is_cancelled: false,
    };
}

impl Default for Thread {
    fn default() -> Thread {
        Thread::FREE
    }
}

struct Threads {
    slots: Vec<Thread>,
    last_id: u64,
}

static TABLE: LazyLock<PiMutex<Threads>> = LazyLock::new(|| {
    let slots = (0..THREADS).map(|_| Thread::FREE).collect();
    PiMutex::new(Threads { slots, last_id: 0 })
});

/// What the thread of each slot sleeps on: it changes when the thread is to look again.
static WAKE: [AtomicU32; THREADS] = [const { AtomicU32::new(0) }; THREADS];

/// For the thread that waits for the end of the program.
struct Alive {
    /// Threads that take part.
    threads: usize,
    /// The program is to end, whatever its threads do.
    is_to_end: bool,
}

static ALIVE: Mutex<Alive> = Mutex::new(Alive { threads: 0, is_to_end: false });
static CHANGED: Condvar = Condvar::new();

/// How long one that waits for the end relies on being woken.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// This process is the child of one that had threads.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Why a thread is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadError {
    /// It is no thread of these.
    Unknown,
    /// There are as many as there may be, or this is the child of a fork.
    Full,
    /// It is detached, or another thread waits for its end.
    NotJoinable,
    /// It is the calling thread.
    Own,
}

impl ThreadError {
    pub fn errno(self) -> i32 {
        match self {
            Self::Unknown => libc::ESRCH,
            Self::Full => libc::EAGAIN,
            Self::NotJoinable => libc::EINVAL,
            Self::Own => libc::EDEADLK,
        }
    }
}

thread_local! {
    /// The slot of the calling thread, and one more; 0: none.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

fn with_table<R>(f: impl FnOnce(&mut Threads) -> R) -> Option<R> {
    if IS_CHILD.load(Ordering::Relaxed) {
        return None;
    }
    TABLE.with(f)
}

impl Threads {
    fn find(&self, pthread: libc::pthread_t) -> Result<ThreadIndex, ThreadError> {
        let is_it = |thread: &Thread| thread.state != SlotState::Free && thread.pthread == pthread;
        let found = self.slots.iter().position(is_it).filter(|_| pthread != 0);
        found.map(ThreadIndex).ok_or(ThreadError::Unknown)
    }
}

/// Calls `f` with a thread; `None`: it is the child of a fork, or called from a handler of a signal
/// within this.
pub fn with_thread<R>(thread: ThreadIndex, f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    with_table(|table| f(&mut table.slots[thread.0]))
}

/// Calls `f` with the thread of this name that has not ended.
///
/// # Errors
/// [`ThreadError::Unknown`].
pub fn look<R>(
    pthread: libc::pthread_t,
    f: impl FnOnce(&mut Thread) -> R,
) -> Result<R, ThreadError> {
    find_alive(pthread, f).map(|(_, result)| result)
}

/// The same, and has the thread look again.
///
/// # Errors
/// [`ThreadError::Unknown`].
pub fn change<R>(
    pthread: libc::pthread_t,
    f: impl FnOnce(&mut Thread) -> R,
) -> Result<R, ThreadError> {
    let (thread, result) = find_alive(pthread, f)?;
    wake_word(thread).fetch_add(1, Ordering::Release);
    punctual_sys::futex::wake(wake_word(thread));
    Ok(result)
}

fn find_alive<R>(
    pthread: libc::pthread_t,
    f: impl FnOnce(&mut Thread) -> R,
) -> Result<(ThreadIndex, R), ThreadError> {
    let found = with_table(|table| {
        let thread = table.find(pthread)?;
        let slot = &mut table.slots[thread.0];
        match slot.state {
            SlotState::Alive => Ok((thread, f(slot))),
            _ => Err(ThreadError::Unknown),
        }
    });
    found.unwrap_or(Err(ThreadError::Unknown))
}

/// The word on which the thread sleeps.
pub fn wake_word(thread: ThreadIndex) -> &'static AtomicU32 {
    &WAKE[thread.0]
}

/// The calling thread, if it takes part. Real-time safe.
pub fn own() -> Option<ThreadIndex> {
    OWN.try_with(Cell::get).ok().and_then(|n| n.checked_sub(1)).map(ThreadIndex)
}

/// A slot for a thread that is to begin.
///
/// # Errors
/// [`ThreadError::Full`].
pub fn claim(priority: i64, cpu: Option<u32>, detached: bool) -> Result<ThreadIndex, ThreadError> {
    watch_forks();
    let claimed = with_table(|table| {
        let free = table.slots.iter().position(|thread| thread.state == SlotState::Free)?;
        table.last_id += 1;
        let id = table.last_id;
        let state = SlotState::Alive;
        table.slots[free] = Thread { state, id, priority, cpu, detached, ..Thread::FREE };
        Some(ThreadIndex(free))
    });
    let claimed = claimed.flatten().ok_or(ThreadError::Full)?;
    count(1);
    Ok(claimed)
}

/// The thread of a claimed slot could not be made.
pub fn give_back(thread: ThreadIndex) {
    with_thread(thread, |slot| slot.state = SlotState::Free);
    count(-1);
}

/// The thread with this identity has this name, if it has none by now.
pub fn set_name(thread: ThreadIndex, id: u64, pthread: libc::pthread_t) {
    with_thread(thread, |slot| {
        if slot.id == id && slot.state != SlotState::Free {
            slot.pthread = pthread;
        }
    });
}

/// The calling thread has this slot from now on.
pub fn enter(thread: ThreadIndex) {
    // SAFETY: no arguments.
    let pthread = unsafe { libc::pthread_self() };
    with_thread(thread, |slot| slot.pthread = pthread);
    OWN.set(thread.0 + 1);
}

/// The calling thread ends, and with it its part.
pub fn leave() {
    let Some(thread) = own() else { return };
    OWN.set(0);
    with_thread(thread, |slot| {
        slot.state = if slot.detached { SlotState::Free } else { SlotState::Ended };
    });
    count(-1);
}

/// Marks a thread as one that the calling thread is about to join.
///
/// # Errors
/// It cannot be joined.
pub fn begin_join(pthread: libc::pthread_t) -> Result<(), ThreadError> {
    let begun = with_table(|table| {
        let thread = table.find(pthread)?;
        if own() == Some(thread) {
            return Err(ThreadError::Own);
        }
        let slot = &mut table.slots[thread.0];
        if slot.detached || slot.joining {
            return Err(ThreadError::NotJoinable);
        }
        slot.joining = true;
        Ok(())
    });
    begun.unwrap_or(Err(ThreadError::Unknown))
}

/// The thread was joined, or the wait for its end was given up.
pub fn end_join(pthread: libc::pthread_t, is_joined: bool) {
    with_table(|table| {
        let Ok(thread) = table.find(pthread) else { return };
        let slot = &mut table.slots[thread.0];
        slot.joining = false;
        if is_joined {
            slot.state = SlotState::Free;
        }
    });
}

/// Nothing joins the thread any more: its slot is free at its end.
///
/// # Errors
/// It is detached already, or another thread is about to join it.
pub fn detach(pthread: libc::pthread_t) -> Result<(), ThreadError> {
    let detached = with_table(|table| {
        let thread = table.find(pthread)?;
        let slot = &mut table.slots[thread.0];
        if slot.detached || slot.joining {
            return Err(ThreadError::NotJoinable);
        }
        match slot.state {
            SlotState::Ended => slot.state = SlotState::Free,
            _ => slot.detached = true,
        }
        Ok(())
    });
    detached.unwrap_or(Err(ThreadError::Unknown))
}

fn alive() -> MutexGuard<'static, Alive> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(change: isize) {
    let mut alive = alive();
    alive.threads = alive.threads.saturating_add_signed(change);
    CHANGED.notify_all();
}

/// The program is to end.
pub fn end_program() {
    alive().is_to_end = true;
    CHANGED.notify_all();
}

/// Waits until no thread takes part, and `nothing_is_left` either; or until the program is to end.
pub fn wait_for_end(nothing_is_left: impl Fn() -> bool) {
    let mut alive = alive();
    while !alive.is_to_end && (alive.threads > 0 || !nothing_is_left()) {
        let waited = CHANGED.wait_timeout(alive, LOOK_AGAIN);
        alive = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The child of a fork has no threads of its parent's.
fn watch_forks() {
    extern "C" fn in_child() {
        IS_CHILD.store(true, Ordering::Relaxed);
        OWN.set(0);
        crate::hard::forget();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler does what is safe in the child of a fork: stores, and forgetting.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
