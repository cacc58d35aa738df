//! What a file's groups, arrivals and work become.

use std::path::Path;

use punctual_taskset::{
    Arrival, Body, DomainId, Loaded, Overrides, ServerKind, ServerSpec, Spin, Step, TaskSet,
    Window, MOST_BUDGET_GROUPS, MOST_GROUPS,
};

const MS: u64 = 1_000_000;

fn good(name: &str) -> TaskSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good").join(name);
    TaskSet::load(path).unwrap_or_else(|error| panic!("{error}"))
}

fn example(name: &str) -> TaskSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    TaskSet::load(path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn groups_know_their_parents_servers_and_cpus() {
    let set = good("groups-and-budgets.toml");
    let cpu = |domain| -> [u32; 1] { set.domain(domain).cpus[..].try_into().unwrap() };
    let [audio, media, other] = set.groups.as_slice() else { panic!() };
    assert_eq!(
        (audio.parent, cpu(audio.domain), audio.priority, audio.budget_group),
        (Some(1), [1], 3, Some(0))
    );
    assert_eq!((audio.policy.name.as_str(), audio.line), ("fp", Some(6)));
    let server = ServerSpec::Periodic {
        period: 20 * MS,
        budget: 4 * MS,
        deadline: 10 * MS,
        offset: 10 * MS,
        kind: ServerKind::Polling,
    };
    assert_eq!(audio.server, server);
    let windows =
        [(0, 5), (12, 8)].map(|(start, length)| Window { start: start * MS, length: length * MS });
    assert_eq!(media.server, ServerSpec::Windows { cycle: 20 * MS, windows: windows.to_vec() });
    assert_eq!((media.parent, cpu(media.domain), cpu(other.domain)), (None, [1], [0]));
    let [inner, outer] = set.budget_groups.as_slice() else { panic!() };
    assert_eq!((inner.parent, cpu(inner.domain)), (Some(1), [1]));
    assert_eq!((outer.parent, cpu(outer.domain)), (None, [1]));
    let [mixer, logger, table] = set.tasks.as_slice() else { panic!() };
    assert_eq!((mixer.group, mixer.budget_group, cpu(mixer.domain)), (Some(0), Some(1), [1]));
    assert_eq!((logger.group, logger.budget_group, cpu(logger.domain)), (Some(2), None, [0]));
    let windows =
        [(0, 2_500_000), (15 * MS, 5 * MS)].map(|(start, length)| Window { start, length });
    assert_eq!(table.windows, windows);
}

#[test]
fn arrivals_and_work_are_as_written() {
    let set = good("arrivals-and-works.toml");
    let [sporadic, aperiodic, listed, stepping] = set.tasks.as_slice() else { panic!() };
    assert_eq!(sporadic.arrival, Arrival::Sporadic { longest: 10 * MS, seed: 0 });
    assert_eq!((sporadic.promotion, sporadic.mandatory), (Some(9_999_999), Some(2 * MS)));
    assert_eq!((sporadic.jitter, sporadic.blocking), (9_999_999, 1000 * MS));
    let bins = vec![(100_000, 1), (MS, 4_294_967_295)];
    assert_eq!(sporadic.body, Body::Spin(Spin::Histogram { bins, seed: i64::MAX as u64 }));
    assert_eq!(aperiodic.arrival, Arrival::Aperiodic { mean: 100_000, seed: 3 });
    let recorded = Spin::Recorded(vec![250_000, 1_500_000, 300_000]);
    assert_eq!(aperiodic.body, Body::Spin(recorded.clone()));
    assert_eq!(listed.arrival, Arrival::List(vec![0, 3 * MS, 3 * MS, 60_000 * MS]));
    assert_eq!(listed.body, Body::Spin(Spin::Uniform { min: MS, max: 2 * MS, seed: 1 }));
    let steps = vec![
        Step::Spin(Spin::For(100_000)),
        Step::Sleep(MS),
        Step::Spin(Spin::Histogram { bins: vec![(100_000, 2)], seed: 0 }),
        Step::Spin(recorded),
        Step::Sleep(1),
        Step::Spin(Spin::Forever),
    ];
    assert_eq!(stepping.body, Body::Steps(steps));
}

/// RED-Linux, Table 2, with P_t = 20 ms.
#[test]
fn the_example_of_fig_6_has_the_attributes_of_table_2() {
    let set = example("red-linux-fig6.toml");
    let period = 20 * MS;
    let half = |start| ServerSpec::Windows {
        cycle: period,
        windows: vec![Window { start, length: period / 2 }],
    };
    let quarter = ServerSpec::Periodic {
        period,
        budget: period / 4,
        deadline: period / 2,
        offset: period / 2,
        // The default under EDF.
        kind: ServerKind::ConstantBandwidth,
    };
    let read: Vec<_> = set
        .groups
        .iter()
        .map(|g| (g.name.as_str(), g.parent, g.policy.name.as_str(), &g.server))
        .collect();
    assert_eq!(
        read,
        [
            ("RM", None, "rm", &half(0)),
            ("EDF", None, "edf", &half(period / 2)),
            ("EDF1", Some(1), "edf", &quarter),
            ("EDF2", Some(1), "edf", &quarter),
        ]
    );
    assert_eq!(set.policy.name, "td");
}

#[test]
fn the_example_of_three_levels_promises_no_more_than_90_percent() {
    let set = example("three-levels.toml");
    let depth = |mut group: Option<usize>| {
        let mut depth = 0;
        while let Some(index) = group {
            (group, depth) = (set.groups[index].parent, depth + 1);
        }
        depth
    };
    assert_eq!(set.tasks.iter().map(|task| depth(task.group)).max(), Some(2));
    let groups =
        set.groups.iter().filter(|group| group.parent.is_none()).map(|group| match group.server {
            ServerSpec::Periodic { period, budget, .. } => budget * 1000 / period,
            ServerSpec::Windows { .. } => panic!(),
        });
    let tasks = set
        .tasks
        .iter()
        .filter(|task| task.group.is_none())
        .map(|task| task.budget * 1000 / task.period);
    assert_eq!(groups.chain(tasks).sum::<u64>(), 850);
}

#[test]
fn the_example_of_rt_app_leaves_little_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rt-app.json");
    let loaded = Loaded::load(path, &Overrides::default()).unwrap();
    assert_eq!(loaded.set.tasks.len(), 4);
    let losses =
        ["lock: a job cannot wait for another task", "unlock: a job cannot wake another task"];
    assert_eq!(loaded.unrepresented, losses.map(|loss| format!("tasks.player.phases.busy.{loss}")));
}

fn many(kind: &str, count: usize, parent: impl Fn(usize) -> Option<usize>) -> String {
    let mut text = "cpu = 0\npolicy = \"edf\"\n".to_owned();
    for n in 0..count {
        text += &format!("[[{kind}]]\nname = \"n{n}\"\nperiod = \"10ms\"\nbudget = \"1ms\"\n");
        if kind == "group" {
            text += "policy = \"rm\"\n";
        }
        if let Some(parent) = parent(n) {
            text += &format!("parent = \"n{parent}\"\n");
        }
    }
    text
        + "[[task]]\nname = \"t\"\nperiod = \"10ms\"\nbudget = \"1ms\"\nwork = { spin = \"1ms\" }\n"
}

#[test]
fn as_many_groups_as_a_dispatcher_holds_are_read_and_no_more() {
    for (kind, most) in [("group", MOST_GROUPS), ("budget_group", MOST_BUDGET_GROUPS)] {
        let flat = |count| TaskSet::parse(&many(kind, count, |_| None), "x.toml");
        assert!(flat(most).is_ok());
        let error = flat(most + 1).unwrap_err();
        assert!(
            error.cause.ends_with(&format!("{}s, more than {most}", kind.replace('_', " "))),
            "{error}"
        );
        assert!(error.line().is_some());
        // One chain of them all, and one cycle.
        let chain = TaskSet::parse(&many(kind, most, |n| n.checked_sub(1)), "x.toml").unwrap_err();
        assert!(chain.cause.contains("levels deep"), "{chain}");
        let cycle =
            TaskSet::parse(&many(kind, most, |n| Some((n + 1) % most)), "x.toml").unwrap_err();
        assert!(cycle.cause.contains("\"n0\" -> \"n1\""), "{cycle}");
    }
    // As many as a file holds: refused, and soon.
    let error =
        TaskSet::parse(&many("group", 40_000, |n| Some((n + 1) % 40_000)), "x.toml").unwrap_err();
    assert!(error.cause.contains("more than 1023"), "{error}");
}

#[test]
fn recordings_are_bounded_each_and_together() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let load = |tasks: usize, work: &str| {
        let mut text = "cpu = 0\npolicy = \"edf\"\n".to_owned();
        for n in 0..tasks {
            text += &format!(
                "[[task]]\nname = \"{n}\"\nperiod = \"1ms\"\nbudget = \"1us\"\nwork = {work}\n"
            );
        }
        write("set.toml", text.as_bytes());
        TaskSet::load(folder.path().join("set.toml"))
    };
    write("large.txt", &vec![b'#'; punctual_taskset::LARGEST_RECORDING + 1]);
    let error = load(1, "{ recorded = \"large.txt\" }").unwrap_err();
    assert!(error.cause.contains("larger than 4 MiB"), "{error}");
    write("half.txt", "1us\n".repeat(1 << 20).as_bytes());
    let error = load(2, "{ recorded = \"/dev/zero\" }").unwrap_err();
    assert!(error.cause.contains("no regular file"), "{error}");
    assert!(load(4, "{ recorded = \"half.txt\" }").is_ok());
    let error = load(5, "{ recorded = \"half.txt\" }").unwrap_err();
    assert!(error.cause.contains("more than 4194304"), "{error}");
    assert_eq!(error.line(), Some(27));
}

#[test]
fn cpus_are_one_domain_each_or_all_one() {
    let set = |domain: &str, cpu: &str| {
        let text = format!(
            "cpus = [2, 0]\ndomain = \"{domain}\"\npolicy = \"edf\"\n[[task]]\nname = \"t\"\n\
             period = \"10ms\"\nbudget = \"1ms\"\n{cpu}work = {{ spin = \"1ms\" }}\n"
        );
        TaskSet::parse(&text, "x.toml").unwrap()
    };
    let cpus = |set: &TaskSet| set.domains.iter().map(|d| d.cpus.clone()).collect::<Vec<_>>();
    let partitioned = set("partitioned", "cpu = 0\n");
    assert_eq!(cpus(&partitioned), [[2], [0]]);
    assert_eq!(
        (partitioned.tasks[0].domain, partitioned.domain_of_cpu(2)),
        (DomainId(1), Some(DomainId(0)))
    );
    assert_eq!(
        partitioned.domains.iter().map(|d| d.only_cpu().unwrap()).collect::<Vec<_>>(),
        [2, 0]
    );
    let global = set("global", "");
    assert_eq!((cpus(&global), global.cpus()), (vec![vec![2, 0]], vec![2, 0]));
    let refusal = global.domain(global.tasks[0].domain).only_cpu().unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "x.toml:2:10: several CPUs per domain are not implemented yet: CPUs 2, 0 share one; \
         use domain = \"partitioned\", and give each task its cpu"
    );
}
