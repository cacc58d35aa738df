//! Policies that pace a member themselves: they say when its releases begin, with what budget and
//! deadline.

mod support;

use std::cell::{Cell, RefCell};

use punctual_dispatcher::{Attribute, End, Refusal, INFINITE};
use punctual_policies::{
    Context, JobParams, MemberParams, PolicyEntry, PolicyEvent, ReleaseEvent, SchedulingPolicy,
};
use punctual_taskset::ServerKind;
use support::{at_times, group, options, set, task, Cpu};

fn whole(context: &Context<'_>) -> JobParams {
    let release = context.release();
    let finish = release.deadline;
    JobParams { start: context.now(), finish, budget: release.left, priority: 0 }
}

/// A soft constant bandwidth server for each task (Abeni and Buttazzo 1998): an exhausted one is
/// replenished at once, with its deadline a period later.
struct Soft {
    deadline: [u64; 4],
}

impl SchedulingPolicy for Soft {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let (member, now) = (*context.member(), context.now());
        let last = &mut self.deadline[member.index as usize];
        let (at, from) = match event {
            PolicyEvent::Released => (context.arrival(), now.max(*last)),
            PolicyEvent::JobEnded { end: End::Exhausted, .. } => (now, *last),
            _ => return,
        };
        *last = from + member.period;
        context.begin_release(at, *last, member.budget).unwrap();
        context.add_job(&whole(context)).unwrap();
    }
}

/// By the finish of jobs.
const ENTRY: PolicyEntry = PolicyEntry { order: &[Attribute::Finish], ..support::ENTRY };

static SOFT: [&PolicyEntry; 1] =
    [&PolicyEntry { make: |_, _| Ok(Box::new(Soft { deadline: [0; 4] })), ..ENTRY }];

#[test]
fn an_exhausted_server_is_replenished_at_once_and_its_deadline_postponed() {
    let tasks = vec![task("overrunning", 10, 4), task("periodic", 12, 6)];
    let mut cpu = Cpu::with(&set("edf", tasks), &[&[100], &[6]], options(&SOFT));
    cpu.run(48);
    // Its deadlines are 10, 20, 30, 40, 50, whatever it executes; the other's are 12, 24, 36, 48.
    // From 34 to 36 nothing else is ready.
    assert_eq!(cpu.when(0), [(0, 4), (10, 14), (20, 24), (30, 36), (42, 48)]);
    let in_time = [0, 1, 2, 3].map(|n| (n, 12 * n, End::Completed, 6));
    assert_eq!(cpu.ends(1), in_time, "it never takes more than its bandwidth from the other");
    let begun: Vec<(u64, u64)> = cpu
        .reported
        .iter()
        .filter_map(|event| match *event {
            ReleaseEvent::Released { index: 0, number, deadline, .. } => Some((number, deadline)),
            _ => None,
        })
        .collect();
    assert_eq!(begun[..5], [(0, 10), (1, 20), (2, 30), (3, 40), (4, 50)]);
}

#[test]
fn the_release_before_is_reported_as_replenished_with_what_it_used() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 10, 4)]), &[&[9]], options(&SOFT));
    cpu.run(9);
    let seen: Vec<String> = cpu.reported.iter().map(|event| format!("{event:?}")).collect();
    let kinds: Vec<&str> = seen.iter().map(|text| text.split(' ').next().unwrap()).collect();
    let expected = ["Released", "Replenished", "Released", "Replenished", "Released", "Ended"];
    assert_eq!(kinds, expected);
    for event in &cpu.reported {
        match *event {
            ReleaseEvent::Replenished { at, number, used, remaining, unused, .. } => {
                assert_eq!((at, used, remaining, unused), (4 * (number + 1), 4, 0, 0));
            }
            ReleaseEvent::Ended { at, number, end, used, unused, .. } => {
                assert_eq!((at, number, end, used, unused), (9, 2, End::Completed, 1, 3));
            }
            _ => {}
        }
    }
}

#[test]
fn arrivals_that_come_during_a_release_are_served_one_after_the_other() {
    let queue = at_times(task("a", 10, 4), &[0, 1, 2]);
    let mut cpu = Cpu::with(&set("edf", vec![queue]), &[&[3]], options(&SOFT));
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 9)]);
    let arrivals: Vec<u64> = cpu
        .reported
        .iter()
        .filter_map(|event| match *event {
            ReleaseEvent::Released { release, .. } => Some(release),
            _ => None,
        })
        .collect();
    assert_eq!(arrivals, [0, 1, 2]);
}

thread_local! {
    /// What the next policy was refused.
    static REFUSED: Cell<Option<Refusal>> = const { Cell::new(None) };
}

/// A budget from time 5 on: the arrival waits for it.
struct Later;

impl SchedulingPolicy for Later {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let now = context.now();
        match event {
            PolicyEvent::Released => context.set_timer(now + 5).unwrap(),
            PolicyEvent::Timer => {
                assert_eq!(context.begin_release(now, INFINITE, 0), Err(Refusal::Invalid));
                context.begin_release(now, now + 9, 2).unwrap();
                assert_eq!(context.begin_release(now, now + 9, 2), Err(Refusal::Busy));
                context.add_job(&whole(context)).unwrap();
            }
            PolicyEvent::JobEnded { end: End::Completed, .. } => {
                REFUSED.set(context.begin_release(now, now + 9, 2).err());
            }
            _ => {}
        }
    }
}

static LATER: [&PolicyEntry; 1] = [&PolicyEntry { make: |_, _| Ok(Box::new(Later)), ..ENTRY }];

#[test]
fn an_arrival_can_wait_for_a_budget() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 20, 4)]), &[&[2]], options(&LATER));
    cpu.run(30);
    assert_eq!(cpu.when(0), [(5, 7), (25, 27)]);
    assert_eq!(cpu.ends(0), [(0, 5, End::Completed, 2), (1, 25, End::Completed, 2)]);
    assert_eq!(REFUSED.get(), Some(Refusal::Nothing), "no arrival is served after a completion");
}

/// Begins releases without a job.
struct Idle;

impl SchedulingPolicy for Idle {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let now = context.now();
        if event == PolicyEvent::Released {
            context.begin_release(now, now + 9, 2).unwrap();
        }
    }
}

static IDLE: [&PolicyEntry; 1] = [&PolicyEntry { make: |_, _| Ok(Box::new(Idle)), ..ENTRY }];

#[test]
fn a_release_that_was_begun_and_has_no_job_ends_as_cancelled() {
    let mut cpu = Cpu::with(&set("edf", vec![task("a", 20, 4)]), &[&[2]], options(&IDLE));
    cpu.run(30);
    assert_eq!(cpu.ends(0), [(0, 0, End::Cancelled, 0), (1, 20, End::Cancelled, 0)]);
}

thread_local! {
    /// By event of the first task: its own execution, and that of the other two.
    static EXECUTED: RefCell<Vec<[u64; 3]>> = const { RefCell::new(Vec::new()) };
}

/// One job of each release, and what all tasks have executed at each event of the first.
struct Watches;

impl SchedulingPolicy for Watches {
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if event == PolicyEvent::Released {
            context.add_job(&whole(context)).unwrap();
        }
        if context.member().index == 0 {
            let all = [0, 1, 2].map(|member| context.executed(member));
            EXECUTED.with_borrow_mut(|seen| seen.push(all));
        }
    }
}

static WATCHES: [&PolicyEntry; 1] = [&PolicyEntry { make: |_, _| Ok(Box::new(Watches)), ..ENTRY }];

#[test]
fn a_policy_can_query_what_the_tasks_of_its_group_have_executed() {
    let mut set = set("edf", vec![task("a", 10, 2), task("b", 30, 9), task("beside", 30, 6)]);
    set.groups.push(group("g", "edf", 30, 6, ServerKind::Deferrable));
    set.tasks[2].group = Some(0);
    let mut cpu = Cpu::with(&set, &[&[2], &[9], &[6]], options(&WATCHES));
    cpu.run(21);
    // At 0, 2, 10, 12 and 20: a job in flight counts as well, a task of another group does not.
    assert_eq!(cpu.when(1), [(8, 10), (12, 19)]);
    let expected = [[0, 0, 0], [2, 0, 0], [2, 2, 0], [4, 2, 0], [4, 9, 0]];
    EXECUTED.with_borrow(|seen| assert_eq!(*seen, expected));
    // A task that is removed and added again continues its count.
    cpu.leave(1);
    cpu.add(1, &[9]).unwrap();
    cpu.run(22);
    EXECUTED.with_borrow(|seen| assert_eq!(seen.last(), Some(&[6, 9, 0])));
}
