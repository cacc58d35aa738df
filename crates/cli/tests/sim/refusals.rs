//! What is refused, and results that cannot be written.

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use punctual_test_support::Scratch;

use crate::{ended, refused, FULL};

#[test]
fn a_domain_of_several_cpus_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let text = FULL.replace("cpu = 0", "cpus = [0, 1]\ndomain = \"global\"");
    let file = scratch.file("set.toml", &text);
    let error = refused(&[&file]);
    let cause =
        "set.toml:2:10: several CPUs per domain are not implemented yet: CPUs 0, 1 share one";
    assert!(error.contains(cause), "{error}");
    assert!(error.contains("use domain = \"partitioned\""), "{error}");
}

#[test]
fn bad_requests_are_refused_with_a_cause_and_a_help() {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", FULL);
    let random = FULL
        .replace("name = \"long\"", "name = \"long\"\narrival = { sporadic = \"9ms\", seed = 1 }");
    let random = scratch.file("random.toml", &random);
    let old = "{\"format\":\"punctual-trace\",\"version\":1,\"host\":\"user\"}\n";
    for (arguments, words) in [
        (vec!["nowhere.toml"], "there is no such file"),
        (vec![&file, "--duration", "0s"], "--duration is 0"),
        (vec![&file, "--costs", "relase=5us"], "no cost \"relase\""),
        (vec![&file, "--costs", "release"], "no name=TIME"),
        (vec![&random], "arrives at random"),
        (vec![&random, "--hyperperiod"], "arrives at random"),
        (vec!["--replay", "nowhere"], "No such file"),
        (vec!["--replay", &file], "not a trace"),
        (vec!["--replay", &scratch.file("old", old)], "version 1"),
        (vec![&file, "--trace", "/nowhere/trace"], "the trace /nowhere/trace"),
    ] {
        let why = refused(&arguments);
        assert!(why.contains(words) && why.contains("help:"), "{arguments:?}: {why}");
    }
    for arguments in [
        vec![],
        vec![&file[..], "--replay", "trace"],
        vec![&file, "--hyperperiod", "--duration", "1s"],
    ] {
        refused(&arguments);
    }
}

#[test]
fn hyperperiods_beyond_64_bits_and_very_long_ones_are_named_and_not_waited_for() {
    let scratch = Scratch::new();
    let set = |periods: &[u32]| {
        let task = |p: &u32| {
            format!(
                "[[task]]\nname = \"t{p}\"\nperiod = \"{p}ms\"\nbudget = \"1ms\"\n\
                 work = {{ spin = \"1ms\" }}\n"
            )
        };
        format!("cpu = 0\npolicy = \"edf\"\n{}", periods.iter().map(task).collect::<String>())
    };
    let huge = [997, 991, 983, 977, 971, 967, 953, 947];
    let why = refused(&[&scratch.file("huge.toml", &set(&huge))]);
    assert!(why.contains("more than 146 years") && why.contains("--duration"), "{why}");
    let file = scratch.file("long.toml", &set(&huge[..4]));
    let why = refused(&[&file]);
    assert!(why.contains("million releases") && why.contains("--hyperperiod"), "{why}");
    assert!(ended(&[&file, "--duration", "1s"], 0).contains("All deadlines met"));
}

fn pipe_without_reader() -> OwnedFd {
    let mut ends = [0; 2];
    // SAFETY: there is room for both ends.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: both are ours and open.
    let (reader, writer) =
        unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    drop(reader);
    writer
}

#[test]
fn results_that_are_not_read_are_a_failure_unless_the_reader_has_gone() {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", FULL);
    for arguments in [vec!["sim", &file], vec!["sim", &file, "--json"]] {
        let full =
            std::fs::OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it");
        let command = || Command::new(env!("CARGO_BIN_EXE_punctual"));
        let out = command()
            .args(&arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("it starts");
        assert_eq!(out.status.code(), Some(4), "{arguments:?}");
        let out =
            command().args(&arguments).stdout(pipe_without_reader()).output().expect("it starts");
        assert_eq!(out.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn what_a_refused_simulation_would_have_written_over_is_still_there() {
    let scratch = Scratch::new();
    let task = |p: u64| {
        format!(
            "[[task]]\nname = \"t{p}\"\nperiod = \"{p}ns\"\nbudget = \"1ms\"\n\
             work = {{ spin = \"1ms\" }}\n"
        )
    };
    let tasks = [999_999_937, 999_999_893, 999_999_883].map(task).concat();
    let file =
        scratch.file("td.toml", &format!("cpu = 0\npolicy = \"td\"\nduration = \"1s\"\n{tasks}"));
    let trace = scratch.file("trace", "something of value");
    refused(&[&file, "--trace", &trace]);
    assert_eq!(std::fs::read_to_string(&trace).expect("it is there"), "something of value");
}
