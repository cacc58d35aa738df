//! RED-Linux's Table 5: one full decision of the dispatcher, natively and as BPF.
//!
//! The paper times the selection of the next job. Here selection alone is a few instructions,
//! because the work of keeping the order is in adding and ending jobs, so that all of it is timed:
//! charge, end one job, handle expired events, add one, select, next timer.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use punctual_dispatcher::{Attribute, Dispatcher, For, Job, JobId, Limits, Refusal, TaskId};
use punctual_host_kernel::selftest::{InKernel, Native, Subject};
use punctual_host_kernel::{Kernel, KernelError};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::sched;

use super::paper::{RED_LINUX, RED_LINUX_TABLE_5};
use super::result::{DecisionRow, DecisionsResult, DispatcherBuild, PaperDelay};
use super::{OverheadPlan, Window};
use crate::cycles::{ticks, CycleRate};
use crate::distribution::Distribution;
use crate::periodic::FIFO_PRIORITY;

/// Jobs of the rows.
pub const JOBS: [u32; 5] = [1, 10, 100, 1_000, 10_000];
/// As BPF; the self-test has room for 4,096.
pub const BPF_JOBS: [u32; 4] = [1, 10, 100, 1_000];
/// Decisions between two rests: below a millisecond.
const CHUNK: u32 = 1_024;
/// Time between two reports of progress.
const POLL: Duration = Duration::from_millis(25);
/// Decisions of one BPF test run, so many that the call itself is nothing: below a millisecond.
const IN_KERNEL: u32 = 1_000;
/// Left out at the beginning of each row.
const WARM_UP: u32 = 10_000;

/// Where the jobs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobShape {
    /// In group 0.
    Flat,
    /// At the third level of groups, with two levels of budget groups.
    Trees,
}

/// Group 0 has 1 and 2, of which 1 has 3 and 4, and 2 has 5 and 6.
const GROUPS: u32 = 7;
const LEAVES: u32 = 4;
/// Node 1 is above nodes 2 and 3.
const NODES: u32 = 3;
/// Between two decisions, and what the running job executed meanwhile, ns.
const STEP: u64 = 1_000;
const RAN: u64 = 900;
/// Decisions after which the server jobs of the running one are replenished.
const TURN: u32 = 16;

/// A dispatcher with so many jobs under EDF, one of each task.
pub struct Decisions {
    dispatcher: Dispatcher,
    shape: JobShape,
    running: JobId,
    now: u64,
    made: u32,
    /// Of each task.
    periods: Vec<u64>,
    finishes: Vec<u64>,
    server_finish: u64,
}

/// The running job is done; its task's next one is added. What runs next, and until when.
#[inline(never)]
fn decide(d: &mut Dispatcher, running: JobId, next: &Job, now: u64) -> (Option<JobId>, u64) {
    let charged = d.charge_job(running, RAN, now);
    let ended = d.complete_job(running, now);
    d.advance(now);
    let added = d.add_job(next, now);
    let selected = d.select(0, now);
    debug_assert!(charged.is_ok() && ended.is_ok() && added.is_ok());
    (selected, d.timer(0, 1, now))
}

impl Decisions {
    /// With so many jobs, from 1.
    ///
    /// # Errors
    /// More than the dispatcher has room for, or none.
    pub fn new(jobs: u32, shape: JobShape) -> Result<Decisions, Refusal> {
        let limits = Limits {
            jobs: jobs + 1 + GROUPS + NODES,
            tasks: jobs,
            reservations: 0,
            groups: GROUPS,
            budget_groups: NODES,
            timers: 0,
            depth: 3,
            events: 64,
            records: 1 << 14,
            windows: 0,
        };
        let mut all = Decisions {
            dispatcher: Dispatcher::new(limits)?,
            shape,
            running: JobId::from_u64(0),
            now: 1,
            made: 0,
            periods: Vec::new(),
            finishes: Vec::new(),
            server_finish: 1 << 41,
        };
        let order = [Attribute::Finish, Attribute::Priority];
        all.dispatcher.set_order(0, &order)?;
        if shape == JobShape::Trees {
            for group in 1..GROUPS {
                all.dispatcher.set_order(group, &order)?;
                all.serve(group)?;
            }
            for node in 1..=NODES {
                let segment = Job { budget_group: node / 2, ..lasting(For::Budget(node)) };
                all.dispatcher.add_job(&segment, all.now)?;
            }
        }
        let mut state = 88_172_645_463_325_252u64;
        let mut below = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        for _ in 0..jobs {
            let task = all.dispatcher.add_task(all.now)?;
            // 1 to 100 times the time in which each has one job; finishes far enough off.
            let period = (1 + below(100)) * STEP * u64::from(jobs);
            all.periods.push(period);
            all.finishes.push(1 << 40 | below(period));
            let job = all.next_job(task);
            all.dispatcher.add_job(&job, all.now)?;
            // Their events are no part of a decision.
            while all.dispatcher.next_event().is_some() {}
        }
        all.running = all.dispatcher.select(0, all.now).ok_or(Refusal::Nothing)?;
        Ok(all)
    }

    /// A server job of a group, behind the others; it never ends by itself.
    fn serve(&mut self, group: u32) -> Result<JobId, Refusal> {
        self.server_finish += STEP;
        let server = lasting(For::Group(group));
        let job = Job { finish: self.server_finish, group: (group - 1) / 2, ..server };
        self.dispatcher.add_job(&job, self.now)
    }

    /// A task's next job, one period on.
    fn next_job(&mut self, task: TaskId) -> Job {
        let place = task.0 as usize;
        self.finishes[place] += self.periods[place];
        let trees = self.shape == JobShape::Trees;
        Job {
            start: self.now,
            finish: self.finishes[place],
            cookie: u64::from(task.0),
            group: if trees { GROUPS - LEAVES + task.0 % LEAVES } else { 0 },
            budget_group: if trees { 2 + task.0 % 2 } else { 0 },
            ..Job::new(For::Task(task), 1_000_000_000)
        }
    }

    /// Makes so many decisions; `each` gets the ticks of one. Nothing is allocated.
    ///
    /// # Errors
    /// Never: all jobs are in the dispatcher's limits.
    pub fn run(&mut self, count: u32, each: &mut dyn FnMut(u64)) -> Result<(), Refusal> {
        for _ in 0..count {
            let task = self.dispatcher.task_of(self.running).ok_or(Refusal::Nothing)?;
            self.now += STEP;
            let job = self.next_job(task);
            let begun = ticks();
            let (selected, timer) = decide(&mut self.dispatcher, self.running, &job, self.now);
            each(ticks() - begun);
            std::hint::black_box(timer);
            self.running = selected.ok_or(Refusal::Nothing)?;
            self.made += 1;
            if self.shape == JobShape::Trees && self.made % TURN == 0 {
                self.replenish()?;
            }
            while self.dispatcher.next_event().is_some() {}
        }
        Ok(())
    }

    /// The server jobs of the running one yield to the others of their groups.
    fn replenish(&mut self) -> Result<(), Refusal> {
        let mut path = self.dispatcher.path(0);
        let servers = [path.next(), path.next()];
        drop(path);
        let task = self.dispatcher.task_of(self.running).ok_or(Refusal::Nothing)?;
        let leaf = GROUPS - LEAVES + task.0 % LEAVES;
        for (server, group) in servers.into_iter().zip([(leaf - 1) / 2, leaf]) {
            self.dispatcher.cancel_job(server.ok_or(Refusal::Nothing)?, self.now)?;
            self.serve(group)?;
        }
        self.running = self.dispatcher.select(0, self.now).ok_or(Refusal::Nothing)?;
        Ok(())
    }
}

/// A server job or a segment, which never ends by itself.
fn lasting(serves: For) -> Job {
    Job::new(serves, punctual_dispatcher::INFINITE >> 1)
}

/// The dispatcher's two builds with the same jobs, BPF test runs being permitted.
pub struct BothBuilds {
    bpf: InKernel,
    native: Native,
}

impl BothBuilds {
    /// Loads the dispatcher as BPF, with so many jobs, at most 4,096.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(jobs: u32, shape: JobShape) -> Result<BothBuilds, KernelError> {
        let mut both = BothBuilds { bpf: InKernel::new(Kernel::load()?)?, native: Native::new() };
        let trees = shape == JobShape::Trees;
        both.bpf.prepare_decisions(jobs, trees)?;
        both.native.prepare_decisions(jobs, trees)?;
        Ok(both)
    }

    /// Time of a decision as BPF, ns: the mean of `count`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bpf_ns(&mut self, count: u32) -> Result<f64, KernelError> {
        mean(&mut self.bpf, count)
    }

    /// The same of the native build.
    ///
    /// # Errors
    /// None in practice.
    pub fn native_ns(&mut self, count: u32) -> Result<f64, KernelError> {
        mean(&mut self.native, count)
    }
}

fn mean(subject: &mut dyn Subject, count: u32) -> Result<f64, KernelError> {
    let begun = Instant::now();
    subject.decide(count)?;
    Ok(begun.elapsed().as_nanos() as f64 / f64::from(count.max(1)))
}

impl DecisionsResult {
    pub(super) fn new() -> DecisionsResult {
        let paper = RED_LINUX_TABLE_5.iter().map(|row| PaperDelay {
            jobs: row.jobs,
            min: RED_LINUX.time(row.min_ns),
            average: RED_LINUX.time(row.average_ns),
            max: RED_LINUX.time(row.max_ns),
        });
        DecisionsResult {
            rows: Vec::new(),
            bpf_not_possible: None,
            notes: Vec::new(),
            paper_cpu: RED_LINUX.cpu.to_owned(),
            paper_khz: RED_LINUX.khz,
            paper: paper.collect(),
        }
    }
}

/// Measures the native build with so many jobs, each decision by itself.
pub(super) fn native(
    plan: &OverheadPlan,
    rate: &CycleRate,
    jobs: u32,
    window: &mut Window,
) -> Result<(Option<DecisionRow>, Option<String>), Refusal> {
    let mut decisions = Decisions::new(jobs, JobShape::Flat)?;
    decisions.run(WARM_UP, &mut |_| {})?;
    let mut times = Distribution::new();
    let (done, note) = in_real_time(plan, window, || {
        let times = &mut times;
        Ok(move || decisions.run(CHUNK, &mut |ticks| times.add(ticks)))
    });
    done?;
    Ok((row(jobs, DispatcherBuild::Native, 1, &times, |ticks| rate.ticked(ticks)), note))
}

/// Measures the BPF build: a call makes many decisions, and its figures are their means.
pub(super) fn bpf(
    plan: &OverheadPlan,
    rate: &CycleRate,
    jobs: u32,
    window: &mut Window,
) -> Result<Option<DecisionRow>, KernelError> {
    let mut times = Distribution::new();
    let (done, _) = in_real_time(plan, window, || {
        let (mut both, times) = (BothBuilds::new(jobs, JobShape::Flat)?, &mut times);
        both.bpf_ns(IN_KERNEL)?;
        Ok(move || both.bpf_ns(IN_KERNEL).map(|ns| times.add(ns.round() as u64)))
    });
    match done {
        // The kernel ends a program that was kept from its CPU for long: the others count.
        Err(_) if times.count() > 0 => {}
        done => done?,
    }
    Ok(row(jobs, DispatcherBuild::Bpf, IN_KERNEL, &times, |ns| rate.time(ns)))
}

/// Repeats a short piece of work in a thread of its own for the window's length: on the CPU, under
/// SCHED_FIFO as a dispatcher, resting for as long as it worked. `make` is called in the thread,
/// before. Where SCHED_FIFO is not permitted it is an ordinary thread, and why is returned beside.
fn in_real_time<E: Send, Work: FnMut() -> Result<(), E>>(
    plan: &OverheadPlan,
    window: &mut Window,
    make: impl FnOnce() -> Result<Work, E> + Send,
) -> (Result<(), E>, Option<String>) {
    let length = window.length;
    let life = move || {
        let mut work = match make() {
            Ok(work) => work,
            Err(e) => return (Err(e), None),
        };
        let placed = sched::pin(0, plan.cpu).and_then(|()| sched::set_fifo(0, FIFO_PRIORITY));
        let (mut done, end) = (Ok(()), monotonic_ns() + length);
        while done.is_ok() && !plan.stop.load(Relaxed) && monotonic_ns() < end {
            let begun = monotonic_ns();
            done = work();
            let now = monotonic_ns();
            sleep_until(now + (now - begun));
        }
        (done, placed.err())
    };
    let begun = monotonic_ns();
    std::thread::scope(|scope| {
        let thread = scope.spawn(life);
        while !thread.is_finished() {
            std::thread::sleep(POLL);
            window.tick(monotonic_ns() - begun);
        }
        let (done, refused) = match thread.join() {
            Ok(joined) => joined,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let note = refused.map(|e| {
            format!("not under SCHED_FIFO ({e}): the longest are interruptions by other programs")
        });
        (done, note)
    })
}

fn row(
    jobs: u32,
    build: DispatcherBuild,
    decisions_each: u32,
    times: &Distribution,
    time: impl Fn(u64) -> crate::cycles::MeasuredTime,
) -> Option<DecisionRow> {
    let spread = times.spread()?;
    Some(DecisionRow {
        jobs,
        build,
        count: spread.count,
        decisions_each,
        min: time(spread.min_ns),
        average: time(spread.average_ns),
        p50: time(spread.p50_ns),
        max: time(spread.max_ns),
    })
}
