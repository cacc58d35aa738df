//! Enforcement error of jobs that are made here: settled as the dispatcher's reservations settle
//! theirs.

mod support;

use punctual_policies::{AllocatorOptions, ReleaseEvent};
use punctual_taskset::{TaskSet, TaskSpec};
use support::{set, task, Cpu};

const PERIOD: u64 = 10_000_000;
const BUDGET: u64 = 2_000_000;
/// The granularity: a job is stopped early by so much at most.
const EARLY: u64 = 20_000;

fn job_by_job() -> AllocatorOptions {
    AllocatorOptions { job_by_job: true, ..AllocatorOptions::default() }
}

/// One task, which uses up any budget.
fn one() -> TaskSet {
    set("edf", vec![TaskSpec { mandatory: Some(1_000_000), ..task("a", PERIOD, BUDGET) }])
}

fn cpu(options: AllocatorOptions) -> Cpu {
    let mut cpu = Cpu::with(&one(), &[&[u64::MAX]], options);
    cpu.d.set_granularity(EARLY).unwrap();
    cpu
}

/// Makes one release whose last job is stopped late (+) or early (-); returns its budget.
fn release(cpu: &mut Cpu, error: i64) -> u64 {
    let task = cpu.tasks[0].id;
    cpu.settle();
    let budget = cpu.reported.iter().rev().find_map(|event| match event {
        ReleaseEvent::Released { budget, .. } => Some(*budget),
        _ => None,
    });
    let end = cpu.now + PERIOD;
    let (budget, mut used) = (budget.expect("a release"), 0);
    while let Some(job) = cpu.d.job_of_task(task).filter(|_| cpu.now < end) {
        let left = cpu.d.remaining(job);
        let last = used + left == budget;
        let ran = if last { left.checked_add_signed(error).unwrap() } else { left };
        cpu.now += ran;
        used += ran;
        cpu.d.charge_job(job, ran, cpu.now).unwrap();
        cpu.settle();
    }
    cpu.now = end;
    budget
}

#[test]
fn jobs_made_here_settle_as_reservations_do() {
    let (mut reserved, mut made) = (cpu(AllocatorOptions::default()), cpu(job_by_job()));
    let mut random = 7_u64;
    let mut other_than_budget = 0;
    for k in 0..2_000 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let error = match random >> 33 {
            r if r % 20 == 0 => (r / 20 % 500_000) as i64,
            r => (r / 20 % (2 * EARLY)) as i64 - EARLY as i64,
        };
        let budget = release(&mut reserved, error);
        assert_eq!(release(&mut made, error), budget, "release {k}");
        other_than_budget += u32::from(budget != BUDGET);
    }
    assert!(other_than_budget > 1_500, "{other_than_budget}");
}

#[test]
fn a_small_overrun_is_settled_by_halves() {
    let mut cpu = cpu(job_by_job());
    assert_eq!(release(&mut cpu, 25_000), BUDGET);
    let budgets: Vec<_> = (0..4).map(|_| release(&mut cpu, 0)).collect();
    assert_eq!(budgets, [BUDGET - 12_500, BUDGET - 6_250, BUDGET - 3_125, BUDGET - 1_563]);
}

/// The release at which a policy takes over from a reservation settles as much as the reservation
/// had it settle, and those after it the rest.
#[test]
fn a_policy_takes_over_what_a_reservation_has_still_to_settle() {
    for (error, budgets) in [
        (25_000, [BUDGET - 12_500, BUDGET - 6_250, BUDGET - 3_125, BUDGET - 1_563]),
        (210_000, [BUDGET - 90_000, BUDGET - 60_000, BUDGET - 30_000, BUDGET - 15_000]),
        (-15_000, [BUDGET + 7_500, BUDGET + 3_750, BUDGET + 1_875, BUDGET + 938]),
    ] {
        let mut cpu = cpu(AllocatorOptions::default());
        release(&mut cpu, error);
        cpu.swap(0, "imprecise");
        let settled: Vec<_> = (0..4).map(|_| release(&mut cpu, 0)).collect();
        assert_eq!(settled, budgets, "{error}");
        assert!(cpu.a.reservation_of(cpu.tasks[0].id).is_none());
    }
}
