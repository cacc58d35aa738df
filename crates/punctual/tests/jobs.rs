//! Programs that are their own allocators: jobs added to tasks, their ends, and the allocators of
//! RED-Linux, Figs. 3 to 5.

mod common;
#[path = "common/traced_jobs.rs"]
mod traced_jobs;

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use common::{execute, start, turn, MS};
use punctual::jobs::{
    AddedJobEnd, Attribute, JobError, JobEvent, JobEvents, JobParams, JobRefusal, NoEvent, TaskJobs,
};
use punctual::{
    ErrorKind, Host, Policy, Punctual, Running, SchedulingGroup, Task, TaskDraft, TaskHandle, Time,
};
use punctual_explain::{Activity, Explainer, Reason, Share};
use punctual_test_support::{comes_true, Scratch, LIVENESS};
use punctual_trace::kind;
use traced_jobs::{jobs_of, read};

const HIGH: i64 = 2;
const MIDDLE: i64 = 1;
const LOW: i64 = 0;
const NS: u64 = 1_000_000;

/// Executes so long in each of its jobs.
fn each_job(time: Duration) -> impl FnOnce(&Task<'_>) + Send {
    move |task| {
        for _ in task.releases() {
            execute(time);
        }
    }
}

fn job(start: u64, finish: u64, budget: u64, priority: i64) -> JobParams {
    JobParams { start, finish, budget, priority }
}

/// In so many ms.
fn soon(ms: u64) -> u64 {
    Time::now().as_nanos() + ms * NS
}

fn next(events: &mut JobEvents) -> JobEvent {
    events.next(soon(LIVENESS.as_millis() as u64)).expect("jobs end")
}

/// Adds a task that executes so long in each of its jobs.
fn add(draft: TaskDraft<&Running>, time: Duration) -> (TaskHandle<()>, TaskJobs) {
    let task = draft.spawn(each_job(time)).expect("it fits");
    let jobs = task.jobs().expect("nothing has it");
    (task, jobs)
}

/// A set with two tasks whose jobs the program adds, in this program's hands.
struct Allocator {
    running: Running,
    events: JobEvents,
    task: TaskJobs,
    other: TaskJobs,
}

impl Allocator {
    /// `task`: 12 ms in 40 ms; `other`: so much in 80 ms. They execute so long in each job.
    fn start(
        trace: &str,
        other_budget: Duration,
        [time, other_time]: [Duration; 2],
    ) -> Option<Allocator> {
        let handles = RefCell::new(None);
        let running = start(|set| {
            let mut set = set.policy(Policy::Jobs).overload().trace(trace);
            let task = set.add("task").period(40 * MS).budget(12 * MS).spawn(each_job(time));
            let other = set.add("other").period(80 * MS).budget(other_budget);
            handles.replace(Some([task, other.spawn(each_job(other_time))]));
            set
        })?;
        let events = running.job_events().expect("nothing has it");
        let handles = handles.take().expect("it was declared");
        let [task, other] = handles.map(|task| task.jobs().expect("nothing has it"));
        Some(Allocator { running, events, task, other })
    }
}

#[test]
fn figures_3_and_4_run_the_optional_part_in_what_the_mandatory_one_left() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let Some(mut a) = Allocator::start(&trace, 10 * MS, [3 * MS, 5 * MS]) else { return };
    let (period, budget) = (40 * NS, 12 * NS);
    let begin = soon(100);
    let mut j = job(begin, begin + period, budget, HIGH);
    let mut middle = job(begin, begin + 2 * period, 10 * NS, MIDDLE);
    a.task.add(&j, 1).expect("there is room");
    a.other.add(&middle, 2).expect("there is room");
    let mut is_optional = false;
    let mut optional = 0;
    while optional < 10 {
        let event = next(&mut a.events);
        assert!(!matches!(event.end, AddedJobEnd::Refused(_)), "{event:?}");
        if event.cookie == 2 {
            middle.start += 2 * period;
            middle.finish += 2 * period;
            a.other.add(&middle, 2).expect("there is room");
            continue;
        }
        if is_optional {
            // Without, this program was too late with it.
            optional += u32::from(event.used > 0);
            j.start += period;
            j.finish = j.start + period;
            j.budget = budget;
            j.priority = HIGH;
        } else {
            j.budget = event.remaining;
            j.priority = LOW;
        }
        is_optional = !is_optional;
        a.task.add(&j, 1).expect("there is room");
    }
    assert_eq!(a.events.take_dropped(), 0);
    a.running.stop().expect("it stops");
    let jobs = jobs_of(&read(&trace));
    let parts =
        jobs.values().find(|jobs| jobs.iter().any(|job| job.priority == HIGH)).expect("it ran");
    let both = parts.windows(2);
    let both = both.filter(|pair| (pair[0].priority, pair[1].priority) == (HIGH, LOW));
    let mut completed = 0;
    for pair in both.clone() {
        let (mandatory, optional) = (pair[0], pair[1]);
        assert_eq!(optional.start, mandatory.start, "in the same period");
        assert_eq!(optional.finish, mandatory.finish, "in the same period");
        let left = budget - mandatory.used.min(budget);
        assert!(optional.budget <= left * 26 / 25, "{pair:?}");
        completed += u32::from(mandatory.end == kind::event::COMPLETED);
    }
    assert!(both.count() >= 5 && completed > 0, "{parts:?}");
    let mandatory = parts.iter().filter(|job| job.priority == HIGH);
    let mandatory: Vec<u64> = mandatory.map(|job| job.start).collect();
    assert!(mandatory.windows(2).all(|pair| (pair[1] - pair[0]) % period == 0), "{mandatory:?}");
}

#[test]
fn figure_5_promotes_a_job_that_the_low_band_did_not_complete() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let Some(mut a) = Allocator::start(&trace, 30 * MS, [8 * MS, 28 * MS]) else { return };
    let (period, budget, promotion) = (40 * NS, 12 * NS, 20 * NS);
    let begin = soon(100);
    let mut at = begin;
    let mut middle = job(begin, begin + 2 * period, 30 * NS, MIDDLE);
    a.task.add(&job(at, at + promotion, budget, LOW), 1).expect("there is room");
    a.other.add(&middle, 2).expect("there is room");
    let (mut promoted, mut is_promoted) = (0, false);
    while promoted < 5 {
        let event = next(&mut a.events);
        if event.cookie == 2 {
            middle.start += 2 * period;
            middle.finish += 2 * period;
            a.other.add(&middle, 2).expect("there is room");
            continue;
        }
        // Refused: this program was too late with a job, so that the allotment of its promotion
        // reaches into the next period.
        let over = matches!(event.end, AddedJobEnd::Completed | AddedJobEnd::Refused(_));
        let j = if is_promoted || over {
            is_promoted = false;
            at += period;
            job(at, at + promotion, budget, LOW)
        } else {
            is_promoted = true;
            promoted += u32::from(event.at < at + period);
            job(at + promotion, at + period, event.remaining, HIGH)
        };
        a.task.add(&j, 1).expect("there is room");
    }
    a.running.stop().expect("it stops");
    let jobs = jobs_of(&read(&trace));
    let bands =
        jobs.values().find(|jobs| jobs.iter().any(|job| job.priority == HIGH)).expect("it ran");
    let both = bands.windows(2);
    let both = both.filter(|pair| (pair[0].priority, pair[1].priority) == (LOW, HIGH));
    let both = both.filter(|pair| pair[1].start < pair[0].start + period);
    for pair in both.clone() {
        let (low, high) = (pair[0], pair[1]);
        assert_eq!(low.end, kind::event::EXPIRED);
        assert_eq!(high.start, low.finish, "from the promotion on");
        assert_eq!(high.finish, low.start + period, "to the end of the period");
    }
    assert!(both.count() > 0, "{bands:?}");
    let why = Explainer::new(&read(&trace)).expect("it has its set").misses();
    let because = |share: &Share| {
        matches!(share.what, Activity::Task { reason: Reason::Program, .. }) && share.ns > NS
    };
    assert!(why.iter().any(|miss| miss.shares.iter().any(because)), "{why:?}");
}

/// A task of 40 ms and 12 ms whose jobs the program adds, alone in its set.
fn single() -> Option<(Running, JobEvents, TaskHandle<()>, TaskJobs)> {
    let running = start(|set| set.policy(Policy::Jobs))?;
    let events = running.job_events().expect("nothing has it");
    let (task, jobs) = add(running.task("task").period(40 * MS).budget(12 * MS), MS);
    Some((running, events, task, jobs))
}

#[test]
fn what_a_call_can_refuse_it_does_and_the_dispatcher_refuses_the_rest_by_an_event() {
    let _turn = turn();
    let Some((running, mut events, task, mut jobs)) = single() else { return };
    assert_eq!(running.job_events().unwrap_err().errno, Some(libc::EBUSY));
    assert_eq!(task.jobs().unwrap_err().errno, Some(libc::EBUSY));
    assert_eq!(events.next(0), Err(NoEvent::TimedOut));
    let at = soon(10_000);
    assert_eq!(jobs.add(&job(at, at, NS, 0), 0), Err(JobError::Invalid));
    assert_eq!(jobs.add(&job(at, at + 41 * NS, NS, 0), 0), Err(JobError::Invalid));
    assert_eq!(jobs.add(&job(at, at + 40 * NS, 13 * NS, 0), 0), Err(JobError::Quota));
    let first = jobs.add(&job(at, at + 40 * NS, NS, 0), 7).expect("there is room");
    let second = jobs.add(&job(at, at + 40 * NS, NS, 0), 8).expect("there is room");
    let event = next(&mut events);
    assert_eq!((event.id, event.cookie), (second, 8));
    assert_eq!(event.end, AddedJobEnd::Refused(JobRefusal::Busy));
    jobs.cancel(first).expect("there is room");
    // As poll sees it.
    let mut fd = libc::pollfd { fd: events.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, valid for the call.
    let ready = unsafe { libc::poll(&mut fd, 1, LIVENESS.as_millis() as i32) };
    assert_eq!(ready, 1);
    let event = next(&mut events);
    assert_eq!((event.id, event.end, event.used), (first, AddedJobEnd::Cancelled, 0));
    assert_eq!(event.remaining, NS);
    running.stop().expect("it stops");
    assert_eq!(jobs.add(&job(at, at + NS, NS, 0), 0), Err(JobError::Over));
    assert_eq!(events.next(u64::MAX), Err(NoEvent::Over));
    assert_eq!(events.next(0), Err(NoEvent::Over));
}

#[test]
fn a_thread_that_waits_for_a_job_ends_when_it_is_asked_to() {
    let _turn = turn();
    for first in [false, true] {
        let Some((running, mut events, task, mut jobs)) = single() else { return };
        if first {
            let at = soon(10);
            jobs.add(&job(at, at + 40 * NS, 12 * NS, 0), 0).expect("there is room");
            next(&mut events);
        }
        task.stop().expect("it runs");
        let began = Instant::now();
        let end = task.wait();
        assert!(began.elapsed() < LIVENESS, "{end:?}");
        running.stop().expect("it stops");
    }
}

#[test]
fn a_program_executes_on_its_jobs_alone() {
    let _turn = turn();
    let Some(running) = start(|set| set.policy(Policy::Jobs)) else { return };
    let mut events = running.job_events().expect("nothing has it");
    let task = running.task("task").period(100 * MS).budget(20 * MS);
    let task = task.command(["sh", "-c", "while :; do :; done"]).expect("it fits");
    let mut jobs = task.jobs().expect("nothing has it");
    let mut used = 0;
    for n in 0..5 {
        let at = soon(50);
        jobs.add(&job(at, at + 100 * NS, 20 * NS, 0), n).expect("there is room");
        let event = next(&mut events);
        assert_eq!(event.cookie, n);
        used += event.used;
        std::thread::sleep(Duration::from_nanos((at + 100 * NS).saturating_sub(soon(0))));
    }
    let outcome = running.stop().expect("it stops");
    let figures = &outcome.results.tasks[0];
    assert!(used > 0, "it executed");
    // Each period of the results is a job; the first one is not counted.
    assert!((1..=4).contains(&figures.periods), "{}", figures.periods);
    assert!(figures.received_ns <= used, "{} of {used}", figures.received_ns);
}

#[test]
fn the_job_of_a_process_is_completed_for_it() {
    let _turn = turn();
    let Some(running) = start(|set| set.policy(Policy::Jobs).overload()) else { return };
    let mut events = running.job_events().expect("nothing has it");
    let task = running.task("task").period(100 * MS).budget(100 * MS);
    let task = task.command(["sh", "-c", "while :; do :; done"]).expect("it fits");
    let mut jobs = task.jobs().expect("nothing has it");
    // One that has not begun continues.
    let later = jobs.add(&job(soon(3_600_000), u64::MAX, NS, 0), 1).expect("there is room");
    jobs.complete(later).expect("there is room");
    assert_eq!(events.next(soon(300)), Err(NoEvent::TimedOut));
    jobs.cancel(later).expect("there is room");
    assert_eq!(next(&mut events).end, AddedJobEnd::Cancelled);
    let hour = 3_600_000 * NS;
    let long = jobs.add(&job(soon(0), u64::MAX, hour, 0), 2).expect("there is room");
    let mut ended = Err(NoEvent::TimedOut);
    assert!(comes_true(|| {
        // The task begins some time after it was added.
        jobs.complete(long).expect("there is room");
        ended = events.next(soon(20));
        ended.is_ok()
    }));
    let ended = ended.expect("it has ended");
    assert_eq!((ended.id, ended.end), (long, AddedJobEnd::Completed));
    assert_eq!(ended.used + ended.remaining, hour);
    running.stop().expect("it stops");
}

#[test]
fn the_end_of_a_task_ends_its_job_and_takes_no_more() {
    let _turn = turn();
    let Some(running) = start(|set| set.policy(Policy::Jobs)) else { return };
    let mut events = running.job_events().expect("nothing has it");
    let task = running.task("task").period(40 * MS).budget(12 * MS).spawn(|_| ());
    let task = task.expect("it fits");
    let mut jobs = task.jobs().expect("nothing has it");
    let at = soon(400);
    let first = jobs.add(&job(at, at + 40 * NS, 12 * NS, 0), 0).expect("there is room");
    let event = next(&mut events);
    assert_eq!((event.id, event.end), (first, AddedJobEnd::TaskGone));
    task.wait();
    let refused = || match jobs.add(&job(at, at + 40 * NS, NS, 0), 1) {
        Ok(_) => false,
        Err(e) => e == JobError::Over,
    };
    assert!(comes_true(refused));
    assert_eq!(task.jobs().unwrap_err().errno, Some(libc::ESRCH));
    running.stop().expect("it stops");
}

#[test]
fn an_allocator_with_a_budget_of_its_own_serves_a_group() {
    let _turn = turn();
    let Some(running) = start(|set| {
        let group = SchedulingGroup::new("jobs", 20 * MS, 8 * MS);
        let set = set.policy(Policy::FixedPriority).overload();
        set.group(group.policy(Policy::Jobs).priority(1))
    }) else {
        return;
    };
    let mut events = running.job_events().expect("nothing has it");
    let task = running.task("task").group("jobs").period(40 * MS).budget(6 * MS);
    let (_, mut jobs) = add(task, 2 * MS);
    let allocator = running.task("allocator").period(20 * MS).budget(2 * MS).priority(9);
    let ends = allocator.enter(|_| {
        let mut at = soon(50);
        let mut ends = Vec::new();
        while ends.len() < 10 {
            jobs.add(&job(at, at + 40 * NS, 6 * NS, 0), ends.len() as u64).expect("there is room");
            ends.push(next(&mut events));
            at += 40 * NS;
        }
        ends
    });
    let ends = ends.expect("it fits");
    assert!(ends.iter().enumerate().all(|(n, end)| end.cookie == n as u64), "{ends:?}");
    assert!(ends.iter().any(|end| end.end == AddedJobEnd::Completed), "{ends:?}");
    running.stop().expect("it stops");
}

#[test]
fn a_group_is_ordered_while_it_runs() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let Some(mut a) = Allocator::start(&trace, 12 * MS, [3 * MS, 3 * MS]) else { return };
    let order = |by: &[Attribute]| a.running.order_jobs(None, by);
    assert!(order(&[]).is_err());
    assert!(order(&[Attribute::Finish, Attribute::Finish]).is_err());
    assert!(a.running.order_jobs(Some("none"), &[Attribute::Finish]).is_err());
    order(&[Attribute::Finish, Attribute::Priority]).expect("it takes an order");
    let at = soon(400);
    a.task.add(&job(at, at + 40 * NS, 12 * NS, HIGH), 1).expect("there is room");
    a.other.add(&job(at, at + 30 * NS, 12 * NS, LOW), 2).expect("there is room");
    let ends = [next(&mut a.events), next(&mut a.events)];
    assert_eq!(ends.map(|end| end.cookie), [2, 1], "{ends:?}");
    a.running.stop().expect("it stops");
}

#[test]
fn other_hosts_than_the_user_and_the_kernel_host_take_no_jobs_of_the_program() {
    for host in [Host::Service, Host::Sim, Host::Fifo] {
        let set = Punctual::on_cpu(0).policy(Policy::Jobs).host(host);
        let error = set.admit().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains("only the user host and the kernel host"), "{error}");
    }
}
