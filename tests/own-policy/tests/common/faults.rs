//! A set whose policy has a fault, and what the results must say of one that panics, on any host.

use serde_json::Value;

use punctual_test_support::Scratch;

/// Two groups: the policy of one has a fault.
pub const SET: &str = r#"cpu = 0
policy = "edf"
duration = "2s"

[[group]]
name = "new"
policy = "late"
period = "10ms"
budget = "3ms"

[[task]]
name = "control"
period = "10ms"
budget = "2ms"
work = { spin = "1ms" }

[[task]]
name = "first"
group = "new"
period = "20ms"
budget = "3ms"
work = { spin = "forever" }

[[task]]
name = "second"
group = "new"
period = "40ms"
budget = "4ms"
work = { spin = "forever" }
"#;

/// The arguments that run it, with a trace; the program's working directory is the scratch folder.
pub fn arguments(scratch: &Scratch, host: &[&str], policy: &str) -> Vec<String> {
    scratch.file("set.toml", &SET.replace("\"late\"", &format!("{policy:?}")));
    let words = ["--json", "--trace", "trace", "set.toml"];
    host.iter().chain(&words).map(|word| (*word).to_owned()).collect()
}

/// The policy panicked and another one took its place. `exact`, where time is counted: the tasks
/// beside it were not disturbed.
pub fn holds(document: &Value, exact: bool) {
    let result = &document["result"];
    let change = &result["policy_changes"][0];
    let words = [&change["group"], &change["from"], &change["to"]];
    assert_eq!(words, ["new", "late", "edf"], "{document:#}");
    let cause = change["cause"].as_str().expect("it is known");
    assert!(
        cause.starts_with("has panicked: 20 releases are enough (") && cause.contains("faulty.rs:"),
        "{cause}"
    );
    assert_eq!(result["groups"][0]["policy"], "edf");
    let verdict = document["verdict"].as_str().expect("a sentence");
    assert!(verdict.starts_with("the policy \"late\" has panicked: 20 releases"), "{verdict}");
    assert_eq!((&document["ok"], &document["exit_code"]), (&false.into(), &1.into()));
    if !exact {
        return;
    }
    // 13 releases of one task and 7 of the other; the last of them panicked. On the kernel host the
    // policy is in an ordinary thread.
    let at = change["at_ns"].as_u64().expect("a time");
    assert!((240..300).contains(&(at / 1_000_000)), "{change:#}");
    let task = |place: usize| &result["tasks"][place];
    assert_eq!((&task(0)["name"], &task(0)["misses"]), (&"control".into(), &0.into()));
    // One release is lost, or cut off by the run's end; the others receive all they may.
    for place in [1, 2] {
        assert!(task(place)["misses"].as_u64() <= Some(1), "{:#}", task(place));
    }
}
