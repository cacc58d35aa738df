//! Tasks that lend their jobs to the holders of what they wait for (docs/model.md, "Lending"):
//! priority inheritance whose budgets stay true.

use punctual_dispatcher::{
    Dispatcher, Event, For, Job, JobId, Limits, Refusal, Reservation, TaskId,
};

/// A dispatcher with so many tasks, in group 0 by priority.
fn with_tasks<const N: usize>() -> (Dispatcher, [TaskId; N]) {
    let mut d = Dispatcher::new(Limits::for_tasks(N as u32)).expect("valid limits");
    let tasks = std::array::from_fn(|_| d.add_task(0).expect("room"));
    (d, tasks)
}

fn add(d: &mut Dispatcher, task: TaskId, priority: i64, budget: u64) -> JobId {
    d.add_job(&Job { priority, ..Job::new(For::Task(task), budget) }, 0).expect("room")
}

/// The job that is selected, and the task that it executes.
fn selected(d: &mut Dispatcher, now: u64) -> Option<(JobId, TaskId)> {
    let job = d.select(0, now)?;
    Some((job, d.task_of(job).expect("it is a task's")))
}

/// Mars Pathfinder, 1997: the bus management task waits for a mutex that the meteorological task
/// holds, which communications preempt for a long time; the watchdog resets the spacecraft.
#[test]
fn the_task_that_holds_the_lock_executes_in_place_of_the_one_that_waits() {
    let (mut d, [bus, communication, weather]) = with_tasks();
    let [bus_job, communication_job, _] =
        [(bus, 3), (communication, 2), (weather, 1)].map(|(t, p)| add(&mut d, t, p, 100));
    // Without lending: the bus task sleeps, and communications execute.
    d.task_blocked(bus, 0).unwrap();
    assert_eq!(selected(&mut d, 0), Some((communication_job, communication)));
    // With lending the job of the bus task is the best one, and executes the weather task.
    d.lend(bus, Some(weather), 0).unwrap();
    assert_eq!(selected(&mut d, 0), Some((bus_job, weather)));
    // It pays for what the weather task executes.
    assert_eq!(d.job_of_task(weather), Some(bus_job));
    d.charge_task(weather, 30, 30).unwrap();
    assert_eq!(d.remaining(bus_job), 70);
    // The mutex is released.
    d.lend(bus, None, 30).unwrap();
    assert_eq!(selected(&mut d, 30), Some((communication_job, communication)));
    d.task_ready(bus, 31).unwrap();
    assert_eq!(selected(&mut d, 31), Some((bus_job, bus)));
}

#[test]
fn lending_continues_to_the_last_holder_to_any_depth() {
    let (mut d, [a, b, c, e, last]) = with_tasks();
    let job = add(&mut d, a, 9, 100);
    add(&mut d, last, 1, 100);
    for (task, to) in [(c, e), (a, b), (e, last), (b, c)] {
        d.task_blocked(task, 0).unwrap();
        d.lend(task, Some(to), 0).unwrap();
    }
    assert_eq!(selected(&mut d, 0), Some((job, last)));
    // The last one sleeps with the lock: so do all that wait for it.
    d.task_blocked(last, 1).unwrap();
    assert_eq!(selected(&mut d, 1), None);
    d.task_ready(last, 2).unwrap();
    assert_eq!(selected(&mut d, 2), Some((job, last)));
    // It dies: the lock is free, and the next one has it.
    d.task_gone(last, 3).unwrap();
    assert_eq!(selected(&mut d, 3), None, "the one that waited still sleeps");
    d.task_ready(e, 4).unwrap();
    assert_eq!(selected(&mut d, 4), Some((job, e)));
}

#[test]
fn a_budget_that_the_holder_uses_up_ends_as_if_its_own_task_had() {
    let (mut d, [waiter, holder]) = with_tasks();
    let job = add(&mut d, waiter, 2, 10);
    let own = add(&mut d, holder, 1, 100);
    d.lend(waiter, Some(holder), 0).unwrap();
    assert!(d.charge_task(holder, 10, 10).unwrap());
    d.advance(10);
    let ended: Vec<JobId> = std::iter::from_fn(|| d.next_event())
        .filter_map(|event| match event {
            Event::JobEnded { job, .. } => Some(job),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [job]);
    // From then on the holder executes on what is its own.
    assert_eq!(selected(&mut d, 10), Some((own, holder)));
    d.charge_task(holder, 5, 15).unwrap();
    assert_eq!(d.remaining(own), 95);
}

#[test]
fn releases_to_come_are_lent_too() {
    let (mut d, [waiter, holder]) = with_tasks();
    d.add_reservation(&Reservation::new(For::Task(waiter), 1000, 200), 0).unwrap();
    d.lend(waiter, Some(holder), 0).unwrap();
    d.task_blocked(waiter, 0).unwrap();
    d.advance(0);
    for release in [0, 1000, 2000] {
        d.advance(release);
        let (job, executed) = selected(&mut d, release).expect("a job");
        assert_eq!((executed, d.remaining(job)), (holder, 200));
        d.charge_job(job, 200, release + 200).unwrap();
        d.advance(release + 200);
        assert_eq!(selected(&mut d, release + 200), None);
    }
}

#[test]
fn a_task_whose_jobs_the_better_ones_execute_is_no_runner_up() {
    let (mut d, [waiter, holder, other]) = with_tasks();
    let [first, _, third] =
        [(waiter, 3), (holder, 2), (other, 1)].map(|(t, p)| add(&mut d, t, p, 9));
    d.lend(waiter, Some(holder), 0).unwrap();
    assert_eq!(d.select(0, 0), Some(first));
    assert_eq!(d.runner_up(0, 1), Some(third));
    assert_eq!(d.runner_up(0, 2), None);
}

#[test]
fn a_cycle_is_refused_and_changes_nothing() {
    let (mut d, [a, b, c]) = with_tasks();
    d.lend(a, Some(b), 0).unwrap();
    d.lend(b, Some(c), 0).unwrap();
    for (task, to) in [(a, a), (b, a), (c, a), (c, b)] {
        assert_eq!(d.lend(task, Some(to), 0), Err(Refusal::Tree), "{task:?} to {to:?}");
    }
    assert_eq!(d.lend(a, Some(TaskId(77)), 0), Err(Refusal::Nothing));
    assert_eq!(d.lend(TaskId(77), None, 0), Err(Refusal::Nothing));
    // To another holder, as where the lock is handed over.
    d.lend(a, Some(c), 0).unwrap();
    d.lend(b, None, 0).unwrap();
    d.lend(b, Some(a), 0).unwrap();
    let job = add(&mut d, b, 1, 5);
    assert_eq!(d.task_of(job), Some(c));
}
