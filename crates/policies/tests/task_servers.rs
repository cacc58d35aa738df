//! Servers of tasks: the published rules, by hand-made schedules, and what they guarantee.

mod support;

use punctual_dispatcher::End;
use punctual_policies::{LocalDispatcher, ReleaseEvent};
use punctual_taskset::{ServerKind, TaskSpec};
use support::{at_times, group, policy, set, task, Cpu};

fn on(kind: ServerKind, spec: TaskSpec) -> TaskSpec {
    TaskSpec { server: Some(kind), ..spec }
}

fn with_priority(priority: i64, spec: TaskSpec) -> TaskSpec {
    TaskSpec { priority, ..spec }
}

/// Release and absolute deadline of each release of a task.
fn deadlines(cpu: &Cpu, of: u32) -> Vec<(u64, u64)> {
    let released = cpu.reported.iter().filter_map(|event| match *event {
        ReleaseEvent::Released { index, release, deadline, .. } if index == of => {
            Some((release, deadline))
        }
        _ => None,
    });
    released.collect()
}

/// Each release ended done, none of them later than its deadline.
fn never_late(cpu: &Cpu, of: u32) {
    let due = deadlines(cpu, of);
    let ended = cpu.reported.iter().filter_map(|event| match *event {
        ReleaseEvent::Ended { index, at, number, end, .. } if index == of => {
            Some((number, at, end))
        }
        _ => None,
    });
    let mut count = 0;
    for (number, at, end) in ended {
        assert_eq!(end, End::Completed, "release {number}");
        assert!(at <= due[number as usize].1, "release {number} at {at}");
        count += 1;
    }
    assert!(count > 1);
}

/// Abeni and Buttazzo's rules, worked by hand: a server of 3 in 8 beside a task of 4 in 7. The
/// first request, of 4, exhausts the budget at 7; the second one finds 2 of 3 left at 13, no more
/// than the bandwidth allows until the deadline (19 - 13) * 3 / 8, and keeps both.
#[test]
fn soft_bandwidth_an_exhausted_budget_postpones_the_deadline_and_a_request_may_keep_both() {
    let request = on(ServerKind::SoftConstantBandwidth, task("requests", 8, 3));
    let tasks = vec![task("periodic", 7, 4), at_times(request, &[3, 13])];
    let mut cpu = Cpu::new(&set("edf", tasks), &[&[4], &[4, 3]]);
    cpu.run(28);
    assert_eq!(cpu.when(0), [(0, 4), (7, 11), (15, 19), (21, 25)]);
    assert_eq!(cpu.when(1), [(4, 7), (11, 12), (13, 15), (19, 20)]);
    assert_eq!(deadlines(&cpu, 1), [(3, 11), (7, 19), (13, 19), (15, 27)]);
}

/// Isolation: a task of 60 % and a server of 40 %, whose task executes without an end.
#[test]
fn soft_bandwidth_an_endless_overrun_leaves_other_tasks_of_a_full_cpu_their_budgets() {
    let endless = on(ServerKind::SoftConstantBandwidth, task("endless", 10, 4));
    let mut cpu = Cpu::new(&set("edf", vec![endless, task("hard", 15, 9)]), &[&[100_000], &[9]]);
    cpu.run(3_000);
    never_late(&cpu, 1);
    assert_eq!(cpu.total(0), 3_000 * 4 / 10);
    assert_eq!(cpu.total(1), 3_000 * 6 / 10);
}

/// The server uses idle time, at the price of later deadlines only.
#[test]
fn soft_bandwidth_idle_time_is_used() {
    let endless = on(ServerKind::SoftConstantBandwidth, task("endless", 10, 4));
    let mut cpu = Cpu::new(&set("edf", vec![endless, task("hard", 15, 9)]), &[&[100_000], &[3]]);
    cpu.run(3_000);
    never_late(&cpu, 1);
    assert_eq!(cpu.total(0) + cpu.total(1), 3_000);
}

/// Spuri and Buttazzo: d(k) = max(r(k), d(k - 1)) + C / U, here 1 / 0.25.
#[test]
fn total_bandwidth_each_request_has_a_deadline_by_the_bandwidth() {
    let requests = at_times(task("requests", 4, 1), &[3, 4, 9, 20]);
    let tasks = vec![task("a", 6, 3), task("b", 8, 2), on(ServerKind::TotalBandwidth, requests)];
    let mut cpu = Cpu::new(&set("edf", tasks), &[&[3], &[2], &[1]]);
    cpu.run(48);
    assert_eq!(deadlines(&cpu, 2), [(3, 7), (4, 11), (9, 15), (20, 24)]);
    (0..3).for_each(|task| never_late(&cpu, task));
}

/// Deng, Liu and Sun: the same deadlines, but no request begins before the deadline of the last.
#[test]
fn constant_utilization_a_request_waits_for_the_deadline_of_the_one_before() {
    let at = [0, 0, 0, 30];
    let alone = |kind| {
        let requests = on(kind, at_times(task("requests", 8, 2), &at));
        let mut cpu = Cpu::new(&set("edf", vec![requests]), &[&[2]]);
        cpu.run(40);
        (cpu.when(0), deadlines(&cpu, 0))
    };
    let due = vec![(0, 8), (0, 16), (0, 24), (30, 38)];
    let begun = vec![(0, 2), (8, 10), (16, 18), (30, 32)];
    assert_eq!(alone(ServerKind::ConstantUtilization), (begun, due.clone()));
    assert_eq!(alone(ServerKind::TotalBandwidth), (vec![(0, 6), (30, 32)], due));
}

/// A request that exhausts its budget ends; the deadlines of other tasks are met.
#[test]
fn total_bandwidth_a_request_gets_no_more_than_its_budget() {
    let requests = on(ServerKind::TotalBandwidth, at_times(task("requests", 10, 2), &[0, 10, 20]));
    let mut cpu = Cpu::new(&set("edf", vec![requests, task("hard", 10, 8)]), &[&[50], &[8]]);
    cpu.run(30);
    assert_eq!(cpu.total(0), 6);
    assert!(cpu.ends(0).iter().all(|&(_, _, end, used)| (end, used) == (End::Exhausted, 2)));
    never_late(&cpu, 1);
}

/// Sprunt, Sha and Lehoczky: a server of 4 in 10.
#[test]
fn sporadic_what_is_executed_comes_back_a_period_after_it_was_asked_for() {
    let server = on(ServerKind::Sporadic, at_times(task("requests", 10, 4), &[1, 8, 10]));
    let mut cpu = Cpu::new(&set("rm", vec![server]), &[&[3, 2, 4]]);
    cpu.run(30);
    // Of 4: 3 at 1 (back at 11), 1 at 8 (back at 18); the second request ends at 12, with 1 of what
    // came back at 11. The last one, of 4, gets the other 2 at once, 1 at 18, and 1 at 21.
    assert_eq!(cpu.when(0), [(1, 4), (8, 9), (11, 14), (18, 19), (21, 22)]);
}

/// The deferrable server may execute its budget at the end of a period and again at the beginning
/// of the next one; the sporadic server never, so that the same test holds as of a periodic task.
#[test]
fn sporadic_two_budgets_never_follow_each_other_as_under_a_deferrable_server() {
    let missed = |kind| {
        let requests = TaskSpec { group: Some(0), ..at_times(task("requests", 5, 2), &[3, 5]) };
        let low = with_priority(0, at_times(task("low", 8, 4), &[3]));
        let mut set = set("fp", vec![requests, low]);
        set.groups.push(group("server", "fp", 5, 2, kind));
        set.groups[0].priority = 1;
        let mut cpu = Cpu::new(&set, &[&[2], &[4]]);
        cpu.run(16);
        (cpu.when(0), cpu.when(1))
    };
    // 2 from 3 on, and 2 from 5 on: the low task ends at 11, at its deadline.
    assert_eq!(missed(ServerKind::Deferrable), (vec![(3, 7)], vec![(7, 11)]));
    // What is executed from 3 on comes back at 8.
    assert_eq!(missed(ServerKind::Sporadic), (vec![(3, 5), (8, 10)], vec![(5, 8), (10, 11)]));
}

/// In any interval as long as its period a sporadic server executes at most its budget while
/// nothing more important delays it, however its requests come.
#[test]
fn sporadic_no_interval_of_a_period_has_more_than_its_budget() {
    let mut at = vec![0];
    for n in 0u64..120 {
        at.push(at[n as usize] + (n * n + 3 * n) % 9);
    }
    let end = at[120] + 400;
    let server = on(ServerKind::Sporadic, at_times(task("requests", 12, 5), &at));
    let mut cpu = Cpu::new(&set("rm", vec![server]), &[&[2, 1, 5, 3, 1, 4, 2, 2, 1, 3]]);
    cpu.run(end);
    let ran = cpu.when(0);
    let executed = |from: u64, to: u64| -> u64 {
        ran.iter().map(|&(a, b)| b.min(to).saturating_sub(a.max(from))).sum()
    };
    assert!(executed(0, end) > 200);
    for from in 0..end {
        assert!(executed(from, from + 12) <= 5, "from {from}: {ran:?}");
    }
}

/// A backlogged sporadic server receives its budget in each period, in however many parts it comes.
#[test]
fn sporadic_a_backlog_gets_the_whole_budget_of_each_period() {
    let at = [0, 2, 3, 7, 9, 11];
    let server = on(ServerKind::Sporadic, at_times(task("requests", 12, 5), &at));
    let mut cpu = Cpu::new(&set("rm", vec![server]), &[&[1, 1, 1, 1, 1, 100_000]]);
    cpu.run(11 + 50 * 12);
    let executed: u64 = cpu.when(0).iter().map(|&(from, to)| to.saturating_sub(from.max(11))).sum();
    assert_eq!(executed, 50 * 5);
}

#[test]
fn a_swap_to_a_policy_that_a_server_does_not_suit_is_refused_and_changes_nothing() {
    let tasks = vec![on(ServerKind::Sporadic, task("requests", 10, 4)), task("plain", 20, 4)];
    let mut cpu = Cpu::new(&set("rm", tasks), &[&[2], &[4]]);
    cpu.run(10);
    let refused = cpu
        .a
        .swap_group(&mut LocalDispatcher::new(&mut cpu.d, 10), 0, &policy("edf"))
        .expect_err("it does not suit");
    assert!(refused.cause.contains("task \"requests\": its server"), "{refused:?}");
    cpu.swap(0, "dm");
    cpu.run(60);
    (0..2).for_each(|task| never_late(&cpu, task));
}
