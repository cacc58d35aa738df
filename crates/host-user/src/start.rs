//! Starting an engine's thread on its CPU.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_dispatcher::{Dispatcher, Limits};
use punctual_policies::{AllocatorOptions, Allocators};
use punctual_process::Enforcing;
use punctual_program_jobs::{group_requests, GroupRequestSender, JobEventSender};
use punctual_sys::sched::{pin, thread_id};
use punctual_sys::thread_name;
use punctual_taskset::DomainId;

use crate::calibrate::{self, Precision};
use crate::command_ring::{command_ring, CommandSender};
use crate::costs::capacity;
use crate::doorbell::Doorbell;
use crate::engine::{Ends, Engine};
use crate::freezer::{self, FreezerThread};
use crate::host::HostOptions;
use crate::reports::{channels, members_in_flight, Notice, Report};
use crate::sched;
use crate::stats::EngineStats;
use crate::stuck_policy;
use crate::trace::{self, RecordReceiver};
use punctual_diagnostic::Diagnostic;

/// Records that a dispatcher keeps where no trace has them: few, so that they stay in the cache.
const UNREAD: u32 = 256;

/// How long a new thread may take until it reports that it runs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The error for a new thread that did not report: a thread of higher priority occupies its CPU.
pub(crate) fn kept(cpu: u32, level: i32) -> Diagnostic {
    Diagnostic::machine(
        format!(
            "a new thread at SCHED_FIFO {level} did not get CPU {cpu} for {} s: another \
             real-time program keeps it",
            PATIENCE.as_secs()
        ),
        "find it by ps -eLo pid,tid,cls,rtprio,psr,comm and end it, or use another CPU",
    )
}

/// The control side's ends of an engine.
pub(crate) struct EngineHandle {
    pub(crate) domain: DomainId,
    /// The domain's: its dispatcher thread and its tasks execute there.
    pub(crate) cpu: u32,
    pub(crate) commands: CommandSender,
    /// Until a part of the program has it.
    pub(crate) group_requests: GroupRequestSender,
    pub(crate) notices: rtrb::Consumer<Notice>,
    pub(crate) reports: rtrb::Consumer<Report>,
    /// How its allocators were made.
    pub(crate) allocators: AllocatorOptions,
    /// A swap of policies is under way.
    pub(crate) swapping: bool,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) stats: Arc<EngineStats>,
    pub(crate) precision: Precision,
    pub(crate) tid: i32,
    pub(crate) thread: Option<JoinHandle<()>>,
    pub(crate) trace: Option<RecordReceiver>,
    /// Ends after the dispatcher.
    pub(crate) freezer: Option<FreezerThread>,
}

/// Pins, raises, calibrates and starts the thread. Takes some 10 ms.
pub(crate) fn start_engine(
    domain: DomainId,
    options: &HostOptions,
    enforcing: Enforcing,
    job_events: Option<JobEventSender>,
) -> Result<EngineHandle, Diagnostic> {
    let cpu = options.set.domain(domain).only_cpu()?;
    let costs = capacity(&options.set).costs;
    let HostOptions { room, program_groups, .. } = *options;
    let in_real_time = AllocatorOptions::in_real_time();
    let with_room = AllocatorOptions { room, program_groups, costs, ..in_real_time };
    let allocators = Allocators::with(&options.set, domain, with_room)?;
    let sink = options.traces.iter().find(|(of, _)| *of == domain).map(|(_, sink)| sink.clone());
    let limits = allocators.limits();
    let records = if sink.is_some() { limits.records_at_once() } else { UNREAD };
    let limits = Limits { records, ..limits };
    let dispatcher = Dispatcher::new(limits).map_err(|e| {
        Diagnostic::usage(
            format!("a dispatcher for {} tasks is refused: {e}", limits.tasks),
            "run fewer",
        )
    })?;
    let (sender, trace) = sink
        .map(|sink| {
            sink.begin(dispatcher.limits());
            trace::channel(options.records as usize, sink)
        })
        .unzip();
    let room = members_in_flight(limits.tasks);
    let (commands, commands_out) = command_ring(room);
    let ((notices_in, reports_in), (notices, reports)) = channels(limits.tasks, limits.groups);
    let (group_requests, group_requests_out) = group_requests(program_groups);
    let doorbell = Arc::new(Doorbell::new());
    let stats = Arc::new(EngineStats::new());
    let (freezer_queue, freezer) = freezer::start(cpu, room, stats.clone())?;
    let of_the_set = options.set.tasks.len();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = {
        let ends = Ends {
            doorbell: doorbell.clone(),
            commands: commands_out,
            notices: notices_in,
            reports: reports_in,
            stats: stats.clone(),
            freezer: freezer_queue,
            enforcing,
            job_events,
            group_requests: group_requests_out,
            trace: sender,
        };
        std::thread::Builder::new()
            .name(thread_name::of_cpu(thread_name::DISPATCHER, cpu))
            .stack_size(128 << 10)
            .spawn(move || {
                let placed = pin(0, cpu)
                    .and_then(|()| stuck_policy::bound_calls())
                    .and_then(|()| sched::set_level(0, sched::DISPATCHER));
                let precision = calibrate::measure(cpu);
                let engine =
                    Engine::new(dispatcher, allocators, of_the_set, precision.granularity, ends);
                engine.doorbell.enter();
                let tid = thread_id();
                drop(ready.send(placed.map(|()| (precision, tid))));
                engine.run();
            })
    };
    let thread = thread.map_err(|e| {
        Diagnostic::machine(format!("no dispatcher thread can be made: {e}"), "raise RLIMIT_NPROC")
    })?;
    let placed = is_ready.recv_timeout(PATIENCE).map_err(|e| match e {
        RecvTimeoutError::Timeout => kept(cpu, sched::DISPATCHER),
        RecvTimeoutError::Disconnected => Diagnostic::machine(
            "the dispatcher thread ended at once",
            "report it with the output of punctual doctor",
        ),
    })?;
    let (precision, tid) = match placed {
        Ok(p) => p,
        Err(e) => {
            return Err(Diagnostic::machine(
                format!("the dispatcher cannot have SCHED_FIFO 99 on CPU {cpu}: {e}"),
                "see punctual doctor",
            ))
        }
    };
    let (thread, freezer) = (Some(thread), Some(freezer));
    Ok(EngineHandle {
        domain,
        cpu,
        commands,
        group_requests,
        notices,
        reports,
        allocators: with_room,
        swapping: false,
        doorbell,
        stats,
        precision,
        tid,
        thread,
        trace,
        freezer,
    })
}
