//! What is not as it should be: lost events, too little room, tasks that sleep, wrong calls.

mod support;

use punctual_dispatcher::{Dispatcher, End, Limits, Refusal, TaskId};
use punctual_policies::{AllocatorOptions, Allocators, LocalDispatcher, ReleaseEvent};
use punctual_taskset::{DomainId, ServerKind, TaskSpec};
use support::{at_times, group, set, task, Cpu};

/// A CPU whose dispatcher has other limits than the allocators ask for.
fn with_limits(
    set: &punctual_taskset::TaskSet,
    options: AllocatorOptions,
    change: impl Fn(&mut Limits),
) -> (Cpu, Limits) {
    let mut cpu = Cpu::with(set, &[], options);
    let mut limits = cpu.a.limits();
    change(&mut limits);
    cpu.a = Allocators::with(set, DomainId(0), options).unwrap();
    cpu.d = Dispatcher::new(limits).unwrap();
    cpu.a.begin(&mut LocalDispatcher::new(&mut cpu.d, 0), 0).unwrap();
    (cpu, limits)
}

fn five() -> Vec<TaskSpec> {
    (0..5).map(|i| TaskSpec { mandatory: Some(1), ..task(&format!("t{i}"), 20, 3) }).collect()
}

#[test]
fn lost_events_are_reported_and_all_tasks_continue() {
    for policy in ["edf", "imprecise", "dual"] {
        for job_by_job in [false, true] {
            let options = AllocatorOptions { job_by_job, ..AllocatorOptions::default() };
            let (mut cpu, _) = with_limits(&set(policy, five()), options, |l| l.events = 4);
            for index in 0..5 {
                cpu.add(index, &[3]).unwrap();
            }
            cpu.run(400);
            assert!(
                cpu.reported.iter().any(|t| matches!(t, ReleaseEvent::EventsLost { .. })),
                "{policy}: the ring is too large"
            );
            // Each task is still released at the end, and each reported release but the last has
            // ended.
            for index in 0..5 {
                let release_of = |event: &ReleaseEvent| match *event {
                    ReleaseEvent::Released { index: i, release, .. } if i == index => Some(release),
                    _ => None,
                };
                let last = cpu.reported.iter().rev().find_map(release_of);
                assert!(last >= Some(360), "{policy}: {last:?}");
                cpu.ends(index);
            }
        }
    }
}

#[test]
fn releases_without_room_for_a_job_are_reported_as_lost() {
    let mut reclaiming = set("edf", five());
    reclaiming.policy.reclaim = true;
    for set in [set("imprecise", five()), reclaiming] {
        let (mut cpu, _) = with_limits(&set, AllocatorOptions::default(), |l| l.jobs = 3);
        for index in 0..5 {
            cpu.add(index, &[3]).unwrap();
        }
        cpu.run(100);
        let is_lost = |t: &&ReleaseEvent| matches!(t, ReleaseEvent::Lost { count: 1, .. });
        let lost = cpu.reported.iter().filter(is_lost).count();
        assert_eq!(lost, 2 * 6, "{}: two of five in each of six periods", set.policy.name);
        let ends: usize = (0..5).map(|index| cpu.ends(index).len()).sum();
        assert_eq!(ends, 3 * 5);
    }
}

#[test]
fn a_timer_without_room_is_asked_for_again() {
    let (mut cpu, _) =
        with_limits(&set("imprecise", five()), AllocatorOptions::default(), |l| l.timers = 5);
    for index in 0..5 {
        cpu.add(index, &[3]).unwrap();
    }
    // Another component takes a timer just when one is free.
    cpu.run(1);
    cpu.d.ask_timer(30, u64::MAX, cpu.now).unwrap();
    cpu.run(200);
    for index in 0..5 {
        assert!(cpu.ends(index).len() >= 9, "task {index}: {:?}", cpu.ends(index));
    }
}

#[test]
fn adding_without_a_timer_or_a_reservation_is_refused_and_can_be_tried_again() {
    let (mut cpu, _) =
        with_limits(&set("dual", five()), AllocatorOptions::default(), |l| l.timers = 1);
    cpu.add(0, &[3]).unwrap();
    assert_eq!(cpu.add(1, &[3]), Err(Refusal::Full));
    let (mut cpu, _) =
        with_limits(&set("edf", five()), AllocatorOptions::default(), |l| l.reservations = 1);
    let first = cpu.add(0, &[3]).unwrap();
    assert_eq!(cpu.add(1, &[3]), Err(Refusal::Full));
    cpu.a.remove(&mut LocalDispatcher::new(&mut cpu.d, 0), first);
    cpu.tasks[0].gone = true;
    let again = cpu.d.add_task(0).unwrap();
    assert_eq!(cpu.a.add(&mut LocalDispatcher::new(&mut cpu.d, 0), 1, again), Ok(()));
}

#[test]
fn a_task_that_wakes_in_mid_job_is_cut_to_its_bandwidth_by_reservation_and_here() {
    // 4 of 10; asleep from 1 to 8: of the 3 left, 2 * 4 / 10 = 0 may execute before 10.
    for (from, to, expected) in
        [(1, 8, (End::Exhausted, 1)), (1, 5, (End::Exhausted, 3)), (1, 2, (End::Exhausted, 4))]
    {
        for job_by_job in [false, true] {
            let options = AllocatorOptions { job_by_job, ..AllocatorOptions::default() };
            let mut cpu = Cpu::with(&set("edf", vec![task("a", 10, 4)]), &[&[9]], options);
            let id = cpu.tasks[0].id;
            cpu.run(from);
            cpu.d.task_blocked(id, from).unwrap();
            cpu.run(to);
            cpu.d.task_ready(id, to).unwrap();
            cpu.run(10);
            let end = cpu.ends(0)[0];
            assert_eq!((end.2, end.3), expected, "asleep {from} to {to}, job by job: {job_by_job}");
            assert_eq!(cpu.ends(0).len(), 1);
            let unused = |event: &ReleaseEvent| match *event {
                ReleaseEvent::Ended { unused, .. } => Some(unused),
                _ => None,
            };
            // No other task is there: the time not executed was cut off.
            assert_eq!(
                cpu.reported.iter().find_map(unused),
                Some(4 - end.3),
                "job by job: {job_by_job}"
            );
        }
    }
}

#[test]
fn wrong_calls_are_refused() {
    let mut cpu = Cpu::new(&set("edf", vec![task("a", 10, 4)]), &[&[4]]);
    let id = cpu.d.add_task(0);
    assert_eq!(id, Err(Refusal::Full), "limits are those of the set");
    assert_eq!(
        cpu.a.add(&mut LocalDispatcher::new(&mut cpu.d, 0), 0, TaskId(0)),
        Err(Refusal::Busy)
    );
    assert_eq!(
        cpu.a.add(&mut LocalDispatcher::new(&mut cpu.d, 0), 1, TaskId(0)),
        Err(Refusal::Nothing)
    );
    assert_eq!(cpu.a.index_of(TaskId(9)), None);
    assert_eq!(cpu.a.order_of(1), None);
    cpu.a.remove(&mut LocalDispatcher::new(&mut cpu.d, 0), TaskId(9));
    cpu.run(20);
    assert_eq!(cpu.ends(0).len(), 2);
}

#[test]
fn tasks_from_outside_the_set_use_the_room_that_was_left() {
    let options = AllocatorOptions { room: 2, ..AllocatorOptions::default() };
    let mut cpu = Cpu::with(&set("rm", vec![task("a", 10, 4)]), &[&[4]], options);
    cpu.run(5);
    let id = cpu.d.add_task(5).unwrap();
    let other = task("b", 5, 1);
    let add = |cpu: &mut Cpu, index| {
        cpu.a.add_other(&mut LocalDispatcher::new(&mut cpu.d, 5), index, id, &other)
    };
    assert_eq!(add(&mut cpu, 0), Err(Refusal::Invalid));
    assert_eq!(add(&mut cpu, 3), Err(Refusal::Full));
    assert_eq!(add(&mut cpu, 2), Ok(()));
    assert!(cpu.a.reservation_of(id).is_some());
    let soft = at_times(task("c", 5, 1), &[7]);
    let third = cpu.d.add_task(5).unwrap();
    assert_eq!(cpu.a.add_other(&mut LocalDispatcher::new(&mut cpu.d, 5), 1, third, &soft), Ok(()));
    assert!(cpu.a.reservation_of(third).is_none());
}

#[test]
fn a_polling_server_polls_on_after_events_were_lost() {
    let mut all =
        set("rm", vec![TaskSpec { group: Some(0), ..at_times(task("soft", 40, 2), &[3, 11]) }]);
    all.groups.push(group("server", "fp", 5, 2, ServerKind::Polling));
    let (mut cpu, _) = with_limits(&all, AllocatorOptions::default(), |l| l.events = 1);
    cpu.add(0, &[2]).unwrap();
    cpu.run(20);
    assert!(cpu.reported.iter().any(|t| matches!(t, ReleaseEvent::EventsLost { .. })));
    assert_eq!(cpu.total(0), 4);
    assert!(cpu.when(0)[0].0 >= 5, "{:?}", cpu.when(0));
}
