//! The freezer thread: writes cgroup.freeze in place of the dispatcher.
//!
//! A write takes cgroup_mutex, which every process holds that moves, creates or configures cgroups,
//! and a kernel mutex has no priority inheritance. An ordinary holder that is preempted on the
//! domain's CPU waits for the jobs there, so a dispatcher that waited for the holder would wait for
//! the jobs that it is to park.
//!
//! ```text
//!   dispatcher, SCHED_FIFO 99            freezer thread, 98, same CPU
//!   wanted = FROZEN
//!   queue, wake, sleep ────────────────> written = WRITING
//!                                        write "1"
//!                                        written = FROZEN
//! ```
//!
//! Without contention the write is done before any job (60 to 96) executes. While one waits
//! (`written` is not `wanted`) the dispatcher lowers the program to be frozen
//! ([`unresponsive`](crate::unresponsive)). Requests made meanwhile coalesce: the next write writes
//! the state that is wanted then.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::thread::JoinHandle;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::doorbell::Doorbell;
use crate::engine::{Engine, LATE};
use crate::member::{Member, MemberKind, Program};
use crate::sched;
use crate::start::{kept, PATIENCE};
use crate::stats::EngineStats;
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::{pin, thread_id};
use punctual_sys::{clock, thread_name};

const THAWED: u32 = 0;
const FROZEN: u32 = 1;
const WRITING: u32 = 2;

/// A freezer write that takes longer waits for a lock, ns.
const WAITS: u64 = 100_000;

/// What a write that does not wait may take for each thread of the program, ns.
const PER_THREAD: u64 = 2_000;

/// The state of one program's freezer: as the dispatcher wants it, and as it was last written.
/// Times are CLOCK_MONOTONIC ns.
#[derive(Debug)]
pub struct FreezerState {
    wanted: AtomicU32,
    written: AtomicU32,
    /// It is in the freezer thread's queue.
    queued: AtomicBool,
    requested_at: AtomicU64,
    thawed_at: AtomicU64,
}

impl FreezerState {
    /// Frozen, as a program is when an engine gets it.
    pub fn frozen() -> FreezerState {
        FreezerState {
            wanted: AtomicU32::new(FROZEN),
            written: AtomicU32::new(FROZEN),
            queued: AtomicBool::new(false),
            requested_at: AtomicU64::new(0),
            thawed_at: AtomicU64::new(0),
        }
    }

    /// The dispatcher wants it so from now on; [`Engine::post_freezer_requests`] queues it.
    pub fn request(&self, frozen: bool, now: u64) {
        self.requested_at.store(now, Relaxed);
        self.wanted.store(if frozen { FROZEN } else { THAWED }, SeqCst);
    }

    /// Whether the wanted state is not written yet.
    pub fn is_pending(&self) -> bool {
        self.written.load(SeqCst) != self.wanted.load(SeqCst)
    }

    /// Until when the latest request to thaw was pending, if that is after `since`: until `now`
    /// where it still is.
    pub fn held_until(&self, since: u64, now: u64) -> Option<u64> {
        let until = if self.is_pending() { now } else { self.thawed_at.load(Relaxed).min(now) };
        (until > since).then_some(until)
    }

    /// When the latest request was made.
    pub fn requested_at(&self) -> u64 {
        self.requested_at.load(Relaxed)
    }
}

impl Program {
    /// How long a write that does not wait may take at the most, ns.
    fn write_time(&self) -> u64 {
        PER_THREAD * self.threads.count() as u64
    }

    /// Writes what is wanted until that is what was written. Waits for the kernel's lock.
    fn write_freezer(&self, stats: &EngineStats) {
        let state = &self.freezer;
        // Before `wanted` is read: a request made after that queues the program once more.
        state.queued.store(false, SeqCst);
        loop {
            let (wanted, since) = (state.wanted.load(SeqCst), state.requested_at());
            if state.written.load(Relaxed) == wanted {
                return;
            }
            state.written.store(WRITING, SeqCst);
            // The group of a program that is gone refuses; nothing is left to freeze then.
            let result = if wanted == FROZEN { self.park.park() } else { self.park.resume() };
            drop(result);
            let now = clock::monotonic_ns();
            if wanted == THAWED {
                state.thawed_at.store(now, Relaxed);
                self.threads.restore_order();
            }
            state.written.store(wanted, SeqCst);
            stats.freezer_written(now.saturating_sub(since), LATE + self.write_time());
        }
    }
}

/// The dispatcher's end of the queue. Dropping it ends the thread after the write that it is in.
pub struct FreezerQueue {
    doorbell: Arc<Doorbell>,
    requests: Producer<Arc<Program>>,
}

impl Drop for FreezerQueue {
    fn drop(&mut self) {
        self.doorbell.request_stop();
    }
}

impl FreezerQueue {
    /// Whether the program is queued. Real-time safe: neither allocates nor blocks.
    fn push(&mut self, program: &Arc<Program>) -> bool {
        if program.freezer.queued.swap(true, SeqCst) {
            return true;
        }
        let pushed = self.requests.push(program.clone()).is_ok();
        if !pushed {
            program.freezer.queued.store(false, SeqCst);
        }
        pushed
    }
}

/// The thread, and its number.
pub(crate) struct FreezerThread {
    pub(crate) handle: JoinHandle<()>,
    pub(crate) tid: i32,
}

/// Starts the freezer thread of a CPU, with room for so many programs.
pub(crate) fn start(
    cpu: u32,
    room: usize,
    stats: Arc<EngineStats>,
) -> Result<(FreezerQueue, FreezerThread), Diagnostic> {
    let (requests, queue) = RingBuffer::new(room);
    let doorbell = Arc::new(Doorbell::new());
    let requests = FreezerQueue { doorbell: doorbell.clone(), requests };
    let (ready, is_ready) = std::sync::mpsc::channel();
    let handle = std::thread::Builder::new()
        .name(thread_name::of_cpu(thread_name::FREEZER, cpu))
        .stack_size(64 << 10)
        .spawn(move || {
            let placed = pin(0, cpu).and_then(|()| sched::set_level(0, sched::FREEZER));
            let tid = thread_id();
            drop(ready.send(placed.map(|()| tid)));
            serve(&doorbell, queue, &stats);
        })
        .map_err(|e| {
            Diagnostic::machine(format!("no freezer thread can be made: {e}"), "raise RLIMIT_NPROC")
        })?;
    match is_ready.recv_timeout(PATIENCE) {
        Ok(Ok(tid)) => Ok((requests, FreezerThread { handle, tid })),
        Ok(Err(e)) => Err(Diagnostic::machine(
            format!(
                "the freezer thread cannot have SCHED_FIFO {} on CPU {cpu}: {e}",
                sched::FREEZER
            ),
            "see punctual doctor",
        )),
        Err(RecvTimeoutError::Timeout) => Err(kept(cpu, sched::FREEZER)),
        Err(RecvTimeoutError::Disconnected) => Err(Diagnostic::machine(
            "the freezer thread ended at once",
            "report it with the output of punctual doctor",
        )),
    }
}

fn serve(doorbell: &Doorbell, mut requests: Consumer<Arc<Program>>, stats: &EngineStats) {
    loop {
        let seen = doorbell.rings();
        // At the end of a run the programs are left to the restorer, as they are.
        while !doorbell.stop_requested() {
            let Ok(program) = requests.pop() else { break };
            program.write_freezer(stats);
        }
        if doorbell.stop_requested() {
            return;
        }
        doorbell.sleep(seen, u64::MAX);
    }
}

impl Member {
    /// Its freezer is still to be written.
    pub fn freezer_is_pending(&self) -> bool {
        matches!(&self.kind, MemberKind::Program(p) if p.freezer.is_pending())
    }

    /// That write, begun `waited` ns ago, takes longer than one that does not wait.
    pub fn freezer_waits(&self, waited: u64) -> bool {
        matches!(&self.kind, MemberKind::Program(p) if waited > WAITS + p.write_time())
    }

    /// It was unparked, and its freezer kept it from executing until then. A delay that may have
    /// cost it budget is the machine's, not its own.
    pub fn note_held(&mut self, until: u64, now: u64) {
        let MemberKind::Program(p) = &self.kind else { return };
        self.ran_at = now;
        let late = until.saturating_sub(p.freezer.requested_at());
        if late > LATE + p.write_time() {
            self.periods.woken_late();
        }
    }

    /// Until when its freezer kept it from executing although it was unparked, if that is after
    /// `since`.
    pub fn held_until(&self, since: u64, now: u64) -> Option<u64> {
        match &self.kind {
            MemberKind::Program(p) => p.freezer.held_until(since + p.write_time(), now),
            _ => None,
        }
    }
}

impl Engine {
    /// Hands the requests of this instant to the freezer thread, which runs as soon as the
    /// dispatcher sleeps.
    pub(crate) fn post_freezer_requests(&mut self) {
        let Engine { members, moving, freezer, .. } = self;
        let mut any = false;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut().filter(|m| m.freezer_requested) else {
                continue;
            };
            if let MemberKind::Program(p) = &m.kind {
                // Where the queue is full of programs that are gone the request stays for the next
                // instant.
                m.freezer_requested = !freezer.push(p);
                any = true;
            }
        }
        if any {
            freezer.doorbell.ring();
        }
    }
}
