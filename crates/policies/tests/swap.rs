//! Policies are swapped while tasks run: no job is lost, and releases stay on their grid.

mod support;

use punctual_dispatcher::End;
use punctual_policies::{LocalDispatcher, ReleaseEvent, POLICIES};
use punctual_taskset::{ServerKind, TaskSet, TaskSpec};
use support::{at_times, group, policy, set, task, Cpu};

/// Three tasks that all policies can carry out, 80 % of the CPU.
fn tasks() -> Vec<TaskSpec> {
    let a = TaskSpec { priority: 3, mandatory: Some(1), ..task("a", 10, 3) };
    let b = TaskSpec { priority: 2, offset: 1, ..task("b", 20, 6) };
    let c = TaskSpec { priority: 1, offset: 2, promotion: Some(11), ..task("c", 40, 8) };
    vec![a, b, c]
}

fn count(cpu: &Cpu, index: u32) -> (usize, usize) {
    let released = cpu
        .reported
        .iter()
        .filter(|t| matches!(t, ReleaseEvent::Released { index: i, .. } if *i == index));
    let ended = cpu
        .reported
        .iter()
        .filter(|t| matches!(t, ReleaseEvent::Ended { index: i, .. } if *i == index));
    (released.count(), ended.count())
}

/// Every release came, on its grid, and ended once, in turn (`Cpu::ends` checks that).
fn nothing_is_lost(cpu: &Cpu, set: &TaskSet, what: &str) {
    for (index, spec) in set.tasks.iter().enumerate() {
        let ends = cpu.ends(index as u32);
        for (k, end) in ends.iter().enumerate() {
            let release = spec.offset + k as u64 * spec.period;
            assert_eq!((end.0, end.1), (k as u64, release), "{what}, task {index}");
            assert_ne!(end.2, End::Cancelled, "{what}, task {index}, release {k}");
            assert!(end.3 <= spec.budget, "{what}, task {index}, release {k} executed {}", end.3);
        }
        let (released, ended) = count(cpu, index as u32);
        assert!(released - ended <= 1, "{what}, task {index}: {released} releases, {ended} ends");
        assert!(
            ended as u64 >= (cpu.now - spec.offset) / spec.period - 1,
            "{what}, task {index}: {ended} ends"
        );
    }
    assert!(
        !cpu.reported
            .iter()
            .any(|t| matches!(t, ReleaseEvent::Lost { .. } | ReleaseEvent::EventsLost { .. })),
        "{what}"
    );
}

/// Of the policies that take periods and budgets.
fn names() -> Vec<&'static str> {
    let periodic = POLICIES.iter().filter(|p| !p.info.takes_weights);
    periodic.map(|p| p.info.name).collect()
}

#[test]
fn any_policy_gives_way_to_any_other_at_any_time() {
    let names = names();
    for from in &names {
        for to in &names {
            for at in 40..80 {
                let all = set(from, tasks());
                let mut cpu = Cpu::new(&all, &[&[3, 2, 3], &[6, 5], &[8, 7]]);
                cpu.run(at);
                cpu.swap(0, to);
                cpu.run(200);
                nothing_is_lost(&cpu, &all, &format!("{from} to {to} at {at}"));
                assert_eq!(cpu.a.policy_of(0).unwrap().info.name, *to);
            }
        }
    }
}

#[test]
fn tasks_that_overrun_lose_nothing_either() {
    let names = names();
    for from in &names {
        for to in &names {
            for at in 40..60 {
                let all = set(from, tasks());
                let mut cpu = Cpu::new(&all, &[&[4, 2, 1], &[7, 5, 30, 1], &[900]]);
                cpu.run(at);
                cpu.swap(0, to);
                cpu.run(at + 7);
                cpu.swap(0, from);
                cpu.run(400);
                nothing_is_lost(&cpu, &all, &format!("{from} to {to} at {at}, and back"));
            }
        }
    }
}

#[test]
fn after_one_period_each_task_runs_as_if_it_had_always_been_so() {
    let settled = |from: &str, to: &str| {
        let mut cpu = Cpu::new(&set(from, tasks()), &[&[3], &[6], &[8]]);
        cpu.run(45);
        cpu.swap(0, to);
        cpu.run(400);
        cpu.ran.iter().filter(|r| r.0 >= 160).copied().collect::<Vec<_>>()
    };
    for to in names() {
        let always = settled(to, to);
        for from in ["rm", "edf", "td", "imprecise", "dual", "objective"] {
            assert_eq!(settled(from, to), always, "{from} to {to}");
        }
    }
}

#[test]
fn a_swap_that_the_new_policy_refuses_changes_nothing() {
    let mut all = set("edf", tasks());
    all.tasks.push(at_times(task("soft", 40, 1), &[3, 60]));
    let mut cpu = Cpu::new(&all, &[&[3], &[6], &[8], &[1]]);
    cpu.run(45);
    let refused = cpu
        .a
        .swap_group(&mut LocalDispatcher::new(&mut cpu.d, cpu.now), 0, &policy("td"))
        .unwrap_err();
    assert!(refused.cause.contains("not periodic"), "{refused}");
    assert!(cpu
        .a
        .swap_group(&mut LocalDispatcher::new(&mut cpu.d, cpu.now), 7, &policy("rm"))
        .is_err());
    cpu.run(200);
    assert_eq!(cpu.a.policy_of(0).unwrap().info.name, "edf");
    all.tasks.pop();
    nothing_is_lost(&cpu, &all, "refused");
    assert_eq!(cpu.ends(3).iter().map(|e| e.1).collect::<Vec<_>>(), [3, 60]);
}

#[test]
fn a_group_below_the_top_and_its_servers_are_swapped_too() {
    let mut all = set("rm", tasks());
    for t in &mut all.tasks {
        t.group = Some(0);
    }
    all.tasks.push(TaskSpec { group: Some(1), ..task("low", 50, 4) });
    all.groups.push(group("g", "edf", 10, 8, ServerKind::Deferrable));
    all.groups.push(group("h", "fp", 50, 4, ServerKind::Deferrable));
    let mut cpu = Cpu::new(&all, &[&[3], &[6], &[8], &[4]]);
    cpu.run(45);
    cpu.swap(1, "imprecise");
    cpu.run(63);
    cpu.swap(0, "edf");
    cpu.run(95);
    cpu.swap(0, "fp");
    cpu.run(400);
    nothing_is_lost(&cpu, &all, "groups");
}

#[test]
fn many_swaps_take_no_more_room_than_few() {
    let mut cpu = Cpu::new(&set("rm", tasks()), &[&[3], &[6], &[8]]);
    for k in 0..200 {
        cpu.run(k * 3);
        cpu.swap(0, ["dual", "td", "imprecise", "edf"][k as usize % 4]);
    }
    cpu.run(700);
    nothing_is_lost(&cpu, &set("rm", tasks()), "many");
}

#[test]
fn waits_that_are_due_are_ignored_under_the_new_policy_too() {
    // One task, so that every policy runs it alike; it overruns now and then and catches up
    // (carry).
    let one = || set("edf", vec![TaskSpec { mandatory: Some(1), ..task("a", 5, 2) }]);
    let demand: &[&[u64]] = &[&[1, 3, 1, 1, 5, 1, 1, 1, 2]];
    let mut always = Cpu::new(&one(), demand);
    always.run(100);
    for at in 0..60 {
        let mut cpu = Cpu::new(&one(), demand);
        cpu.run(at);
        cpu.swap(0, "imprecise");
        cpu.run(100);
        assert_eq!(cpu.ran, always.ran, "at {at}");
    }
}
