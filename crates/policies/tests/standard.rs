//! The standard periodic policies, by the dispatcher's reservations and job by job.

mod support;

use punctual_dispatcher::{Attribute, End};
use punctual_policies::{AllocatorOptions, ReleaseEvent};
use punctual_taskset::{Arrival, Overrun, TaskSpec};
use support::{at_times, set, task, Cpu};

fn job_by_job() -> AllocatorOptions {
    AllocatorOptions { job_by_job: true, ..AllocatorOptions::default() }
}

/// Liu and Layland's kind of example: 2 of 5 and 4 of 7 (97 %) fit under EDF, not under RM.
fn tight(policy: &str) -> punctual_taskset::TaskSet {
    set(policy, vec![TaskSpec { priority: 1, ..task("a", 5, 2) }, task("b", 7, 4)])
}

#[test]
fn rate_monotonic_misses_where_earliest_deadline_first_does_not() {
    let mut rm = Cpu::new(&tight("rm"), &[&[2], &[4]]);
    rm.run(35);
    assert_eq!(rm.ends(1)[0], (0, 0, End::Expired, 3), "b has 3 of its 4 at its deadline");
    assert!(rm.ends(0).iter().all(|e| e.2 == End::Completed), "the shorter period is never late");

    let mut edf = Cpu::new(&tight("edf"), &[&[2], &[4]]);
    edf.run(35);
    for index in 0..2 {
        assert!(edf.ends(index).iter().all(|e| e.2 == End::Completed), "task {index}");
    }
    assert_eq!(edf.ends(0).len(), 7);
    assert_eq!(edf.ends(1).len(), 5);
}

#[test]
fn jobs_made_here_run_as_those_of_a_reservation() {
    for policy in ["rm", "dm", "edf", "fp"] {
        let demands: [&[u64]; 2] = [&[2, 1, 3], &[4, 5, 1]];
        let mut reserved = Cpu::new(&tight(policy), &demands);
        let mut made = Cpu::with(&tight(policy), &demands, job_by_job());
        reserved.run(350);
        made.run(350);
        assert_eq!(reserved.ran, made.ran, "{policy}");
        for index in 0..2 {
            assert_eq!(reserved.ends(index), made.ends(index), "{policy}");
        }
        assert!(reserved.a.reservation_of(reserved.tasks[0].id).is_some());
        assert!(made.a.reservation_of(made.tasks[0].id).is_none());
    }
}

#[test]
fn each_overrun_policy_means_the_same_with_and_without_a_reservation() {
    // RTAI paper, Fig. 2(a): W = 2, P = 5, execution 3, 1, 1.
    for overrun in [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal] {
        let one = set("edf", vec![TaskSpec { overrun, ..task("a", 5, 2) }]);
        let mut reserved = Cpu::new(&one, &[&[1, 3, 1, 1, 4, 1]]);
        let mut made = Cpu::with(&one, &[&[1, 3, 1, 1, 4, 1]], job_by_job());
        reserved.run(60);
        made.run(60);
        assert_eq!(reserved.ran, made.ran, "{overrun:?}");
        assert_eq!(reserved.reported, made.reported, "{overrun:?}");
        let lost =
            [&mut reserved, &mut made].map(|cpu| cpu.a.take_lost(&mut cpu.d, cpu.tasks[0].id));
        assert_eq!(lost[0], lost[1], "{overrun:?}");
    }
}

#[test]
fn a_late_wait_is_ignored_under_carry_so_that_the_task_catches_up() {
    let one = set("rm", vec![task("a", 5, 2)]);
    for options in [AllocatorOptions::default(), job_by_job()] {
        let mut cpu = Cpu::with(&one, &[&[1, 3, 1, 1]], options);
        cpu.run(25);
        // The excess unit executes in period 2; the wait of period 1 then comes late and is
        // ignored.
        assert_eq!(cpu.when(0), [(0, 1), (5, 7), (10, 12), (15, 16), (20, 21)]);
    }
}

#[test]
fn attributes_are_those_of_table_1() {
    let order = |policy: &str| punctual_policies::by_name(policy).unwrap().order;
    assert_eq!(order("rm"), [Attribute::Priority]);
    assert_eq!(order("edf"), [Attribute::Finish]);
    assert_eq!(order("td"), [Attribute::Start]);
}

#[test]
fn releases_are_reported_at_the_times_of_a_list_one_after_the_other() {
    let bursts = at_times(TaskSpec { deadline: 10, ..task("b", 10, 3) }, &[0, 1, 2, 30]);
    let mut cpu = Cpu::new(&set("edf", vec![bursts]), &[&[3]]);
    cpu.run(100);
    assert_eq!(
        cpu.ends(0),
        [
            (0, 0, End::Completed, 3),
            (1, 1, End::Completed, 3),
            (2, 2, End::Completed, 3),
            (3, 30, End::Completed, 3)
        ]
    );
    assert_eq!(cpu.when(0), [(0, 9), (30, 33)]);
}

#[test]
fn a_sporadic_task_is_released_when_its_seed_says() {
    let spec = TaskSpec { arrival: Arrival::Sporadic { longest: 20, seed: 9 }, ..task("s", 10, 3) };
    let run = || {
        let mut cpu = Cpu::new(&set("dm", vec![spec.clone()]), &[&[3]]);
        cpu.run(1_000);
        cpu.ends(0)
    };
    let ends = run();
    assert!(ends.windows(2).all(|w| (10..=20).contains(&(w[1].1 - w[0].1))));
    assert!((50..=100).contains(&ends.len()), "{}", ends.len());
    assert_eq!(ends, run());
}

#[test]
fn a_task_that_goes_ends_what_it_has_and_is_released_no_more() {
    for options in [AllocatorOptions::default(), job_by_job()] {
        let mut cpu = Cpu::with(&tight("edf"), &[&[2], &[4]], options);
        cpu.run(5);
        cpu.leave(1);
        cpu.run(35);
        assert_eq!(cpu.ends(1), [(0, 0, End::TaskGone, 3)]);
        assert!(cpu.ends(0).len() == 7 && cpu.ends(0).iter().all(|e| e.2 == End::Completed));
    }
}

#[test]
fn who_comes_late_is_released_on_its_grid() {
    for options in [AllocatorOptions::default(), job_by_job()] {
        let mut cpu = Cpu::with(&tight("edf"), &[&[2]], options);
        cpu.run(16);
        cpu.add(1, &[4]).unwrap();
        cpu.run(36);
        let b: Vec<(u64, u64)> = cpu.ends(1).iter().map(|e| (e.0, e.1)).collect();
        assert_eq!(b, [(3, 21), (4, 28)]);
    }
}

#[test]
fn releases_that_no_event_handled_in_time_are_reported_as_lost() {
    for options in [AllocatorOptions::default(), job_by_job()] {
        let mut cpu = Cpu::with(&set("rm", vec![task("a", 5, 2)]), &[&[1]], options);
        cpu.run(6);
        cpu.now = 28;
        cpu.run(30);
        let lost = cpu.reported.iter().find(|t| matches!(t, ReleaseEvent::Lost { .. }));
        assert!(matches!(lost, Some(ReleaseEvent::Lost { first: 2, count: 3, .. })), "{lost:?}");
        let last = cpu.ends(0).pop().unwrap();
        assert_eq!((last.0, last.1), (5, 25));
    }
}
