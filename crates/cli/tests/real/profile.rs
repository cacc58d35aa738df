//! `punctual profile` on programs whose wake-ups and execution times are known, and that what it
//! proposes does what it says.

use serde_json::Value;

use punctual_test_support::{comes_true, judge_timing, missing};

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted};
use crate::punctual::{adversarial, assert_nothing_left, run, run_set, Ended, Running, Scratch};

/// What a test says that cannot run: switches cannot be recorded.
fn is_possible() -> bool {
    let ended = profile(&["--quiet"], &["true".to_owned()]);
    if ended.code == Some(125) {
        missing(&ended.err);
    }
    ended.code != Some(125)
}

fn profile(options: &[&str], command: &[String]) -> Ended {
    let words = command.iter().map(String::as_str);
    let args: Vec<&str> =
        ["profile"].into_iter().chain(options.iter().copied()).chain(["--"]).chain(words).collect();
    run(&args)
}

/// Of a role, in JSON; it exits with 0.
fn of_role(options: &[&str], role: &str) -> Value {
    let ended = profile(&[&["--json", "--quiet"], options].concat(), &adversarial(role));
    ended.assert_code(0).assert_nothing_left(&[]);
    ended.result()
}

/// That a time is within so many percent of another one.
fn assert_near(value: &Value, want: u64, percent: u64, what: &Value) {
    let value = value.as_u64().unwrap_or(0);
    assert!(value.abs_diff(want) * 100 <= want * percent, "{value}, not {want}: {what:#}");
}

#[test]
fn a_periodic_program_is_seen_and_its_proposal_keeps_what_it_says() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let (file, number) = (scratch.path("set.toml"), cpu.0.to_string());
    // 3 ms each 20 ms, 4 s.
    let role = "periodic 20000 200 3000";
    let result = of_role(&["--cpu", &number], role);
    let jobs = result["jobs"].as_u64().unwrap();
    // A program that is late all the time has fewer: its late jobs follow without a pause.
    assert!(jobs <= 201, "{result:#}");
    judge_timing(|| {
        // On a busy machine there may be no proposal, which is an error where a file is asked for.
        let result = of_role(&["-o", &file, "--cpu", &number], role);
        assert_eq!(result["pattern"], "periodic", "{result:#}");
        assert_near(&result["period_ns"], 20_000_000, 1, &result);
        assert_near(&result["execution"]["p50_ns"], 3_000_000, 10, &result);
        assert_eq!(result["lost_records"], 0, "{result:#}");
        let execution = result["execution"]["max_ns"].as_u64();
        assert!(execution >= Some(3_000_000), "a job executes 3 ms on its own clock: {result:#}");
        run(&["check", "--host", "user", &file]).assert_code(0);
        // Beside a task that comes first and takes three fifths of the CPU.
        let set = std::fs::read_to_string(&file).unwrap();
        let period = &result["proposal"]["period_ns"];
        let others = format!(
            "[[task]]\nname = \"others\"\nperiod = \"{period}ns\"\nbudget = \"{}ns\"\n\
            work = {{ spin = \"forever\" }}\n",
            period.as_u64().unwrap() * 3 / 5
        );
        let set = set.replacen("[[task]]", &(others + "\n[[task]]"), 1);
        let late = |set: &str| {
            let ended = run_set(&set.replacen("cpu", "duration = \"6s\"\ncpu", 1), &["--quiet"]);
            let line = ended.out.lines().find_map(|line| line.strip_prefix("late "));
            let late = line.and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
            late.unwrap_or_else(|| panic!("{}{}", ended.out, ended.err))
        };
        assert_eq!(late(&set), 0, "as the profile says: {set}");
        // With three quarters of the budget it falls behind, a little in each period.
        let (head, tail) = set.rsplit_once("budget = ").unwrap();
        let less = result["proposal"]["budget_ns"].as_u64().unwrap() * 3 / 4;
        let rest = tail.split_once('\n').unwrap().1;
        assert!(late(&format!("{head}budget = \"{less}ns\"\n{rest}")) > 100, "{set}");
    });
}

#[test]
fn bursts_within_a_period_are_one_job_and_threads_one_program() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let bursts = of_role(&["--skip", "0s"], "periodic 20000 100 1000 1000");
    let threads = of_role(&["--skip", "0s"], "periodic-threads 3 20000 100 1000");
    let names = threads["threads"].as_array().unwrap();
    assert!(names.len() >= 4, "three threads, and the one that started them: {threads:#}");
    judge_timing(|| {
        for (result, work) in [(bursts, 2_000_000), (threads, 3_000_000)] {
            assert_eq!(result["pattern"], "periodic", "{result:#}");
            assert_near(&result["period_ns"], 20_000_000, 1, &result);
            assert_near(&result["execution"]["p50_ns"], work, 10, &result);
        }
    });
}

#[test]
fn a_program_without_a_period_is_said_to_have_none() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let result = of_role(&["--skip", "0s", "--deadline", "50ms"], "scattered 150");
    judge_timing(|| {
        assert_eq!(result["pattern"], "aperiodic", "{result:#}");
        assert!(result["period_ns"].is_null(), "{result:#}");
        assert_eq!(result["deadline_ns"], 50_000_000, "{result:#}");
        assert!(result["proposal"]["entry"].is_string(), "{result:#}");
    });
}

#[test]
fn a_proposal_is_written_as_a_role_and_replaces_none_without_being_asked() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let scratch = Scratch::new();
    let (folder, file) = (scratch.path("roles.d"), scratch.path("roles.d/greedy.toml"));
    let options = ["--quiet", "--duration", "2s", "--write-role", "greedy", "--role-folder"];
    let write = |more: &[&str]| {
        profile(&[&options, &[folder.as_str()][..], more].concat(), &adversarial("spin"))
    };
    let first = write(&[]);
    first.assert_code(124).assert_nothing_left(&[]);
    assert!(first.err.contains("Written as the role greedy"), "{}", first.err);
    let role = punctual_taskset::Role::load(&file).unwrap();
    assert_eq!((role.period, role.policy, role.cpu), (20_000_000, None, None));
    let text = std::fs::read_to_string(&file).unwrap();
    let again = write(&[]);
    again.assert_code(125);
    assert!(again.err.contains("there is a role"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    write(&["--replace-role", "--policy", "rm"]).assert_code(124);
    assert_eq!(punctual_taskset::Role::load(&file).unwrap().policy.as_deref(), Some("rm"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn a_program_that_never_waits_is_offered_shares_and_one_that_sleeps_nothing() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let greedy = profile(&["--json", "--quiet", "--duration", "2s"], &adversarial("spin"));
    greedy.assert_code(124).assert_nothing_left(&[]);
    let result = greedy.result();
    assert_eq!(result["pattern"], "never_waits", "{result:#}");
    assert_eq!(result["proposal"]["period_ns"], 20_000_000, "{result:#}");
    assert_eq!(result["candidates"].as_array().map(Vec::len), Some(4), "{result:#}");

    let scratch = Scratch::new();
    let file = scratch.file("kept.toml", "as it was");
    let words = ["sleep", "0.3"].map(str::to_owned);
    let asleep = profile(&["--json", "--quiet", "-o", &file], &words);
    asleep.assert_code(125).assert_nothing_left(&[]);
    let document = asleep.json();
    assert_eq!(document["result"]["pattern"], "too_few", "{document:#}");
    assert!(document["result"]["proposal"].is_null(), "{document:#}");
    let cause = document["error"]["cause"].as_str().unwrap_or_default();
    assert!(cause.contains("no proposal"), "{document:#}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was");
}

#[test]
fn its_exit_code_is_the_commands_and_its_output_too() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let sh = |script: &str| ["sh", "-c", script].map(str::to_owned);
    let scratch = Scratch::new();
    let data = scratch.file("data", "no program");
    for (command, code) in [
        (sh("echo its own; exit 3").to_vec(), 3),
        (sh("kill -9 $$").to_vec(), 137),
        (vec![scratch.path("none")], 127),
        (vec![data], 126),
    ] {
        let ended = profile(&[], &command);
        ended.assert_code(code).assert_nothing_left(&[]);
        assert_eq!(ended.out, if code == 3 { "its own\n" } else { "" }, "{}", ended.err);
        let seen = ended.err.contains("too few to judge it");
        assert_eq!(seen, code == 3 || code == 137, "{}", ended.err);
    }
}

#[test]
fn an_interrupted_profile_prints_what_it_saw() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let words = adversarial("spin");
    let args: Vec<&str> = ["profile", "--json", "--quiet", "--"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let running = Running::start(&args);
    assert!(comes_true(|| running.guardian().is_some()));
    // Its program executes, too, some time after the guardian is there.
    std::thread::sleep(std::time::Duration::from_millis(300));
    // SAFETY: a system call without memory arguments; the process is a child that is not reaped.
    unsafe { libc::kill(running.pid(), libc::SIGINT) };
    let ended = running.end();
    ended.assert_code(130).assert_nothing_left(&[]);
    assert_eq!(ended.result()["interrupted"], true);
}

#[test]
fn a_running_process_is_observed_and_left_as_it_is() {
    if !permitted(&NEEDS) || !is_possible() {
        return;
    }
    let words = adversarial("periodic 20000 9000 1000");
    let mut child = std::process::Command::new(&words[0]);
    let child = child.args(&words[1..]).stdout(std::process::Stdio::null());
    let mut child = child.spawn().unwrap();
    let pid = child.id().to_string();
    let args = ["profile", "--pid", &pid, "--duration", "2s", "--skip", "0s", "--json", "--quiet"];
    let ended = run(&args);
    let lives = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lives, "it continues");
    ended.assert_code(0);
    assert_nothing_left(ended.pid, &ended.mark, &[]);
    let result = ended.result();
    assert_eq!(result["threads"].as_array().map(Vec::len), Some(1), "{result:#}");
    assert!(result["threads"][0]["wake_ups"].as_u64() > Some(0), "{result:#}");
    judge_timing(|| {
        assert_near(&result["period_ns"], 20_000_000, 1, &result);
        let entry = result["proposal"]["entry"].as_str().unwrap_or_default();
        assert!(entry.contains(&format!("pid = {pid}")), "{result:#}");
    });
}
