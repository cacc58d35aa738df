//! Programs that this one has loaded (the paper's `RTload`, `RTrun`, `RTkill`).
//!
//! ```text
//! RTload ──> Held ──── RTrun ────> Runs ────> Ended: reaped, and reported
//!            at its exec, memory   a task of the group,
//!            locked, limits fixed  at the least priority
//! ```
//!
//! One thread has them all, from the first `RTload` to the end of the process, because a program is
//! held by a thread, and dies with it. A program that is held has executed nothing. When this
//! process is killed, the kernel kills its programs, and a guardian what these have started.

mod programs;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use punctual::Error;
use punctual_sys::event_count::EventCount;

use crate::loaded;
use programs::Programs;

/// Programs that are loaded at a time, and that have ended and were not waited for, at most.
pub const PROGRAMS: usize = 64;

/// How long the end of this process waits for that of its programs.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of a program that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramState {
    Held,
    Runs,
}

/// What all threads may know.
struct States {
    alive: BTreeMap<i32, ProgramState>,
    /// Those that were not waited for, the latest [`PROGRAMS`] ones, in the order of their ends.
    ended: VecDeque<(i32, ExitStatus)>,
}

enum Request {
    Load(OsString, Sender<Result<i32, Error>>),
    Run(i32, Sender<Result<(), Error>>),
    Kill(i32, Sender<Result<(), Error>>),
    /// The process ends.
    End(Sender<()>),
}

/// The loader's thread, as the rest of the program sees it.
struct Loader {
    requests: Sender<Request>,
    /// Counts them, for the thread's poll.
    count: Arc<EventCount>,
}

static LOADER: Mutex<Option<Loader>> = Mutex::new(None);
/// The process that has the loader; 0: none has. A child of a fork reads it before it locks
/// anything, because a thread of its parent may have had the lock.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static STATES: Mutex<States> =
    Mutex::new(States { alive: BTreeMap::new(), ended: VecDeque::new() });
static CHANGED: Condvar = Condvar::new();

fn states() -> MutexGuard<'static, States> {
    STATES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl States {
    fn end(&mut self, pid: i32, status: ExitStatus) {
        self.alive.remove(&pid);
        if self.ended.len() == PROGRAMS {
            self.ended.pop_front();
        }
        self.ended.push_back((pid, status));
        CHANGED.notify_all();
    }
}

/// # Errors
/// EPERM: this is the child of a process that has loaded programs.
fn refuse_children() -> Result<(), Error> {
    let process = PROCESS.load(Ordering::Relaxed);
    if process == 0 || process == std::process::id() {
        return Ok(());
    }
    let cause = "this is the child of a process that has loaded programs";
    Err(Error::usage(cause, "call exec in it").with_errno(libc::EPERM))
}

fn unknown(pid: i32) -> Error {
    Error::usage(format!("no program {pid} was loaded"), "load it first (RTload)")
        .with_errno(libc::ESRCH)
}

fn has_ended() -> Error {
    Error::machine("the thread that loads programs has ended", "report it").with_errno(libc::EIO)
}

/// Sends a request to the loader, which is started for `may_start`, and waits for its answer.
fn ask<T>(may_start: bool, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
    refuse_children()?;
    let (answer, is_answered) = channel();
    {
        let mut loader = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
        let loader = match &*loader {
            Some(loader) => loader,
            None if may_start => loader.insert(start()?),
            None => return Err(unknown(0)),
        };
        loader.requests.send(request(answer)).map_err(|_| has_ended())?;
        loader.count.add(1);
    }
    is_answered.recv().map_err(|_| has_ended())
}

/// Loads a program, which then waits for [`run`]; its process.
///
/// # Errors
/// There is no such program, or it cannot be executed; there are [`PROGRAMS`] (EAGAIN).
pub fn load(file: OsString) -> Result<i32, Error> {
    ask(true, |answer| Request::Load(file, answer))?
}

/// Starts a loaded program, at the least priority.
///
/// # Errors
/// It was not loaded (ESRCH), runs already (EALREADY), or does not fit beside the other tasks.
pub fn run(pid: i32) -> Result<(), Error> {
    ask(false, |answer| Request::Run(pid, answer))?
}

/// Kills a loaded program, and waits for its end.
///
/// # Errors
/// It was not loaded, or has ended (ESRCH).
pub fn kill(pid: i32) -> Result<(), Error> {
    kill_without_waiting(pid)?;
    wait(pid).map(drop)
}

/// Kills a loaded program.
///
/// # Errors
/// As of [`kill`].
pub fn kill_without_waiting(pid: i32) -> Result<(), Error> {
    refuse_children()?;
    if !states().alive.contains_key(&pid) {
        return Err(unknown(pid));
    }
    ask(false, |answer| Request::Kill(pid, answer))?
}

/// Waits for the end of a loaded program, and returns how it ended. It is forgotten then.
///
/// # Errors
/// It was not loaded, or was waited for (ESRCH).
pub fn wait(pid: i32) -> Result<ExitStatus, Error> {
    refuse_children()?;
    let mut states = states();
    loop {
        // The latest one of this number.
        if !states.alive.contains_key(&pid) {
            let place = states.ended.iter().rposition(|(ended, _)| *ended == pid);
            let ended = place.and_then(|place| states.ended.remove(place));
            return ended.map(|(_, status)| status).ok_or_else(|| unknown(pid));
        }
        states = CHANGED.wait(states).unwrap_or_else(PoisonError::into_inner);
    }
}

fn start() -> Result<Loader, Error> {
    let refused = |error| Error::refused("programs cannot be loaded", error, "raise ulimit -n");
    let count = Arc::new(EventCount::new().map_err(refused)?);
    let (requests, received) = channel();
    let (ready, is_ready) = channel();
    let (fifo, name) = loaded::make_fifo()?;
    let of_thread = count.clone();
    let begin = move || match Programs::begin(fifo, name) {
        Ok(programs) => {
            drop(ready.send(Ok(())));
            programs.serve(&received, &of_thread);
        }
        Err(error) => drop(ready.send(Err(error))),
    };
    let builder = thread::Builder::new().name("rtlinux-loader".into());
    drop(builder.spawn(begin).map_err(refused)?);
    is_ready.recv().map_err(|_| has_ended())??;
    static REGISTERED: Once = Once::new();
    // After the sets were used first, so that programs end before them.
    REGISTERED.call_once(|| {
        // SAFETY: the handler neither unwinds nor returns to code that is gone.
        unsafe { libc::atexit(at_exit) };
    });
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    Ok(Loader { requests, count })
}

extern "C" fn at_exit() {
    if refuse_children().is_err() {
        return;
    }
    let (answer, is_answered) = channel();
    let Ok(loader) = LOADER.try_lock() else { return };
    if let Some(loader) = loader.as_ref() {
        if loader.requests.send(Request::End(answer)).is_ok() {
            loader.count.add(1);
            let _ = is_answered.recv_timeout(PATIENCE);
        }
    }
}
