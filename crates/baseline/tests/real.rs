//! Real runs on the machine at hand, half a second each, one after the other. Figures are only
//! asserted by orders of magnitude; without the right to SCHED_FIFO each test checks that the
//! refusal names a help.

use punctual_baseline::{start, Baseline, BaselineRun, BaselineStart, Options, Unsupported};
use punctual_diagnostic::Diagnostic;
use punctual_taskset::{Body, DomainSpec, PolicySpec, Spin, TaskSet, TaskSpec};
use punctual_test_support::{comes_true, judge_timing, LIVENESS};
use punctual_trace::{JobEnd, Period, NEVER};
use punctual_workload::BackgroundLoad;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

/// They would disturb each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |n| n.get() as u32 - 1)
}

fn task(name: &str, period: u64, budget: u64, body: Body) -> TaskSpec {
    TaskSpec::new(name, period, budget, body)
}

fn set(tasks: Vec<TaskSpec>) -> TaskSet {
    TaskSet {
        domains: vec![DomainSpec::of_cpu(last_cpu())],
        policy: PolicySpec::named("rm"),
        duration: None,
        tasks,
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}

fn options() -> Options {
    Options { duration: 500 * MS, stop: Arc::default(), unpinned: false }
}

/// What came of a run.
#[derive(Debug)]
enum Outcome {
    Ran(BaselineRun),
    NotPossible(Unsupported),
}

fn run(
    set: &TaskSet,
    baseline: Baseline,
    options: &Options,
    sink: &mut dyn FnMut(Period),
) -> Result<Outcome, Diagnostic> {
    let mut host = match start(set, baseline, options)? {
        BaselineStart::Running(host) => host,
        BaselineStart::NotPossible(refusal) => return Ok(Outcome::NotPossible(refusal)),
    };
    while !host.poll(sink) {}
    Ok(Outcome::Ran(host.finish()))
}

/// Retries while the machine is slower than the bound on set-up.
fn set_up(mut run: impl FnMut() -> Result<Outcome, Diagnostic>) -> Outcome {
    loop {
        match run() {
            Err(error) if error.cause.contains("not ready to run within") => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Runs it and checks what holds after every run.
fn go(set: &TaskSet, baseline: Baseline, options: &Options) -> (Outcome, Vec<Period>) {
    let mut periods = Vec::new();
    let outcome = set_up(|| run(set, baseline, options, &mut |period| periods.push(period)));
    nothing_stays_real_time();
    if let Outcome::NotPossible(why) = &outcome {
        println!("{baseline:?}: {} -> {:?}", why.reason, why.help);
        assert!(!why.reason.is_empty() && !why.help.is_empty());
        assert!(periods.is_empty());
    }
    (outcome, periods)
}

/// `None` where the machine does not permit it, which is said.
fn ran(set: &TaskSet, baseline: Baseline, options: &Options) -> Option<(BaselineRun, Vec<Period>)> {
    match go(set, baseline, options) {
        (Outcome::Ran(run), periods) => Some((run, periods)),
        (Outcome::NotPossible(_), _) => None,
    }
}

/// A joined thread may still be listed in /proc: the kernel wakes the joining thread first.
fn nothing_stays_real_time() {
    assert!(
        comes_true(|| real_time_threads().is_empty()),
        "stays real-time: {:?}",
        real_time_threads()
    );
}

/// Threads of this process that are neither ordinary, batch nor idle.
fn real_time_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
            // Field 41 is the policy; the second, in brackets, may hold spaces.
            let policy = stat.rsplit_once(')')?.1.split_whitespace().nth(38)?.to_owned();
            (!["0", "3", "5"].contains(&policy.as_str())).then_some(stat)
        })
        .collect()
}

fn share(periods: &[Period], task: u32) -> u64 {
    let of_task = || periods.iter().filter(|p| p.task == task);
    let (received, assigned) =
        (of_task().map(|p| p.received).sum::<u64>(), of_task().map(|p| p.assigned).sum::<u64>());
    received * 100 / assigned.max(1)
}

/// Waits until no process has such a command line; whether that happened.
fn vanishes(pattern: &str) -> bool {
    comes_true(|| {
        let found = std::process::Command::new("pgrep").args(["-f", pattern]).output();
        found.map_or(true, |found| found.stdout.is_empty())
    })
}

#[test]
fn a_runaway_under_fifo_starves_those_below_and_the_machine_comes_back() {
    let _alone = alone();
    let wild = task("wild", 10 * MS, 2 * MS, Body::Spin(Spin::Forever));
    let meek = task("meek", 20 * MS, 4 * MS, Body::Spin(Spin::For(3 * MS)));
    let begin = Instant::now();
    let Some((run, periods)) = ran(&set(vec![wild, meek]), Baseline::Fifo, &options()) else {
        return;
    };
    assert!(begin.elapsed() < LIVENESS, "{:?}", begin.elapsed());
    assert!(!run.interrupted && run.pinned, "{run:?}");
    judge_timing(|| {
        assert_eq!(run.lost, 0, "{run:?}");
        assert!(periods.iter().filter(|p| p.task == 1).count() >= 10, "{}", periods.len());
        assert!(share(&periods, 0) > 200, "{} %", share(&periods, 0));
        assert!(share(&periods, 1) < 20, "{} %", share(&periods, 1));
        assert!(periods.iter().filter(|p| p.task == 1).all(|p| p.miss && p.end == JobEnd::Expired));
        assert!(periods.iter().filter(|p| p.task == 0).all(|p| p.overrun && p.started == NEVER));
    });
}

#[test]
fn a_modest_set_is_measured_under_fifo_and_other() {
    let _alone = alone();
    let tasks = || {
        vec![
            task("a", 10 * MS, 2 * MS, Body::Spin(Spin::For(MS))),
            task("b", 20 * MS, 4 * MS, Body::Spin(Spin::For(2 * MS))),
        ]
    };
    for baseline in [Baseline::Fifo, Baseline::Other] {
        let Some((run, periods)) = ran(&set(tasks()), baseline, &options()) else { return };
        assert_eq!(run.ended - run.started, 500 * MS);
        // 50 and 25 periods; the observer may be late, but all are there or counted as lost, in
        // order, and their times fit.
        assert_eq!(periods.len() as u64 + run.lost, 75, "{baseline:?}");
        for (index, count) in [(0, 50u64), (1, 25)] {
            let of_task: Vec<&Period> = periods.iter().filter(|p| p.task == index).collect();
            judge_timing(|| assert_eq!(of_task.len() as u64, count, "{baseline:?}"));
            for (number, p) in of_task.iter().enumerate() {
                assert_eq!(p.number, number as u64);
                assert_eq!(
                    p.release,
                    run.started + p.number * if index == 0 { 10 * MS } else { 20 * MS }
                );
                assert!(p.started == NEVER || p.started >= p.release);
                assert!(p.completed == NEVER || p.completed >= p.started + MS);
            }
            let done = of_task.iter().filter(|p| p.completed != NEVER).count() as u64;
            judge_timing(|| {
                assert!(done > count / 2, "{baseline:?}: {done} of {count} jobs were done")
            });
        }
        let (a, b) = (share(&periods, 0), share(&periods, 1));
        judge_timing(|| {
            assert!(
                (20..100).contains(&a) && (20..100).contains(&b),
                "{baseline:?}: {a} % and {b} %, should be some 50"
            );
        });
    }
}

#[test]
fn deadline_runs_or_names_reason_and_help() {
    let _alone = alone();
    let tasks = set(vec![
        task("a", 10 * MS, 2 * MS, Body::Spin(Spin::For(MS))),
        task("wild", 20 * MS, 4 * MS, Body::Spin(Spin::Forever)),
    ]);
    let (pinned, _) = go(&tasks, Baseline::Deadline, &options());
    if let Outcome::NotPossible(why) = pinned {
        if why.unpinned_may_work {
            assert!(
                why.reason.contains("root domain")
                    && why.help.iter().any(|line| line.contains("cpuset"))
            );
            let loose = Options { unpinned: true, ..options() };
            if let Some((run, periods)) = ran(&tasks, Baseline::Deadline, &loose) {
                assert!(!run.pinned && run.notes.iter().any(|note| note.contains("not pinned")));
                judge_timing(|| {
                    assert!(
                        periods.len() > 50 && share(&periods, 1) > 10,
                        "{} %",
                        share(&periods, 1)
                    )
                });
            }
        }
    }
}

#[test]
fn deadline_parameters_that_the_kernel_does_not_take_are_explained() {
    let _alone = alone();
    let tasks = set(vec![task("long", 10_000 * MS, MS, Body::Spin(Spin::For(MS)))]);
    let loose = Options { unpinned: true, ..options() };
    match go(&tasks, Baseline::Deadline, &loose).0 {
        Outcome::NotPossible(why) => {
            assert!(why.reason.contains("EINVAL") || why.reason.contains("EPERM"), "{why:?}")
        }
        Outcome::Ran(_) => panic!("a period of 10 s is beyond the kernel's limit"),
    }
}

#[test]
fn a_stop_ends_it_early() {
    let _alone = alone();
    let tasks = set(vec![task("wild", 10 * MS, 2 * MS, Body::Spin(Spin::Forever))]);
    let stop: Arc<AtomicBool> = Arc::default();
    let long = Options { duration: 1_000_000 * MS, stop: stop.clone(), ..options() };
    let begin = Instant::now();
    let mut periods = 0;
    let outcome = set_up(|| {
        run(&tasks, Baseline::Fifo, &long, &mut |_| {
            periods += 1;
            stop.store(true, Relaxed);
        })
    });
    nothing_stays_real_time();
    if let Outcome::Ran(run) = outcome {
        assert!(run.interrupted && periods > 0);
    }
    assert!(begin.elapsed() < LIVENESS);
}

#[test]
fn a_command_and_its_children_are_measured_and_killed() {
    let _alone = alone();
    // A duration that no other process sleeps for marks the grandchild.
    let words = ["sh", "-c", "sleep 86399.25 & while :; do :; done"].map(String::from).to_vec();
    let tasks = set(vec![
        task("shell", 20 * MS, 2 * MS, Body::Command(words)),
        task("gone", 10 * MS, MS, Body::Command(vec!["true".into()])),
    ]);
    let long = Options { duration: 2_000 * MS, ..options() };
    for baseline in [Baseline::Fifo, Baseline::Other] {
        let load =
            BackgroundLoad::start(last_cpu(), LIVENESS.as_nanos() as u64).expect("a process");
        let Some((run, periods)) = ran(&tasks, baseline, &long) else { return };
        judge_timing(|| assert!(share(&periods, 0) > 50, "{baseline:?}: {} %", share(&periods, 0)));
        let of_true: Vec<&Period> = periods.iter().filter(|p| p.task == 1).collect();
        assert!(of_true.iter().all(|p| !p.miss && !p.ready_throughout));
        assert!(run.notes.iter().any(|note| note.contains("command")));
        let load = load.stop();
        judge_timing(|| assert!(load.share_ppm() < 950_000));
        assert!(vanishes("^sleep 86399.25"), "{baseline:?}: a grandchild is left");
    }
}

#[test]
fn a_command_that_is_not_there_is_an_error_and_leaves_nothing() {
    let _alone = alone();
    let tasks = set(vec![
        // Below one that never stops the command would not get as far as its exec.
        task("modest", 10 * MS, MS, Body::Spin(Spin::For(MS / 2))),
        task("none", 20 * MS, MS, Body::Command(vec!["/no/such/program".into()])),
    ]);
    match run(&tasks, Baseline::Fifo, &options(), &mut |_| ()) {
        Err(error) => {
            assert!(
                error.cause.contains("task \"none\": there is no program /no/such/program"),
                "{error}"
            );
            assert_eq!(error.exit_code(), 2);
        }
        Ok(Outcome::NotPossible(_)) => {}
        other => panic!("{other:?}"),
    }
    nothing_stays_real_time();
}

#[test]
fn a_cpu_that_is_not_there_is_an_error() {
    let _alone = alone();
    let mut tasks = set(vec![task("lost", 10 * MS, MS, Body::Spin(Spin::For(1)))]);
    tasks.domains = vec![DomainSpec::of_cpu(1_000)];
    match run(&tasks, Baseline::Other, &options(), &mut |_| ()) {
        Err(error) if error.cause.contains("CPU 1000 cannot be used") && error.exit_code() == 4 => {
        }
        Ok(Outcome::NotPossible(_)) => {}
        other => panic!("{other:?}"),
    }
}

const ROLE: &str = "PUNCTUAL_TEST_ROLE";

/// The program that the next one kills; nothing unless it was started for it. Its arguments are how
/// that one finds it.
#[test]
fn the_one_that_is_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let words = ["sh", "-c", "sleep 86399.75 & while :; do :; done"].map(String::from).to_vec();
    let tasks = set(vec![
        task("shell", 20 * MS, 2 * MS, Body::Command(words)),
        task("wild", 10 * MS, 2 * MS, Body::Spin(Spin::Forever)),
    ]);
    let _ =
        run(&tasks, Baseline::Fifo, &Options { duration: 5_000 * MS, ..options() }, &mut |_| ());
}

#[test]
fn killed_it_leaves_nothing() {
    let _alone = alone();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_one_that_is_killed"])
        .env(ROLE, "killed")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    victim.kill().unwrap();
    assert!(comes_true(|| victim.try_wait().unwrap().is_some()), "killed, it does not end");
    assert!(vanishes("sleep 86399.75"), "a command or its child is left");
    assert!(vanishes("--exact the_one_that_is_killed"), "the guardian is left");
}
