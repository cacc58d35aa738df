//! What is refused before anything starts: exit code, one error with its place, cause and help.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, permitted_cpu, wait_for_cpu, Need};
use crate::process::{kill, parent_of};
use crate::punctual::{adversarial, command, list, new_mark, run, run_on, task, Running, Scratch};

/// Runs it with a state directory of its own: a lock, a journal or a command would leave its mark
/// there.
fn refused(args: &[&str]) -> (Option<i32>, String, String) {
    let scratch = Scratch::new();
    let output = crate::bounded::output(
        command(&new_mark(), args).env("PUNCTUAL_STATE_DIR", scratch.folder()),
    );
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    let (out, err) = (text(output.stdout), text(output.stderr));
    let made: Vec<_> =
        std::fs::read_dir(scratch.folder()).unwrap().flatten().map(|f| f.path()).collect();
    assert!(made.is_empty(), "{args:?} started something: {made:?}");
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    (output.status.code(), out, err)
}

/// Text without line breaks, boxes and indents.
fn flat(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c));
    words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

fn bad_files() -> Vec<(PathBuf, String)> {
    let dir = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../taskset/tests/bad");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().flatten().map(|f| f.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    // The command gives a CPU to a set that names none.
    all.retain(|p| p.file_stem().is_some_and(|stem| stem != "missing-cpu"));
    all.sort();
    let with_error = |p: PathBuf| {
        let error = std::fs::read_to_string(p.with_extension("err")).unwrap();
        (p, error.trim_end().to_owned())
    };
    all.into_iter().map(with_error).collect()
}

#[test]
fn every_bad_file_gets_one_error_with_place_cause_and_help() {
    let files = bad_files();
    assert!(files.len() >= 50, "{}", files.len());
    for (path, expected) in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (code, out, err) = refused(&["run", path.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{name}: {out}{err}");
        assert_eq!(out, "", "{name}");
        assert_eq!(err.matches('×').count(), 1, "{name}: one error: {err}");
        assert_eq!(err.matches("help:").count(), 1, "{name}: one help: {err}");
        // Miette counts a lone carriage return as a line's end; the document below has the true
        // place.
        let place = expected.split(": ").next().unwrap();
        let place = if name.contains("lone-carriage-return") { name } else { place };
        assert!(
            flat(&err).replace(' ', "").contains(&place.replace(' ', "")),
            "{name}: its place, {place}: {err}"
        );

        let (code, out, err) = refused(&["run", "--json", path.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{name}");
        assert_eq!(err, "", "{name}");
        let document: Value =
            serde_json::from_str(&out).unwrap_or_else(|e| panic!("{name}: {e}: {out}"));
        let error = &document["error"];
        assert_eq!((&document["exit_code"], &document["ok"]), (&2.into(), &false.into()), "{name}");
        assert!(document["result"].is_null() && error["kind"] == "usage", "{name}: {document:#}");
        let text = |key: &str| error[key].as_str().unwrap();
        let place = &error["place"];
        assert_eq!(place["name"], path.to_str().unwrap(), "{name}");
        let all = format!(
            "{name}:{}:{}: {}; {}",
            place["line"],
            place["column"],
            text("cause"),
            text("help")
        );
        assert_eq!(all.trim(), expected.trim(), "{name}");
    }
}

#[test]
fn bad_usage_is_reported_with_cause_and_help() {
    let single = ["--period", "10ms", "--budget", "1ms"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["--duration", "soon", "--", "true"], &["--duration", "\"soon\" is no duration", "1ms"]),
        (&["--duration", "0s", "--", "true"], &["--duration is 0", "10s"]),
        (
            &["--deadline", "20ms", "--", "true"],
            &["deadline 20 ms is more than its period 10 ms", "at most the period"],
        ),
        (&["--trace", "/tmp", "--", "true"], &["the trace /tmp", "directory", "name a file"]),
        (&["--trace", "/no/such/dir/t", "--", "true"], &["/no/such/dir/t", "name a file"]),
        (&["--pid", "1", "--json-not-an-option"], &["--json-not-an-option"]),
        (&["--pid", "12", "--", "true"], &["--pid", "cannot be used with"]),
        (&["--pid", "-3"], &["pid -3 is out of range", "1 to 4194304"]),
        (&["--compare", "fifo", "--", "true"], &["has no duration", "--duration"]),
        (&["--compare", "rr", "--duration", "1s", "--", "true"], &["rr", "fifo, deadline, other"]),
        (&["--overrun", "explode", "--", "true"], &["explode", "carry"]),
        (&[], &["of what?", "-- COMMAND"]),
    ];
    for (args, words) in cases {
        let all: Vec<&str> = ["run"].iter().chain(&single).chain(*args).copied().collect();
        let (code, out, err) = refused(&all);
        // As of env(1): 125 with a command.
        let wanted = if args.contains(&"--") { 125 } else { 2 };
        assert_eq!(code, Some(wanted), "{args:?}: {out}{err}");
        for word in *words {
            assert!(flat(&err).contains(word), "{args:?} does not say \"{word}\": {err}");
        }
    }
    for (args, words) in [
        (
            vec!["run", "/no/such/set.toml"],
            vec!["/no/such/set.toml", "there is no such file", "check the path"],
        ),
        (
            vec!["run", "set.toml", "--period", "1ms", "--budget", "1us"],
            vec!["SET.toml", "cannot be used with"],
        ),
        (
            vec!["run", "--period", "1ms", "--budget", "2ms", "--", "true"],
            vec!["budget 2 ms is more than its period 1 ms"],
        ),
        (vec!["run", "--period", "1ms", "--", "true"], vec!["--budget"]),
        (vec!["run"], vec!["nothing to run", "--period and --budget"]),
        (vec!["walk"], vec!["unrecognized subcommand", "walk"]),
    ] {
        let (code, out, err) = refused(&args);
        assert_eq!(code, Some(if args.contains(&"--") { 125 } else { 2 }), "{args:?}: {out}{err}");
        for word in words {
            assert!(flat(&err).contains(word), "{args:?} does not say \"{word}\": {err}");
        }
    }
}

#[test]
fn what_does_not_fit_is_not_admitted() {
    let too_much = ["run", "--cpu", "0", "--period", "10ms", "--budget", "9001us"];
    let (code, out, err) = refused(&[&too_much[..], &["--pid", "4194301"]].concat());
    assert_eq!(code, Some(3), "{out}{err}");
    let (code, out, err) = refused(&[&too_much[..], &["--", "true"]].concat());
    assert_eq!(code, Some(125), "{out}{err}");
    for word in ["CPU 0", "90.01 %", "90 %", "lower the budget of task \"true\"", "--overload"] {
        assert!(flat(&err).contains(word), "{word}: {err}");
    }
    let (code, out, err) = refused(&[&too_much[..], &["--json", "--", "true"]].concat());
    assert_eq!((code, err.as_str()), (Some(125), ""), "{out}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&document["exit_code"], &document["error"]["kind"]),
        (&125.into(), &"not_admitted".into())
    );
}

#[test]
fn an_overload_runs_when_asked_for_and_the_result_says_so() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let with = |more: &str| {
        let options = format!("--period 10ms --budget 9500us --duration 200ms {more} --");
        run(&[run_on(cpu.0, &options), adversarial("spin")].concat())
    };
    let ended = with("--overload --json");
    ended.assert_timed_out();
    assert_eq!(ended.result()["overload"], true);
    let ended = with("--overload");
    assert!(ended.err.to_lowercase().contains("overload"), "the table says so too: {}", ended.err);
}

/// With the machine's own state directory: these need privileges, and are refused by the host.
fn refused_by_the_machine(code: i32, args: &[&str], words: &[&str]) {
    let cpu = one_cpu();
    let number = cpu.0.to_string();
    let mut all = vec!["run", "--period", "10ms", "--budget", "1ms"];
    if !args.contains(&"--cpu") {
        all.extend(["--cpu", &number]);
    }
    all.extend(args);
    run(&all).assert_code(code).assert_says(words).assert_nothing_left(&[cpu.0]);
    all.insert(1, "--json");
    let ended = run(&all);
    ended.assert_code(code);
    assert!(ended.json()["error"]["cause"].is_string(), "{}", ended.out);
}

#[test]
fn commands_that_cannot_be_started_are_reported() {
    if !permitted(&NEEDS) {
        return;
    }
    let scratch = Scratch::new();
    let plain = scratch.file("plain", "#!/bin/sh\n");
    let no_interpreter = scratch.file("script", "#!/no/such/interpreter\n");
    let no_program = scratch.file("garbage", "\u{1}\u{2}garbage");
    for file in [&no_interpreter, &no_program] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    refused_by_the_machine(
        127,
        &["--", "no-such-program"],
        &["there is no program no-such-program", "install it"],
    );
    refused_by_the_machine(
        127,
        &["--", "/no/such/program"],
        &["there is no program /no/such/program"],
    );
    refused_by_the_machine(126, &["--", &plain], &["may not be executed", "chmod +x"]);
    refused_by_the_machine(126, &["--", "/tmp"], &["/tmp may not be executed"]);
    refused_by_the_machine(
        127,
        &["--", &no_interpreter],
        &["the interpreter it names does not exist"],
    );
    refused_by_the_machine(126, &["--", &no_program], &["is no program for this machine"]);
}

#[test]
fn processes_that_must_not_be_adopted_are_refused() {
    if !permitted(&NEEDS) {
        return;
    }
    let me = std::process::id().to_string();
    let parent = parent_of(std::process::id() as i32).unwrap().to_string();
    let thread = std::thread::spawn(|| {
        // SAFETY: a system call without arguments.
        let tid = unsafe { libc::gettid() }.to_string();
        refused_by_the_machine(
            2,
            &["--pid", &tid],
            &["is a thread of process", "adopt the whole process"],
        );
    });
    refused_by_the_machine(
        2,
        &["--pid", "4194301"],
        &["there is no process 4194301", "running process"],
    );
    refused_by_the_machine(2, &["--pid", "1"], &["init", "choose another process"]);
    refused_by_the_machine(2, &["--pid", "2"], &["is a kernel thread", "choose a program"]);
    refused_by_the_machine(2, &["--pid", &me], &["started us", "choose another process"]);
    refused_by_the_machine(2, &["--pid", &parent], &["choose another process"]);
    thread.join().unwrap();
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    if !permitted(&[Need::RealTime]) {
        return;
    }
    let (code, out, err) =
        refused(&["run", "--cpu", "4095", "--period", "10ms", "--budget", "1ms", "--", "true"]);
    assert_eq!(code, Some(125), "{out}{err}");
    assert!(
        err.contains("there is no CPU 4095 on this machine") && err.contains("choose one of 0"),
        "{err}"
    );
}

#[test]
fn a_cpu_of_another_dispatcher_is_refused_and_its_owner_named() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    wait_for_cpu(cpu.0);
    let options = "--period 10ms --budget 1ms --duration 120s --json --";
    let both = [run_on(cpu.0, options), adversarial("spin")].concat();
    let mut owner = Running::start(&both);
    owner.wait_for("its dispatcher", |p| p.dispatcher().is_some());
    let pid = format!("process {}", owner.pid());
    let second = Running::start(&both[..9]).end();
    assert_eq!(second.code, Some(2), "no command, no CPU asked for: {}", second.err);
    let second = Running::start(&run_on(cpu.0, "--period 20ms --budget 1ms -- true")).end();
    second
        .assert_code(125)
        .assert_says(&["already has a dispatcher", &pid, "adversarial:spin", "kill "])
        .assert_nothing_left(&[]);
    kill(owner.pid(), libc::SIGINT);
    owner.end().assert_code(130);
}

#[test]
fn nothing_of_a_set_starts_when_one_of_its_tasks_cannot() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let touched = scratch.path("touched");
    let text = format!(
        r#"
cpu = {}
policy = "edf"
[[task]]
name = "first"
period = "10ms"
budget = "1ms"
command = {}
[[task]]
name = "second"
period = "10ms"
budget = "1ms"
command = ["no-such-program"]
"#,
        cpu.0,
        list(&["touch".to_owned(), touched.clone()])
    );
    let file = scratch.file("set.toml", &text);
    run(&["run", &file])
        .assert_code(2)
        .assert_says(&["no-such-program"])
        .assert_nothing_left(&[cpu.0]);
    assert!(!Path::new(&touched).exists(), "the first one has executed");
    let good = std::fs::read_to_string(&file).unwrap().replace("no-such-program", "true");
    let file = scratch.file("set.toml", &good);
    // It ends when both commands have.
    let ended = run(&["run", &file, "--json", "--duration", "120s"]);
    ended.assert_ran();
    assert!(Path::new(&touched).exists() && task(&ended.result(), "first")["kind"] == "command");
}
