//! Files that are no task sets at all, large ones, and sets that come from the command line.

use std::fmt::Write as _;
use std::io::Write as _;

use punctual_taskset::{Body, Loaded, Overrides, Overrun, Spin, TaskSet, LARGEST_FILE};

fn refused(path: &str) -> String {
    TaskSet::load(path).unwrap_err().to_string()
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.toml");
    let name = path.to_str().unwrap();
    assert_eq!(refused(name), format!("{name}: there is no such file; check the path"));
    let name = folder.path().to_str().unwrap();
    assert_eq!(refused(name), format!("{name}: it is a directory; name a task-set file in it"));
    assert!(refused("a\0b").contains("cannot be read"));
}

#[test]
fn a_file_above_4_mib_is_refused_and_an_endless_one_too() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![b'#'; LARGEST_FILE + 1]).unwrap();
    assert!(refused(file.path().to_str().unwrap()).contains("larger than 4 MiB"));
    assert!(refused("/dev/zero").contains("larger than 4 MiB"));
    let text = " ".repeat(LARGEST_FILE + 1);
    assert!(TaskSet::parse(&text, "x").is_err());
}

#[test]
fn ten_thousand_tasks_are_read_good_or_bad() {
    let mut text = "cpu = 0\npolicy = \"edf\"\n".to_owned();
    for n in 0..10_000 {
        write!(
            text,
            "[[task]]\nname = \"task {n}\"\nperiod = \"{}us\"\nbudget = \"1ns\"\n\
             work = {{ spin = \"forever\" }}\n",
            100 + n
        )
        .unwrap();
    }
    let set = TaskSet::parse(&text, "many.toml").unwrap();
    assert_eq!(set.tasks.len(), 10_000);
    assert_eq!(set.tasks[9_999].name, "task 9999");
    assert_eq!(set.tasks[9_999].period, 10_099_000);
    assert_eq!(set.tasks[9_999].line, Some(3 + 5 * 9_999));

    // Each of the 10,000 is wrong, in several ways; the first is what is said.
    let bad = text.replace("\"1ns\"", "1\ncolour = 3");
    let error = TaskSet::parse(&bad, "many.toml").unwrap_err();
    assert_eq!(error.line(), Some(6));
    let same = text.replace(|c: char| c.is_ascii_digit(), "1");
    let error = TaskSet::parse(&same, "many.toml").unwrap_err();
    assert!(error.cause.contains("is taken by the task on line 4"), "{error}");
}

#[test]
fn a_set_of_one_task_has_the_defaults_of_a_file() {
    let command = vec!["/usr/bin/xz".to_owned(), "-T4".to_owned()];
    let set =
        TaskSet::single(20_000_000, 5_000_000, Body::Command(command)).cpu(3).build().unwrap();
    let mut file = TaskSet::parse(
        "cpu = 3\npolicy = \"edf\"\n[[task]]\nname = \"xz\"\nperiod = \"20ms\"\n\
         budget = \"5ms\"\ncommand = [\"/usr/bin/xz\", \"-T4\"]\n",
        "x.toml",
    )
    .unwrap();
    assert_eq!(file.tasks[0].line.take(), Some(3));
    assert_eq!(file.domains[0].place.take().unwrap().to_string(), "x.toml:1:7");
    assert_eq!(set, file);
}

#[test]
fn a_set_of_one_task_is_checked_like_a_file() {
    let spin = || Body::Spin(Spin::Forever);
    let said = |single: punctual_taskset::Single| single.build().unwrap_err().to_string();
    assert_eq!(
        said(TaskSet::single(1_000_000, 2_000_000, spin())),
        "command line: budget 2 ms is more than its period 1 ms; make the budget at most the period"
    );
    let good = || TaskSet::single(1_000_000, 200_000, spin());
    assert!(good().overrun(Overrun::Skip).build().is_ok());
    assert_eq!(good().deadline(500_000).build().unwrap().tasks[0].deadline, 500_000);
    for bad in [
        TaskSet::single(1, 1, spin()),
        TaskSet::single(u64::MAX, 1, spin()),
        TaskSet::single(1_000_000, 0, spin()),
        TaskSet::single(1_000_000, 1, Body::Pid(0)),
        TaskSet::single(1_000_000, 1, Body::Pid(-1)),
        TaskSet::single(1_000_000, 1, Body::Command(vec![])),
        TaskSet::single(1_000_000, 1, Body::Spin(Spin::For(0))),
        good().name(""),
        good().deadline(100_000),
        good().deadline(2_000_000),
        good().policy("EDF"),
        good().cpu(8192),
        good().duration(0),
    ] {
        assert!(said(bad).starts_with("command line: "));
    }
}

const RT_APP: &str =
    "{ \"tasks\": { \"a\": { \"cpus\": [1], \"run\": 100, \"timer\": { \"ref\": \"x\", \"period\": \
     1000 } } } }";

/// A set with a group, all of it on one CPU, and what its first task has beside.
fn one_cpu(top: &str, more: &str) -> String {
    let group = "[[group]]\nname = \"g\"\npolicy = \"rm\"\nperiod = \"10ms\"\nbudget = \"1ms\"\n\
                 priority = 1\n";
    let task =
        "[[task]]\nname = \"a\"\nperiod = \"1ms\"\nbudget = \"1us\"\nwork = { spin = \"1us\" }\n";
    format!(
        "{top}\npolicy = \"edf\"\n{group}{}{task}{more}",
        group
            .replace("[[group]]", "[[budget_group]]")
            .replace("policy = \"rm\"\n", "")
            .replace("priority = 1\n", "")
    )
}

#[test]
fn a_cpu_that_is_given_takes_the_place_of_the_file_s() {
    let cpu = |text: &str, name: &str, options: Overrides| {
        let set = Loaded::parse(text, name, &options).map_err(|error| error.to_string())?.set;
        let all = set.tasks.iter().map(|task| task.domain);
        let all = all.chain(set.groups.iter().map(|group| group.domain));
        let all = all.chain(set.budget_groups.iter().map(|group| group.domain));
        let all = all.flat_map(|domain| set.domain(domain).cpus.clone());
        let mut all: Vec<u32> = all.chain(set.cpus()).collect();
        all.dedup();
        Ok::<_, String>(all)
    };
    let given = |cpu| Overrides { cpu: Some(cpu), ..Overrides::default() };
    let default = |cpu| Overrides { default_cpu: Some(cpu), ..Overrides::default() };
    for file in [
        one_cpu("cpu = 1", ""),
        one_cpu("cpu = 1", "cpu = 1\n"),
        one_cpu("cpus = [1]", ""),
        one_cpu("", ""),
    ] {
        assert_eq!(
            cpu(&file, "x.toml", Overrides { default_cpu: Some(2), ..given(5) }),
            Ok(vec![5])
        );
    }
    assert_eq!(cpu(RT_APP, "x.json", given(5)), Ok(vec![5]));
    assert_eq!(cpu(&one_cpu("", ""), "x.toml", default(3)), Ok(vec![3]));
    assert_eq!(cpu(&one_cpu("cpu = 1", ""), "x.toml", default(3)), Ok(vec![1]));
    let error = cpu(&one_cpu("", "cpu = 1\n"), "x.toml", default(3)).unwrap_err();
    assert!(error.contains("task \"a\": cpu 1 is not one of the set's (3)"), "{error}");
    let error = cpu(&one_cpu("", ""), "x.toml", Overrides::default()).unwrap_err();
    assert!(error.contains("the set names no CPU"), "{error}");
    let several = one_cpu("cpus = [0, 1]\ndomain = \"partitioned\"", "cpu = 0\n")
        .replace("[[group]]", "[[group]]\ncpu = 0")
        .replace("[[budget_group]]", "[[budget_group]]\ncpu = 1");
    assert!(cpu(&several, "x.toml", Overrides::default()).is_ok());
    assert_eq!(
        cpu(&several, "x.toml", given(1)).unwrap_err(),
        "x.toml: the set has several CPUs (0, 1), and CPU 1 is given for all of it; give no CPU \
         beside the file, or write one cpu in it"
    );
    let error = cpu(&one_cpu("cpu = 1", ""), "x.toml", given(8192)).unwrap_err();
    assert!(error.contains("cpu 8192 is out of range"), "{error}");
}

#[test]
fn a_policy_that_is_given_takes_the_place_of_the_file_s() {
    let parse = |text: &str, name: &str, policy: &str| {
        let options = Overrides { policy: Some(policy.to_owned()), ..Overrides::default() };
        Loaded::parse(text, name, &options)
            .map(|loaded| loaded.set)
            .map_err(|error| error.to_string())
    };
    let file = one_cpu("cpu = 1", "");
    assert_eq!(parse(&file, "x.toml", "rm").unwrap().policy.name, "rm");
    assert_eq!(
        parse(&file.replace("policy = \"edf\"\n", ""), "x.toml", "dm").unwrap().policy.name,
        "dm"
    );
    // What the policy needs, the file must have.
    let error = parse(&file, "x.toml", "fp").unwrap_err();
    assert!(error.contains("task \"a\": the policy \"fp\" needs its priority"), "{error}");
    let error = parse(&file, "x.toml", "EDF").unwrap_err();
    assert_eq!(error, "unknown policy \"EDF\"; did you mean \"edf\"?");
    let set = parse(RT_APP, "x.json", "fp").unwrap();
    assert_eq!((set.policy.name.as_str(), set.tasks[0].priority), ("fp", -21));
}

#[test]
fn tasks_of_a_trace_may_be_threads_of_one_process() {
    let task =
        |name| format!("[[task]]\nname = {name:?}\nperiod = \"4ms\"\nbudget = \"1ms\"\npid = 7\n");
    let text = format!("cpu = 0\npolicy = \"edf\"\n{}{}", task("a"), task("b"));
    let error = TaskSet::parse(&text, "x.toml").unwrap_err();
    assert!(error.cause.contains("adopted by the task on line 7"), "{error:?}");
    let set = TaskSet::parse_recorded(&text, "the trace's set").expect("a program's");
    assert_eq!(set.tasks.len(), 2);
}
