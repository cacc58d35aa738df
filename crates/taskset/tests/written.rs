//! What a set is written as reads as that set.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use punctual_taskset::{
    registry, Arrival, Body, BudgetGroupSpec, DomainId, DomainSpec, GroupSpec, Objective, Overrun,
    PolicySpec, ServerKind, ServerSpec, Spin, Step, TaskSet, TaskSpec, Window, DURATION_LIMIT,
    LARGEST_CPU, LARGEST_PID, LEAST_PERIOD, LEAST_QUANTUM, LONGEST_QUANTUM, MOST_WEIGHT,
};

/// Equal but for the places, which are those of another text.
fn reads_as_itself(set: &TaskSet) {
    let mut set = set.clone();
    let text = set.to_toml();
    let mut read =
        TaskSet::parse(&text, "written.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    for set in [&mut set, &mut read] {
        set.domains.iter_mut().for_each(|domain| domain.place = None);
        set.tasks.iter_mut().for_each(|task| task.line = None);
        set.groups.iter_mut().for_each(|group| group.line = None);
        set.budget_groups.iter_mut().for_each(|group| group.line = None);
    }
    assert_eq!(set, read, "{text}");
}

#[test]
fn every_example_and_good_file_reads_as_itself() {
    let mut count = 0;
    for folder in ["tests/good", "../../examples"] {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap()
        {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ext| ext == "toml" || ext == "json") {
                reads_as_itself(&TaskSet::load(&path).unwrap());
                count += 1;
            }
        }
    }
    assert!(count >= 40);
}

/// Budget, deadline and period, each at most the next.
fn times() -> impl Strategy<Value = [u64; 3]> {
    let period = prop_oneof![LEAST_PERIOD..1_000_000_000, LEAST_PERIOD..DURATION_LIMIT];
    (period, any::<(u64, u64)>()).prop_map(|(period, (budget, deadline))| {
        let mut times = [1 + budget % period, 1 + deadline % period, period];
        times.sort_unstable();
        times
    })
}

fn windows(cycle: u64) -> impl Strategy<Value = Vec<Window>> {
    vec(any::<u64>(), 1..6).prop_map(move |cuts| {
        let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut % cycle).chain([cycle]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| Window { start: cut[0], length: cut[1] - cut[0] }).collect()
    })
}

fn seed() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..=i64::MAX.unsigned_abs()]
}

fn execution() -> impl Strategy<Value = u64> {
    prop_oneof![1..1_000_000_000u64, 1..DURATION_LIMIT]
}

fn spin() -> impl Strategy<Value = Spin> {
    let bins = prop::collection::btree_map(execution(), 1..=u64::from(u32::MAX), 1..5);
    prop_oneof![
        execution().prop_map(Spin::For),
        Just(Spin::Forever),
        (execution(), execution(), seed()).prop_map(|(a, b, seed)| Spin::Uniform {
            min: a.min(b),
            max: a.max(b),
            seed
        }),
        (bins, seed())
            .prop_map(|(bins, seed)| Spin::Histogram { bins: bins.into_iter().collect(), seed }),
        vec(execution(), 1..8).prop_map(Spin::Recorded),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let step = prop_oneof![
        spin().prop_filter("it ends", |spin| *spin != Spin::Forever).prop_map(Step::Spin),
        execution().prop_map(Step::Sleep)
    ];
    prop_oneof![
        spin().prop_map(Body::Spin),
        vec(step, 1..5).prop_map(Body::Steps),
        ("[a-z/\"\\\\ .]{1,8}x", vec("[^\0]{0,6}", 0..3))
            .prop_map(|(program, rest)| Body::Command([vec![program], rest].concat())),
        (1..=LARGEST_PID).prop_map(Body::Pid),
    ]
}

fn arrival() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        Just(Arrival::Periodic),
        (0..DURATION_LIMIT, seed()).prop_map(|(longest, seed)| Arrival::Sporadic { longest, seed }),
        (LEAST_PERIOD..DURATION_LIMIT, seed())
            .prop_map(|(mean, seed)| Arrival::Aperiodic { mean, seed }),
        vec(0..DURATION_LIMIT, 1..6).prop_map(|mut times| {
            times.sort_unstable();
            Arrival::List(times)
        }),
    ]
}

prop_compose! {
    fn task()(
        [budget, deadline, period] in times(),
    )(
        body in body(),
        name in "[a-z\"'\\\\ #=\u{e9}\u{6e2c}]{0,5}",
        arrival in arrival(),
        (start, blocking) in (0..DURATION_LIMIT, prop_oneof![Just(0), 0..DURATION_LIMIT]),
        (jitter, promotion) in (prop_oneof![Just(0), 0..period], option::of(0..deadline)),
        mandatory in option::of(1..=budget),
        windows in prop_oneof![Just(Vec::new()).boxed(), windows(period).boxed()],
        priority in any::<i64>(),
        overrun in prop::sample::select(vec![
            Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal,
        ]),
        (group, budget_group) in any::<(Option<usize>, Option<usize>)>(),
        (budget, deadline, period) in Just((budget, deadline, period)),
    ) -> TaskSpec {
        let arrival = match arrival {
            Arrival::Sporadic { longest, seed } => {
                Arrival::Sporadic { longest: longest.max(period), seed }
            }
            other => other,
        };
        let start = if matches!(arrival, Arrival::List(_)) { 0 } else { start };
        TaskSpec {
            deadline, offset: start, priority, arrival, group, budget_group, promotion, mandatory,
            windows, jitter, blocking, overrun, ..TaskSpec::new(name, period, budget, body)
        }
    }
}

fn server() -> impl Strategy<Value = ServerSpec> {
    let kind = prop::sample::select(vec![
        ServerKind::Deferrable,
        ServerKind::Polling,
        ServerKind::ConstantBandwidth,
    ]);
    prop_oneof![
        (times(), 0..DURATION_LIMIT, kind).prop_map(|([budget, deadline, period], start, kind)| {
            ServerSpec::Periodic { period, budget, deadline, offset: start, kind }
        }),
        (LEAST_PERIOD..DURATION_LIMIT)
            .prop_flat_map(|cycle| windows(cycle)
                .prop_map(move |windows| ServerSpec::Windows { cycle, windows })),
    ]
}

/// Which of `count` an arbitrary index is: those of one domain, the n-th in domain n % `domains`.
fn pick(index: Option<usize>, count: usize, domain: usize, domains: usize) -> Option<usize> {
    let found = index? % count.max(1);
    let found = found - found % domains + domain;
    Some(found).filter(|&found| found < count)
}

prop_compose! {
    fn set()(
        cpus in prop::collection::btree_set(0..=LARGEST_CPU, 1..4),
        global in any::<bool>(),
        policy in prop::sample::select(registry::names(&registry::POLICIES)),
        duration in option::of(1..DURATION_LIMIT),
        mut tasks in vec(task(), 1..6),
        groups in vec((server(), any::<i64>(), any::<(Option<usize>, Option<usize>)>()), 0..6),
        nodes in vec((times(), any::<Option<usize>>()), 0..6),
    ) -> TaskSet {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        let domains: Vec<_> = match global {
            true => vec![DomainSpec { cpus, place: None }],
            false => cpus.into_iter().map(DomainSpec::of_cpu).collect(),
        };
        let many = domains.len();
        let domain = |n: usize| DomainId((n % many) as u32);
        let (group_count, node_count) = (groups.len(), nodes.len());
        let policy = match policy {
            "objective" => {
                PolicySpec::objective(Objective::parse("period % 5ms - deadline").unwrap())
            }
            name => PolicySpec::named(name),
        };
        // A parent comes before its group in the list, so that there is no cycle.
        let nodes = nodes.into_iter().enumerate();
        let budget_groups = nodes.map(|(n, ([budget, _, period], parent))| BudgetGroupSpec {
            name: format!("node {n}"), parent: pick(parent, n, n % many, many), period, budget,
            domain: domain(n), line: None,
        }).collect();
        let groups = groups.into_iter().enumerate();
        let groups = groups.map(|(n, (server, priority, (parent, node)))| GroupSpec {
            name: format!("group {n}"), parent: pick(parent, n, n % many, many),
            policy: policy.clone(), server, priority,
            budget_group: pick(node, node_count, n % many, many), domain: domain(n), line: None,
        }).collect();
        for (n, task) in tasks.iter_mut().enumerate() {
            task.name = format!("{}{n}", task.name);
            task.domain = domain(n);
            task.group = pick(task.group, group_count, n % many, many);
            task.budget_group = pick(task.budget_group, node_count, n % many, many);
            let suits = ServerKind::Adaptive.suits(&policy);
            if suits && task.priority % 2 == 0 && task.arrival.has_minimum_interarrival() {
                task.server = Some(ServerKind::Adaptive);
                task.min_budget = Some(task.budget - task.budget / 3).filter(|_| n > 0);
            }
            if let Body::Pid(pid) = &mut task.body {
                *pid = (*pid / 8 * 8 + 1 + n as i32).min(LARGEST_PID - n as i32);
            }
        }
        let set = TaskSet { domains, policy, duration, tasks, groups, budget_groups };
        if set.policy.takes_weights() { by_weight(set) } else { with_options(set) }
    }
}

/// Every other set under edf reclaims.
fn with_options(mut set: TaskSet) -> TaskSet {
    set.policy.reclaim = set.policy.name == "edf" && set.tasks.len() % 2 == 1;
    set
}

/// Without what no set under a policy with weights has.
fn by_weight(mut set: TaskSet) -> TaskSet {
    set.groups.clear();
    for (n, task) in set.tasks.iter_mut().enumerate() {
        task.weight = Some(1 + n as u32 * 2499 % MOST_WEIGHT);
        (task.group, task.server, task.overrun) = (None, None, Overrun::default());
        (task.jitter, task.blocking) = (0, 0);
        task.windows.clear();
        if matches!(task.arrival, Arrival::Sporadic { .. }) {
            task.arrival = Arrival::Periodic;
        }
    }
    set.policy.quantum = set.duration.map(|ns| LEAST_QUANTUM + ns % LONGEST_QUANTUM / 2);
    set.apply_weights();
    set
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_set_reads_as_itself(set in set()) {
        reads_as_itself(&set);
    }
}
