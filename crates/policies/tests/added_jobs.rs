//! Jobs that a program adds to its tasks: order, quota, ends; and the allocators of RED-Linux,
//! Figs. 3 to 5, written with them.

mod support;

use punctual_dispatcher::{Attribute, End, INFINITE};
use punctual_policies::{
    AddedJob, AdmissionTest, GroupDemand, JobParams, JobRefusal, LocalDispatcher, MemberDemand,
    JOBS,
};
use support::program::Program;
use support::{policy, set, task, Cpu};

const HIGH: i64 = 2;
const MIDDLE: i64 = 1;
const LOW: i64 = 0;

fn job(start: u64, finish: u64, budget: u64, priority: i64) -> JobParams {
    JobParams { start, finish, budget, priority }
}

#[test]
fn a_job_comes_at_its_start_and_its_end_says_what_remains() {
    let mut p = Program::new(&[(10, 3), (10, 3), (10, 3)], &[&[2], &[9], &[9]]);
    p.add(0, 100, job(1, 11, 3, HIGH)).unwrap();
    p.add(1, 101, job(0, 10, 3, LOW)).unwrap();
    p.add(2, 102, job(0, 7, 3, LOW - 1)).unwrap();
    let ends = p.run(20, |_, _| {});
    let expected = [
        (3, 100, End::Completed, 2, 1),
        (5, 101, End::Exhausted, 3, 0),
        (7, 102, End::Expired, 2, 1),
    ];
    assert_eq!(ends, expected);
    assert_eq!(p.cpu.when(0), [(1, 3)]);
    assert_eq!(p.cpu.ends(0), [(0, 1, End::Completed, 2)]);
}

#[test]
fn a_task_without_a_job_does_not_execute() {
    let mut p = Program::new(&[(10, 3)], &[&[2]]);
    assert!(p.run(50, |_, _| {}).is_empty());
    assert!(p.cpu.reported.is_empty(), "{:?}", p.cpu.reported);
}

#[test]
fn a_task_has_one_job_at_a_time() {
    let mut p = Program::new(&[(10, 3)], &[&[1]]);
    let first = p.add(0, 1, job(2, 8, 1, 0)).unwrap();
    assert_eq!(p.add(0, 2, job(4, 8, 1, 0)), Err(JobRefusal::Busy));
    p.cancel(0, first).unwrap();
    assert_eq!(p.events(), [(0, 1, End::Cancelled, 0, 1)]);
    assert_eq!(p.cancel(0, first), Err(JobRefusal::Nothing));
    p.add(0, 2, job(4, 8, 1, 0)).unwrap();
    assert_eq!(p.run(10, |_, _| {}), [(5, 2, End::Completed, 1, 0)]);
}

#[test]
fn a_job_that_has_not_begun_takes_nothing_of_the_budget_when_it_is_cancelled() {
    let mut p = Program::new(&[(10, 3)], &[&[9]]);
    let later = p.add(0, 1, job(30, 40, 3, 0)).unwrap();
    p.cancel(0, later).unwrap();
    p.add(0, 2, job(0, 10, 3, 0)).unwrap();
    p.run(11, |_, _| {});
    p.add(0, 3, job(50, 60, 0, 0)).unwrap();
    p.add(0, 4, job(11, 21, 3, 0)).unwrap();
    p.run(21, |_, _| {});
    assert_eq!(p.cpu.when(0), [(0, 3), (11, 14)]);
}

#[test]
fn a_job_is_cancelled_while_it_executes() {
    let mut p = Program::new(&[(10, 3)], &[&[9]]);
    let first = p.add(0, 1, job(0, 10, 3, 0)).unwrap();
    p.run(2, |_, _| {});
    p.cancel(0, first).unwrap();
    assert_eq!(p.run(9, |_, _| {}), [(2, 1, End::Cancelled, 2, 1)]);
    assert_eq!(p.cpu.total(0), 2);
}

#[test]
fn jobs_share_the_budget_of_a_period_and_more_is_refused() {
    let mut p = Program::new(&[(10, 3)], &[&[9]]);
    assert_eq!(p.add(0, 1, job(5, 15, 4, 0)), Err(JobRefusal::Quota));
    assert_eq!(p.add(0, 1, job(5, 16, 1, 0)), Err(JobRefusal::Invalid));
    assert_eq!(p.add(0, 1, job(5, 5, 1, 0)), Err(JobRefusal::Invalid));
    p.add(0, 1, job(5, 15, 2, 0)).unwrap();
    p.run(8, |_, _| {});
    assert_eq!(p.add(0, 2, job(14, 15, 2, 0)), Err(JobRefusal::Quota));
    // The allotment lasts from 5 to 15.
    assert_eq!(p.add(0, 2, job(14, 16, 1, 0)), Err(JobRefusal::Invalid));
    p.add(0, 2, job(14, 15, 1, 0)).unwrap();
    p.run(16, |_, _| {});
    assert_eq!(p.add(0, 3, job(3, 9, 1, 0)), Err(JobRefusal::Quota));
    p.add(0, 3, job(15, 25, 3, 0)).unwrap();
    p.run(25, |_, _| {});
    assert_eq!(p.cpu.total(0), 6);
}

#[test]
fn a_task_that_has_whole_periods_has_jobs_of_any_length_and_budget() {
    let mut p = Program::new(&[(10, 10)], &[&[40]]);
    assert_eq!(p.add(0, 1, job(5, 5, 4, 0)), Err(JobRefusal::Invalid));
    let long = p.add(0, 1, job(5, 105, 25, 0)).unwrap();
    assert_eq!(p.cpu.a.job_in_flight(p.id(0)), None);
    p.run(20, |_, _| {});
    assert_eq!(p.cpu.a.job_in_flight(p.id(0)), Some(long));
    assert_eq!(p.run(31, |_, _| {}), [(30, 1, End::Exhausted, 25, 0)]);
    p.add(0, 2, job(31, INFINITE, 7, 0)).unwrap();
    assert_eq!(p.run(39, |_, _| {}), [(38, 2, End::Exhausted, 7, 0)]);
    p.add(0, 3, job(39, INFINITE, 9, 0)).unwrap();
    assert_eq!(p.run(60, |_, _| {}), [(47, 3, End::Completed, 8, 1)]);
}

#[test]
fn jobs_that_cannot_execute_end_at_once() {
    let mut p = Program::new(&[(10, 3)], &[&[9]]);
    p.run(20, |_, _| {});
    p.add(0, 1, job(5, 15, 3, 0)).unwrap();
    p.add(0, 2, job(20, 30, 0, 0)).unwrap();
    assert_eq!(p.events(), [(20, 1, End::Expired, 0, 3), (20, 2, End::Exhausted, 0, 0)]);
    assert_eq!(p.cpu.total(0), 0);
}

#[test]
fn the_program_orders_the_group() {
    let mut p = Program::new(&[(10, 2), (10, 2)], &[&[2], &[2]]);
    let both = |p: &mut Program, at: u64| {
        p.add(0, 0, job(at, at + 9, 2, HIGH)).unwrap();
        p.add(1, 1, job(at, at + 5, 2, LOW)).unwrap();
        let ends = p.run(at + 10, |_, _| {});
        ends.iter().map(|end| end.1).collect::<Vec<_>>()
    };
    assert_eq!(both(&mut p, 0), [0, 1]);
    let Cpu { a, d, now, .. } = &mut p.cpu;
    let mut gsi = LocalDispatcher::new(d, *now);
    a.set_order(&mut gsi, 0, &[Attribute::Finish, Attribute::Priority]).unwrap();
    assert_eq!(a.set_order(&mut gsi, 0, &[]), Err(JobRefusal::Invalid));
    assert_eq!(a.set_order(&mut gsi, 7, &[Attribute::Finish]), Err(JobRefusal::Nothing));
    assert_eq!(both(&mut p, 10), [1, 0]);
}

#[test]
fn the_end_of_a_task_ends_its_jobs() {
    for start in [0, 5] {
        let mut p = Program::new(&[(10, 3)], &[&[9]]);
        p.add(0, 1, job(start, start + 10, 3, 0)).unwrap();
        p.run(2, |_, _| {});
        let id = p.id(0);
        p.reported(|a, gsi, report| a.end_waiting_job(gsi, id, End::TaskGone, report));
        p.cpu.leave(0);
        let used = if start == 0 { 2 } else { 0 };
        assert_eq!(p.events(), [(2, 1, End::TaskGone, used, 3 - used)]);
        assert_eq!(p.add(0, 2, job(10, 20, 1, 0)), Err(JobRefusal::Nothing));
    }
}

#[test]
fn tasks_of_other_policies_take_no_jobs() {
    let mut cpu = Cpu::new(&set("edf", vec![task("a", 10, 3)]), &[&[3]]);
    let (id, job) =
        (cpu.tasks[0].id, AddedJob { params: job(0, 5, 1, 0), place: None, id: 1, cookie: 0 });
    let mut gsi = LocalDispatcher::new(&mut cpu.d, 0);
    assert_eq!(cpu.a.add_job(&mut gsi, id, &job, &mut |_| {}), Err(JobRefusal::Nothing));
}

#[test]
fn figures_3_and_4_give_the_optional_part_what_the_mandatory_one_left() {
    let (period, budget) = (10, 3);
    let mut p = Program::new(&[(period, budget), (20, 5)], &[&[1], &[5]]);
    let mut j = job(10, 20, budget, HIGH);
    p.add(0, 7, j).unwrap();
    // Another job, between the bands, in the second period.
    p.add(1, 8, job(20, 40, 5, MIDDLE)).unwrap();
    let mut is_optional = false;
    p.run(40, |p, (_, cookie, _, _, remaining)| {
        if cookie != 7 {
            return;
        }
        if is_optional {
            j.start += period;
            j.finish = j.start + period;
            j.budget = budget;
            j.priority = HIGH;
        } else {
            j.budget = remaining;
            j.priority = LOW;
        }
        is_optional = !is_optional;
        p.add(0, 7, j).unwrap();
    });
    assert_eq!(p.cpu.when(0), [(10, 12), (20, 21), (26, 27), (30, 32)]);
    assert_eq!(p.cpu.when(1), [(21, 26)]);
}

#[test]
fn figure_5_promotes_what_the_low_band_left() {
    let (period, budget, promotion) = (10, 3, 6);
    let mut p = Program::new(&[(period, budget), (20, 9)], &[&[3], &[9]]);
    let mut j = job(0, promotion, budget, LOW);
    p.add(0, 7, j).unwrap();
    p.add(1, 8, job(1, 21, 9, MIDDLE)).unwrap();
    let mut is_promoted = false;
    let ends = p.run(20, |p, (_, cookie, end, _, remaining)| {
        if cookie != 7 {
            return;
        }
        if is_promoted || end == End::Completed {
            // The papers' notes: a job that completes goes straight to the next period.
            j = job(j.start / period * period + period, 0, budget, LOW);
            j.finish = j.start + promotion;
            is_promoted = false;
        } else {
            // The promoted job starts at the promotion time.
            j = job(j.finish, j.start + period, remaining, HIGH);
            is_promoted = true;
        }
        p.add(0, 7, j).unwrap();
    });
    // 1 ms in the low band before the other job comes; the rest from the promotion on.
    assert_eq!(p.cpu.when(0), [(0, 1), (6, 8), (12, 15)]);
    assert_eq!(p.cpu.when(1), [(1, 6), (8, 12)]);
    let of_task: Vec<_> = ends.iter().filter(|e| e.1 == 7).map(|e| (e.0, e.2, e.3)).collect();
    assert_eq!(of_task, [(6, End::Expired, 1), (8, End::Completed, 2), (15, End::Completed, 3)]);
}

#[test]
fn a_group_of_such_tasks_keeps_its_policy() {
    let mut p = Program::new(&[(10, 3)], &[&[1]]);
    let mut gsi = LocalDispatcher::new(&mut p.cpu.d, 0);
    let error = p.cpu.a.swap_group(&mut gsi, 0, &policy("edf")).unwrap_err();
    assert!(error.cause.contains("the policy \"jobs\" is not swapped"), "{error}");
}

/// The longest responses that admission finds for these periods and budgets.
fn admitted(tasks: &[(u64, u64)]) -> Vec<Option<u64>> {
    let AdmissionTest::Own(test) = JOBS.info.admission else { panic!("a test of its own") };
    let member = |&(period, budget): &(u64, u64)| MemberDemand {
        name: "",
        budget,
        period: Some(period),
        deadline: period,
        jitter: 0,
        blocking: 0,
        priority: 0,
        suspends: false,
    };
    let members: Vec<_> = tasks.iter().map(member).collect();
    test(&GroupDemand { members: &members, supply: &Some })
}

#[test]
fn admission_counts_on_no_order_and_on_budgets_that_follow_each_other() {
    assert_eq!(admitted(&[(10, 3)]), [Some(3)]);
    assert_eq!(admitted(&[(10, 3), (20, 2)]), [Some(7), Some(8)]);
    // The other one may execute 5 at the end of its period and 5 at the beginning of the next.
    assert_eq!(admitted(&[(10, 3), (20, 5)])[0], Some(13));
}

#[test]
fn a_budget_that_was_admitted_is_executed_in_the_worst_order() {
    let mut p = Program::new(&[(10, 3), (20, 2)], &[&[3], &[2]]);
    // At the end of one period, and at the beginning of the next, before all others.
    p.add(1, 1, job(0, 20, 2, LOW)).unwrap();
    p.run(17, |_, _| {});
    assert_eq!(p.cpu.total(1), 2);
    let mut p = Program::new(&[(10, 3), (20, 2)], &[&[3], &[2]]);
    p.add(1, 1, job(18, 20, 2, HIGH)).unwrap();
    p.add(0, 2, job(18, 28, 3, LOW)).unwrap();
    let ends = p.run(40, |p, (_, cookie, ..)| {
        if cookie == 1 {
            p.add(1, 3, job(38, 40, 2, HIGH)).unwrap();
        }
    });
    assert!(ends.iter().all(|&(_, _, end, ..)| end == End::Completed), "{ends:?}");
    assert_eq!(p.cpu.when(0), [(20, 23)]);
}
