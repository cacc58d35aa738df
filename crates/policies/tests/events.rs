//! Policies that go by events: what they receive, and what they may do in return.

mod support;

use std::cell::RefCell;

use punctual_dispatcher::{End, Refusal, Standing};
use punctual_policies::{
    Context, JobParams, MemberParams, PolicyEntry, PolicyEvent, ReservationParams, SchedulingPolicy,
};
use support::{at_times, options, set, task, Cpu, ENTRY};

thread_local! {
    /// What the policy of this thread's test received, and when.
    static SEEN: RefCell<Vec<(u64, PolicyEvent)>> = const { RefCell::new(Vec::new()) };
}

fn saw(context: &Context<'_>, event: PolicyEvent) {
    SEEN.with(|seen| seen.borrow_mut().push((context.now(), event)));
}

fn seen() -> Vec<(u64, PolicyEvent)> {
    SEEN.with(RefCell::take)
}

/// The whole release as one job.
fn whole(context: &Context<'_>) -> JobParams {
    let release = context.release();
    let finish = release.at + context.member().deadline;
    JobParams { start: release.at, finish, budget: release.left, priority: 0 }
}

/// Slices of 2, each followed by a pause of 3.
struct Slices;

impl SchedulingPolicy for Slices {
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        saw(context, event);
        match event {
            PolicyEvent::Released | PolicyEvent::Timer => {
                context.add_job(&JobParams { budget: 2, ..whole(context) }).unwrap();
            }
            PolicyEvent::JobEnded { end: End::Exhausted, .. } if context.release().left > 0 => {
                context.set_timer(context.now() + 3).unwrap();
            }
            _ => {}
        }
    }
}

static SLICES: [&PolicyEntry; 1] = [&PolicyEntry { make: |_, _| Ok(Box::new(Slices)), ..ENTRY }];

#[test]
fn a_release_continues_at_a_timer_and_ends_when_the_policy_adds_no_job() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 20, 5)]), &[&[9]], options(&SLICES));
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 2), (5, 7), (10, 11)]);
    assert_eq!(cpu.ends(0), [(0, 0, End::Exhausted, 5)]);
    let ended = |at, used| (at, PolicyEvent::JobEnded { end: End::Exhausted, used, remaining: 0 });
    let first_release = [
        (0, PolicyEvent::Released),
        ended(2, 2),
        (5, PolicyEvent::Timer),
        ended(7, 2),
        (10, PolicyEvent::Timer),
        ended(11, 1),
        (20, PolicyEvent::Released),
    ];
    assert_eq!(seen(), first_release);
}

#[test]
fn a_completed_release_does_not_wait_for_a_timer() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 20, 5)]), &[&[3]], options(&SLICES));
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 2), (5, 6)]);
    assert_eq!(cpu.ends(0), [(0, 0, End::Completed, 3)]);
}

#[test]
fn a_policys_timer_that_was_lost_is_set_again() {
    // One event has room; the end of b's job and a's timer come at the same instant.
    let tasks = vec![task("a", 20, 5), task("b", 40, 3)];
    let mut cpu = Cpu::with(&set("edf", tasks), &[], options(&SLICES));
    let limits = punctual_dispatcher::Limits { events: 1, ..cpu.a.limits() };
    cpu.d = punctual_dispatcher::Dispatcher::new(limits).unwrap();
    let mut gsi = punctual_policies::LocalDispatcher::new(&mut cpu.d, 0);
    cpu.a = punctual_policies::Allocators::with(
        &set("edf", vec![task("a", 20, 5), task("b", 40, 3)]),
        punctual_taskset::DomainId(0),
        options(&SLICES),
    )
    .unwrap();
    cpu.a.begin(&mut gsi, 0).unwrap();
    cpu.add(0, &[9]).unwrap();
    cpu.add(1, &[9]).unwrap();
    cpu.run(400);
    assert!(seen().iter().any(|(_, event)| *event == PolicyEvent::Lost), "nothing was lost");
    // Its slices and pauses fit into a period whatever is lost: no release waits for ever.
    assert!(cpu.ends(0).len() >= 15, "{:?}", cpu.ends(0));
    assert!(cpu.ends(1).len() >= 7, "{:?}", cpu.ends(1));
}

/// One job; behind all others after the task has slept.
struct Punished;

impl SchedulingPolicy for Punished {
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        saw(context, event);
        match event {
            PolicyEvent::Released => context.add_job(&whole(context)).unwrap(),
            PolicyEvent::Ready => {
                let (used, left) = (context.used(), context.remaining());
                assert_eq!(context.add_job(&whole(context)), Err(Refusal::Busy));
                context.give_up(1);
                let job = JobParams { priority: -1, ..whole(context) };
                context.replace_job(&job).unwrap();
                assert_eq!((context.used(), context.remaining()), (0, left - 1));
                assert_eq!(context.release().left, left - 1);
                assert_eq!(context.member().budget, used + left);
            }
            PolicyEvent::JobEnded { .. } => {
                assert_eq!(context.standing(), None);
                assert_eq!(context.replace_job(&whole(context)), Err(Refusal::Nothing));
                assert_eq!(context.cancel_job(), Err(Refusal::Nothing));
            }
            _ => {}
        }
    }
}

static PUNISHED: [&PolicyEntry; 1] =
    [&PolicyEntry { make: |_, _| Ok(Box::new(Punished)), ..ENTRY }];

#[test]
fn a_job_is_replaced_when_its_task_wakes_and_its_release_continues() {
    let tasks = vec![at_times(task("a", 40, 8), &[0]), at_times(task("b", 40, 8), &[6])];
    let mut cpu = Cpu::with(&set("edf", tasks), &[&[9], &[9]], options(&PUNISHED));
    let a = cpu.tasks[0].id;
    cpu.run(2);
    cpu.d.task_blocked(a, 2).unwrap();
    cpu.run(5);
    cpu.d.task_ready(a, 5).unwrap();
    cpu.run(40);
    // Of 8: 2 before it slept, 5 after, 1 given up; b is first from 6 on.
    assert_eq!(cpu.when(0), [(0, 2), (5, 6), (14, 18)]);
    assert_eq!(cpu.when(1), [(6, 14)]);
    assert_eq!(cpu.ends(0), [(0, 0, End::Exhausted, 7)]);
    let slept: Vec<_> = seen()
        .into_iter()
        .filter(|(_, e)| matches!(e, PolicyEvent::Ready | PolicyEvent::Blocked))
        .collect();
    assert_eq!(slept, [(2, PolicyEvent::Blocked), (5, PolicyEvent::Ready)]);
}

/// Makes nothing of a release with an odd number.
struct Even;

impl SchedulingPolicy for Even {
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if event == PolicyEvent::Released && context.release().number % 2 == 0 {
            context.add_job(&whole(context)).unwrap();
        }
        if matches!(event, PolicyEvent::JobEnded { end: End::TaskGone, .. }) {
            assert_eq!(context.add_job(&whole(context)), Err(Refusal::Nothing));
        }
        saw(context, event);
    }
}

static EVEN: [&PolicyEntry; 1] = [&PolicyEntry { make: |_, _| Ok(Box::new(Even)), ..ENTRY }];

#[test]
fn a_release_of_which_the_policy_makes_nothing_is_lost_and_the_next_one_comes() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 10, 4)]), &[&[9]], options(&EVEN));
    cpu.run(50);
    let numbers: Vec<u64> = cpu.ends(0).iter().map(|end| end.0).collect();
    assert_eq!(numbers, [0, 2, 4]);
    cpu.run(62);
    cpu.leave(0);
    assert_eq!(cpu.ends(0).last().map(|end| end.2), Some(End::TaskGone));
    assert!(matches!(seen().last(), Some((62, PolicyEvent::JobEnded { end: End::TaskGone, .. }))));
}

/// Leaves its tasks to reservations, and looks on.
struct Observer;

impl SchedulingPolicy for Observer {
    fn reservation(&self, _: &MemberParams) -> Option<ReservationParams> {
        Some(ReservationParams { priority: 0, wakeup_rule: false })
    }

    fn observes(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        saw(context, event);
        assert_eq!(context.add_job(&whole(context)), Err(Refusal::Busy));
        if event == PolicyEvent::Blocked {
            assert_eq!(context.standing(), Some(Standing::Blocked));
            assert_eq!((context.used(), context.remaining()), (1, 3));
            assert_eq!(context.cancel_job(), Err(Refusal::Busy));
        }
    }
}

static OBSERVER: [&PolicyEntry; 1] =
    [&PolicyEntry { make: |_, _| Ok(Box::new(Observer)), ..ENTRY }];

#[test]
fn a_policy_may_observe_tasks_that_a_reservation_releases() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 10, 4)]), &[&[9]], options(&OBSERVER));
    assert!(cpu.a.asks_policies());
    let a = cpu.tasks[0].id;
    cpu.run(1);
    cpu.d.task_blocked(a, 1).unwrap();
    cpu.run(3);
    cpu.d.task_ready(a, 3).unwrap();
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 1), (3, 6), (10, 14)]);
    let events: Vec<_> = seen().into_iter().map(|(at, event)| (at, format!("{event:?}"))).collect();
    let names: Vec<_> = events.iter().map(|(at, e)| (*at, e.split(' ').next().unwrap())).collect();
    let expected = [
        (0, "Released"),
        (1, "Blocked"),
        (3, "Ready"),
        (6, "JobEnded"),
        (10, "Released"),
        (14, "JobEnded"),
        (20, "Released"),
    ];
    assert_eq!(names, expected);
}
