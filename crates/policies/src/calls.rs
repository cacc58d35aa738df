//! Calls of policies of the program, which may take too long or never return.
//!
//! A policy cannot be ended in mid-call: what it holds stays held. One that answers late is stopped
//! when it has answered. One that does not return is found by a thread of this file; its host then
//! ends the run, and leaves the thread that the policy is in.
//!
//! ```text
//!   call ── returns soon ──> continues
//!     ├── returns after LONGEST_ANSWER of CPU time, twice ──> another policy takes its place
//!     └── inside at PATIENCE looks ──> stuck_policy() ──> the host ends the run
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::thread_id;
use punctual_sys::thread_name;

/// What a policy of the program may take for one event where tasks run in real time, ns of CPU
/// time. A hypervisor's pauses may count as CPU time, so one longer answer is forgiven.
pub(crate) const LONGEST_ANSWER: u64 = 10_000_000;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// A call that is in progress at so many looks in a row does not return. Looks and not time: while
/// this process is stopped, or gets no CPU, there are none.
const PATIENCE: u32 = 20;

/// A policy of the program that does not return from a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckPolicy {
    /// Its name.
    pub policy: &'static str,
    /// The thread that it is in.
    pub tid: i32,
}

impl StuckPolicy {
    /// The error of the run.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::usage(
            format!(
                "the policy \"{}\" has not returned from a call for {} s: the run was ended",
                self.policy,
                LOOK.as_millis() * u128::from(PATIENCE) / 1_000
            ),
            "correct the policy: it must neither loop nor wait",
        )
    }
}

/// The first policy that did not return, if there is one. Its host ends the run, and does not wait
/// for that thread.
#[must_use]
pub fn stuck_policy() -> Option<StuckPolicy> {
    STUCK.get().copied()
}

/// Calls `tell`, in a thread of its own, for the first policy that does not return. Only the first
/// `tell` is kept.
pub fn on_stuck_policy(tell: fn(StuckPolicy)) {
    let _ = TELL.set(tell);
}

/// The number of the call of a policy that this thread is in, other than any before; 0: it is in
/// none. Async-signal-safe.
#[must_use]
pub fn call_in_progress() -> u64 {
    IN_CALL.get()
}

static STUCK: OnceLock<StuckPolicy> = OnceLock::new();
static TELL: OnceLock<fn(StuckPolicy)> = OnceLock::new();
/// The calls of all policies of the program.
static ALL: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

thread_local! {
    static IN_CALL: Cell<u64> = const { Cell::new(0) };
    static CALLS_BEGUN: Cell<u64> = const { Cell::new(0) };
    static TID: Cell<i32> = const { Cell::new(0) };
}

/// The calls of one policy; one at a time.
pub(crate) struct Calls {
    policy: &'static str,
    /// How many have begun and how many have ended, together: odd while one is in progress.
    turns: AtomicU64,
    /// The thread of the latest.
    tid: AtomicI32,
}

impl Calls {
    /// Of the policy of this name, watched from now on.
    ///
    /// # Errors
    /// There can be no further thread.
    pub(crate) fn watched(policy: &'static str) -> Result<Arc<Calls>, Diagnostic> {
        static STARTED: OnceLock<Option<String>> = OnceLock::new();
        let failed = STARTED.get_or_init(|| {
            let thread = std::thread::Builder::new().name(thread_name::POLICIES.to_owned());
            thread.stack_size(128 << 10).spawn(watch).err().map(|e| e.to_string())
        });
        if let Some(why) = failed {
            let cause = format!("no thread to watch the policy \"{policy}\": {why}");
            return Err(Diagnostic::machine(cause, "raise RLIMIT_NPROC"));
        }
        let calls = Arc::new(Calls { policy, turns: AtomicU64::new(0), tid: AtomicI32::new(0) });
        let watched = Watched { calls: calls.clone(), turns: 0, looks: 0 };
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
        Ok(calls)
    }

    /// A call, which ends with what is returned.
    pub(crate) fn begin(&self) -> Call<'_> {
        if TID.get() == 0 {
            TID.set(thread_id());
        }
        self.tid.store(TID.get(), Relaxed);
        self.turns.fetch_add(1, SeqCst);
        CALLS_BEGUN.set(CALLS_BEGUN.get() + 1);
        Call { calls: self, outer: IN_CALL.replace(CALLS_BEGUN.get()) }
    }
}

/// A call in progress.
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    /// The call in which this one was made.
    outer: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        IN_CALL.set(self.outer);
        self.calls.turns.fetch_add(1, SeqCst);
    }
}

/// What the watching thread has seen of a policy.
struct Watched {
    calls: Arc<Calls>,
    turns: u64,
    /// Looks at which it was in the same call.
    looks: u32,
}

impl Watched {
    fn look(&mut self) -> bool {
        let turns = self.calls.turns.load(SeqCst);
        let same = turns % 2 == 1 && turns == self.turns;
        self.looks = if same { self.looks + 1 } else { 0 };
        self.turns = turns;
        self.looks == PATIENCE
    }
}

/// Looks at all calls, until one does not return.
fn watch() {
    let stuck = loop {
        std::thread::sleep(LOOK);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        // Policies that are gone are held here alone.
        all.retain(|watched| Arc::strong_count(&watched.calls) > 1);
        if let Some(found) = all.iter_mut().find_map(|w| w.look().then(|| w.calls.clone())) {
            break StuckPolicy { policy: found.policy, tid: found.tid.load(Relaxed) };
        }
    };
    let _ = STUCK.set(stuck);
    if let Some(tell) = TELL.get() {
        tell(stuck);
    }
}
