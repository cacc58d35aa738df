use punctual_session::TaskSuspension;
use punctual_taskset::{Body, Spin, TaskSet};
use punctual_trace::TaskEnd;

use super::*;
use crate::Error;

struct IgnoredEnd;

impl Completion for IgnoredEnd {
    fn finish(&self, _: TaskEnd) {}
    fn set_place(&self, _: usize) {}
    fn set_suspension(&self, _: Result<TaskSuspension, Error>) {}
}

/// Of this share of a period of 100 ns.
fn task(name: &str, budget: u64) -> TaskSpec {
    let set = TaskSet::single(1_000_000, 1_000, Body::Spin(Spin::Forever));
    let spec = set.build().expect("in order").tasks[0].clone();
    TaskSpec { name: name.into(), period: 100, budget, ..spec }
}

fn insert(tasks: &mut LiveTasks, place: usize, name: &str, budget: u64, first: Option<u64>) {
    tasks.insert(place, task(name, budget), Arc::new(IgnoredEnd), first);
}

/// When a task with this budget can have its first release after `soonest`, on a CPU of which 100
/// in 100 ns can be promised.
fn first_fit(tasks: &LiveTasks, soonest: u64, budget: u64) -> u64 {
    let fits = |specs: Vec<TaskSpec>| specs.iter().map(|s| s.budget).sum::<u64>() + budget <= 100;
    assert!(fits(tasks.specs().cloned().collect()), "it is admitted beside those that live");
    tasks.first_fit(DomainId(0), soonest, fits)
}

#[test]
fn the_share_of_a_task_is_kept_until_its_next_release() {
    let mut tasks = LiveTasks::default();
    insert(&mut tasks, 0, "victim", 60, None);
    insert(&mut tasks, 1, "ended", 40, None);
    tasks.released("ended", 1_000);
    assert!(tasks.end("ended", 1_230).is_some() && tasks.end("ended", 1_230).is_none());
    // Its periods end at 1,100, 1,200 and 1,300.
    assert_eq!(first_fit(&tasks, 1_240, 40), 1_300);
    assert_eq!(first_fit(&tasks, 1_240, 1), 1_300);
    assert_eq!(first_fit(&tasks, 1_240, 0), 1_240);
    assert_eq!(first_fit(&tasks, 1_300, 40), 1_300);
    assert_eq!(first_fit(&tasks, 1_350, 40), 1_350);
    // One of whose releases nothing is known may have had one just now.
    insert(&mut tasks, 2, "ended", 40, None);
    assert!(tasks.end("ended", 2_000).is_some());
    assert_eq!(first_fit(&tasks, 2_020, 40), 2_100);
    // One that had none has used nothing.
    insert(&mut tasks, 3, "ended", 40, Some(3_000));
    assert!(tasks.end("ended", 2_900).is_some());
    assert_eq!(first_fit(&tasks, 2_920, 40), 2_920);
}

#[test]
fn as_many_shares_are_waited_for_as_are_needed() {
    let mut tasks = LiveTasks::default();
    for (place, at) in [(0, 1_010), (1, 1_030), (2, 1_050)] {
        insert(&mut tasks, place, "short", 30, None);
        tasks.released("short", at);
        tasks.end("short", 1_060);
    }
    assert_eq!(first_fit(&tasks, 1_070, 10), 1_070);
    assert_eq!(first_fit(&tasks, 1_070, 40), 1_110);
    assert_eq!(first_fit(&tasks, 1_070, 70), 1_130);
    assert_eq!(first_fit(&tasks, 1_070, 71), 1_150);
    assert_eq!(delayed(None, 100, 1_130), 1_130);
    assert_eq!(delayed(Some(1_080), 100, 1_130), 1_180);
    assert_eq!(delayed(Some(1_200), 100, 1_130), 1_200);
}

#[test]
fn a_task_whose_release_is_delayed_is_no_hindrance_before_it_but_is_after_it() {
    let mut tasks = LiveTasks::default();
    insert(&mut tasks, 0, "ended", 60, None);
    tasks.released("ended", 1_000);
    tasks.end("ended", 1_010);
    let first = first_fit(&tasks, 1_020, 60);
    insert(&mut tasks, 1, "its successor", 60, Some(first));
    assert_eq!(tasks.next_release_of(1, 1_030), 1_100);
    assert_eq!(first_fit(&tasks, 1_030, 40), 1_030);
    // A share that is kept longer counts beside the successor, too.
    let long = TaskSpec { period: 1_000, ..task("long", 10) };
    tasks.insert(2, long, Arc::new(IgnoredEnd), Some(1_000));
    tasks.end("long", 1_010);
    assert_eq!(first_fit(&tasks, 1_030, 30), 1_030);
    assert_eq!(first_fit(&tasks, 1_030, 31), 2_000);
    assert_eq!(first_fit(&tasks, 1_100, 31), 2_000);
}

#[test]
fn a_task_has_its_former_share_until_the_release_at_which_it_is_changed() {
    let mut tasks = LiveTasks::default();
    insert(&mut tasks, 0, "large", 80, None);
    tasks.released("large", 1_000);
    tasks.change(0, task("large", 10), 1_050);
    tasks.change(0, task("large", 20), 1_060);
    assert_eq!(first_fit(&tasks, 1_070, 20), 1_070);
    assert_eq!(first_fit(&tasks, 1_070, 80), 1_100);
    let together = tasks.combinations(DomainId(0), 1_070);
    assert_eq!(together.len(), 1);
    assert_eq!((together[0][0].0, together[0][0].1.budget), (0, 80));
    assert_eq!(tasks.kept_until(DomainId(0), 1_099), Some(1_100));
    assert_eq!(tasks.kept_until(DomainId(0), 1_100), None);
    // It ends within the same period.
    assert!(tasks.end("large", 1_080).is_some());
    assert_eq!(first_fit(&tasks, 1_090, 30), 1_100);
}

#[test]
fn another_cpu_waits_for_nothing() {
    let mut tasks = LiveTasks::default();
    let spec = TaskSpec { domain: DomainId(1), ..task("ended", 90) };
    tasks.insert(0, spec, Arc::new(IgnoredEnd), None);
    tasks.released("ended", 1_000);
    tasks.end("ended", 1_010);
    assert_eq!(first_fit(&tasks, 1_020, 90), 1_020);
    assert_eq!(tasks.kept_until(DomainId(1), 1_020), Some(1_100));
}
