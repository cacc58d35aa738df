//! Starting an engine's thread on its CPU.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_dispatcher::{Dispatcher, Limits};
use punctual_policies::{Allocators, Options};

use crate::calibrate::{self, Precision};
use crate::cell::Bell;
use crate::engine::{Command, Ends, Engine, Note};
use crate::error::HostError;
use crate::host::HostOptions;
use crate::sched;
use crate::stats::EngineStats;

/// What an engine has told and nobody has heard yet.
const NOTES: usize = 1 << 13;

/// How long a new thread may take to be heard of.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A new thread was not heard of: somebody above it keeps its CPU.
pub(crate) fn kept(cpu: u32, level: i32) -> HostError {
    HostError::machine(
        format!(
            "a new thread at SCHED_FIFO {level} got nothing of CPU {cpu} for {} s: another real-time program keeps it",
            PATIENCE.as_secs()
        ),
        "find it by ps -eLo pid,tid,cls,rtprio,psr,comm and end it, or use another CPU",
    )
}

/// The control side's ends of an engine.
pub(crate) struct EngineHandle {
    pub(crate) cpu: u32,
    pub(crate) commands: rtrb::Producer<Command>,
    pub(crate) notes: rtrb::Consumer<Note>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) stats: Arc<EngineStats>,
    pub(crate) precision: Precision,
    pub(crate) tid: i32,
    pub(crate) thread: Option<JoinHandle<Dispatcher>>,
}

/// Pins, raises, calibrates and starts the thread. Takes some 10 ms.
pub(crate) fn start_engine(cpu: u32, options: &HostOptions) -> Result<EngineHandle, HostError> {
    let with_room = Options { room: options.room, ..Options::default() };
    let allocators = Allocators::with(&options.set, cpu, with_room)?;
    let limits = Limits { records: options.records, ..allocators.limits() };
    let dispatcher = Dispatcher::new(limits).map_err(|e| {
        HostError::usage(format!("a dispatcher for {} tasks is refused: {e}", limits.tasks), "run fewer")
    })?;
    let (commands, commands_out) = rtrb::RingBuffer::new(limits.tasks as usize + 64);
    let (notes_in, notes) = rtrb::RingBuffer::new(NOTES);
    let bell = Arc::new(Bell::new());
    let stats = Arc::new(EngineStats::new());
    let of_the_set = options.set.tasks.len();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = {
        let ends = Ends { bell: bell.clone(), commands: commands_out, notes: notes_in, stats: stats.clone() };
        std::thread::Builder::new().name(format!("dispatch/{cpu}")).stack_size(128 << 10).spawn(move || {
            let placed = sched::pin(0, cpu).and_then(|()| sched::set_level(0, sched::DISPATCHER));
            let precision = calibrate::measure(cpu);
            let engine = Engine::new(dispatcher, allocators, of_the_set, precision.granularity, ends);
            // SAFETY: a system call without arguments.
            let tid = unsafe { libc::gettid() };
            drop(ready.send(placed.map(|()| (precision, tid))));
            engine.run()
        })
    };
    let thread = thread
        .map_err(|e| HostError::machine(format!("no dispatcher thread can be made: {e}"), "raise RLIMIT_NPROC"))?;
    let placed = is_ready.recv_timeout(PATIENCE).map_err(|e| match e {
        RecvTimeoutError::Timeout => kept(cpu, sched::DISPATCHER),
        RecvTimeoutError::Disconnected => {
            HostError::machine("the dispatcher thread ended at once", "tell us about this machine")
        }
    })?;
    let (precision, tid) = match placed {
        Ok(p) => p,
        Err(e) => {
            return Err(HostError::machine(
                format!("the dispatcher cannot have SCHED_FIFO 99 on CPU {cpu}: {e}"),
                "see punctual doctor",
            ))
        }
    };
    Ok(EngineHandle { cpu, commands, notes, bell, stats, precision, tid, thread: Some(thread) })
}
