//! `punctual sim` as a user meets it: nothing of it needs any privilege or a quiet machine.

mod refusals;
mod traces;

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
    let schema = include_str!("../../../../docs/sim.schema.json");
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
