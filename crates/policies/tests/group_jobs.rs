//! Groups that a program replenishes by its own jobs: RED-Linux, Fig. 6 with Table 2, and Fig. 7
//! with Table 3.

mod support;

use punctual_dispatcher::{Attribute, End, For, INFINITE};
use punctual_policies::{JobParams, JobPlace, JobRefusal, ProgramGroups};
use support::program::Program;

const GROUPS: ProgramGroups = ProgramGroups { scheduling: 4, budget: 2 };
const TOP: JobPlace = JobPlace { group: 0, budget_group: 0 };

fn job(start: u64, finish: u64, budget: u64, priority: i64) -> JobParams {
    JobParams { start, finish, budget, priority }
}

fn group(group: u32) -> JobPlace {
    JobPlace { group, budget_group: 0 }
}

fn limited_by(budget_group: u32) -> JobPlace {
    JobPlace { group: 0, budget_group }
}

#[test]
fn the_hierarchy_of_fig_6_and_table_2_executes_by_three_policies() {
    let (rm, edf, edf1, edf2) = (1, 2, 3, 4);
    let whole = [(1000, 1000); 6];
    let mut p = Program::with_groups(&whole, &[&[100][..]; 6], GROUPS);
    p.order(0, &[Attribute::Start]);
    for group in [edf, edf1, edf2] {
        p.order(group, &[Attribute::Finish]);
    }
    let period = 40;
    p.serve(For::Group(rm), TOP, 0, job(0, period / 2, period / 2, 0)).unwrap();
    p.serve(For::Group(edf), TOP, 0, job(period / 2, period, period / 2, 0)).unwrap();
    p.serve(For::Group(edf1), group(edf), 0, job(period / 2, period, period / 4, 0)).unwrap();
    p.serve(For::Group(edf2), group(edf), 0, job(period / 2, period, period / 4, 0)).unwrap();
    // Two tasks in each group of tasks; by priority, and by finish.
    for (task, place, params) in [
        (0, rm, job(0, INFINITE, 12, 1)),
        (1, rm, job(5, INFINITE, 4, 2)),
        (2, edf1, job(0, 200, 6, 0)),
        (3, edf1, job(0, 100, 3, 0)),
        (4, edf2, job(0, 150, 8, 0)),
        (5, edf2, job(0, 160, 8, 0)),
    ] {
        p.add_in(task, Some(group(place)), task as u64 + 1, params).unwrap();
    }
    p.run(period, |_, _| {});
    assert_eq!(p.cpu.when(0), [(0, 5), (9, 16)]);
    assert_eq!(p.cpu.when(1), [(5, 9)]);
    // EDF1 and EDF2 finish together, so the one that was sent first is first; each has a quarter.
    assert_eq!(p.cpu.when(3), [(20, 23)]);
    assert_eq!(p.cpu.when(2), [(23, 29)]);
    assert_eq!(p.cpu.when(4), [(29, 37)]);
    assert_eq!(p.cpu.when(5), [(37, 39)]);
}

#[test]
fn the_budget_groups_of_fig_7_and_table_3_limit_by_the_least_budget_above() {
    let whole = [(1000, 1000); 3];
    let mut p = Program::with_groups(&whole, &[&[100][..]; 3], GROUPS);
    let segment = |budget| job(0, INFINITE, budget, 0);
    p.serve(For::Budget(1), TOP, 10, segment(30)).unwrap();
    p.serve(For::Budget(2), limited_by(1), 11, segment(80)).unwrap();
    // J_3, J_4 and J_2.
    p.add_in(0, Some(limited_by(2)), 3, job(0, INFINITE, 40, 9)).unwrap();
    p.add_in(1, Some(limited_by(2)), 4, job(0, INFINITE, 30, 8)).unwrap();
    p.add_in(2, Some(limited_by(1)), 2, job(0, INFINITE, 50, 7)).unwrap();
    let ends = p.run(60, |_, _| {});
    // J_3 has 30 of its 40, by J_0; then nothing below J_0 executes.
    assert_eq!(p.cpu.when(0), [(0, 30)]);
    assert_eq!(ends, [(30, 10, End::Exhausted, 30, 0)]);
    // What the allocator gives J_0 next is J_3's rest, then J_4's, then J_2's.
    p.serve(For::Budget(1), TOP, 12, job(60, 200, 45, 0)).unwrap();
    let ends = p.run(300, |_, _| {});
    assert_eq!(p.cpu.when(0), [(0, 30), (60, 70)]);
    assert_eq!(p.cpu.when(1), [(70, 100)]);
    assert_eq!(p.cpu.when(2), [(100, 105)]);
    let ends: Vec<_> =
        ends.iter().map(|&(at, cookie, end, used, _)| (at, cookie, end, used)).collect();
    let expected =
        [(70, 3, End::Exhausted, 40), (100, 4, End::Exhausted, 30), (105, 12, End::Exhausted, 45)];
    assert_eq!(ends, expected);
}

#[test]
fn a_group_without_a_server_job_does_not_execute_and_an_ended_one_is_reported() {
    let mut p = Program::with_groups(&[(100, 100)], &[&[50]], GROUPS);
    p.add_in(0, Some(group(1)), 1, job(0, INFINITE, 20, 0)).unwrap();
    assert!(p.run(10, |_, _| {}).is_empty());
    p.serve(For::Group(1), TOP, 7, job(10, 30, 5, 0)).unwrap();
    p.serve(For::Group(1), TOP, 8, job(20, 28, 50, 0)).unwrap();
    let ends = p.run(40, |_, _| {});
    assert_eq!(p.cpu.when(0), [(10, 15), (20, 28)]);
    assert_eq!(ends, [(15, 7, End::Exhausted, 5, 0), (28, 8, End::Expired, 8, 42)]);
}

#[test]
fn what_is_no_job_of_a_group_is_refused() {
    let mut p = Program::with_groups(&[(100, 100)], &[&[50]], GROUPS);
    let some = job(0, INFINITE, 5, 0);
    let mut refused = |serves, place, params| p.serve(serves, place, 0, params).unwrap_err();
    assert_eq!(refused(For::Group(0), TOP, some), JobRefusal::Nothing);
    assert_eq!(refused(For::Group(5), TOP, some), JobRefusal::Nothing);
    assert_eq!(refused(For::Group(1), group(5), some), JobRefusal::Nothing);
    assert_eq!(refused(For::Group(1), group(1), some), JobRefusal::Tree);
    assert_eq!(refused(For::Group(1), limited_by(1), some), JobRefusal::Nothing);
    assert_eq!(refused(For::Budget(0), TOP, some), JobRefusal::Nothing);
    assert_eq!(refused(For::Budget(3), TOP, some), JobRefusal::Nothing);
    assert_eq!(refused(For::Budget(1), limited_by(1), some), JobRefusal::Tree);
    assert_eq!(refused(For::Budget(1), limited_by(2), some), JobRefusal::Nothing);
    assert_eq!(refused(For::Budget(1), TOP, job(5, 5, 5, 0)), JobRefusal::Invalid);
    assert_eq!(p.add_in(0, Some(group(5)), 0, some), Err(JobRefusal::Nothing));
    // Its first server job fixes the parent of a group.
    p.serve(For::Group(1), TOP, 0, some).unwrap();
    p.serve(For::Group(2), group(1), 0, some).unwrap();
    assert_eq!(p.serve(For::Group(1), group(2), 0, some), Err(JobRefusal::Tree));
    // There is room for so many at one time, and for more when some have ended.
    let jobs = std::iter::repeat_with(|| p.serve(For::Budget(1), TOP, 0, job(0, 10, 5, 0)));
    assert_eq!(jobs.take_while(Result::is_ok).count(), 22);
    assert_eq!(p.serve(For::Budget(1), TOP, 0, some), Err(JobRefusal::Full));
    assert_eq!(p.run(11, |_, _| {}).len(), 22);
    p.serve(For::Budget(1), TOP, 0, some).unwrap();
}

#[test]
fn jobs_of_groups_without_time_or_budget_end_at_once() {
    let mut p = Program::with_groups(&[(100, 100)], &[&[50]], GROUPS);
    p.run(20, |_, _| {});
    p.serve(For::Group(1), TOP, 1, job(0, 20, 5, 0)).unwrap();
    p.serve(For::Budget(1), TOP, 2, job(0, 30, 0, 0)).unwrap();
    assert_eq!(p.events(), [(20, 1, End::Expired, 0, 5), (20, 2, End::Exhausted, 0, 0)]);
}
