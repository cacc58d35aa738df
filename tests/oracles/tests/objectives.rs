//! Orders of the policy `objective` that are those of other policies: the same schedules, to the
//! nanosecond, and the same verdicts, on random sets. No set that is admitted misses.

use punctual_analysis::{analyse, Analysis, Fit};
use punctual_host_sim::{Interval, Options, Simulation, Watcher};
use punctual_oracles::{check_admitted, flat, hierarchy, seeds, Flat, Random};
use punctual_taskset::{Body, Objective, PolicySpec, TaskSet};
use punctual_trace::Period;

/// Twice round all periods and the longest offset.
const LONG: u64 = 2 * 240 + 120;

/// All that happens to tasks.
#[derive(Debug, Default, PartialEq)]
struct Schedule {
    executed: Vec<(u32, u64, u64, bool)>,
    periods: Vec<Period>,
}

impl Watcher for Schedule {
    fn period(&mut self, period: &Period) {
        self.periods.push(*period);
    }

    fn executed(&mut self, s: &Interval) {
        self.executed.push((s.task, s.from, s.to, s.background));
    }
}

/// `job_by_job`: no task has a reservation, so that those of equal deadlines are released in the
/// same order.
fn schedule(set: &TaskSet, job_by_job: bool) -> Schedule {
    let mut schedule = Schedule::default();
    let mut options = Options::default();
    options.allocators.job_by_job = job_by_job;
    let simulation = Simulation::new(set, options).unwrap();
    simulation.run(LONG, &mut schedule).unwrap();
    schedule
}

fn objective(order: &str) -> PolicySpec {
    PolicySpec::objective(Objective::parse(order).unwrap())
}

/// Whether the set has a task that sleeps in mid-job: the wake-up rule of `edf` cuts its budget.
fn sleeps(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| matches!(task.body, Body::Steps(_)))
}

fn as_under(policy: &str, order: &str, suits: impl Fn(&TaskSet) -> bool) {
    let mut compared = 0;
    for seed in seeds(1000) {
        let known = flat(policy, Flat::Any, &mut Random::new(seed));
        if !suits(&known) {
            continue;
        }
        let same = TaskSet { policy: objective(order), ..known.clone() };
        let job_by_job = policy == "edf";
        assert_eq!(
            schedule(&same, job_by_job),
            schedule(&known, job_by_job),
            "seed {seed}: {known:#?}"
        );
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn by_finish_each_schedule_is_that_of_edf() {
    as_under("edf", "finish", |set| !sleeps(set));
    as_under("edf", "3 * finish / 3 + 1us", |set| !sleeps(set));
}

#[test]
fn by_period_deadline_and_priority_each_schedule_is_that_of_the_fixed_priorities() {
    as_under("rm", "period", |_| true);
    as_under("dm", "deadline", |_| true);
    as_under("fp", "-priority", |_| true);
}

#[test]
fn fixed_orders_are_analysed_as_fixed_priorities() {
    for (policy, order) in [("rm", "period"), ("dm", "deadline"), ("fp", "-priority")] {
        for seed in seeds(1000) {
            let known = flat(policy, Flat::Any, &mut Random::new(seed));
            let same = TaskSet { policy: objective(order), ..known.clone() };
            assert_eq!(analyse(&same), analyse(&known), "seed {seed}: {known:#?}");
        }
    }
    for seed in seeds(1000) {
        let mut known = hierarchy(&mut Random::new(seed));
        known.policy = PolicySpec::named("rm");
        known.groups.iter_mut().for_each(|group| group.policy = PolicySpec::named("dm"));
        let mut same = TaskSet { policy: objective("period"), ..known.clone() };
        same.groups.iter_mut().for_each(|group| group.policy = objective("deadline"));
        assert_eq!(analyse(&same), analyse(&known), "seed {seed}: {known:#?}");
    }
}

#[test]
fn the_order_finish_is_analysed_as_edf_and_no_other_order_of_release_times_is_admitted() {
    for seed in seeds(1000) {
        let known = flat("edf", Flat::Any, &mut Random::new(seed));
        let by = |order: &str| analyse(&TaskSet { policy: objective(order), ..known.clone() });
        if !sleeps(&known) {
            let fits = |of: &Analysis| -> Vec<Fit> {
                of.domains[0].tasks.iter().map(|task| task.fit).collect()
            };
            assert_eq!(fits(&by("finish")), fits(&analyse(&known)), "seed {seed}");
        }
        for task in &by("finish - budget").domains[0].tasks {
            assert_eq!(task.fit, Fit::Late);
            assert!(task.why.as_ref().is_some_and(|why| why.contains("no published test")));
        }
    }
}

#[test]
fn no_set_admitted_by_its_order_misses() {
    for order in ["finish", "period - 3 * priority", "max(deadline, 8) * budget % 7 + offset"] {
        let mut admitted = 0;
        for seed in seeds(2000) {
            let set = flat("edf", Flat::Any, &mut Random::new(seed));
            let set = TaskSet { policy: objective(order), ..set };
            check_admitted(seed, &set, LONG, |_, seen| admitted += seen.releases.min(1));
        }
        assert!(admitted > 0, "{order}");
    }
}
