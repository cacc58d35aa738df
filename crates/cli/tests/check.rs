//! `punctual check`: exit codes, and the document for programs. Nothing is started.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn check(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_punctual"))
        .arg("check")
        .args(args)
        .current_dir(root)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_set_that_fits_is_shown_with_responses_and_slack() {
    let output = check(&["examples/rtai-table2.toml"]);
    assert_eq!(output.status.code(), Some(0));
    let row = text(&output).lines().find(|line| line.starts_with("task 2")).unwrap().to_owned();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["task 2", "yes", "2 ms", "5 ms", "3 ms", "processor demand, exact"]);
}

#[test]
fn a_set_that_does_not_fit_ends_with_3_and_the_smallest_change() {
    let output = check(&["examples/rtai-fig6-overload.toml"]);
    assert_eq!(output.status.code(), Some(3));
    let wanted =
        "smallest change that makes it fit: lower the budget of task \"player\" (line 31) from 5 \
         ms to 3 ms";
    assert!(text(&output).contains(wanted), "{}", text(&output));
}

#[test]
fn a_bad_file_ends_with_2_and_one_error() {
    let output = check(&["examples/none-such.toml"]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(2), ""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none-such.toml"));
}

#[test]
fn a_task_that_sleeps_through_what_edf_leaves_it_is_refused_with_a_way_out() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sleeper.toml");
    let set = "cpu = 1\npolicy = \"edf\"\n\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\n\
               budget = \"4ms\"\n\
               work = { steps = [{ spin = \"2ms\" }, { sleep = \"5ms\" }, { spin = \"2ms\" }] }\n";
    std::fs::write(&file, set).unwrap();
    let output = check(&[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output).contains("task \"t\" (line 4): it sleeps in mid-job"),
        "{}",
        text(&output)
    );
    assert!(
        text(&output).contains("use rm, dm or fp, or split it into two tasks"),
        "{}",
        text(&output)
    );
    std::fs::write(&file, set.replace("edf", "rm")).unwrap();
    assert_eq!(check(&[file.to_str().unwrap()]).status.code(), Some(0));
}

#[test]
fn programs_get_one_document_with_its_version() {
    let output = check(&["--json", "examples/rtai-fig6-overload.toml"]);
    assert_eq!(output.status.code(), Some(3));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (document["schema"].as_str(), document["ok"].as_bool()),
        (Some("punctual/2"), Some(false))
    );
    assert!(document["verdict"].as_str().unwrap().starts_with("It does not fit"), "{document:#}");
    let cpu = &document["result"]["domains"][0];
    assert_eq!(cpu["load"]["utilization_ppm"], 1_000_000);
    assert_eq!(cpu["excess_ppm"], 100_000);
    assert_eq!(cpu["tasks"][0]["test"], "processor_demand");
    let change = &cpu["advice"]["help"]["change"];
    assert_eq!(
        (&change["name"], &change["from_ns"], &change["to_ns"]),
        (&"player".into(), &5_000_000.into(), &3_000_000.into())
    );
}

#[test]
fn every_example_fits_but_those_that_are_there_to_show_an_overload() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".toml") && name != "rt-app.json" {
            continue;
        }
        let wanted = if name.contains("overload") { 3 } else { 0 };
        let output = check(&[path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(wanted), "{name}: {}", text(&output));
    }
}

/// The kernel stops real-time tasks that execute for more than 950 ms of a second, and with them
/// all tasks of the user host: a task with a long budget, and a server that uses idle time, unless
/// the budget of a group bounds it.
#[test]
fn the_user_host_admits_no_short_deadlines_beside_jobs_that_the_kernel_will_stop() {
    let beside = |other: &str| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside.toml");
        let set = format!(
            "cpu = 1\npolicy = \"edf\"\n[[task]]\nname = \"control\"\nperiod = \"10ms\"\n\
             budget = \"2ms\"\nwork = {{ spin = \"1ms\" }}\n[[task]]\nname = \"other\"\n\
             work = {{ spin = \"forever\" }}\n{other}"
        );
        std::fs::write(&file, set).unwrap();
        let output = check(&["--host", "user", file.to_str().unwrap()]);
        (output.status.code(), text(&output))
    };
    let server = "server = \"soft_constant_bandwidth\"\nperiod = \"50ms\"\nbudget = \"5ms\"\n";
    let group = "[[group]]\nname = \"rest\"\npolicy = \"edf\"\nperiod = \"20ms\"\n\
                 budget = \"10ms\"";
    let long = "period = \"5s\"\nbudget = \"2s\"\n";
    for refused in [server, long] {
        let (code, text) = beside(refused);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("leaves 50 ms of it to ordinary programs"), "{text}");
    }
    let in_group = format!("{server}group = \"rest\"\n{group}\n");
    for admitted in [&in_group, "period = \"500ms\"\nbudget = \"200ms\"\n"] {
        let (code, text) = beside(admitted);
        assert_eq!(code, Some(0), "{text}");
    }
}
