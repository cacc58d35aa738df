//! Imprecise computation and dual priority (RED-Linux IV-E, Figs. 3 to 5).

mod support;

use punctual_dispatcher::End;
use punctual_policies::{by_name, Allocators, ReleaseEvent};
use punctual_taskset::{DomainId, TaskSpec};
use support::{at_times, set, task, Cpu};

#[test]
fn an_optional_part_executes_when_no_mandatory_one_waits() {
    // Fig. 3: period 10 ms, budget 3 ms; here 1 ms of it is mandatory.
    let imprecise = TaskSpec { mandatory: Some(1), ..task("a", 10, 3) };
    let other = TaskSpec { offset: 2, ..task("b", 20, 7) };
    let mut cpu = Cpu::new(&set("imprecise", vec![imprecise, other]), &[&[3], &[7]]);
    cpu.run(40);
    // At 2, b preempts the optional part of a, because all of b is mandatory; at 10 a's mandatory
    // part follows.
    assert_eq!(cpu.when(0), [(0, 2), (9, 13), (20, 22), (29, 33)]);
    assert_eq!(cpu.when(1), [(2, 9), (22, 29)]);
    assert!(cpu.ends(0).iter().all(|e| e.2 == End::Completed && e.3 == 3));
}

#[test]
fn a_mandatory_part_goes_before_an_optional_one_that_has_begun() {
    let a = TaskSpec { mandatory: Some(1), ..task("a", 10, 5) };
    let b = TaskSpec { offset: 3, ..task("b", 20, 4) };
    let mut cpu = Cpu::new(&set("imprecise", vec![a, b]), &[&[5], &[4]]);
    cpu.run(9);
    assert_eq!((cpu.when(0), cpu.when(1)), (vec![(0, 3), (7, 9)], vec![(3, 7)]));
}

#[test]
fn where_all_is_mandatory_the_whole_budget_is_in_the_high_band() {
    // Fig. 3's numbers: period 10, budget 3, "assign the full budget" to the mandatory part.
    let mut cpu =
        Cpu::new(&set("imprecise", vec![task("a", 10, 3), task("b", 40, 20)]), &[&[3], &[20]]);
    cpu.run(40);
    assert_eq!(cpu.when(0), [(0, 3), (10, 13), (20, 23), (30, 33)]);
    assert_eq!(cpu.when(1), [(3, 10), (13, 20), (23, 29)]);
}

#[test]
fn a_task_that_is_done_in_its_mandatory_part_has_ended_its_release() {
    let a = TaskSpec { mandatory: Some(2), ..task("a", 10, 3) };
    let mut cpu = Cpu::new(&set("imprecise", vec![a]), &[&[1]]);
    cpu.run(20);
    assert_eq!(cpu.ends(0), [(0, 0, End::Completed, 1), (1, 10, End::Completed, 1)]);
    assert!(
        matches!(cpu.reported[1], ReleaseEvent::Ended { remaining: 2, .. }),
        "{:?}",
        cpu.reported[1]
    );
}

#[test]
fn a_release_of_several_jobs_is_reported_once() {
    let a = TaskSpec { mandatory: Some(1), ..task("a", 10, 3) };
    let mut cpu = Cpu::new(&set("imprecise", vec![a]), &[&[3]]);
    cpu.run(100);
    let releases = cpu
        .reported
        .iter()
        .filter(|t| matches!(t, ReleaseEvent::Released { budget: 3, .. }))
        .count();
    assert_eq!((releases, cpu.ends(0).len()), (11, 10));
}

#[test]
fn dual_priority_lets_aperiodic_work_go_first_until_promotion() {
    // a: 10 of 20, alone: worst response 10, so promoted at 10.
    let a = task("a", 20, 10);
    let soft = at_times(task("soft", 20, 6), &[2, 21]);
    let mut cpu = Cpu::new(&set("dual", vec![a, soft]), &[&[10], &[6]]);
    cpu.run(40);
    // Low band 0..2, soft 2..8, low band 8..10, promoted 10..16.
    assert_eq!(cpu.when(1), [(2, 8), (21, 27)]);
    assert_eq!(cpu.when(0), [(0, 2), (8, 16), (20, 21), (27, 36)]);
    assert!(cpu.ends(0).iter().all(|e| e.2 == End::Completed && e.3 == 10));
}

#[test]
fn a_promoted_task_is_above_aperiodic_work_and_in_time() {
    let a = task("a", 20, 10);
    let soft = at_times(task("soft", 60, 30), &[0]);
    let mut cpu = Cpu::new(&set("dual", vec![a, soft]), &[&[10], &[30]]);
    cpu.run(60);
    // Soft work has the CPU until a's promotion at 10 in each period; a then ends exactly at its
    // deadline.
    assert_eq!(cpu.when(1), [(0, 10), (20, 30), (40, 50)]);
    assert_eq!(cpu.when(0), [(10, 20), (30, 40), (50, 60)]);
    assert!(cpu.ends(0).len() == 3 && cpu.ends(0).iter().all(|e| e.2 == End::Completed));
}

#[test]
fn a_job_that_is_promoted_has_what_is_left_of_its_budget() {
    // Fig. 5: "use only the remaining budget".
    let a = TaskSpec { promotion: Some(4), ..task("a", 10, 3) };
    let soft = at_times(task("soft", 10, 2), &[1]);
    let mut cpu = Cpu::new(&set("dual", vec![a, soft]), &[&[5], &[2]]);
    cpu.run(10);
    assert_eq!(cpu.when(0), [(0, 1), (3, 5)]);
    assert_eq!(cpu.ends(0), [(0, 0, End::Exhausted, 3)]);
}

#[test]
fn promotion_times_are_deadline_less_response_time() {
    // Worst response times 1, 3 and 10 (3 + 3 * 1 + 2 * 2, after Joseph and Pandya).
    let tasks = vec![task("a", 4, 1), task("b", 6, 2), task("c", 13, 3)];
    let soft = at_times(task("soft", 13, 13), &[0]);
    let mut all = tasks.clone();
    all.push(soft);
    let mut cpu = Cpu::new(&set("dual", all), &[&[1], &[2], &[3], &[13]]);
    cpu.run(13);
    // So promoted 3, 3 and 3 after the release, and deadline monotonic from there.
    assert_eq!(cpu.when(0)[0], (3, 4));
    assert_eq!(cpu.when(3)[0], (0, 3));
    for index in 0..3 {
        assert!(
            cpu.ends(index).iter().all(|e| e.2 == End::Completed),
            "task {index}: {:?}",
            cpu.ends(index)
        );
    }
}

#[test]
fn dual_priority_in_a_group_needs_promotion_times() {
    let mut set = set("edf", vec![TaskSpec { group: Some(0), ..task("a", 10, 2) }]);
    set.groups.push(support::group("g", "dual", 10, 5, Default::default()));
    let error = Allocators::new(&set, DomainId(0)).err().unwrap();
    assert!(error.cause.starts_with("task \"a\": "), "{error}");
    assert!(error.help.contains("promotion"), "{error}");
    set.tasks[0].promotion = Some(3);
    assert!(Allocators::new(&set, DomainId(0)).is_ok());
}

#[test]
fn an_unknown_policy_is_refused_with_the_names_there_are() {
    let error = Allocators::new(&set("lottery", vec![]), DomainId(0)).err().unwrap();
    assert!(error.to_string().contains("rm, dm, edf, fp, td, imprecise, dual"), "{error}");
    assert!(by_name("lottery").is_none());
}
