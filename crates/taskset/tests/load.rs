//! Files that are no task sets at all, large ones, and sets that come from the command line.

use std::fmt::Write as _;
use std::io::Write as _;

use punctual_taskset::{Body, Overrun, Spin, TaskSet, LARGEST_FILE};

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
    let set = TaskSet::single(20_000_000, 5_000_000, Body::Command(command)).cpu(3).build().unwrap();
    let mut file = TaskSet::parse(
        "cpu = 3\npolicy = \"edf\"\n[[task]]\nname = \"xz\"\nperiod = \"20ms\"\n\
         budget = \"5ms\"\ncommand = [\"/usr/bin/xz\", \"-T4\"]\n",
        "x.toml",
    )
    .unwrap();
    assert_eq!(file.tasks[0].line.take(), Some(3));
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
