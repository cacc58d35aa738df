//! A cap on what jobs execute within some time: when it counts, with numbers worked out by hand;
//! and random sets on a CPU that has one. Here 1 us stands for 1 ms of the kernel host's cap.

mod common;

use common::{group, server, set, task, tasks, windows};
use proptest::prelude::*;
use punctual_analysis::{admit_within, analyse_within, Capacity, DomainAnalysis, Fit, JobCap, Ppm};
use punctual_taskset::{Arrival, Body, Costs, Spin, Step, TaskSet, TaskSpec};

const CAP: JobCap = JobCap { window: 100_000, share: 95_000 };
const CAPACITY: Capacity = Capacity { limit: Ppm(950_000), cap: Some(CAP), ..Capacity::THEORY };

fn on(set: &TaskSet, capacity: Capacity) -> DomainAnalysis {
    analyse_within(set, &capacity).domains.remove(0)
}

/// What jobs may execute in a window, and whether the cap counts.
fn jobs(set: &TaskSet) -> (u64, bool) {
    let cap = on(set, CAPACITY).cap.unwrap();
    (cap.jobs, cap.counts)
}

#[test]
fn a_long_budget_uses_the_share_up_and_all_jobs_are_held_back() {
    for policy in ["edf", "rm"] {
        let long = |period| set(policy, tasks(&[(300, period), (400_000, 2_000_000)]));
        assert_eq!(jobs(&long(2_000)), (100_000, true));
        let cpu = on(&long(2_000), CAPACITY);
        assert_eq!((cpu.fits(), cpu.tasks[0].fit, cpu.tasks[1].fit), (false, Fit::Late, Fit::Fits));
        assert!(on(&long(2_000), Capacity { cap: None, ..CAPACITY }).fits());
        assert!(!on(&long(5_299), CAPACITY).fits());
        assert!(on(&long(5_300), CAPACITY).fits());
    }
    // The hold, then the budget. Below: 22 budgets of 300 beside, 406,600 in five holds.
    let cpu = on(&set("rm", tasks(&[(300, 20_000), (400_000, 2_000_000)])), CAPACITY);
    assert_eq!(cpu.tasks[0].response, Some(5_000 + 300));
    assert_eq!(cpu.tasks[1].response, Some(406_600 + 5 * 5_000));
    assert!(cpu.tasks.iter().all(|t| !t.exact && !t.reached));
}

#[test]
fn the_cap_counts_from_a_nanosecond_more_than_the_share_on() {
    // One job of each is within a window: without the cap they end soon after their releases.
    let of = |budget| set("rm", tasks(&[(60_000, 1_000_000), (budget, 1_000_001)]));
    assert_eq!(jobs(&of(35_000)), (95_000, false));
    assert_eq!(jobs(&of(35_001)), (95_001, true));
    // The slack is 10,000, so both end within 30,000: (100,000 + 20,000) / 40,000 = 3 jobs, and
    // (100,000 + 10,000) / 40,000 = 2 jobs and another one.
    let late = set("edf", tasks(&[(10_000, 40_000), (20_000, 40_000)]));
    assert_eq!(jobs(&late), (30_000 + 60_000, false));
}

#[test]
fn the_costs_count_once_for_each_task_and_twice_for_each_hold() {
    let costs = Costs { release: 100, switch: 50, timer: 200, command: 150, ..Costs::NONE };
    let capacity = Capacity { costs, ..CAPACITY };
    let cpu = on(&set("rm", tasks(&[(300, 20_000), (400_000, 2_000_000)])), capacity);
    // The job with two switches and an end; such an end with a switch before; two releases; the
    // hold, with a timer and a switch at each end.
    assert_eq!(cpu.tasks[0].response, Some(600 + 250 + 200 + (5_000 + 500)));
    let cpu = on(&set("rm", tasks(&[(300, 20_000), (40_000, 100_000)])), capacity);
    // By deadlines: six jobs of the first; one of the second and another one.
    assert_eq!(cpu.cap.unwrap().jobs, 6 * 300 + 300 + 2 * 40_000 + 300);
}

#[test]
fn a_task_that_sleeps_is_held_back_once_for_all_of_its_job() {
    let mut sleeping = set("rm", tasks(&[(2_000, 12_000), (400_000, 2_000_000)]));
    let spin = || Step::Spin(Spin::For(1_000));
    sleeping.tasks[0].body = Body::Steps(vec![spin(), Step::Sleep(3_000), spin()]);
    let cpu = on(&sleeping, CAPACITY);
    assert_eq!(cpu.tasks[0].response, Some(2_000 + 3_000 + 5_000));
    assert!(cpu.cap.unwrap().counts && cpu.fits());
}

#[test]
fn a_group_counts_with_its_server_and_waits_with_it() {
    let mut grouped = set("rm", tasks(&[(300, 20_000), (400_000, 2_000_000)]));
    grouped.groups.push(group("rm", server(10_000, 50_000)));
    grouped.tasks[1].group = Some(0);
    // Of the server: (100,000 + 40,000) / 50,000 = 2 budgets and another one.
    assert_eq!(jobs(&grouped), (6 * 300 + 30_000, false));
    grouped.groups[0] = group("rm", server(60_000, 80_000));
    let cpu = on(&grouped, CAPACITY);
    // One budget late, the beginning of the next at once. A hold and 4 * 300 before the budget.
    assert_eq!(cpu.groups[0].response, Some(60_000 + 1_200 + 5_000));
    assert!(cpu.cap.unwrap().counts);
}

#[test]
fn arrivals_without_a_least_distance_count_as_they_are() {
    let of = |arrival, duration| {
        let task = TaskSpec { arrival, ..task(5_000, 50_000, 50_000) };
        jobs(&TaskSet { duration, ..set("fp", vec![task]) })
    };
    // Three within the window and a deadline, 150,000.
    let list = vec![0, 1_000, 149_999, 150_000, 400_000];
    assert_eq!(of(Arrival::List(list), None), (15_000, false));
    let rare = || Arrival::Aperiodic { mean: 50_000_000, seed: 1 };
    assert_eq!(of(rare(), None), (100_000, true));
    assert_eq!(of(rare(), Some(500_000_000)), (5_000, false));
}

#[test]
fn a_table_counts_with_its_windows_and_is_refused_beyond_the_share() {
    let table = |length| {
        let mut table = set("td", tasks(&[(1_000, 10_000)]));
        table.groups.push(group("edf", windows(10_000, &[(1_000, length)])));
        table.tasks.push(task(1_000, 10_000, 10_000));
        table.tasks[1].group = Some(0);
        table
    };
    assert!(on(&table(8_000), CAPACITY).fits());
    // By its deadlines it might execute a job more; its windows of 9,500 lie in each 10,000.
    let full = set("td", vec![task(9_500, 10_000, 10_000)]);
    assert_eq!(jobs(&full), (95_000, false));
    let over = set("td", vec![task(95_001, 1_000_000, 1_000_000)]);
    let refusal = admit_within(&over, &CAPACITY).unwrap_err();
    assert!(
        refusal.cause().starts_with(
            "CPU 0: task \"t1\": jobs may execute for 95.001 us within 100 us, more than the 95 us \
             after which this host holds all of them back, whatever their windows"
        ),
        "{refusal}"
    );
}

#[test]
fn a_refusal_says_why_the_cap_counts_and_what_to_do() {
    let refusal =
        admit_within(&set("edf", tasks(&[(300, 2_000), (400_000, 2_000_000)])), &CAPACITY)
            .unwrap_err();
    assert!(
        refusal.cause().ends_with(
            "jobs may use 100 us of an interval of 100 us, and this host leaves 5 us of it to \
             ordinary programs: it may hold back all jobs for 5 us at a time, which the tests count"
        ) && refusal.help().ends_with(
            "no job is held back where jobs need at most 95 us of any 100 us: divide long budgets \
             into smaller ones with shorter periods, and put a task whose server uses idle time \
             into a group"
        ),
        "{refusal}"
    );
    // As it says: 20 of 100 in place of 400 of 2,000.
    assert!(on(&set("edf", tasks(&[(300, 2_000), (20_000, 100_000)])), CAPACITY).fits());
}

/// A random set, and numbers from which executions and decisions come.
fn sets() -> impl Strategy<Value = (TaskSet, u64)> {
    let one = (8u64..500, 1u64..60, 0u64..200);
    (prop::collection::vec(one, 2..5), any::<bool>(), any::<u64>()).prop_map(
        |(all, edf, numbers)| {
            let of = |&(period, share, offset): &(u64, u64, u64)| {
                let budget = (period * share / 100).max(1);
                TaskSpec { offset, ..task(budget, period, period) }
            };
            let tasks = all.iter().map(of).collect();
            (set(if edf { "edf" } else { "rm" }, tasks), numbers)
        },
    )
}

/// What a run on a CPU with the cap shows.
#[derive(Default)]
struct Seen {
    holds: u64,
    /// By task.
    worst: Vec<u64>,
    misses: u64,
}

/// Executes the set as the kernel host does, ns by ns: `domain_cap` at each decision, which each
/// release, end and exhausted allowance makes, and others do at any time. Ordinary programs always
/// wait.
fn run(set: &TaskSet, cap: JobCap, mut numbers: u64) -> Seen {
    let mut random = move |below: u64| {
        numbers =
            numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (numbers >> 33) % below
    };
    let count = set.tasks.len();
    let mut seen = Seen { worst: vec![0; count], ..Seen::default() };
    let mut left = vec![0u64; count];
    let mut released = vec![0u64; count];
    let (mut window, mut of_jobs, mut choice, mut allowance, mut next) = (0, 0, None, 0u64, 0u64);
    let mut held = false;
    for now in 0..6_000u64 {
        let mut decides = now == 0 || now >= next || random(40) == 0;
        for (n, task) in set.tasks.iter().enumerate() {
            if now >= task.offset && (now - task.offset) % task.period == 0 {
                seen.misses += u64::from(left[n] > 0);
                let most = task.budget;
                left[n] = if random(4) == 0 { 1 + random(most) } else { most };
                released[n] = now;
                decides = true;
            }
        }
        decides |= choice.is_some_and(|n: usize| left[n] == 0 || allowance == 0);
        if decides {
            let key = |&n: &usize| {
                let task = &set.tasks[n];
                let deadline = if set.policy.name == "edf" { released[n] } else { 0 };
                (deadline + task.period, n)
            };
            let ready = (0..count).filter(|&n| left[n] > 0).min_by_key(key);
            let was = held;
            (choice, allowance, next, held) = (ready, u64::MAX, u64::MAX, false);
            if now - window >= cap.window {
                (window, of_jobs) = (now, 0);
            }
            if choice.is_some() && of_jobs < cap.share {
                allowance = cap.share - of_jobs;
            } else if choice.is_some() {
                (choice, held, next) = (None, true, window + cap.window);
                seen.holds += u64::from(!was);
            }
        }
        if let Some(n) = choice {
            left[n] -= 1;
            of_jobs += 1;
            allowance -= 1;
            if left[n] == 0 {
                seen.worst[n] = seen.worst[n].max(now + 1 - released[n]);
            }
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn what_is_admitted_beside_the_cap_never_misses((set, numbers) in sets()) {
        let cap = JobCap { window: 100, share: 95 };
        let capacity = Capacity { cap: Some(cap), ..CAPACITY };
        let cpu = on(&set, capacity);
        if cpu.fits() {
            let seen = run(&set, cap, numbers);
            prop_assert_eq!(seen.misses, 0, "{:#?}", cpu);
            prop_assert!(cpu.cap.unwrap().counts || seen.holds == 0, "{:#?}", cpu);
            for (t, &worst) in cpu.tasks.iter().zip(&seen.worst) {
                prop_assert!(t.response.is_none_or(|bound| worst <= bound), "{:#?} {}", t, worst);
            }
        }
    }
}

#[test]
fn without_the_cap_in_admission_the_same_runs_miss() {
    let cap = JobCap { window: 100, share: 95 };
    let long = set("edf", tasks(&[(1, 4), (400, 2_000)]));
    assert!(on(&long, Capacity { cap: None, ..CAPACITY }).fits());
    let seen = run(&long, cap, 1);
    assert!(seen.holds > 0 && seen.misses > 0);
    // And what counts it meets deadlines in spite of holds.
    let short = set("edf", tasks(&[(1, 8), (400, 2_000)]));
    assert!(on(&short, Capacity { cap: Some(cap), ..CAPACITY }).fits());
    let seen = run(&short, cap, 1);
    assert!(seen.holds > 0 && seen.misses == 0);
}
