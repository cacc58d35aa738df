//! `punctual sim` as a user meets it: nothing of it needs any privilege or a quiet machine.

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use punctual_test_support::Scratch;

const FULL: &str = "cpu = 0\npolicy = \"edf\"\n\
    [[task]]\nname = \"short\"\nperiod = \"5ms\"\nbudget = \"2ms\"\nwork = { spin = \"2ms\" }\n\
    [[task]]\nname = \"long\"\nperiod = \"7ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual"))
        .arg("sim")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a run that must end so.
fn ended(arguments: &[&str], code: i32) -> String {
    let out = sim(arguments);
    assert_eq!(
        out.status.code(),
        Some(code),
        "{arguments:?}: {}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
    text(&out.stdout)
}

/// Standard error of a run that is refused.
fn refused(arguments: &[&str]) -> String {
    let out = sim(arguments);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", text(&out.stdout));
    text(&out.stderr)
}

#[test]
fn a_set_that_fits_and_one_that_misses_say_so_and_exit_so() {
    let scratch = Scratch::new();
    let (fits, misses) =
        (scratch.file("edf.toml", FULL), scratch.file("rm.toml", &FULL.replace("edf", "rm")));
    let good = ended(&[&fits], 0);
    assert!(good.contains("2 tasks for 35 ms on CPU 0, policy edf"), "{good}");
    assert!(
        good.contains("one hyperperiod")
            && good.contains("All deadlines met and all budgets kept: 2 tasks, 12 periods"),
        "{good}"
    );
    let bad = ended(&[&misses, "--duration", "35ms"], 1);
    assert!(bad.starts_with("long missed "), "{bad}");
}

/// Woken 5 ms before its deadline, the job of 2 ms in 10 ms may execute 1 ms more (docs/model.md):
/// by sleeping, its task gave up the rest.
#[test]
fn a_task_that_sleeps_and_is_cut_is_not_ready_in_that_period() {
    let scratch = Scratch::new();
    let set = "cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"sleeper\"\nperiod = \"10ms\"\n\
               budget = \"2ms\"\n\
               work = { steps = [{ spin = \"100us\" }, { sleep = \"4900us\" }, { spin = \
               \"forever\" }] }\n";
    let out = ended(&[&scratch.file("set.toml", set), "--duration", "100ms", "--json"], 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let value = &value["result"];
    let task = &value["tasks"][0];
    assert_eq!(
        (&task["periods"], &task["not_ready"], &task["received_ns"]),
        (&10.into(), &1.into(), &19_100_000.into())
    );
    assert_eq!(
        (&task["long_run_ppm"], &task["budget_received"]["worst_ppm"]),
        (&1_000_000.into(), &1_000_000.into())
    );
    assert_eq!((&task["shortfall_ns"], &value["totals"]["short"]), (&0.into(), &0.into()));
}

#[test]
fn the_json_is_that_of_run_and_two_runs_are_the_same() {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", FULL);
    let out = ended(&[&file, "--json"], 0);
    let value: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let schema = include_str!("../../../docs/sim.schema.json");
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    jsonschema::validate(&schema, &value).expect("docs/sim.schema.json holds");
    let value = &value["result"];
    assert_eq!(
        (value["host"].as_str(), value["duration_ns"].as_u64()),
        (Some("sim"), Some(35_000_000))
    );
    assert_eq!(value["tasks"][1]["periods"], 5, "the first period counts here");
    assert_eq!(out, ended(&[&file, "--json"], 0));
}

#[test]
fn the_drawing_comes_before_the_table() {
    let scratch = Scratch::new();
    let out = ended(&[&scratch.file("set.toml", FULL), "--gantt"], 0);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("All deadlines met"), "the verdict comes first: {out}");
    assert_eq!(lines[3], "short  @#   |##  |.## @#   @#   |##  |.##");
    assert!(out.find("one column is 1 ms") < out.find("simulated: 2 tasks"), "{out}");
}

#[test]
fn a_trace_replays_the_same_and_a_changed_one_is_found_out() {
    let scratch = Scratch::new();
    let (file, trace) = (scratch.file("set.toml", FULL), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    assert!(ended(&["--replay", &trace], 0).contains("led to the same"));
    let read = punctual_trace::Trace::read(&mut &std::fs::read(&trace).expect("it is there")[..])
        .expect("whole");
    let of =
        |task: u32| read.periods().filter(|p| p.task == task).map(|p| p.number).collect::<Vec<_>>();
    assert!(of(0).len() > 1 && of(1).len() > 1, "each task has its periods");
    assert!(
        [0, 1].map(of).iter().all(|numbers| numbers.iter().copied().eq(0..numbers.len() as u64)),
        "in order"
    );
    let received: u64 = read.periods().map(|p| p.received).sum();
    assert_eq!(
        received,
        read.intervals().iter().map(|i| i.to - i.from).sum::<u64>(),
        "both have all execution"
    );
    let out: serde_json::Value =
        serde_json::from_str(&ended(&["--replay", &trace, "--json"], 0)).expect("JSON");
    assert_eq!(
        (&out["result"]["replay"]["same"], &out["result"]["replay"]["host"]),
        (&true.into(), &"sim".into())
    );

    let mut bytes = std::fs::read(&trace).expect("it is there");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&trace, &bytes).expect("it can be written");
    let why = refused(&["--replay", &trace]);
    assert!(why.contains("was changed since it was written") && why.contains("help:"), "{why}");
    let out = sim(&["--replay", &trace, "--json"]);
    let value: serde_json::Value =
        serde_json::from_slice(&out.stdout).expect("errors are JSON too");
    assert_eq!(value["exit_code"], 2);
}

#[test]
fn another_decision_is_reported_with_its_record() {
    use punctual_trace::Trace;
    let scratch = Scratch::new();
    let (file, trace) = (scratch.file("set.toml", FULL), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    let mut read =
        Trace::read(&mut &std::fs::read(&trace).expect("it is there")[..]).expect("it is a trace");
    let selected: Vec<usize> =
        (0..read.records.len()).filter(|&n| read.records[n].what() == Some("selected")).collect();
    let n = selected[3];
    read.records[n].a ^= 1;
    read.write(&mut std::fs::File::create(&trace).expect("it can be written"))
        .expect("it can be written");
    let out = ended(&["--replay", &trace], 1);
    assert!(
        out.contains(&format!("Different at record {n}")) && out.contains("recorded: selected"),
        "{out}"
    );
}

#[test]
fn each_cpu_has_its_trace() {
    let scratch = Scratch::new();
    let text = FULL.replace("cpu = 0", "cpus = [0, 1]\ndomain = \"partitioned\"");
    let text = text
        .replace("name = \"short\"", "name = \"short\"\ncpu = 0")
        .replace("name = \"long\"", "name = \"long\"\ncpu = 1");
    let (file, trace) = (scratch.file("set.toml", &text), scratch.path("trace"));
    ended(&[&file, "--trace", &trace], 0);
    for cpu in 0..2 {
        let out = ended(&["--replay", &format!("{trace}.cpu{cpu}")], 0);
        assert!(out.contains(&format!("CPU {cpu}")), "{out}");
    }
}

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
fn every_example_is_simulated_and_its_trace_replays() {
    let scratch = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if !path.extension().is_some_and(|e| e == "toml" || e == "json") {
            continue;
        }
        let (file, trace) = (path.display().to_string(), scratch.path("trace"));
        let out = sim(&[&file, "--duration", "2s", "--trace", &trace, "--quiet"]);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{file}: {}", text(&out.stderr));
        assert!(ended(&["--replay", &trace], 0).contains("led to the same"), "{file}");
        seen += 1;
    }
    assert!(seen >= 10, "{seen} examples");
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

#[test]
fn ten_thousand_tasks_are_simulated() {
    let scratch = Scratch::new();
    let task = |n: u32| {
        format!(
            "[[task]]\nname = \"t{n}\"\nperiod = \"1s\"\nbudget = \"50us\"\n\
             work = {{ spin = \"50us\" }}\n"
        )
    };
    let file = format!("cpu = 0\npolicy = \"rm\"\n{}", (0..10_000).map(task).collect::<String>());
    let out = ended(&[&scratch.file("set.toml", &file)], 0);
    assert!(out.contains("All deadlines met and all budgets kept: 10,000 tasks, 10,000 periods"));
}

#[test]
fn an_interrupted_simulation_prints_what_it_reached_and_exits_130() {
    let scratch = Scratch::new();
    let (file, trace) = (scratch.file("set.toml", FULL), scratch.path("trace"));
    let child = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["sim", &file, "--duration", "30000min", "--trace", &trace])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // It handles the signal from before the trace is opened on.
    let give_up = Instant::now() + Duration::from_secs(60);
    while std::fs::metadata(&trace).map_or(0, |m| m.len()) == 0 && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: the child is ours and not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let out = child.wait_with_output().expect("it ends");
    let table = text(&out.stdout);
    assert_eq!(out.status.code(), Some(130), "{table}{}", text(&out.stderr));
    assert!(
        table.contains(", interrupted") && table.contains("note: stopped before its end"),
        "{table}"
    );
    assert!(ended(&["--replay", &trace], 0).contains("led to the same"), "its trace is whole");
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

#[test]
fn what_is_left_out_of_rt_app_s_json_is_named() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/rt-app.json")
        .display()
        .to_string();
    let out = sim(&[&example, "--duration", "1s"]);
    assert!(text(&out.stderr).contains("punctual: left out: "), "{}", text(&out.stderr));
}

#[test]
fn cpu_and_policy_on_the_command_line_replace_those_of_the_file() {
    let scratch = Scratch::new();
    let full = scratch.file("full.toml", FULL);
    let about = |arguments: &[&str]| {
        text(&sim(&[&[full.as_str(), "--quiet", "--duration", "35ms"], arguments].concat()).stdout)
    };
    assert!(about(&[]).contains("on CPU 0, policy edf"), "{}", about(&[]));
    let moved = about(&["--cpu", "3", "--policy", "rm"]);
    assert!(moved.contains("on CPU 3, policy rm"), "{moved}");
    let free = scratch.file("free.toml", &FULL.replace("cpu = 0\n", ""));
    let mask = std::fs::read_to_string("/proc/self/status").expect("it is mounted");
    let mask = mask
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .expect("it names the CPUs");
    let last = mask.trim().rsplit(['-', ',']).next().expect("there is one");
    let out = ended(&[&free, "--quiet", "--duration", "35ms"], 0);
    assert!(out.contains(&format!("on CPU {last}, policy edf")), "{out}");

    let several = FULL
        .replace("cpu = 0", "cpus = [0, 1]\ndomain = \"partitioned\"")
        .replace("[[task]]", "[[task]]\ncpu = 0");
    let several = scratch.file("several.toml", &several);
    let error = refused(&[&several, "--cpu", "1"]);
    assert!(
        error.contains("the set has several CPUs (0, 1), and CPU 1 is given for all of it"),
        "{error}"
    );
    let error = refused(&[&full, "--policy", "EDF"]);
    assert!(
        error.contains("unknown policy \"EDF\"") && error.contains("did you mean \"edf\"?"),
        "{error}"
    );
    let error = refused(&[&full, "--policy", "fp"]);
    assert!(error.contains("task \"short\": the policy \"fp\" needs its priority"), "{error}");
    refused(&["--replay", &full, "--cpu", "1"]);
}

#[test]
fn a_trace_carries_its_set_which_leads_to_the_same_trace() {
    let scratch = Scratch::new();
    scratch.file("times.txt", "1ms\n1500us\n");
    let several = FULL
        .replace("cpu = 0", "cpus = [1, 0]\ndomain = \"partitioned\"")
        .replace("[[task]]", "[[task]]\ncpu = 0")
        .replace("{ spin = \"2ms\" }", "{ recorded = \"times.txt\" }");
    let other = "[[task]]\ncpu = 1\nname = \"other\"\nperiod = \"5ms\"\nbudget = \"1ms\"\n\
                 work = { spin = \"1ms\" }\n";
    let several = scratch.file("several.toml", &(several + other));
    let trace = |file: &str, name: &str| {
        let path = scratch.path(name);
        ended(&[file, "--quiet", "--duration", "70ms", "--trace", &path], 0);
        [0, 1].map(|cpu| std::fs::read(format!("{path}.cpu{cpu}")).expect("it was written"))
    };
    let first = trace(&several, "first");
    let out = ended(&["--replay", &format!("{}.cpu0", scratch.path("first")), "--json"], 0);
    let document: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let set = document["result"]["replay"]["set"].as_str().expect("it has the set");
    std::fs::remove_file(scratch.path("times.txt")).expect("it is there");
    assert_eq!(trace(&scratch.file("carried.toml", set), "second"), first);
}
