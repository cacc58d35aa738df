//! The policy `objective`: what runs first by an expression, what the dispatcher carries out by
//! itself, and what is refused.

mod support;

use punctual_dispatcher::Dispatcher;
use punctual_policies::{Allocators, LocalDispatcher};
use punctual_taskset::{DomainId, GroupSpec, Objective, PolicySpec, ServerKind, TaskSet, TaskSpec};
use support::{group, set, task, Cpu};

fn objective(order: &str) -> PolicySpec {
    PolicySpec::objective(Objective::parse(order).unwrap())
}

fn ordered(order: &str, tasks: Vec<TaskSpec>) -> TaskSet {
    TaskSet { policy: objective(order), ..set("rm", tasks) }
}

fn refusal(set: &TaskSet) -> String {
    match Allocators::new(set, DomainId(0)) {
        Ok(_) => panic!("it is taken"),
        Err(error) => format!("{}; {}", error.cause, error.help),
    }
}

#[test]
fn the_smaller_value_of_each_release_comes_first() {
    // 10 - 2 against 12 - 5; then each finds the other done, but for what is released at 24.
    let tasks = || vec![task("a", 10, 2), task("b", 12, 5)];
    let mut cpu = Cpu::new(&ordered("finish - budget", tasks()), &[&[2], &[5]]);
    cpu.run(30);
    assert_eq!(cpu.when(1), [(0, 5), (12, 17), (24, 29)]);
    assert_eq!(cpu.when(0), [(5, 7), (10, 12), (20, 22)]);
    assert!(cpu.a.asks_policies(), "each release is computed");
    // A larger budget is more important here.
    let mut cpu = Cpu::new(&ordered("-budget", tasks()), &[&[2], &[5]]);
    cpu.run(30);
    assert_eq!(cpu.when(1), [(0, 5), (12, 17), (24, 29)]);
    assert!(!cpu.a.asks_policies(), "the dispatcher carries it out");
}

#[test]
fn a_release_without_a_value_comes_last() {
    // "a" has none at its releases at 0, 20, 40.
    let tasks = vec![task("a", 10, 2), task("b", 10, 3)];
    let mut cpu = Cpu::new(&ordered("budget / (release % 20)", tasks.clone()), &[&[2], &[3]]);
    cpu.run(20);
    assert_eq!(cpu.ran, [(0, 2, 0), (2, 5, 1), (10, 12, 0), (12, 15, 1)]);
    let tasks = vec![task("a", 20, 2), TaskSpec { offset: 1, ..task("b", 20, 3) }];
    let mut cpu = Cpu::new(&ordered("9 / (release % 20)", tasks), &[&[2], &[3]]);
    cpu.run(20);
    assert_eq!(cpu.ran, [(0, 1, 0), (1, 4, 1), (4, 5, 0)], "\"b\" preempts it");
}

#[test]
fn times_count_from_the_start_of_the_run() {
    // "b" is at 3 in each cycle of 10, wherever the clock stands at the start.
    let all = ordered(
        "(release + 4) % 10",
        vec![task("a", 10, 4), TaskSpec { offset: 3, ..task("b", 10, 2) }],
    );
    let selected = |start: u64| {
        let mut a = Allocators::new(&all, DomainId(0)).unwrap();
        let mut d = Dispatcher::new(a.limits()).unwrap();
        a.begin(&mut LocalDispatcher::new(&mut d, start), start).unwrap();
        let tasks = [0, 1].map(|index| {
            let id = d.add_task(start).unwrap();
            a.add(&mut LocalDispatcher::new(&mut d, start), index, id).unwrap();
            id
        });
        for now in [start, start + 3] {
            d.advance(now);
            while let Some(event) = d.next_event() {
                a.handle(&mut LocalDispatcher::new(&mut d, now), &event, &mut |_| {});
            }
            d.advance(now);
        }
        let job = d.select(0, start + 3).unwrap();
        tasks.iter().position(|&task| Some(task) == d.task_of(job))
    };
    // 4 against 7.
    assert_eq!((selected(0), selected(7), selected(1_005)), (Some(0), Some(0), Some(0)));
}

#[test]
fn servers_have_the_attributes_of_their_groups() {
    let within = |g, t| TaskSpec { group: Some(g), ..t };
    let mut all = ordered(
        "period * budget - priority",
        vec![within(0, task("small", 40, 2)), within(1, task("large", 40, 4)), task("t", 10, 3)],
    );
    // 20 * 2, 10 * 4 - 1 and 10 * 3.
    all.groups = vec![
        group("small", "rm", 20, 2, ServerKind::Deferrable),
        GroupSpec { priority: 1, ..group("large", "rm", 10, 4, ServerKind::Deferrable) },
    ];
    let mut cpu = Cpu::new(&all, &[&[2], &[4], &[3]]);
    cpu.run(10);
    assert_eq!(cpu.ran, [(0, 3, 2), (3, 7, 1), (7, 9, 0)]);
    // Another order in mid-run: the smaller budget.
    let mut gsi = LocalDispatcher::new(&mut cpu.d, 10);
    cpu.a.swap_group(&mut gsi, 0, &objective("budget")).unwrap();
    assert!(cpu.a.swap_group(&mut gsi, 0, &objective("finish")).is_err(), "there are servers");
    cpu.run(49);
    assert_eq!(cpu.ran[cpu.ran.len() - 3..], [(40, 42, 0), (42, 45, 2), (45, 49, 1)]);
}

#[test]
fn what_it_cannot_order_is_refused() {
    let mut all = ordered("release", vec![task("a", 10, 2)]);
    all.groups = vec![group("media", "rm", 10, 2, ServerKind::Deferrable)];
    let error = refusal(&all);
    assert!(error.contains("group \"media\"") && error.contains("\"release\""), "{error}");
    let error = refusal(&TaskSet { policy: PolicySpec::named("objective"), ..all });
    assert!(error.contains("lacks its order"), "{error}");
}
