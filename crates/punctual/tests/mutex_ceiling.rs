//! Mutexes with priority ceilings, on the user host.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

use common::{execute, start, turn, MS};
use punctual::{Ceiling, Condvar, LockError, Mutex, Policy, Punctual, WaitError};
use punctual_host_sim::replay;
use punctual_test_support::{comes_true, judge_timing, Scratch};
use punctual_trace::{kind, kind::event, Record, Trace};

fn read(path: &str) -> Trace {
    let file = std::fs::File::open(path).expect("it was written");
    Trace::read(&mut std::io::BufReader::new(file)).expect("it is whole")
}

/// The dispatcher decides again as it did.
fn replays(path: &str) {
    let file = std::fs::File::open(path).expect("it was written");
    let replayed = replay(std::io::BufReader::new(file), &mut |_| true).expect("it is a trace");
    assert_eq!(replayed.difference, None);
    assert!(replayed.decisions > 100, "{replayed:?}");
}

/// What a trace says of the tasks that are raised.
#[derive(Debug, Default)]
struct Raised {
    times: u32,
    /// Jobs that were released while one was raised.
    releases: u32,
    /// How often another task was selected while the raised one was ready.
    preempted: u32,
    /// How often any task used up its budget, missed the deadline at which it expires, or slept: a
    /// ceiling does not keep the others then.
    gave_way: u32,
}

fn raised_in(trace: &Trace) -> Raised {
    let ends = |r: &Record| {
        let end = r.kind.wrapping_sub(kind::EVENT);
        (event::COMPLETED..=event::TASK_GONE).contains(&end)
    };
    let owners: HashMap<u64, u32> =
        trace.records.iter().filter(|r| ends(r)).map(|r| (r.a, r.small)).collect();
    let mut raised = Raised::default();
    let mut holder = None;
    let mut asleep = false;
    for r in &trace.records {
        raised.gave_way += u32::from(
            [event::EXHAUSTED, event::EXPIRED].map(|end| kind::EVENT + end).contains(&r.kind)
                || r.kind == kind::TASK_BLOCKED,
        );
        match r.kind {
            kind::TASK_RAISE if r.b == 0 => holder = None,
            kind::TASK_RAISE => {
                raised.times += 1;
                (holder, asleep) = (Some(r.small), false);
            }
            kind::TASK_BLOCKED if holder == Some(r.small) => asleep = true,
            kind::TASK_READY if holder == Some(r.small) => asleep = false,
            // Its job has ended: it has another one at its next release.
            _ if ends(r) && holder == Some(r.small) => holder = None,
            kind::SELECTED if !asleep => {
                let owner = owners.get(&r.a);
                let other = holder.is_some_and(|h| owner.is_some_and(|&owner| owner != h));
                raised.preempted += u32::from(other);
            }
            k if k == kind::EVENT + event::RELEASED => {
                raised.releases += u32::from(holder.is_some());
            }
            _ => {}
        }
    }
    raised
}

/// The tasks of Mars Pathfinder (1997). The meteorological task finds out whether communications or
/// the bus task executed while it held the mutex, which is so without the ceiling.
fn pathfinder(policy: Policy, bus: Arc<Mutex<()>>, trace: &str) -> Option<(u32, u32)> {
    let [others, interrupted, delayed] = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let holds = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicU64::new(0));
    let declare = |mut set: Punctual| {
        set = set.policy(policy).trace(trace);
        for (name, period, time) in [("bus", 7 * MS, MS / 10), ("communication", 11 * MS, MS)] {
            let (others, delayed, ended) = (others.clone(), delayed.clone(), ended.clone());
            let (mutex, holds) = (bus.clone(), holds.clone());
            let task = set.add(name).period(period).budget(2 * MS).deadline(period);
            let task = task.priority(if name == "bus" { 3 } else { 2 });
            task.spawn(move |task| {
                for release in task.releases() {
                    others.fetch_add(u32::from(holds.load(SeqCst)), SeqCst);
                    let until = ended.load(SeqCst);
                    delayed.fetch_add(u32::from(release.release.as_nanos() < until), SeqCst);
                    let _held = (time < MS).then(|| mutex.lock(task).expect("it may lock it"));
                    execute(time);
                }
            });
        }
        let (mutex, others, ended) = (bus.clone(), others.clone(), ended.clone());
        let (interrupted, holds) = (interrupted.clone(), holds.clone());
        let weather = set.add("weather").period(40 * MS).budget(15 * MS).priority(1);
        weather.spawn(move |task| {
            for _ in task.releases() {
                let held = mutex.lock(task).expect("it may lock it");
                holds.store(true, SeqCst);
                let before = others.load(SeqCst);
                execute(5 * MS);
                interrupted.fetch_add(u32::from(others.load(SeqCst) != before), SeqCst);
                ended.store(punctual::Time::now().as_nanos(), SeqCst);
                holds.store(false, SeqCst);
                drop(held);
            }
        });
        set
    };
    let running = start(declare)?;
    assert!(comes_true(|| delayed.load(SeqCst) > 20 || interrupted.load(SeqCst) > 20));
    running.stop().expect("it stops");
    Some((interrupted.load(SeqCst), delayed.load(SeqCst)))
}

fn is_not_preempted(name: &str, policy: Policy, ceiling: Ceiling) {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let mutex = Arc::new(Mutex::with_ceiling((), ceiling));
    let Some((interrupted, delayed)) = pathfinder(policy, mutex, &trace) else { return };
    // A disturbed machine may have the holder use up its budget.
    judge_timing(|| assert_eq!(interrupted, 0, "critical sections in which others executed"));
    let raised = raised_in(&read(&trace));
    println!("{name}: {raised:?}, {delayed} releases in critical sections");
    assert!(raised.times > 5 && raised.releases > 5, "{raised:?}");
    assert_eq!(raised.preempted, 0, "{raised:?}");
    replays(&trace);
}

#[test]
fn a_holder_is_not_preempted_below_the_ceiling_of_its_mutex_by_deadlines() {
    is_not_preempted("edf", Policy::Edf, Ceiling::Deadline(7 * MS));
}

#[test]
fn a_holder_is_not_preempted_below_the_ceiling_of_its_mutex_by_periods() {
    is_not_preempted("rm", Policy::RateMonotonic, Ceiling::Deadline(7 * MS));
}

#[test]
fn a_holder_is_not_preempted_below_the_ceiling_of_its_mutex_by_priorities() {
    is_not_preempted("fp", Policy::FixedPriority, Ceiling::Priority(3));
}

#[test]
fn without_a_ceiling_others_execute_while_the_mutex_is_held() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let found = pathfinder(Policy::FixedPriority, Arc::new(Mutex::new(())), &trace);
    let Some((interrupted, _)) = found else { return };
    assert!(interrupted > 0);
    assert_eq!(raised_in(&read(&trace)).times, 0);
}

/// Two tasks lock two mutexes with ceilings in opposite orders, and execute for `time` while they
/// hold the first only. Returns how many jobs locked both, and to how many the second was refused.
fn nested(trace: &str, time: Duration, enough: impl Fn([u32; 2], u32) -> bool) -> Option<u32> {
    let ceiling = Ceiling::Deadline(7 * MS);
    let mutexes = Arc::new([Mutex::with_ceiling((), ceiling), Mutex::with_ceiling((), ceiling)]);
    let rounds = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let refused = Arc::new(AtomicU32::new(0));
    let task = |set: Punctual, name: &str, first: usize, period: Duration| {
        let (mutexes, rounds, refused) = (mutexes.clone(), rounds.clone(), refused.clone());
        set.task(name).period(period).budget(period / 3).spawn(move |task| {
            for _ in task.releases() {
                let outer = mutexes[first].lock(task).expect("the task holds none");
                execute(time);
                let inner = match mutexes[1 - first].lock(task) {
                    Err(LockError::Deadlock) => {
                        refused.fetch_add(1, SeqCst);
                        continue;
                    }
                    locked => locked.expect("that is the only refusal"),
                };
                execute(MS / 4);
                // Not in the opposite order of locking.
                drop(outer);
                execute(MS / 4);
                drop(inner);
                rounds[first].fetch_add(1, SeqCst);
            }
        })
    };
    let declare = |set: Punctual| {
        let set = set.policy(Policy::Edf).trace(trace);
        task(task(set, "one", 0, 7 * MS), "other", 1, 9 * MS)
    };
    let running = start(declare)?;
    let done = || [0, 1].map(|task| rounds[task].load(SeqCst));
    assert!(comes_true(|| enough(done(), refused.load(SeqCst))), "{:?}, {refused:?}", done());
    running.stop().expect("it stops");
    replays(trace);
    Some(refused.load(SeqCst))
}

/// Without ceilings that is a deadlock, which is refused to one of them.
#[test]
fn mutexes_that_are_nested_in_opposite_orders_make_no_deadlock() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let both = |rounds: [u32; 2], _| rounds.iter().all(|&rounds| rounds > 100);
    let Some(refused) = nested(&trace, MS / 2, both) else { return };
    let raised = raised_in(&read(&trace));
    println!("{refused} refused, {raised:?}");
    // A machine that stops for a while has deadlines missed.
    assert!(refused <= raised.gave_way, "{refused} refused, {raised:?}");
    assert!(raised.preempted == 0 || raised.gave_way > 0, "{raised:?}");
    judge_timing(|| assert_eq!((refused, raised.preempted), (0, 0), "{raised:?}"));
}

/// What no ceiling prevents: a holder without budget lets the others execute.
#[test]
fn a_deadlock_of_holders_that_use_up_their_budgets_is_refused_to_one() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let Some(refused) = nested(&trace, 4 * MS, |_, refused| refused > 20) else { return };
    let raised = raised_in(&read(&trace));
    println!("{refused} refused, {raised:?}");
    assert!(refused <= raised.gave_way, "{refused} refused, {raised:?}");
}

#[test]
fn a_task_above_the_ceiling_or_of_another_kind_of_policy_is_refused() {
    let _turn = turn();
    for (policy, ceiling, may) in [
        (Policy::Edf, Ceiling::Deadline(10 * MS), true),
        (Policy::Edf, Ceiling::Deadline(11 * MS), false),
        (Policy::Edf, Ceiling::Priority(i64::MAX), false),
        (Policy::DeadlineMonotonic, Ceiling::Deadline(10 * MS), true),
        (Policy::DeadlineMonotonic, Ceiling::Deadline(11 * MS), false),
        (Policy::RateMonotonic, Ceiling::Deadline(20 * MS), true),
        (Policy::RateMonotonic, Ceiling::Deadline(21 * MS), false),
        (Policy::FixedPriority, Ceiling::Priority(4), true),
        (Policy::FixedPriority, Ceiling::Priority(3), false),
        (Policy::FixedPriority, Ceiling::Deadline(MS), false),
    ] {
        let mutex = Arc::new(Mutex::with_ceiling((), ceiling));
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let declare = |set: Punctual| {
            let (mutex, seen) = (mutex.clone(), seen.clone());
            let set = set.policy(policy).task("task").period(20 * MS).deadline(10 * MS);
            set.budget(5 * MS).priority(4).spawn(move |task| {
                let locked = mutex.lock(task).err();
                let tried = mutex.try_lock(task).is_some();
                seen.lock().expect("no panic").push((locked, tried));
            })
        };
        let Some(running) = start(declare) else { return };
        running.wait();
        running.stop().expect("it stops");
        let refusal = (!may).then_some(LockError::Ceiling);
        let seen = seen.lock().expect("no panic");
        assert_eq!(seen[..], [(refusal, may)], "{policy:?} {ceiling:?}");
    }
}

/// Waiting gives the mutex up, and with it the ceiling, until the task has both again.
#[test]
fn a_task_that_waits_for_a_condition_is_raised_again_when_it_is_woken() {
    let _turn = turn();
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let shared = Arc::new((Mutex::with_ceiling(0u32, Ceiling::Deadline(10 * MS)), Condvar::new()));
    let taken = Arc::new(AtomicU32::new(0));
    let declare = |mut set: Punctual| {
        set = set.trace(&trace);
        let (data, taken) = (shared.clone(), taken.clone());
        set.add("consumer").period(40 * MS).budget(10 * MS).spawn(move |task| {
            let (mutex, filled) = &*data;
            let mut held = mutex.lock(task).expect("no deadlock");
            loop {
                held = match filled.wait(held) {
                    Ok(held) => held,
                    Err(WaitError::Over) => return,
                    Err(e) => panic!("{e}"),
                };
                execute(3 * MS);
                taken.fetch_add(std::mem::take(&mut *held), SeqCst);
            }
        });
        let data = shared.clone();
        set.add("producer").period(20 * MS).deadline(10 * MS).budget(2 * MS).spawn(move |task| {
            for _ in task.releases() {
                *data.0.lock(task).expect("no deadlock") += 1;
                data.1.notify_one();
            }
        });
        // Above the ceiling: the dispatcher looks while the mutex is held.
        set.add("above").period(MS).budget(MS / 10).spawn(|task| for _ in task.releases() {});
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| taken.load(SeqCst) > 20));
    running.stop().expect("it stops");
    let of_the_run = read(&trace);
    let place = |r: &&Record| r.kind == kind::TASK_PLACE && r.a == 0;
    let consumer = of_the_run.records.iter().find(place).expect("it was added").small;
    let raises = |r: &&Record| r.kind == kind::TASK_RAISE && r.b != 0 && r.small == consumer;
    let raised = of_the_run.records.iter().filter(raises).count();
    assert!(raised >= 10, "{raised} for {} tokens", taken.load(SeqCst));
    replays(&trace);
}
