//! The time-driven table: windows given, found off line, refused.

mod support;

use punctual_dispatcher::End;
use punctual_policies::{AllocatorOptions, Allocators, Diagnostic, LocalDispatcher, ReleaseEvent};
use punctual_taskset::{DomainId, Overrun, TaskSet, TaskSpec, Window};
use support::{at_times, group, set, task, windowed, Cpu};

fn windows(t: TaskSpec, w: &[(u64, u64)]) -> TaskSpec {
    TaskSpec { windows: w.iter().map(|&(start, length)| Window { start, length }).collect(), ..t }
}

fn refused(set: &TaskSet) -> Diagnostic {
    Allocators::new(set, DomainId(0)).err().expect("it must be refused")
}

#[test]
fn tasks_execute_in_the_windows_that_are_given() {
    let a = windows(task("a", 10, 3), &[(0, 1), (4, 2)]);
    let b = windows(task("b", 20, 6), &[(1, 3), (16, 3)]);
    let mut cpu = Cpu::new(&set("td", vec![a, b]), &[&[3], &[6]]);
    cpu.run(40);
    assert_eq!(
        cpu.when(0),
        [(0, 1), (4, 6), (10, 11), (14, 16), (20, 21), (24, 26), (30, 31), (34, 36)]
    );
    assert_eq!(cpu.when(1), [(1, 4), (16, 19), (21, 24), (36, 39)]);
    for index in 0..2 {
        assert!(cpu.ends(index).iter().all(|e| e.2 == End::Completed), "{:?}", cpu.ends(index));
    }
}

#[test]
fn a_window_that_its_task_does_not_use_stays_empty() {
    let a = windows(task("a", 10, 3), &[(0, 1), (4, 2)]);
    let mut cpu = Cpu::new(&set("td", vec![a]), &[&[1]]);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 1), (10, 11)]);
}

#[test]
fn a_task_that_wants_more_than_its_windows_is_stopped_at_their_ends() {
    let a = windows(task("a", 10, 3), &[(0, 1), (4, 2)]);
    let mut cpu = Cpu::new(&set("td", vec![a]), &[&[9]]);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(0, 1), (4, 6), (10, 11), (14, 16)]);
    assert_eq!(cpu.ends(0), [(0, 0, End::Exhausted, 3), (1, 10, End::Exhausted, 3)]);
}

#[test]
fn a_table_that_is_found_off_line_meets_every_deadline_at_full_load() {
    // 2/5 + 4/7 + 1/35 = 1: no slack anywhere.
    for starts in [[0, 0, 0], [3, 3, 3], [0, 1, 2], [12, 9, 40]] {
        let tasks = vec![task("a", 5, 2), task("b", 7, 4), task("c", 35, 1)];
        let tasks: Vec<TaskSpec> = tasks
            .into_iter()
            .zip(starts)
            .map(|(t, start)| TaskSpec { offset: start, ..t })
            .collect();
        let mut cpu = Cpu::new(&set("td", tasks), &[&[2], &[4], &[1]]);
        cpu.run(350);
        for index in 0..3 {
            let ends = cpu.ends(index);
            assert!(ends.len() > 7);
            assert!(
                ends.iter().all(|e| e.2 == End::Completed),
                "{starts:?}, task {index}: {ends:?}"
            );
        }
    }
}

#[test]
fn a_table_is_found_around_what_is_given() {
    let given = windows(task("given", 10, 4), &[(2, 4)]);
    let mut all = set("td", vec![given, task("found", 20, 8)]);
    all.groups.push(windowed("g", "fp", 20, &[(10, 2)]));
    all.tasks.push(TaskSpec { group: Some(0), ..task("inside", 20, 2) });
    let mut cpu = Cpu::new(&all, &[&[4], &[8], &[2]]);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(2, 6), (12, 16)]);
    assert_eq!(cpu.when(1), [(0, 2), (6, 10), (16, 18)]);
    assert_eq!(cpu.when(2), [(10, 12)]);
}

#[test]
fn who_comes_late_finds_its_place_in_the_table() {
    let all = set("td", vec![task("a", 5, 2), task("b", 7, 4), task("c", 35, 1)]);
    let mut cpu = Cpu::new(&all, &[&[2]]);
    cpu.run(16);
    cpu.add(1, &[4]).unwrap();
    cpu.add(2, &[1]).unwrap();
    cpu.run(140);
    for index in 0..3 {
        assert!(cpu.ends(index).iter().all(|e| e.2 == End::Completed), "{:?}", cpu.ends(index));
    }
}

#[test]
fn a_set_that_cannot_be_met_is_refused_with_its_first_failure() {
    let error = refused(&set("td", vec![task("a", 4, 2), task("b", 6, 3), task("c", 12, 1)]));
    assert!(error.cause.contains("no time table can be met"), "{error}");
    // 2/4 + 3/6 = 1 fits alone; c exceeds it, but the error names the first task that misses its
    // time.
    assert!(
        Allocators::new(&set("td", vec![task("a", 4, 2), task("b", 6, 3)]), DomainId(0)).is_ok()
    );
}

#[test]
fn a_short_deadline_is_refused_that_the_load_would_allow() {
    let short = |name: &str| TaskSpec { deadline: 3, ..task(name, 100, 2) };
    let error = refused(&set("td", vec![short("a"), short("b")]));
    assert!(error.cause.starts_with("task \"b\": "), "{error}");
    assert!(error.cause.contains("1 ns of its budget is missing"), "{error}");
}

#[test]
fn hyperperiods_beyond_bounds_are_refused_at_once() {
    let primes =
        [999_999_937, 999_999_929, 999_999_893, 999_999_883, 999_999_797, 999_999_761, 999_999_757];
    let long = primes.map(|p| task(&p.to_string(), p, 1)).to_vec();
    assert!(refused(&set("td", long)).cause.contains("2^60"));
    let large = vec![task("a", 10, 1), task("b", 1_000_003, 1)];
    assert!(refused(&set("td", large)).cause.contains("65536 windows"));
}

#[test]
fn windows_that_meet_in_a_later_cycle_are_refused() {
    // Disjoint in the first cycle; a's second window begins at 10, b's third at 14 .. 16, a's
    // third at 20 ...
    let clash = vec![windows(task("a", 10, 2), &[(4, 2)]), windows(task("b", 7, 2), &[(0, 2)])];
    let error = refused(&set("td", clash));
    assert!(
        error.cause.starts_with("task \"b\": ")
            && error.cause.contains("overlaps one of task \"a\""),
        "{error}"
    );
    let apart = vec![windows(task("a", 10, 2), &[(4, 2)]), windows(task("b", 5, 2), &[(1, 2)])];
    assert!(Allocators::new(&set("td", apart), DomainId(0)).is_ok());
}

#[test]
fn windows_shorter_than_the_budget_are_refused() {
    let error = refused(&set("td", vec![windows(task("a", 10, 3), &[(0, 2)])]));
    assert!(
        error.cause.contains("its windows are 2 ns long together, its budget is 3 ns"),
        "{error}"
    );
}

#[test]
fn what_has_no_place_in_a_table_is_refused() {
    let error = refused(&set("td", vec![at_times(task("a", 10, 3), &[0])]));
    assert!(error.cause.contains("not periodic"), "{error}");
    let mut all = set("td", vec![]);
    all.groups.push(group("g", "rm", 10, 5, Default::default()));
    assert!(refused(&all).help.contains("windows"));
    let mut all = set("edf", vec![TaskSpec { group: Some(0), ..task("a", 10, 3) }]);
    all.groups.push(group("g", "td", 10, 5, Default::default()));
    assert!(refused(&all).cause.contains("no fixed time"));
}

#[test]
fn a_table_inside_a_server_keeps_to_the_windows_of_that_server() {
    let mut all = set("td", vec![TaskSpec { group: Some(0), ..task("a", 10, 3) }]);
    all.groups.push(windowed("g", "td", 10, &[(1, 2), (6, 2)]));
    let mut cpu = Cpu::new(&all, &[&[3]]);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(1, 3), (6, 7), (11, 13), (16, 17)]);
    all.tasks[0].budget = 5;
    assert!(refused(&all).cause.contains("no time table"));
    all.tasks[0] = windows(all.tasks[0].clone(), &[(0, 5)]);
    assert!(refused(&all).cause.contains("outside the windows of the server"));
}

fn job_by_job() -> AllocatorOptions {
    AllocatorOptions { job_by_job: true, ..AllocatorOptions::default() }
}

/// Four tasks for a table whose rows differ, and two for windows that are given.
fn mixed(overrun: Overrun) -> TaskSet {
    let found = [task("a", 10, 3), task("b", 20, 4), task("c", 40, 5)];
    let given = [
        windows(task("d", 20, 2), &[(4, 1), (13, 2)]),
        windows(task("e", 40, 3), &[(9, 1), (19, 1), (36, 3)]),
    ];
    set("td", found.into_iter().chain(given).map(|t| TaskSpec { overrun, ..t }).collect())
}

#[test]
fn the_dispatcher_makes_the_windows_itself_and_tells_the_same() {
    let demands: [&[u64]; 5] = [&[3, 1, 7, 2], &[4, 9, 1], &[2, 5, 90], &[1, 2, 3], &[3, 4, 30, 1]];
    for overrun in [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal] {
        let mut reserved = Cpu::new(&mixed(overrun), &demands);
        let mut made = Cpu::with(&mixed(overrun), &demands, job_by_job());
        reserved.run(800);
        made.run(800);
        assert_eq!(reserved.ran, made.ran, "{overrun:?}");
        for index in 0..5 {
            let reported = |cpu: &Cpu| {
                cpu.reported
                    .iter()
                    .filter(|t| of(t) == Some(index))
                    .copied()
                    .collect::<Vec<ReleaseEvent>>()
            };
            assert_eq!(reported(&reserved), reported(&made), "{overrun:?}, task {index}");
            let lost = [&mut reserved, &mut made]
                .map(|cpu| cpu.a.take_lost(&mut cpu.d, cpu.tasks[index as usize].id));
            assert_eq!(lost[0], lost[1], "{overrun:?}, task {index}");
            assert!(reserved.a.reservation_of(reserved.tasks[index as usize].id).is_some());
            assert!(made.a.reservation_of(made.tasks[index as usize].id).is_none());
        }
    }
}

fn of(event: &ReleaseEvent) -> Option<u32> {
    match *event {
        ReleaseEvent::Released { index, .. }
        | ReleaseEvent::Ended { index, .. }
        | ReleaseEvent::Replenished { index, .. }
        | ReleaseEvent::Lost { index, .. }
        | ReleaseEvent::Overrun { index, .. }
        | ReleaseEvent::Background { index, .. }
        | ReleaseEvent::DelayedSaturated { index, .. }
        | ReleaseEvent::JobEnded { index, .. } => Some(index),
        ReleaseEvent::EventsLost { .. } | ReleaseEvent::PolicyStopped(_) => None,
    }
}

#[test]
fn who_comes_late_has_the_row_of_its_release() {
    // Rows differ from release to release; each task comes at another time.
    let all = || set("td", vec![task("a", 10, 3), task("b", 15, 6), task("c", 30, 8)]);
    let demands: [&[u64]; 3] = [&[3], &[6], &[8]];
    let mut always = Cpu::new(&all(), &demands);
    always.run(300);
    for at in 1..70 {
        for options in [AllocatorOptions::default(), job_by_job()] {
            let mut cpu = Cpu::with(&all(), &demands[..2], options);
            cpu.run(at);
            cpu.add(2, demands[2]).unwrap();
            cpu.run(300);
            let late =
                |cpu: &Cpu| cpu.ran.iter().filter(|r| r.0 >= 120).copied().collect::<Vec<_>>();
            assert_eq!(late(&cpu), late(&always), "at {at}");
        }
    }
}

#[test]
fn releases_that_no_event_handled_in_time_have_their_rows_too() {
    let all = || set("td", vec![task("a", 10, 3), task("b", 15, 6), task("c", 30, 8)]);
    let demands: [&[u64]; 3] = [&[3], &[6], &[8]];
    for to in 21..90 {
        let [mut reserved, mut made] = [AllocatorOptions::default(), job_by_job()]
            .map(|options| Cpu::with(&all(), &demands, options));
        for cpu in [&mut reserved, &mut made] {
            cpu.run(20);
            cpu.now = to;
            cpu.run(300);
        }
        assert_eq!(reserved.ran, made.ran, "until {to}");
    }
}

#[test]
fn a_table_for_which_the_dispatcher_has_no_room_is_carried_out_all_the_same() {
    let demands: [&[u64]; 5] = [&[2], &[3], &[4], &[1], &[2]];
    let mut always = Cpu::new(&mixed(Overrun::Carry), &demands);
    always.run(400);
    // It was made for another policy, and so for no windows.
    let mut other = mixed(Overrun::Carry);
    other.policy = support::policy("edf");
    for at in 0..60 {
        let mut cpu = Cpu::new(&other, &demands);
        cpu.run(at);
        cpu.swap(0, "td");
        cpu.run(400);
        let late = |cpu: &Cpu| cpu.ran.iter().filter(|r| r.0 >= 120).copied().collect::<Vec<_>>();
        assert_eq!(late(&cpu), late(&always), "at {at}");
        assert!(cpu.a.reservation_of(cpu.tasks[0].id).is_none());
        // Back to one that needs none.
        cpu.a
            .swap_group(&mut LocalDispatcher::new(&mut cpu.d, cpu.now), 0, &support::policy("edf"))
            .unwrap();
        cpu.run(500);
        assert!(cpu.a.reservation_of(cpu.tasks[0].id).is_some());
    }
}

#[test]
fn a_table_that_takes_the_place_of_another_one_keeps_to_the_numbers_of_releases() {
    let all = || set("td", vec![task("a", 10, 3), task("b", 15, 6), task("c", 30, 8)]);
    let demands: [&[u64]; 3] = [&[3], &[6], &[8]];
    let mut always = Cpu::new(&all(), &demands);
    always.run(300);
    for at in 0..70 {
        let mut cpu = Cpu::new(&all(), &demands);
        cpu.run(at);
        cpu.swap(0, "td");
        cpu.run(300);
        assert_eq!(cpu.ran, always.ran, "at {at}");
        assert!(
            cpu.tasks.iter().all(|t| cpu.a.reservation_of(t.id).is_some()),
            "there is room for both"
        );
    }
}
