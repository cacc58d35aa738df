//! What every subcommand has in common: the JSON envelope and its schemas, colours, completions,
//! man pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use punctual_test_support::Scratch;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn punctual(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(args).current_dir(root()).env_remove("NO_COLOR").output().unwrap()
}

/// Its document, which conforms to the schema of its subcommand.
fn document(args: &[&str]) -> Value {
    document_of(args[0], args[0], args)
}

/// The same of a subcommand with this name, and this schema.
fn document_of(name: &str, schema: &str, args: &[&str]) -> Value {
    let output = punctual(args);
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}: {output:?}"));
    let schema =
        std::fs::read_to_string(root().join(format!("docs/{schema}.schema.json"))).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{args:?}: {errors:?} in {document:#}");
    let mut wrong = document.clone();
    wrong["schema"] = "punctual/1".into();
    assert!(!validator.is_valid(&wrong), "{args:?}: another schema is not this one");
    assert_eq!(document["exit_code"].as_i64(), output.status.code().map(i64::from), "{args:?}");
    assert_eq!(document["command"], name);
    assert!(
        document["verdict"].as_str().is_some_and(|v| v.ends_with('.')),
        "a sentence: {document:#}"
    );
    document
}

#[test]
fn latencies_of_an_ordinary_job_come_in_the_envelope_with_the_machine() {
    let args = [
        "measure",
        "latency",
        "--host",
        "other",
        "--cpu",
        "0",
        "--periods",
        "20",
        "--load",
        "idle,fork",
    ];
    let made_by = ["--generator", "built-in", "--quiet", "--json"];
    let document =
        document_of("measure latency", "measure-latency", &[&args[..], &made_by].concat());
    assert_eq!(document["exit_code"], 0, "{document:#}");
    let result = &document["result"];
    assert!(result["machine"]["kernel"].is_string(), "{document:#}");
    let rows: Vec<_> =
        result["rows"].as_array().unwrap().iter().map(|row| &row["workload"]).collect();
    assert_eq!(rows, ["idle", "fork"]);
    for row in result["rows"].as_array().unwrap() {
        assert_eq!(row["latency"]["count"], 20, "{row:#}");
    }
}

#[test]
fn decisions_come_in_the_envelope_with_the_papers_figures() {
    let args = ["measure", "overhead", "--quick", "--part", "decisions", "--quiet", "--json"];
    let document = document_of("measure overhead", "measure-overhead", &args);
    assert_eq!(document["exit_code"], 0, "{document:#}");
    let result = &document["result"];
    assert!(result["machine"]["kernel"].is_string() && result["events"].is_null());
    let decisions = &result["decisions"];
    let paper = &decisions["paper"][2];
    assert_eq!((&paper["jobs"], &paper["average"]["ns"]), (&100.into(), &4_110.into()));
    assert_eq!(paper["average"]["cycles"], 4_110, "at 1 GHz");
    let native = decisions["rows"].as_array().unwrap().iter().filter(|r| r["build"] == "native");
    let jobs: Vec<_> = native.map(|row| row["jobs"].as_u64().unwrap()).collect();
    assert_eq!(jobs, [1, 10, 100, 1_000, 10_000]);
}

#[test]
fn a_requirement_that_cannot_be_meant_is_refused_before_anything_is_measured() {
    for (instrument, bounds) in [
        ("latency", "p98=1ms"),
        ("latency", "p99"),
        ("latency", "max=soon"),
        ("overhead", "p99=1ms"),
        ("overhead", "variation"),
    ] {
        let output = punctual(&["measure", instrument, "--require", bounds]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("the requirement"), "{output:?}");
    }
    let output = punctual(&["measure", "overhead", "--part", "table-2", "--json"]);
    let refused: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    assert_eq!((output.status.code(), &refused["error"]["kind"]), (Some(2), &"usage".into()));
    assert_eq!(refused["command"], "measure overhead");
}

#[test]
fn every_subcommand_prints_its_result_in_the_envelope() {
    let scratch = Scratch::new();
    let trace = scratch.path("trace");
    let fits = "examples/rtai-table2.toml";
    assert_eq!(
        punctual(&["sim", fits, "--duration", "1s", "--trace", &trace]).status.code(),
        Some(0)
    );
    for args in [
        vec!["run", "--host", "sim", "--json", "--duration", "1s", fits],
        vec!["sim", "--json", "--duration", "1s", fits],
        vec!["sim", "--json", "--costs", "user", "--duration", "1s", "examples/three-levels.toml"],
        vec!["sim", "--json", "--replay", &trace],
        vec!["check", "--json", fits],
        vec!["check", "--json", "--host", "user", "examples/three-levels.toml"],
    ] {
        let document = document(&args);
        assert_eq!(
            (&document["ok"], &document["exit_code"]),
            (&true.into(), &0.into()),
            "{args:?}: {document:#}"
        );
        assert!(
            document["result"].is_object() && document["error"].is_null(),
            "{args:?}: {document:#}"
        );
    }
    let overload = document(&["check", "--json", "examples/rtai-fig6-overload.toml"]);
    assert_eq!((&overload["ok"], &overload["exit_code"]), (&false.into(), &3.into()));
    assert!(overload["result"]["domains"][0]["advice"].is_object() && overload["error"].is_null());
    // What this machine is like is its own affair.
    assert!(document(&["doctor", "--json"])["result"]["findings"].is_array());
}

#[test]
fn errors_are_in_the_same_envelope() {
    for (args, code, kind) in [
        (vec!["run", "--json", "/no/such.toml"], 2, "usage"),
        (vec!["run", "--json", "--frequency", "1kHz"], 2, "usage"),
        (vec!["run", "--json", "--period", "10ms", "--budget", "11ms", "--", "true"], 125, "usage"),
        (vec!["run", "--json", "--period", "10ms", "--", "true", "--json"], 125, "usage"),
        (
            vec!["run", "--json", "--period", "10ms", "--budget", "9900us", "--", "true"],
            125,
            "not_admitted",
        ),
        (
            vec!["run", "--json", "--host", "sim", "examples/rtai-fig6-overload.toml"],
            3,
            "not_admitted",
        ),
        (vec!["sim", "--json", "/no/such.toml"], 2, "usage"),
        (vec!["check", "--json", "/no/such.toml"], 2, "usage"),
        (vec!["check", "--json"], 2, "usage"),
        (vec!["doctor", "--json", "now"], 2, "usage"),
        (vec!["clean", "--json", "now"], 2, "usage"),
    ] {
        let document = document(&args);
        let seen = (document["exit_code"].as_i64(), document["error"]["kind"].as_str());
        assert_eq!(seen, (Some(code), Some(kind)), "{args:?}: {document:#}");
        assert!(document["result"].is_null() && document["ok"] == false, "{args:?}: {document:#}");
        let error = &document["error"];
        assert!(["cause", "help"]
            .iter()
            .all(|key| error[key].as_str().is_some_and(|text| !text.is_empty())));
    }
}

#[test]
fn clap_s_refusals_have_the_exit_code_of_their_mode() {
    for (line, code) in
        [("run --period 1 -- true", 125), ("run --period 1", 2), ("walk", 2), ("run --help", 0)]
    {
        let output = punctual(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        assert_eq!(output.stdout.is_empty(), code != 0, "{line}: {output:?}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let set = "examples/rtai-table2.toml";
    let colours = |args: &[&str], no_color: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(args).current_dir(root()).env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let Output { stdout, stderr, .. } = command.output().unwrap();
        [stdout, stderr].concat().contains(&0x1b)
    };
    for args in [
        &["check", set][..],
        &["sim", set],
        &["doctor"],
        &["check", "/no/such"],
        &["run", "crates/cli/Cargo.toml"],
    ] {
        let with = |when| [args, &["--color", when][..]].concat();
        assert!(!colours(args, false), "a pipe is no terminal: {args:?}");
        assert!(colours(&with("always"), true), "{args:?}");
        assert!(!colours(&with("never"), false), "{args:?}");
    }
    let script = |no_color: bool| {
        let line = format!("{} check {set}", env!("CARGO_BIN_EXE_punctual"));
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(root())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        command.output().map(|output| output.stdout.contains(&0x1b))
    };
    // A terminal, where there is script(1) to make one.
    if let (Ok(with), Ok(without)) = (script(false), script(true)) {
        assert_eq!((with, without), (true, false));
    }
}

#[test]
fn doctor_has_a_line_for_each_finding_and_more_if_asked() {
    let text = |args: &[&str]| String::from_utf8_lossy(&punctual(args).stdout).into_owned();
    let findings = document(&["doctor", "--json"])["result"]["findings"].as_array().unwrap().len();
    let short = text(&["doctor"]);
    assert!(short.starts_with("The user host can"), "the verdict comes first: {short}");
    // The verdict and an empty line before; an empty line and a hint after.
    let lines = short.lines().count();
    assert!(
        lines == findings + 2 || lines == findings + 4,
        "{lines} lines, {findings} findings: {short}"
    );
    assert!(!short.contains("  cause "), "{short}");
    let all_good = short.lines().skip(2).take(findings).all(|line| line.starts_with("good"));
    assert_eq!(text(&["doctor", "--verbose"]).contains("  cause "), !all_good, "{short}");
}

#[test]
fn completions_and_man_pages_are_made_from_the_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        let script = punctual(&["completions", shell]);
        let text = String::from_utf8_lossy(&script.stdout).into_owned();
        assert!(script.status.success() && text.contains("no-idle"), "{shell}: {text}");
    }
    let scratch = Scratch::new();
    assert!(punctual(&["man", &scratch.path("")]).status.success());
    let mut pages: Vec<String> = std::fs::read_dir(scratch.folder())
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let of = |name: &&str| format!("punctual-{name}.1");
    let wanted: Vec<String> =
        ["check", "clean", "completions", "doctor", "measure", "measure-overhead", "run", "sim"]
            .iter()
            .map(of)
            .collect();
    assert!(
        wanted.iter().all(|page| pages.contains(page)) && pages.contains(&"punctual.1".to_owned()),
        "{pages:?}"
    );
    assert!(!pages.iter().any(|page| page.contains("spinner")), "a part of overhead: {pages:?}");
    let run = std::fs::read_to_string(scratch.path("punctual-run.1")).unwrap();
    assert!(run.contains("Exit codes with") && run.contains(".TH punctual-run 1"), "{run}");
    let refused = punctual(&["man", "/no/such/directory"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
