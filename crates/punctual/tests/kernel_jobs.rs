//! Jobs that a program adds to its tasks inside the kernel, and threads with a budget there. Needs
//! sched_ext: `vm/tests`.

mod common;
#[path = "common/traced_jobs.rs"]
mod traced_jobs;

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use common::{cpu, turn, MS};
use punctual::jobs::{AddedJobEnd, JobParams, NoEvent};
use punctual::{ErrorKind, Host, Policy, Punctual, TaskEnd, Time};
use punctual_sys::clock::{thread_cpu_ns, CpuClock};
use punctual_test_support::{comes_true, has_sched_ext, judge_timing, Scratch};
use punctual_trace::kind::event;
use traced_jobs::{jobs_of, read};

/// A process that executes for ever, killed at the end.
struct Endless(Child);

impl Endless {
    fn start() -> Endless {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Endless(shell.spawn().expect("a shell"))
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_does_not_yield_has_its_job_completed_by_the_program() {
    let _turn = turn();
    if !has_sched_ext() {
        return;
    }
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let set = Punctual::on_cpu(cpu()).host(Host::Kernel).policy(Policy::Jobs).overload();
    let running = set.trace(&trace).admit().expect("it fits").start().expect("it starts");
    let mut events = running.job_events().expect("nothing has it");
    let process = Endless::start();
    let task = running.task("process").period(10_000 * MS).budget(10_000 * MS);
    let task = task.pid(process.pid()).expect("it fits");
    let mut jobs = task.jobs().expect("nothing has it");
    let (start, budget) = (Time::now().as_nanos(), 3_600_000_000_000);
    let job = JobParams { start, finish: u64::MAX, budget, priority: 0 };
    let id = jobs.add(&job, 7).expect("there is room");
    let mut ended = Err(NoEvent::TimedOut);
    assert!(comes_true(|| {
        // Its job begins some time after it was added.
        jobs.complete(id).expect("there is room");
        ended = events.next(Time::now().as_nanos() + 20_000_000);
        ended.is_ok()
    }));
    let ended = ended.expect("it has ended");
    assert_eq!((ended.id, ended.cookie, ended.end), (id, 7, AddedJobEnd::Completed));
    assert_eq!(ended.used + ended.remaining, budget);
    // It stops some microseconds after the end of its job, and executes nothing without one.
    let clock = CpuClock::of_process(process.pid());
    assert!(comes_true(|| {
        let before = clock.read();
        std::thread::sleep(200 * MS);
        clock.read() == before
    }));
    drop(process);
    assert_eq!(task.wait(), TaskEnd::Gone);
    running.stop().expect("it runs");
    let jobs: Vec<_> = jobs_of(&read(&trace)).into_values().flatten().collect();
    let [job] = jobs[..] else { panic!("one job: {jobs:?}") };
    assert_eq!((job.end, job.used), (event::CANCELLED, ended.used));
}

#[test]
fn a_thread_of_the_program_has_its_budget_and_no_more_until_its_task_is_stopped() {
    let _turn = turn();
    if !has_sched_ext() {
        return;
    }
    let start = |host| {
        let set = Punctual::on_cpu(cpu()).host(host).forget_ended();
        set.admit().expect("it fits").start().expect("it starts")
    };
    let running = start(Host::Kernel);
    let _beside = Endless::start();
    let task = running.task("thread").period(10 * MS).budget(2 * MS);
    let task = task.bound_this_thread().expect("it fits");
    let share = || {
        let (begin, before) = (Instant::now(), thread_cpu_ns());
        while begin.elapsed() < 500 * MS {}
        let executed = thread_cpu_ns() - before;
        executed as f64 / begin.elapsed().as_nanos() as f64 * 100.0
    };
    share();
    let bounded = share();
    judge_timing(|| assert!((bounded - 20.0).abs() < 2.0, "{bounded} %"));
    task.stop().expect("it runs");
    assert_eq!(task.wait(), TaskEnd::Stopped);
    share();
    let ordinary = share();
    judge_timing(|| assert!(ordinary > 40.0, "{ordinary} %"));
    running.stop().expect("it runs");

    let running = start(Host::User);
    let task = running.task("thread").period(10 * MS).budget(2 * MS);
    let refused = task.bound_this_thread().expect_err("threads enter there");
    assert_eq!(refused.kind, ErrorKind::Usage);
    assert!(refused.cause.contains("enters its task by itself"), "{refused}");
    running.stop().expect("it runs");
}
