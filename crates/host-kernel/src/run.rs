//! A whole task set inside the kernel, from start to end.
//!
//! ```text
//!   tasks stand at the barrier ──> scheduler attached ──> each domain: tasks join ──> the barrier is released ──> first releases
//!      ──> looks ... ──> domains stop ──> scheduler detached ──> what was started is ended
//! ```

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_process::{CpuLock, Output};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::memory;
use punctual_taskset::TaskSet;
use punctual_trace::Told;

use crate::domain::{self, Brief, Command, Joining, News};
use crate::lateness::Lateness;
use crate::limits::{parts, Part};
use crate::probe::Timer;
use crate::reader::LOOK;
use crate::run_state::RunState;
use crate::scheduler::Scheduler;
use crate::tasks::Tasks;
use crate::trace_file::Traces;
use crate::{exit_reason, machine, reader};
use punctual_diagnostic::{Diagnostic, Kind};

/// From asking for the reservations to the first release, ns.
const LEAD: u64 = 20_000_000;
/// How long a domain's thread may take to be heard of: it is an ordinary one, and its CPU may be busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the kernel may take to say how it ended the scheduler.
const END_KNOWN: Duration = Duration::from_secs(10);

/// How to run a set.
pub struct RunOptions<'a> {
    /// Becomes true when it shall end early.
    pub stop: &'a AtomicBool,
    /// For those who are refused because of us.
    pub owner: String,
    /// By CPU: a file for its trace.
    pub traces: Vec<(u32, File)>,
    /// Whether commands get our standard input (only sensible with a single one).
    pub stdin: bool,
    /// Where commands' output goes.
    pub output: Output,
}

/// How a run went.
pub struct RunOutcome {
    /// From the first release to the end, ns.
    pub ran: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub ended: u64,
    /// Events of the dispatchers.
    pub events: u64,
    /// From due to running.
    pub lateness: Option<Lateness>,
    /// What people should know.
    pub notes: Vec<String>,
    /// It was stopped early.
    pub interrupted: bool,
    /// The scheduler was ended while it ran: why. What is known until then is here all the same.
    pub exit: Option<Diagnostic>,
}

/// Runs a set inside the kernel; `sink` hears everything as it becomes known, `tick` some forty times a second.
///
/// # Errors
/// What the set or the machine does not permit. Nothing is left behind.
pub fn run(
    set: &TaskSet,
    options: RunOptions<'_>,
    sink: &mut dyn FnMut(Told),
    tick: &mut dyn FnMut(),
) -> Result<RunOutcome, Diagnostic> {
    let parts = parts(set)?;
    machine::check(&set.cpus)?;
    let locks = set.cpus.iter().map(|&cpu| CpuLock::take(cpu, &options.owner));
    let locks = locks.collect::<Result<Vec<_>, _>>()?;
    let traces = Traces::new(set, &parts, options.traces)?;
    let mut tasks = Tasks::start(set, &locks, options.stdin, options.output)?;
    let timer = Timer::of_this_kernel()?;
    let mut scheduler = Scheduler::load(|open| timer.prepare(open))?;
    // Dropped after the scheduler was detached, which would not live without them.
    let mut timer_processes = Vec::new();
    for (domain, part) in parts.iter().enumerate() {
        let domain = domain as u32;
        scheduler.create(domain, part.cpu, part.hears, &part.limits, timer.granularity())?;
        if timer == Timer::Process {
            timer_processes.push(scheduler.timer_process(domain, part.cpu)?);
        }
    }
    scheduler.attach()?;
    let hears = parts.iter().any(|p| p.hears);
    let alive = vec![true; set.tasks.len()];
    let mut run = Run {
        set,
        domains: Vec::new(),
        readers: Vec::new(),
        news: None,
        known: RunState::new(set, traces),
        alive,
        origin: None,
    };
    if let Some(why) = hears.then(memory::lock_all).and_then(Result::err) {
        run.known.note(format!("memory could not be locked ({why}): page faults may delay the policies"));
    }
    let told = run.follow(parts, &mut scheduler, &mut tasks, options.stop, sink, tick);
    // An end from outside is the cause of whatever else went wrong then, and may be known a moment later: a CPU that
    // goes offline first takes our threads to another one.
    let limit = Instant::now() + END_KNOWN;
    let mut by_kernel = scheduler.ended();
    while by_kernel.is_none() && told.as_ref().is_err_and(|e| e.kind == Kind::Machine) && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
        by_kernel = scheduler.ended();
    }
    if by_kernel.is_some() && told.is_err() {
        // Domains that can still read their rings bring what was recorded until the end.
        drop(run.stop(sink));
    }
    tasks.end();
    run.join();
    scheduler.detach();
    drop(timer_processes);
    tasks.finish().into_iter().for_each(|left| run.known.note(left));
    if hears {
        memory::unlock_all();
    }
    let (ran, ended, interrupted) = match told {
        Err(e) if by_kernel.is_none() => return Err(e),
        Err(_) => (run.origin.map_or(0, |origin| monotonic_ns().saturating_sub(origin)), monotonic_ns(), false),
        Ok(end) => end,
    };
    let (events, lateness, notes) = run.known.finish(sink)?;
    let exit = by_kernel.map(|exit| exit_reason::explain(&exit));
    Ok(RunOutcome { ran, ended, events, lateness, notes, interrupted, exit })
}

/// A domain's thread, from here.
struct Domain {
    commands: Sender<Command>,
    thread: JoinHandle<()>,
}

/// The one that reads for an allocator, from here: until `go_on` is dropped.
struct Reading {
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

struct Run<'a> {
    set: &'a TaskSet,
    domains: Vec<Domain>,
    readers: Vec<Reading>,
    news: Option<Receiver<(u32, News)>>,
    known: RunState<'a>,
    /// By place in the set: some process of it is there.
    alive: Vec<bool>,
    /// When the first releases are, CLOCK_MONOTONIC ns.
    origin: Option<u64>,
}

impl Run<'_> {
    /// Starts the domains and listens to them, to the end: how long it ran, when it ended, whether it was interrupted.
    fn follow(
        &mut self,
        parts: Vec<Part>,
        scheduler: &mut Scheduler,
        tasks: &mut Tasks<'_>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(Told),
        tick: &mut dyn FnMut(),
    ) -> Result<(u64, u64, bool), Diagnostic> {
        let (say, news) = channel();
        self.news = Some(news);
        for (domain, part) in parts.into_iter().enumerate() {
            self.spawn(domain as u32, part, scheduler, tasks, say.clone())?;
        }
        drop(say);
        self.all("its tasks cannot join", scheduler)?;
        tasks.open();
        let origin = monotonic_ns() + LEAD;
        self.origin = Some(origin);
        for domain in &self.domains {
            drop(domain.commands.send(Command::Begin(origin)));
        }
        self.all("its first releases cannot be set", scheduler)?;
        let end = self.set.duration.map(|d| origin.saturating_add(d));
        let mut interrupted = false;
        while self.alive.contains(&true) && end.is_none_or(|end| monotonic_ns() < end) {
            if stop.load(Ordering::Relaxed) {
                interrupted = true;
                break;
            }
            let left = end.map_or(LOOK, |e| Duration::from_nanos(e.saturating_sub(monotonic_ns())));
            self.listen(LOOK.min(left), sink)?;
            if scheduler.ended().is_some() {
                break;
            }
            tasks.look().into_iter().for_each(|note| self.known.note(note));
            self.who_ended(tasks, sink);
            tick();
        }
        let ended = monotonic_ns();
        self.stop(sink)?;
        Ok((ended.saturating_sub(origin), ended, interrupted))
    }

    fn spawn(
        &mut self,
        domain: u32,
        part: Part,
        scheduler: &mut Scheduler,
        tasks: &Tasks<'_>,
        say: Sender<(u32, News)>,
    ) -> Result<(), Diagnostic> {
        let Part { cpu, allocators, limits, hears } = part;
        let of_the_cpu = self.set.tasks.iter().enumerate().filter(|(_, t)| t.cpu == cpu);
        let joining = of_the_cpu.map(|(index, spec)| Joining {
            index,
            pid: tasks.pid(index),
            cooperates: punctual_workload::Work::of(&spec.body).is_some(),
            adopted: matches!(spec.body, punctual_taskset::Body::Pid(_)),
            pidfd: tasks.pidfd(index),
            overrun: spec.overrun,
        });
        let joining = joining.collect();
        let doorbell = hears.then(|| scheduler.doorbell(domain)).transpose()?;
        let no_thread = |e| Diagnostic::machine(format!("no thread for CPU {cpu}: {e}"), "raise RLIMIT_NPROC");
        let thread = |name: &str| std::thread::Builder::new().name(format!("{name}/{cpu}"));
        if hears {
            // Started here and not by the allocator, whose threads are allocators by birth.
            let brief = reader::Brief { domain, cpu, programs: scheduler.programs(), limits };
            let ((go_on, goes_on), say) = (channel(), say.clone());
            let thread = thread("reader").spawn(move || reader::run(brief, &goes_on, &say)).map_err(no_thread)?;
            self.readers.push(Reading { go_on, thread });
        }
        let brief = Brief { domain, cpu, programs: scheduler.programs(), allocators, limits, doorbell, joining };
        let (commands, orders) = channel();
        let thread = thread("domain").spawn(move || domain::run(brief, &orders, &say)).map_err(no_thread)?;
        self.domains.push(Domain { commands, thread });
        Ok(())
    }

    /// Until each domain has said that it is as far.
    fn all(&mut self, what: &str, scheduler: &Scheduler) -> Result<(), Diagnostic> {
        let limit = Instant::now() + PATIENCE;
        let mut heard = 0;
        while heard < self.domains.len() {
            let Some(news) = &self.news else { return Ok(()) };
            match news.recv_timeout(LOOK) {
                Ok((domain, News::Joined(tasks))) => {
                    self.known.joined(domain, &tasks);
                    heard += 1;
                }
                Ok((_, News::Begun)) => heard += 1,
                Ok((_, News::Stopped)) => return Err(silent(what)),
                // Others may be further, or read already.
                Ok((domain, more)) => self.heard(domain, more, &mut |_| {})?,
                Err(RecvTimeoutError::Timeout) if Instant::now() < limit && scheduler.ended().is_none() => {}
                Err(_) => return Err(silent(what)),
            }
        }
        Ok(())
    }

    fn heard(&mut self, domain: u32, news: News, sink: &mut dyn FnMut(Told)) -> Result<(), Diagnostic> {
        match news {
            News::Tales(tales) => self.known.tales(domain, tales),
            News::Records(batch) => {
                for task in self.known.records(domain, &batch, sink)? {
                    drop(self.domains[domain as usize].commands.send(Command::Gone(task)));
                }
            }
            News::Failed(e) => return Err(e),
            News::Joined(_) | News::Begun | News::Stopped => {}
        }
        Ok(())
    }

    /// What the domains have to say within that time.
    fn listen(&mut self, time: Duration, sink: &mut dyn FnMut(Told)) -> Result<(), Diagnostic> {
        let limit = Instant::now() + time;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let Some(news) = &self.news else { return Ok(()) };
            match news.recv_timeout(left) {
                Ok((domain, news)) => self.heard(domain, news, sink)?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Of a task with children that go on after its first process, nothing is said until they are gone too.
    fn who_ended(&mut self, tasks: &Tasks<'_>, sink: &mut dyn FnMut(Told)) {
        for index in 0..self.alive.len() {
            let Some(how) = tasks.ended(index).filter(|_| self.alive[index] && self.known.is_gone(index)) else {
                continue;
            };
            self.alive[index] = false;
            sink(Told::Ended(index as u32, how.to_owned()));
        }
    }

    /// Each domain looks once more; then its reader, who finds all that came of it.
    fn stop(&mut self, sink: &mut dyn FnMut(Told)) -> Result<(), Diagnostic> {
        for domain in &self.domains {
            drop(domain.commands.send(Command::Stop));
        }
        self.stopped(self.domains.len(), sink)?;
        let reading = self.readers.drain(..).map(|r| (drop(r.go_on), r.thread).1).collect::<Vec<_>>();
        let all = self.stopped(reading.len(), sink);
        reading.into_iter().for_each(|thread| drop(thread.join()));
        all
    }

    /// Receives until so many threads have sent their last message, also after one of them has failed.
    fn stopped(&mut self, threads: usize, sink: &mut dyn FnMut(Told)) -> Result<(), Diagnostic> {
        let limit = Instant::now() + PATIENCE;
        let (mut stopped, mut failure) = (0, Ok(()));
        while stopped < threads {
            let Some(news) = &self.news else { return failure };
            match news.recv_timeout(limit.saturating_duration_since(Instant::now())) {
                Ok((_, News::Stopped)) => stopped += 1,
                Ok((_, News::Failed(e))) => (stopped, failure) = (stopped + 1, failure.and(Err(e))),
                Ok((domain, news)) => self.heard(domain, news, sink)?,
                Err(_) => return failure.and_then(|()| Err(silent("it does not stop"))),
            }
        }
        failure
    }

    /// Whatever happened: no thread of ours gives orders or looks any more.
    fn join(&mut self) {
        self.news = None;
        for Domain { commands, thread } in self.domains.drain(..) {
            drop(commands);
            drop(thread.join());
        }
        for Reading { go_on, thread } in self.readers.drain(..) {
            drop(go_on);
            drop(thread.join());
        }
    }
}

fn silent(what: &str) -> Diagnostic {
    Diagnostic::machine(format!("the kernel host: {what}"), "try when the machine is less busy; see punctual doctor")
}
