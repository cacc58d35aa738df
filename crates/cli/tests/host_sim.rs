//! `punctual run --host sim`: as `run`, in virtual time; nothing is started.

use std::process::{Command, Output};

use serde_json::Value;

const SET: &str = r#"
cpu = 0
policy = "edf"
duration = "100ms"
[[group]]
name = "inner"
period = "10ms"
budget = "2ms"
policy = "rm"
[[task]]
name = "grouped"
group = "inner"
period = "50ms"
budget = "4ms"
work = { spin = { uniform = ["1ms", "3ms"], seed = 7 } }
[[task]]
name = "free"
period = "5ms"
budget = "1ms"
work = { spin = "800us" }
"#;

fn punctual(name: &str, text: &str, args: &[&str]) -> Output {
    let path =
        std::env::temp_dir().join(format!("punctual-host-sim-{}-{name}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap().to_owned();
    let output =
        Command::new(env!("CARGO_BIN_EXE_punctual")).args(args).arg(&file).output().unwrap();
    std::fs::remove_file(path).unwrap();
    output
}

/// The result in its document.
fn json(output: &Output) -> Value {
    let mut document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("no JSON ({e}): {output:?}"));
    document["result"].take()
}

#[test]
fn run_on_the_simulator_has_the_results_of_sim() {
    let run = punctual("run", SET, &["run", "--host", "sim", "--json"]);
    let sim = punctual("sim", SET, &["sim", "--json"]);
    assert_eq!((run.status.code(), sim.status.code()), (Some(0), Some(0)), "{run:?}");
    let (run, sim) = (json(&run), json(&sim));
    assert_eq!(run["host"], "sim");
    assert_eq!(run["duration_ns"], 100_000_000u64);
    for key in ["tasks", "groups", "totals", "utilization_ppm", "duration_ns"] {
        assert_eq!(run[key], sim[key], "{key}");
    }
    assert_eq!(run["groups"][0]["name"], "inner");
}

#[test]
fn run_asks_first_whether_it_fits_and_says_so() {
    let fits = punctual("fits", SET, &["run", "--host", "sim"]);
    assert!(String::from_utf8_lossy(&fits.stderr).contains("fits: CPU 0"), "{fits:?}");
    let too_much = SET.replace("budget = \"2ms\"", "budget = \"500us\"");
    let refused = punctual("refused", &too_much, &["run", "--host", "sim"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(refused.stdout.is_empty(), "nothing was simulated: {refused:?}");
    let overload =
        punctual("overload", &too_much, &["run", "--host", "sim", "--overload", "--json"]);
    assert_eq!(json(&overload)["overload"], true, "{overload:?}");
}

#[test]
fn what_needs_a_machine_is_refused_in_virtual_time() {
    for option in ["--load", "--no-idle", "--compare=fifo"] {
        let refused = punctual(&option[2..5], SET, &["run", "--host", "sim", option]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains("has no meaning in virtual time"), "{text}");
    }
}
