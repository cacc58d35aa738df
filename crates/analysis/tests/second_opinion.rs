//! The crate response-time-analysis (Bozhko and Brandenburg 2020, proven in Coq) on the same sets.

mod common;

use common::{cpu, set, task};
use proptest::prelude::*;
use punctual_analysis::DomainAnalysis;
use punctual_taskset::TaskSpec;
use response_time_analysis::arrival::{Periodic, Sporadic};
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use response_time_analysis::{edf, fixed_priority};

type Curve = RBF<Sporadic, Scalar>;

fn curve(t: &TaskSpec) -> Curve {
    let arrivals = Sporadic {
        jitter: Duration::from(t.jitter),
        ..Sporadic::from(Periodic::new(Duration::from(t.period)))
    };
    RBF::new(arrivals, Scalar::from(Service::from(t.budget)))
}

fn specs(jitter: bool) -> impl Strategy<Value = Vec<TaskSpec>> {
    let one = (1..12u64, 3..60u64, 0..100u64, 0..100u64).prop_map(
        move |(budget, period, deadline, late)| {
            let budget = budget.min(period);
            let deadline = budget + deadline * (period - budget) / 100;
            let jitter = if jitter { late * (deadline - budget) / 100 } else { 0 };
            TaskSpec { jitter, ..task(budget, period, deadline) }
        },
    );
    prop::collection::vec(one, 1..8)
}

/// All priorities different, so that ties cannot be broken in two ways.
fn ranked(mut tasks: Vec<TaskSpec>) -> Vec<TaskSpec> {
    for (n, t) in tasks.iter_mut().enumerate() {
        t.priority = -(n as i64);
    }
    tasks
}

fn full(cpu: &DomainAnalysis) -> bool {
    cpu.load.utilization.0 >= 1_000_000
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn fixed_priority_responses_agree_where_one_job_ends_before_the_next(tasks in specs(true)) {
        let set = set("fp", ranked(tasks));
        let cpu = cpu(&set);
        for (n, t) in set.tasks.iter().enumerate() {
            let before: Vec<Curve> = set.tasks[..n].iter().map(curve).collect();
            // Without its own jitter: theirs counts from the release in time.
            let own = curve(&TaskSpec { jitter: 0, ..t.clone() });
            let bound = fixed_priority::fully_preemptive::dedicated_uniproc_rta(
                &own, &before, Duration::from(100_000),
            );
            let theirs = bound.ok().map(u64::from).map(|r| r + t.jitter).filter(|&r| r <= t.period);
            prop_assert_eq!(cpu.tasks[n].response, theirs, "task {}", n);
        }
    }

    #[test]
    fn edf_responses_agree_where_all_deadlines_are_met(tasks in specs(false)) {
        let set = set("edf", tasks);
        let cpu = cpu(&set);
        if full(&cpu) { return Ok(()); }
        let curves: Vec<Curve> = set.tasks.iter().map(curve).collect();
        let mut theirs = Vec::new();
        for n in 0..set.tasks.len() {
            let task = |n: usize| edf::fully_preemptive::Task {
                rbf: &curves[n], deadline: Duration::from(set.tasks[n].deadline),
            };
            let others: Vec<_> = (0..set.tasks.len()).filter(|&o| o != n).map(task).collect();
            let bound = edf::fully_preemptive::dedicated_uniproc_rta(
                &task(n), &others, Duration::from(100_000),
            );
            theirs.push(bound.ok().map(u64::from));
        }
        let meets = |(r, t): (&Option<u64>, &TaskSpec)| r.is_some_and(|r| r <= t.deadline);
        let all = theirs.iter().zip(&set.tasks).all(meets);
        prop_assert_eq!(cpu.schedulable(), all);
        if all {
            let ours: Vec<Option<u64>> = cpu.tasks.iter().map(|t| t.response).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
