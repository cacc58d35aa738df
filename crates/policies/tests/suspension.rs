//! Tasks are suspended and resumed while they run.

mod support;

use punctual_dispatcher::{End, Refusal, TaskId};
use punctual_policies::{LocalDispatcher, ReleaseEvent};
use punctual_taskset::{Overrun, TaskSet, TaskSpec};
use support::{set, task, Cpu};

const POLICIES: [&str; 4] = ["edf", "rm", "dm", "fp"];

fn tasks(overrun: Overrun) -> Vec<TaskSpec> {
    let a = TaskSpec { priority: 2, overrun, ..task("a", 10, 3) };
    vec![a, TaskSpec { priority: 1, ..task("b", 20, 8) }]
}

fn suspend(cpu: &mut Cpu, id: TaskId) -> Result<(), Refusal> {
    cpu.a.suspend(&mut LocalDispatcher::new(&mut cpu.d, cpu.now), id)
}

/// Suspends the first task from `from` until `to`.
fn suspended(all: &TaskSet, demand: &[&[u64]], from: u64, to: u64, end: u64) -> Cpu {
    let mut cpu = Cpu::new(all, demand);
    let id = cpu.tasks[0].id;
    cpu.run(from);
    suspend(&mut cpu, id).expect("it has a reservation");
    if to > from {
        cpu.run(to);
    }
    cpu.a.resume(id);
    cpu.run(end);
    cpu
}

#[test]
fn from_any_instant_to_any_other_no_release_executes_and_each_ends_once_on_its_grid() {
    for policy in POLICIES {
        let all = set(policy, tasks(Overrun::Carry));
        for from in 20..40 {
            for to in from..from + 25 {
                let what = format!("{policy}, {from} to {to}");
                let mut cpu = suspended(&all, &[&[3], &[8]], from, to, 100);
                let ends = cpu.ends(0);
                let mut lost = 0;
                for (k, &(number, release, end, used)) in (0..).zip(&ends) {
                    assert_eq!((number, release), (k, 10 * k), "{what}");
                    let meanwhile = release > from && release <= to;
                    let in_flight = release <= from && from < release + 10;
                    assert!(end == End::Completed || meanwhile || in_flight, "{what}: {number}");
                    assert!(!meanwhile || (end, used) == (End::Cancelled, 0), "{what}: {number}");
                    lost += u32::from(end == End::Cancelled);
                }
                assert!(ends.len() >= 9, "{what}");
                let next = (to + 1).next_multiple_of(10);
                let within = |&(a, b): &(u64, u64)| a < next && b > from;
                assert_eq!(cpu.when(0).into_iter().find(within), None, "{what}");
                let id = cpu.tasks[0].id;
                assert_eq!(cpu.a.take_lost(&mut cpu.d, id), lost, "{what}");
                assert!(cpu.ends(1).iter().all(|end| end.2 == End::Completed), "{what}");
            }
        }
    }
}

#[test]
fn what_a_job_lacked_is_executed_on_the_budget_after() {
    let cpu = suspended(&set("edf", tasks(Overrun::Carry)), &[&[3], &[8]], 21, 33, 60);
    assert_eq!(cpu.when(0), [(0, 3), (11, 14), (20, 21), (40, 42), (50, 53)]);
}

#[test]
fn a_task_that_overran_is_suspended_in_any_state() {
    for overrun in [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal] {
        let all = set("edf", tasks(overrun));
        for from in 0..60 {
            for to in [from, from + 1, from + 9, from + 35] {
                let cpu = suspended(&all, &[&[3, 7, 2], &[8]], from, to, 160);
                let what = format!("{overrun}, {from} to {to}");
                let ends = cpu.ends(0);
                let on_grid = (0..).zip(&ends).all(|(k, end)| (end.0, end.1) == (k, 10 * k));
                assert!(on_grid && ends.len() >= 15, "{what}");
                let idle = |release: u64| release > from && release <= to;
                assert!(ends.iter().all(|end| !idle(end.1) || end.3 == 0), "{what}");
                let lost = |event: &ReleaseEvent| matches!(event, ReleaseEvent::Lost { .. });
                assert!(!cpu.reported.iter().any(lost), "{what}");
                let continues = |end: &(u64, u64, End, u64)| end.2 == End::Completed && end.3 > 0;
                assert!(ends[12..15].iter().all(continues), "{what}: {ends:?}");
            }
        }
    }
}

#[test]
fn a_task_whose_policy_makes_each_job_by_itself_is_not_suspended() {
    let mut cpu = Cpu::new(&set("imprecise", tasks(Overrun::Carry)), &[&[3], &[8]]);
    cpu.run(21);
    let id = cpu.tasks[0].id;
    assert_eq!(suspend(&mut cpu, id), Err(Refusal::Nothing));
    cpu.run(60);
    assert!(cpu.ends(0).iter().all(|end| end.2 == End::Completed));
}
