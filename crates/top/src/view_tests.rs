//! A set of two tasks, one of them in a group, and what keys do to its view.

use super::*;
use crate::protocol::{TaskPlace, VERSION};
use punctual_session::results::{Collector, GroupResult, Run, TaskInfo};
use punctual_session::HostKind;

pub fn snapshot() -> Snapshot {
    let tasks = vec![
        TaskInfo::new("servo", 1_000_000, 200_000, 1_000_000),
        TaskInfo::new("inner", 10_000_000, 2_000_000, 10_000_000),
    ];
    let mut results = Collector::new(Run::new(HostKind::User, "edf", &[1]), tasks).snapshot();
    for (task, received) in results.tasks.iter_mut().zip([100_000, 1_000_000]) {
        task.received_ns = received;
        task.assigned_ns = task.budget_ns;
        task.periods = 1;
    }
    results.groups.push(GroupResult {
        name: "group".into(),
        kind: GroupKind::Group,
        parent: None,
        policy: Some("rm".into()),
        period_ns: 10_000_000,
        budget_ns: 2_000_000,
        tasks: 1,
        assigned_ppm: 200_000,
        received_ppm: 100_000,
    });
    let place = |group: Option<&str>| TaskPlace {
        group: group.map(str::to_owned),
        cpus: vec![1],
        alive: true,
    };
    Snapshot {
        version: VERSION,
        pid: 7,
        what: "set.toml".into(),
        results,
        places: vec![place(None), place(Some("group"))],
    }
}

fn later(received: [u64; 2]) -> Snapshot {
    let mut later = snapshot();
    for (task, received) in later.results.tasks.iter_mut().zip(received) {
        task.received_ns += received;
        task.assigned_ns += task.budget_ns;
    }
    later
}

fn typed(view: &mut TopView, text: &str) {
    text.chars().for_each(|c| assert_eq!(view.press(Key::Character(c)), Action::Nothing));
}

#[test]
fn groups_stand_as_a_tree_with_their_tasks_below() {
    let rows = TopView::new(snapshot()).rows();
    let expected = [
        Row::Task { place: 0, depth: 0 },
        Row::Group { index: 0, depth: 0 },
        Row::Task { place: 1, depth: 1 },
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_share_used_is_that_since_the_figures_before() {
    let mut view = TopView::new(snapshot());
    assert_eq!((view.used_ppm(0), view.used_ppm(1)), (Some(500_000), Some(500_000)));
    view.update(later([50_000, 2_000_000]));
    assert_eq!((view.used_ppm(0), view.used_ppm(1)), (Some(250_000), Some(1_000_000)));
    assert_eq!(view.cpus(), [(1, 400_000, 250_000)]);
}

#[test]
fn a_filter_hides_tasks_and_empty_groups_and_escape_ends_it() {
    let mut view = TopView::new(snapshot());
    typed(&mut view, "/SER");
    assert_eq!(view.rows(), [Row::Task { place: 0, depth: 0 }]);
    view.press(Key::Enter);
    assert_eq!((view.rows().len(), &view.mode), (1, &Mode::Table));
    typed(&mut view, "/");
    view.press(Key::Escape);
    assert_eq!(view.rows().len(), 3);
}

#[test]
fn an_order_is_within_a_group_and_can_be_reversed() {
    let mut other = snapshot();
    other.places[1].group = None;
    let mut view = TopView::new(other);
    let order = |view: &TopView| match view.rows()[..2] {
        [Row::Task { place: a, .. }, Row::Task { place: b, .. }] => [a, b],
        _ => panic!("{:?}", view.rows()),
    };
    assert_eq!(order(&view), [0, 1]);
    typed(&mut view, ">");
    assert_eq!((view.order, order(&view)), (SortKey::Name, [1, 0]));
    typed(&mut view, "r");
    assert_eq!(order(&view), [0, 1]);
    typed(&mut view, "r<<");
    assert_eq!(view.order, SortKey::Response);
}

#[test]
fn a_budget_is_asked_for_the_task_under_the_cursor() {
    let mut view = TopView::new(snapshot());
    view.press(Key::Down);
    typed(&mut view, "b3ms");
    assert_eq!(view.press(Key::Enter), Action::ChangeBudget { place: 1, budget_ns: 3_000_000 });
    typed(&mut view, "b3");
    assert_eq!(view.press(Key::Enter), Action::Nothing);
    assert!(view.message.contains("is no time"), "{}", view.message);
    view.press(Key::Escape);
    assert_eq!(view.press(Key::Character('q')), Action::Quit);
}

#[test]
fn as_text_every_task_and_group_has_a_line() {
    let text = TopView::new(snapshot()).plain();
    for expected in [
        "all deadlines met: set.toml (process 7), edf",
        "servo: 200 us in 1 ms, 50.00 % used",
        "group: 10.00 % of 20.00 % used",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}
