//! What a host takes for its own work, with numbers worked out by hand.

mod common;

use common::{group, server, set, tasks};
use punctual_analysis::{admit_within, analyse_within, Capacity, DomainAnalysis, Fit, Help, Ppm};
use punctual_taskset::{Costs, TaskSet};

const COSTS: Costs = Costs { release: 100, switch: 50, timer: 200, command: 150, ..Costs::NONE };

fn on(set: &TaskSet, costs: Costs) -> DomainAnalysis {
    analyse_within(set, &Capacity { limit: Ppm(1_000_000), costs, ..Capacity::THEORY })
        .domains
        .remove(0)
}

#[test]
fn a_response_has_two_switches_and_an_end_for_each_job_and_every_release() {
    let cpu = on(&set("rm", tasks(&[(2_000, 10_000), (3_000, 20_000)])), COSTS);
    // Each job: 2 * 50 + 200 more. An end and a switch before: 250. Both releases: 200.
    assert_eq!(cpu.tasks[0].response, Some(2_300 + 250 + 200));
    assert_eq!(cpu.tasks[1].response, Some(3_300 + 2_300 + 250 + 200));
    assert!(cpu.fits() && cpu.tasks.iter().all(|t| !t.exact && !t.reached));
    // 400 in 10,000 and 400 in 20,000.
    assert_eq!(cpu.host, Ppm(60_000));
}

#[test]
fn releases_of_less_important_tasks_interrupt() {
    let mut of = tasks(&[(8_000, 100_000), (1, 1_000)]);
    of[0].priority = 1;
    // The job with 300, 250 before it, its own release, and one each 1,000 of the other: ten in
    // 9,650.
    assert_eq!(on(&set("fp", of), COSTS).tasks[0].response, Some(8_300 + 250 + 100 + 10 * 100));
}

#[test]
fn under_edf_a_nanosecond_more_than_the_costs_leave_is_refused() {
    // In 10,001, which may begin with another release: the budget, 300, 250, and two releases.
    for (budget, fits) in [(9_251, true), (9_252, false)] {
        assert_eq!(on(&set("edf", tasks(&[(budget, 10_000)])), COSTS).fits(), fits, "{budget}");
    }
    // The release of a task that is due later interrupts as well.
    for (budget, fits) in [(9_151, true), (9_152, false)] {
        assert_eq!(
            on(&set("edf", tasks(&[(budget, 10_000), (1, 400_000)])), COSTS).tasks[0].fit
                == Fit::Fits,
            fits
        );
    }
}

#[test]
fn what_happens_in_a_group_delays_the_server_and_not_its_supply() {
    let mut grouped = set("rm", tasks(&[(1_000, 20_000), (500, 40_000)]));
    grouped.groups.push(group("rm", server(4_000, 10_000)));
    grouped.tasks[1].group = Some(0);
    let cpu = on(&grouped, COSTS);
    // Of the server: a release with a timer, and two switches and a timer that may come late and
    // then early. Of its task: a release, and two switches and an end, as late. The first task's
    // release; the end before.
    assert_eq!(cpu.groups[0].response, Some(4_000 + (300 + 2 * 300) + (100 + 2 * 300) + 100 + 250));
    // Twice the server's gap and what delays it, then the task's own budget, with nothing more.
    let blackout = cpu.groups[0].blackout.unwrap();
    assert_eq!(cpu.tasks[1].response, Some(blackout + 500));
}

#[test]
fn budgets_and_the_host_together_are_no_more_than_there_is() {
    let costs = Costs { release: 60_000, switch: 10_000, timer: 40_000, ..Costs::NONE };
    let capacity = Capacity { limit: Ppm(450_000), total: Ppm(500_000), costs, ..Capacity::THEORY };
    let refusal = admit_within(&set("edf", tasks(&[(400_000, 1_000_000)])), &capacity).unwrap_err();
    assert_eq!(
        refusal.over[0].cause(),
        "CPU 0: the budgets are 40 % of it and the host takes up to 12 % for its own work, \
         together 2 % more than 50 %"
    );
    match &refusal.over[0].help {
        Help::Change(change) => assert_eq!((change.from, change.to), (400_000, 380_000)),
        other => panic!("{other:?}"),
    }
    assert!(admit_within(&set("edf", tasks(&[(380_000, 1_000_000)])), &capacity).is_ok());
}

#[test]
fn a_budget_that_the_host_does_not_enforce_is_refused_with_the_least() {
    let capacity =
        Capacity { costs: Costs { least_budget: 50_000, ..Costs::NONE }, ..Capacity::THEORY };
    let refusal = admit_within(&set("edf", tasks(&[(12_000, 1_000_000)])), &capacity).unwrap_err();
    let over = &refusal.over[0];
    assert_eq!(
        over.late,
        ["task \"t1\": its budget of 12 us is below 50 us, the least that this host enforces"]
    );
    assert_eq!(over.help, Help::LeastBudget { least: 50_000 });
    assert!(
        over.to_string().contains("give each task and server a budget of at least 50 us"),
        "{over}"
    );
    assert!(admit_within(&set("edf", tasks(&[(50_000, 1_000_000)])), &capacity).is_ok());
}

#[test]
fn no_promotion_is_later_than_the_costs_permit() {
    let mut dual = set("dual", tasks(&[(2_000, 10_000)]));
    let analysis = analyse_within(&dual, &Capacity { costs: COSTS, ..Capacity::THEORY });
    analysis.promote(&mut dual);
    // Its release is a timer of the policy. Its promotion, a timer and a preemption, may come late
    // and then early.
    let interrupts = (100 + 200) + 2 * (2 * 50 + 200);
    assert_eq!(dual.tasks[0].promotion, Some(10_000 - (2_300 + 250 + interrupts)));
}

#[test]
fn of_a_full_cpu_the_budgets_that_are_not_enforced_are_named_first() {
    let capacity =
        Capacity { costs: Costs { least_budget: 50_000, ..Costs::NONE }, ..Capacity::THEORY };
    let refusal =
        admit_within(&set("edf", tasks(&[(990_000, 1_000_000), (12_000, 1_000_000)])), &capacity)
            .unwrap_err();
    assert!(
        refusal.over[0].cause().starts_with("CPU 0: task \"t2\": its budget of 12 us"),
        "{refusal}"
    );
}
