//! Scheduling groups and budget groups that a program declares.

mod common;

use std::time::Duration;

use common::{cpu, start, turn, MS};
use punctual::results::GroupKind;
use punctual::{
    BudgetGroup, Error, ErrorKind, Host, Overrun, Parameters, Policy, Punctual, SchedulingGroup,
    Task,
};
use punctual_test_support::{comes_true, execute_briefly, LIVENESS};

/// One second of virtual time, in which programs want all that they can get.
fn simulated() -> Punctual {
    Punctual::on_cpu(0).host(Host::Sim).duration(Duration::from_secs(1)).overload()
}

fn group(name: &str, period: Duration, budget: Duration) -> SchedulingGroup {
    SchedulingGroup::new(name, period, budget)
}

/// What each task received and each group, in ms and parts of a thousand.
fn received(set: Punctual) -> (Vec<u64>, Vec<(GroupKind, u64)>) {
    let running = set.admit().expect("it is right").start().expect("nothing is needed for it");
    assert!(running.wait_timeout(LIVENESS));
    let results = running.stop().expect("it has run").results;
    let tasks = results.tasks.iter().map(|task| task.received_ns / 1_000_000).collect();
    let groups = results.groups.iter().map(|g| (g.kind, g.received_ppm / 1000)).collect();
    (tasks, groups)
}

#[test]
fn a_scheduling_group_receives_its_budget_and_gives_it_by_its_own_policy() {
    let set = simulated()
        .group(group("outer", 20 * MS, 12 * MS).policy(Policy::FixedPriority))
        .group(group("inner", 20 * MS, 6 * MS).parent("outer").priority(1));
    let set = set.task("high").period(20 * MS).budget(5 * MS).group("outer").priority(2);
    let set = set.command(["none"]);
    let set = set.task("first").period(20 * MS).budget(4 * MS).group("inner").command(["none"]);
    let set = set.task("second").period(40 * MS).budget(9 * MS).group("inner").command(["none"]);
    let set = set.task("top").period(20 * MS).budget(5 * MS).command(["none"]);
    // In 50 periods: 5 + 6 of 12 ms in the outer group, all 6 ms of the inner one.
    let (tasks, groups) = received(set);
    assert_eq!((tasks[0], tasks[1] + tasks[2], tasks[3]), (250, 300, 250), "{tasks:?}");
    assert_eq!(groups, [(GroupKind::Group, 550), (GroupKind::Group, 300)]);
}

#[test]
fn a_budget_group_limits_its_tasks_and_groups_whatever_schedules_them() {
    let set = simulated()
        .budget_group(BudgetGroup::new("all", 20 * MS, 12 * MS))
        .budget_group(BudgetGroup::new("some", 20 * MS, 3 * MS).parent("all"))
        .group(group("inner", 20 * MS, 15 * MS).budget_group("all"));
    let set = set.task("limited").period(10 * MS).budget(8 * MS).budget_group("some");
    let set = set.command(["none"]);
    let set = set.task("inside").period(20 * MS).budget(15 * MS).group("inner");
    let set = set.command(["none"]);
    let (tasks, groups) = received(set);
    assert_eq!(tasks, [150, 450]);
    let of_nodes = [(GroupKind::BudgetGroup, 600), (GroupKind::BudgetGroup, 150)];
    assert_eq!((groups[0], &groups[1..]), ((GroupKind::Group, 450), &of_nodes[..]));
}

#[test]
fn a_group_that_cannot_be_is_refused_by_its_name() {
    let refusal = |set: Punctual| {
        let e: Error = set.admit().expect_err("it is refused");
        assert_eq!(e.kind, ErrorKind::Usage, "{e}");
        (e.errno, e.to_string())
    };
    let (two, one) = (|| Punctual::on_cpus([0, 1]), || Punctual::on_cpu(0));
    let good = || group("g", 20 * MS, 6 * MS).cpu(0);
    let node = |name: &str| BudgetGroup::new(name, 20 * MS, 6 * MS).cpu(0);
    let (exists, missing) = (Some(libc::EEXIST), Some(libc::ENOENT));
    for (set, errno, words) in [
        (one().group(group("g", 20 * MS, Duration::ZERO)), None, "group \"g\""),
        (one().group(group("g", 20 * MS, 21 * MS)), None, "budget"),
        (one().group(group("g", MS / 100, MS / 100)), None, "period"),
        (one().group(group("g", Duration::MAX, MS)), None, "too long"),
        (one().group(group("", 20 * MS, MS)), None, "name"),
        (one().group(group("g\n", 20 * MS, MS)), None, "name"),
        (one().group(good()).group(good()), exists, "two groups \"g\""),
        (one().group(good().parent("none")), missing, "group \"g\": there is no group \"none\""),
        (one().group(good().budget_group("none")), missing, "there is no budget group \"none\""),
        (one().group(good()).policy(Policy::RateMonotonic), None, "policy"),
        (two().group(group("g", 20 * MS, MS)), None, "CPU"),
        (two().group(good().cpu(7)), None, "CPU 7"),
        (two().group(good()).group(group("h", 20 * MS, MS).parent("g").cpu(1)), None, "CPU"),
        (two().budget_group(node("n")).group(good().cpu(1).budget_group("n")), None, "CPU"),
        (one().budget_group(node("n")).budget_group(node("n")), exists, "budget groups \"n\""),
        (one().budget_group(node("n").parent("none")), missing, "budget group \"n\""),
        (one().budget_group(BudgetGroup::new("n", MS, 2 * MS)), None, "budget group \"n\""),
    ] {
        let (found, text) = refusal(set);
        assert!(found == errno && text.contains(words), "{words}: {found:?}, {text}");
    }
    let task = |set: Punctual| set.task("t").period(20 * MS).budget(MS);
    for (draft, errno, words) in [
        (task(one()).group("none"), missing, "task \"t\": there is no group \"none\""),
        (task(one()).budget_group("none"), missing, "there is no budget group"),
        (task(two().group(good())).group("g").cpu(1), None, "CPU 1"),
        (task(two().budget_group(node("n"))).budget_group("n").cpu(1), None, "CPU 1"),
        (task(one().group(good().policy(Policy::FixedPriority))).group("g"), None, "priority"),
    ] {
        let (found, text) = refusal(draft.command(["true"]));
        assert!(found == errno && text.contains(words), "{words}: {found:?}, {text}");
    }
    let full = task(one().group(group("g", 20 * MS, 6 * MS))).group("g").budget(7 * MS);
    let refusal = full.command(["true"]).admit().expect_err("the group has less");
    assert_eq!(refusal.kind, ErrorKind::NotAdmitted, "{refusal}");
    // A task is where its group is.
    let placed = task(two().group(good().cpu(1))).group("g").period(100 * MS).command(["true"]);
    assert_eq!(placed.admit().expect("it fits there").loads().len(), 2);
}

#[test]
fn tasks_that_are_added_while_the_set_runs_share_the_budget_of_their_group() {
    let _turn = turn();
    let declare = |set: Punctual| {
        set.group(group("g", 20 * MS, 6 * MS))
            .budget_group(BudgetGroup::new("n", 20 * MS, 4 * MS))
            .overload()
    };
    let Some(running) = start(declare) else { return };
    let spins = |task: &Task<'_>| {
        while !task.is_over() {
            execute_briefly();
        }
    };
    let draft = |name: &str| running.task(name).period(20 * MS).budget(5 * MS);
    for name in ["a", "b"] {
        draft(name).group("g").overrun(Overrun::Skip).spawn(spins).expect("it is admitted");
        let limited = draft(&format!("{name} limited")).budget_group("n").spawn(spins);
        limited.expect("it is admitted");
    }
    let refusal = draft("c").group("h").spawn(spins).expect_err("there is no such group");
    assert_eq!(refusal.errno, Some(libc::ENOENT), "{refusal}");
    let shares = || {
        let groups = running.results().expect("it runs").groups;
        let shares: Vec<_> = groups.iter().map(|g| (g.tasks, g.received_ppm)).collect();
        (shares[0], shares[1])
    };
    // 30 % and 20 %; each task alone would have a quarter.
    assert!(
        comes_true(|| {
            let ((of_group, a), (of_node, b)) = shares();
            (of_group, of_node) == (2, 2)
                && (250_000..320_000).contains(&a)
                && (150_000..220_000).contains(&b)
        }),
        "{:?} on CPU {}",
        shares(),
        cpu()
    );
    running.stop().expect("it runs");
}

#[test]
fn a_task_of_a_group_gets_another_priority_but_no_other_budget() {
    let _turn = turn();
    let declare = |set: Punctual| {
        set.group(group("g", 20 * MS, 6 * MS).policy(Policy::FixedPriority)).overload()
    };
    let Some(running) = start(declare) else { return };
    let spins = |task: &Task<'_>| {
        while !task.is_over() {
            execute_briefly();
        }
    };
    let draft = |name: &str| running.task(name).period(20 * MS).budget(6 * MS).group("g");
    let high = draft("high").priority(2).overrun(Overrun::Skip).spawn(spins);
    let high = high.expect("it is admitted");
    let low = draft("low").priority(1).overrun(Overrun::Skip).spawn(spins);
    let low = low.expect("it is admitted");
    let received = || {
        let tasks = running.results().expect("it runs").tasks;
        (tasks[0].received_ns, tasks[1].received_ns)
    };
    // The higher one takes all that the group has.
    let before = received();
    assert!(comes_true(|| received().0 > before.0 + 60_000_000), "{:?}", received());
    let unchanged = Parameters::new();
    let refusal = low.change(&unchanged.budget(2 * MS)).expect_err("the group has the budget");
    assert!(refusal.to_string().contains("in a group"), "{refusal}");
    low.change(&unchanged.priority(3)).expect("nothing else changes");
    let before = received();
    assert!(comes_true(|| received().1 > before.1 + 60_000_000), "{:?}", received());
    high.stop().and(low.stop()).expect("they run");
    running.stop().expect("it runs");
}
