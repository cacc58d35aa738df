//! What the command does when all is well: signals, streams, traces, budgets of real programs.

use std::ffi::OsStr;
use std::io::BufReader;
use std::time::Duration;

use punctual_test_support::judge_timing;
use punctual_trace::Trace;

use crate::kills::NEEDS;
use crate::machine::{in_path, one_cpu, permitted, permitted_cpu, wait_for_cpu, Need};
use crate::process::{kill, marked};
use crate::punctual::{
    adversarial, list, patiently, patiently_silent, run, run_on, run_set, task, Ended, Running,
    Scratch,
};

fn busy_set(cpu: u32) -> String {
    let family = list(&adversarial("family"));
    format!(
        "cpu = {cpu}\npolicy = \"edf\"\n[[task]]\nname = \"loop\"\nperiod = \"5ms\"\n\
         budget = \"1ms\"\nwork = {{ spin = \"forever\" }}\n\
         [[task]]\nname = \"family\"\nperiod = \"10ms\"\nbudget = \"2ms\"\ncommand = {family}\n"
    )
}

/// It ended within a second. An ordinary thread ends a run, which a busy machine may keep from the
/// CPU.
fn was_prompt(ended: &Ended) {
    judge_timing(|| assert!(ended.took < Duration::from_secs(1), "{:?}", ended.took));
}

#[test]
fn signals_end_a_run_within_a_second_with_its_results() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &busy_set(cpu.0));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT] {
        for json in [false, true] {
            wait_for_cpu(cpu.0);
            let mut args = vec!["run", file.as_str()];
            args.extend(json.then_some("--json"));
            let mut punctual = Running::start(&args);
            punctual.wait_for("its command's family", |p| marked(&p.mark).len() > 5);
            std::thread::sleep(Duration::from_millis(120));
            kill(punctual.pid(), signal);
            let ended = punctual.end();
            was_prompt(&ended);
            ended.assert_code(130).assert_nothing_left(&[cpu.0]);
            if json {
                assert_eq!(ended.result()["interrupted"], true);
            } else {
                assert!(
                    ended.out.contains("budget wanted in full"),
                    "the final table: {}{}",
                    ended.out,
                    ended.err
                );
            }
        }
    }
}

#[test]
fn a_signal_that_comes_while_it_starts_ends_it_too() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &busy_set(cpu.0));
    for after in [15, 30, 50, 80] {
        let once = || {
            wait_for_cpu(cpu.0);
            let punctual = Running::start(&["run", &file]);
            std::thread::sleep(Duration::from_millis(after));
            kill(punctual.pid(), libc::SIGINT);
            punctual.end()
        };
        let ended = patiently(once);
        was_prompt(&ended);
        // Before its handlers were there it is simply killed.
        assert!(matches!(ended.code, None | Some(130)), "{:?} {}", ended.code, ended.err);
        ended.assert_nothing_left(&[cpu.0]);
    }
}

/// Runs it with its standard output closed, and its standard error too.
fn closed(args: &[impl AsRef<OsStr>], close_errors: bool) -> Ended {
    let mut punctual = Running::start(args);
    drop(punctual.child.stdout.take());
    if close_errors {
        drop(punctual.child.stderr.take());
    }
    punctual.end()
}

#[test]
fn a_reader_that_goes_away_early_is_no_reason_to_panic() {
    for args in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["clean"],
        &["clean", "--json"],
        &["--help"],
        &["run", "--json", "/no/such"],
    ] {
        let ended = closed(args, false);
        assert!(
            !ended.err.contains("panicked") && matches!(ended.code, Some(0..=4)),
            "{args:?}: {:?} {}",
            ended.code,
            ended.err
        );
    }
    for args in [&["run", "/no/such"][..], &["run", "--period", "1s", "--budget", "1"], &["run"]] {
        let ended = closed(args, true);
        assert_eq!(ended.code, Some(2), "{args:?}");
    }
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let options = "--period 10ms --budget 2ms --duration 2200ms --json --";
    let words = [run_on(cpu.0, options), adversarial("say 2000")].concat();
    for close_errors in [false, true] {
        let ended = patiently_silent(cpu.0, || closed(&words, close_errors));
        if close_errors {
            // The command's end as it would be alone.
            ended.assert_code(128 + libc::SIGPIPE);
        } else {
            ended.assert_ran();
        }
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended.assert_nothing_left(&[cpu.0]);
    }
}

#[test]
fn a_command_s_output_stays_its_own_and_json_stays_json() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let say = adversarial("say 3");
    let with = |more: &str| {
        let options = format!("--period 10ms --budget 5ms --duration 120s {more} --");
        run(&[run_on(cpu.0, &options), say.clone()].concat())
    };
    let plain = with("");
    plain.assert_code(0);
    assert_eq!(plain.out, "out 0\nout 1\nout 2\n", "standard output is the command's alone");
    plain.assert_says(&["err 2", "used %", "exited with 0"]);

    let json = with("--json");
    json.assert_code(0).assert_says(&["out 2", "err 2"]);
    assert_conforms(&json.json(), SCHEMA);

    let quiet = with("--quiet");
    quiet.assert_code(0).assert_says(&["err 2", "used %"]);
    assert_eq!(quiet.out, "out 0\nout 1\nout 2\n", "only progress is quiet");
    assert!(!quiet.err.contains("exited with"), "{}", quiet.err);
    let elsewhere = with("--output stderr");
    elsewhere.assert_code(0).assert_says(&["out 2", "err 2"]);
    assert_eq!(elsewhere.out, "");
    let nowhere = with("--output null");
    nowhere.assert_code(0).assert_says(&["used %"]);
    assert!(
        nowhere.out.is_empty() && !nowhere.err.contains("err 1"),
        "{}{}",
        nowhere.out,
        nowhere.err
    );
    let both = with("--json --output inherit");
    assert_conforms(&both.json(), SCHEMA);
    assert_eq!(
        (both.code, both.json()["error"]["kind"].as_str()),
        (Some(125), Some("usage")),
        "{}",
        both.out
    );
}

const SCHEMA: &str = include_str!("../../../../docs/run.schema.json");

pub fn assert_conforms(results: &serde_json::Value, schema: &str) {
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(results).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {results:#}");
}

#[test]
fn a_command_reads_our_standard_input() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let words = run_on(cpu.0, "--period 10ms --budget 5ms --duration 120s -- tr a-z A-Z");
    wait_for_cpu(cpu.0);
    let mut punctual = Running::from(|c| c.args(&words).stdin(std::process::Stdio::piped()));
    std::io::Write::write_all(&mut punctual.child.stdin.take().unwrap(), b"through\n").unwrap();
    let ended = punctual.end();
    ended.assert_code(0);
    assert_eq!(ended.out, "THROUGH\n");
}

#[test]
fn the_trace_of_a_run_is_read_back_with_inputs_and_decisions() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let trace = scratch.path("run.trace");
    let ended = run_set(&busy_set(cpu.0), &["--duration", "1500ms", "--trace", &trace, "--json"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    let read = Trace::read(&mut BufReader::new(std::fs::File::open(&trace).unwrap())).unwrap();
    assert_eq!(
        (read.header.cpu, read.header.policy.as_str(), read.header.host.as_str()),
        (cpu.0, "edf", "user")
    );
    assert_eq!(read.header.tasks, ["loop", "family"]);
    assert_eq!(read.lost(), 0, "a run this short is there from its first record");
    let count =
        |decision: bool| read.records.iter().filter(|r| r.is_decision() == decision).count();
    judge_timing(|| {
        assert!(
            count(true) > 100 && count(false) > 100,
            "{} decisions, {} inputs",
            count(true),
            count(false)
        )
    });
    assert!(read.records.iter().all(|r| r.what().is_some()), "every kind is known");
    judge_timing(|| {
        for word in ["task added", "charge task", "advance", "selected", "released", "exhausted"] {
            assert!(
                read.records.iter().any(|r| r.what() == Some(word)),
                "no \"{word}\" in the trace"
            );
        }
    });
}

#[test]
fn two_cpus_have_a_dispatcher_and_a_trace_each() {
    if !permitted(&NEEDS) || !permitted(&[Need::Cpus(2)]) {
        return;
    }
    let cpus = [one_cpu(), one_cpu()];
    let (a, b) = (cpus[0].0, cpus[1].0);
    let scratch = Scratch::new();
    let trace = scratch.path("two.trace");
    let spin = list(&adversarial("spin-threads 3"));
    let text = format!(
        r#"
cpus = [{a}, {b}]
domain = "partitioned"
policy = "edf"
duration = "3s"
[[task]]
name = "here"
cpu = {a}
period = "10ms"
budget = "3ms"
work = {{ spin = "forever" }}
[[task]]
name = "there"
cpu = {b}
period = "20ms"
budget = "8ms"
command = {spin}
"#
    );
    let ended = run_set(&text, &["--json", "--trace", &trace]);
    ended.assert_ran().assert_nothing_left(&[a, b]);
    assert_conforms(&ended.json(), SCHEMA);
    let results = ended.result();
    for name in ["here", "there"] {
        assert!(task(&results, name)["received_ns"].as_u64().unwrap() > 0, "{name}: {results:#}");
    }
    for cpu in [a, b] {
        let file = std::fs::File::open(format!("{trace}.cpu{cpu}")).unwrap();
        assert_eq!(Trace::read(&mut BufReader::new(file)).unwrap().header.cpu, cpu);
    }
}

#[test]
fn a_set_s_own_duration_ends_it() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let ended = run_set(&format!("duration = \"400ms\"\n{}", busy_set(cpu.0)), &["--json"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    let ran = ended.result()["duration_ns"].as_u64().unwrap();
    // An ordinary thread ends the run, which jobs may keep from the CPU for a while.
    assert!(ran >= 400_000_000, "{ran}");
    judge_timing(|| assert!(ran < 10_000_000_000, "{ran}"));
}

#[test]
fn xz_with_four_threads_gets_five_milliseconds_in_twenty() {
    if !permitted(&NEEDS) || !permitted(&[Need::Tool("xz")]) {
        return;
    }
    let cpu = one_cpu();
    let mut words = run_on(cpu.0, "--period 20ms --budget 5ms --duration 2s --json -- sh -c");
    // By its path: busybox's shell takes its own xz, which only unpacks.
    words
        .push(format!("exec {} -T4 -1 -c </dev/zero >/dev/null", in_path("xz").unwrap().display()));
    let ended = run(&words);
    let results = ended.assert_timed_out().result();
    ended.assert_nothing_left(&[cpu.0]);
    assert_conforms(&ended.json(), SCHEMA);
    judge_timing(|| {
        let xz = &results["tasks"][0];
        for share in [&xz["long_run_ppm"], &xz["budget_received"]["median_ppm"]] {
            let share = share.as_u64().unwrap();
            assert!((995_000..=1_005_000).contains(&share), "{share} ppm of 5 ms: {results:#}");
        }
    });
}
