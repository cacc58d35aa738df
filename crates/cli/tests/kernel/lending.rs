//! Programs that share mutexes which inherit priority: the jobs of one that waits execute the
//! holder, and are charged for it.

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use punctual_session::{HostKind, RunOptions, RunningSet, Session, StartOutcome, TraceFiles};
use punctual_taskset::TaskSet;
use punctual_trace::kind::{self, event};
use punctual_trace::{Record, Trace};

use crate::locking_roles::{Shared, NAMED, NONE, OF_LIBRARY};
use crate::machine::Machine;
use crate::punctual::{adversarial, list, replays, results_with, start, trace, Scratch};

const MS: u64 = 1_000_000;

/// A task of a set in TOML, in this role on the shared file.
fn task(name: &str, words: &str, file: &Path, role: &str) -> String {
    let mut command = adversarial(role);
    command.insert(2, file.to_str().expect("plain").to_owned());
    format!("[[task]]\nname = \"{name}\"\n{words}\ncommand = {}\n", list(&command))
}

/// Runs a set, whose trace replays.
fn traced(scratch: &Scratch, set: &str) -> Trace {
    let (set, path) = (scratch.file("set.toml", set), scratch.path("trace"));
    results_with(&start(&set, &["--trace", path.to_str().expect("plain")]).output(), 0);
    replays(&path);
    trace(&path)
}

/// Lending for at least 1 ms, as recorded: from when, until when, the task, and the one to which it
/// lends. Under PREEMPT_RT tasks lend for locks of the kernel, too: for some microseconds.
fn lending(trace: &Trace) -> Vec<(u64, u64, u32, u32)> {
    let lends: Vec<&Record> = trace.records.iter().filter(|r| r.kind == kind::TASK_LEND).collect();
    let lent = lends.iter().enumerate().filter_map(|(at, r)| {
        let holder = u32::try_from(r.a).ok().filter(|&holder| holder != u32::MAX)?;
        let end = lends[at + 1..].iter().find(|end| end.small == r.small)?;
        (end.time - r.time >= MS).then_some((r.time, end.time, r.small, holder))
    });
    lent.collect()
}

/// Events of that kind about a task.
fn events(trace: &Trace, task: u32, event: u32) -> Vec<&Record> {
    let of_task = |r: &&Record| r.kind == kind::EVENT + event && r.small == task;
    trace.records.iter().filter(of_task).collect()
}

/// What each of so many tasks executed from one time to another, ns.
fn executed(trace: &Trace, tasks: usize, from: u64, to: u64) -> Vec<u64> {
    let mut executed = vec![0; tasks];
    for i in trace.intervals() {
        executed[i.task as usize] += i.to.min(to).saturating_sub(i.from.max(from));
    }
    executed
}

const BUS: u32 = 0;
const WEATHER: u32 = 2;

/// Mars Pathfinder, 1997, as three programs of different users that share a mutex. Each 80 ms the
/// weather program locks it for 4 ms, 1 ms later the communication program begins with 8 ms, and
/// 1 ms later the bus program needs the mutex for 1 ms, to be done within 10 ms.
fn pathfinder(scratch: &Scratch, kind: u64, inherits: bool) -> (&'static Shared, Trace) {
    let file = scratch.path(&format!("shared-{kind}-{inherits}"));
    let shared = Shared::create(&file, inherits);
    let times = |period, budget, offset| {
        format!("period = \"{period}ms\"\nbudget = \"{budget}ms\"\noffset = \"{offset}ms\"")
    };
    let bus = format!("{}\ndeadline = \"15ms\"", times(20, 6, 2));
    let set = [
        "cpu = 0\npolicy = \"dm\"\nduration = \"1s\"\n",
        &task("bus", &bus, &file, &format!("round 0 {kind} 2000 20000 1000 10000")),
        &task(
            "communication",
            &times(40, 10, 1),
            &file,
            &format!("round 1 {NONE} 1000 40000 8000 40000"),
        ),
        &task("weather", &times(80, 10, 0), &file, &format!("round 2 {kind} 0 80000 4000 80000")),
    ];
    (shared, traced(scratch, &set.concat()))
}

#[test]
fn pathfinder_misses_deadlines_without_lending_and_none_with_it() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let (shared, trace) = pathfinder(&scratch, OF_LIBRARY, false);
    // One of four rounds waits for the mutex behind the communication program.
    let (weather, _) = shared.figures(WEATHER);
    assert!(weather >= 10, "{weather} rounds");
    assert_eq!(shared.figures(BUS).1, weather);
    assert_eq!(lending(&trace), []);

    for kind in [OF_LIBRARY, NAMED] {
        let (inherits, lent) = pathfinder(&scratch, kind, true);
        bus_waits_for_weather_alone(inherits, &lent);
    }
}

/// With lending: no deadline is missed, and the weather program alone executes while the bus
/// program waits.
fn bus_waits_for_weather_alone(inherits: &Shared, lent: &Trace) {
    let (weather, _) = inherits.figures(WEATHER);
    assert_eq!(inherits.figures(BUS).1, 0);
    let lends = lending(lent);
    assert_eq!(lends.len() as u64, weather, "{lends:?}");
    for (from, to, task, holder) in lends {
        assert_eq!((task, holder), (BUS, WEATHER));
        // From when the bus program waits on, the weather program alone executes, the rest of its
        // 4 ms.
        let executed = executed(lent, 3, from, to);
        assert_eq!(executed[..2], [0, 0], "from {from} to {to}");
        assert!((2 * MS..4 * MS).contains(&executed[2]), "{executed:?}");
        // Its job is the bus program's.
        let blocked = events(lent, BUS, event::TASK_BLOCKED);
        assert!(blocked.iter().all(|r| r.time < from || r.time >= to), "it blocks");
    }
}

/// The last of the programs has no budget for what it executes with its mutex. Each of the others
/// waits for the mutex of the next one.
#[test]
fn a_task_executes_the_last_holder_through_four_mutexes() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    for kind in [OF_LIBRARY, NAMED] {
        executes_the_last_holder_through_four(kind);
    }
}

fn executes_the_last_holder_through_four(kind: u64) {
    let scratch = Scratch::new();
    let file = scratch.path("shared");
    Shared::create(&file, true);
    let mut set = "cpu = 0\npolicy = \"fp\"\nduration = \"700ms\"\n".to_owned();
    for n in 0..5 {
        let (offset, budget) = ((4 - n) * 40, if n == 0 { 100 } else { 10 });
        let words = format!(
            "period = \"500ms\"\nbudget = \"{budget}ms\"\noffset = \"{offset}ms\"\npriority = {}",
            9 - n
        );
        let time = if n == 4 { 60_000 } else { 100 };
        set += &task(&format!("task {n}"), &words, &file, &format!("chain {n} {time} {kind}"));
    }
    let trace = traced(&scratch, &set);
    let lends = lending(&trace);
    let whose: Vec<_> = lends.iter().map(|&(.., task, holder)| (task, holder)).collect();
    assert_eq!(whose, [(3, 4), (2, 3), (1, 2), (0, 1)]);
    // Tasks 4 to 1 have budgets of 10 ms each; that of task 0 has the rest. Task 4 unlocks first.
    assert!(lends.is_sorted_by_key(|&(_, to, ..)| to), "{lends:?}");
    let (from, to) = (lends[3].0, lends[0].1);
    let alone = executed(&trace, 5, from, to);
    assert_eq!(alone[..4], [0; 4]);
    // What is left of its 60 ms after the budgets of the others, of which each has spent some for
    // its start.
    assert!((15 * MS..40 * MS).contains(&alone[4]), "{alone:?}");
    for n in 1..5 {
        assert_eq!(events(&trace, n, event::EXHAUSTED).len(), 1, "task {n} executed its budget");
    }
    let [of_first] = events(&trace, 0, event::TASK_GONE)[..] else { panic!("it ended") };
    assert!(of_first.b >= alone[4], "{} ns charged of {}", of_first.b, alone[4]);
}

/// The kernel hands the mutex over to the task that has waited longest, which has no budget left.
#[test]
fn a_task_lends_to_the_next_holder_when_the_mutex_passes_to_it() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    for kind in [OF_LIBRARY, NAMED] {
        lends_to_the_next_holder(kind);
    }
}

fn lends_to_the_next_holder(kind: u64) {
    let scratch = Scratch::new();
    let file = scratch.path("shared");
    Shared::create(&file, true);
    let mut set = "cpu = 0\npolicy = \"fp\"\nduration = \"400ms\"\n".to_owned();
    for (n, budget, time) in [(0, 100, 100), (1, 10, 30_000), (2, 10, 60_000)] {
        let words = format!(
            "period = \"500ms\"\nbudget = \"{budget}ms\"\noffset = \"{}ms\"\npriority = {}",
            (2 - n) * 40,
            9 - n
        );
        set += &task(&format!("task {n}"), &words, &file, &format!("chain 4 {time} {kind}"));
    }
    let trace = traced(&scratch, &set);
    let lends = lending(&trace);
    let [(_, _, 1, 2), (_, passes, 0, 2), (passed, to, 0, 1)] = lends[..] else {
        panic!("{lends:?}")
    };
    assert_eq!(passes, passed);
    let alone = executed(&trace, 3, passed, to);
    // The switch from task 2 takes some microseconds.
    assert!(alone[0] == 0 && alone[2] < MS / 10, "{alone:?}");
    assert!((30 * MS..31 * MS).contains(&alone[1]), "{alone:?}");
}

#[test]
fn a_holder_that_is_killed_while_another_task_lends_to_it_leaves_the_mutex() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    for kind in [OF_LIBRARY, NAMED] {
        leaves_the_mutex_when_killed(kind);
    }
}

fn leaves_the_mutex_when_killed(kind: u64) {
    let scratch = Scratch::new();
    let file = scratch.path("shared");
    let shared = Shared::create(&file, true);
    let times = |period, budget, offset, priority| {
        format!(
            "period = \"{period}ms\"\nbudget = \"{budget}ms\"\noffset = \"{offset}ms\"\n\
             priority = {priority}"
        )
    };
    let set = [
        "cpu = 0\npolicy = \"fp\"\nduration = \"300ms\"\n",
        &task(
            "waits",
            &times(100, 40, 30, 2),
            &file,
            &format!("round 0 {kind} 0 20000 1000 40000"),
        ),
        // Its own budget is exhausted before.
        &task("dies", &times(500, 10, 0, 1), &file, &format!("die-with-lock 30000 {kind}")),
    ];
    let trace = traced(&scratch, &set.concat());
    assert_eq!(shared.inherited.load(SeqCst), 1);
    assert!(shared.figures(0).0 >= 12, "{:?}", shared.figures(0));
    let lends = lending(&trace);
    let [(from, to, 0, 1)] = lends[..] else { panic!("{lends:?}") };
    assert!((15 * MS..25 * MS).contains(&executed(&trace, 2, from, to)[1]));
    let gone = trace.records.iter().filter(|r| r.kind == kind::TASK_GONE && r.small == 1);
    assert_eq!(gone.count(), 1);
}

/// Starts a set in this process.
fn start_here(text: &str, path: &Path) -> Box<RunningSet> {
    let set = TaskSet::parse(text, "set.toml").expect("it is in order");
    let traces = Some(TraceFiles::create(path, &set).expect("room"));
    let options = RunOptions { traces, ..RunOptions::default() };
    let admitted = Session::new(set, HostKind::Kernel).and_then(|s| s.admit(false));
    match admitted.expect("it fits").start(options).expect("it starts") {
        StartOutcome::Running(running) => running,
        StartOutcome::NotPossible(why, _) => panic!("{}", why.reason),
    }
}

#[test]
fn a_task_lends_by_request_until_another_one() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let task = |name: &str, budget, command: &[String]| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"50ms\"\nbudget = \"{budget}ms\"\n\
             command = {}\n",
            list(command)
        )
    };
    let sleeps = ["sleep", "60"].map(str::to_owned);
    let set = [
        "cpu = 0\npolicy = \"edf\"\n",
        &task("sleeps", 15, &sleeps),
        &task("spins", 5, &adversarial("spin")),
        "[[task]]\nname = \"works\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
         work = { spin = \"1ms\" }\n",
    ];
    let mut running = start_here(&set.concat(), &path);
    let wait = |running: &mut RunningSet, ms| {
        let until = running.now() + ms * MS;
        while running.now() < until {
            running.poll_for(Duration::from_millis(10), &mut |_| {}).expect("it runs");
        }
    };
    wait(&mut running, 200);
    running.lend(0, Some(1)).expect("it lends");
    let refused = running.lend(1, Some(0)).expect_err("a cycle");
    assert!(refused.cause.contains("would lend to itself"), "{refused}");
    wait(&mut running, 200);
    running.lend(0, None).expect("it lends no longer");
    wait(&mut running, 200);
    running.lend(0, Some(2)).expect("it lends");
    wait(&mut running, 100);
    let results = running.finish(&mut |_| {}).expect("it ends").results;
    replays(&path);
    let trace = trace(&path);
    let lends = lending(&trace);
    let [(from, to, 0, 1), ..] = lends[..] else { panic!("{lends:?}") };
    // 5 ms of each 50 ms, and 15 ms more while the other task lends.
    let share = |from: u64, to: u64| executed(&trace, 3, from, to)[1] * 1_000 / (to - from);
    let shares = [share(from - 150 * MS, from), share(from, to), share(to, to + 150 * MS)];
    for (share, expected) in shares.into_iter().zip([100u64, 400, 100]) {
        assert!(share.abs_diff(expected) <= 60, "{shares:?}");
    }
    // Each was charged for its own jobs, whichever task they executed.
    let [lender, spins, works] = &results.tasks[..] else { panic!("three tasks") };
    assert!(lender.received_ns >= 45 * MS, "{lender:?}");
    assert!(spins.received_ns <= spins.periods * 5 * MS + MS, "{spins:?}");
    // A task that waits for its release executes for no other one: 1 ms of each 10 ms.
    let end = trace.records.iter().filter_map(Record::at).max().expect("records");
    let worked = executed(&trace, 3, end - 90 * MS, end)[2];
    assert!((8 * MS..=11 * MS).contains(&worked), "{worked} ns");
    assert_eq!(works.misses, 0, "{works:?}");
}
