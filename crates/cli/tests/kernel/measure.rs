//! `punctual measure overhead` where there is a kernel host.

use std::process::{Command, Stdio};

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::machine::Machine;
use crate::punctual::{Running, PUNCTUAL};

#[test]
fn an_event_inside_the_kernel_takes_less_than_one_in_user_space() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let words = ["measure", "overhead", "--quick", "--part", "events", "--cpu", "0", "--json"];
    let command =
        Command::new(&*PUNCTUAL).args(words).stdout(Stdio::piped()).spawn().expect("it was built");
    let output = Running::of(command).output();
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["exit_code"], 0, "{document:#}");
    let rows = document["result"]["events"]["rows"].as_array().expect("rows");
    let of = |host: &str| rows.iter().filter(|row| row["host"] == host).collect::<Vec<_>>();
    let (user, kernel) = (of("user"), of("kernel"));
    assert_eq!((user.len(), kernel.len()), (2, 1), "{document:#}");
    assert!(kernel[0]["not_possible"].is_null(), "{document:#}");
    for row in rows {
        eprintln!("{} {}: {}", row["host"], row["tasks"], row["switch"]);
    }
    judge_timing(|| {
        let median = |row: &Value| row["switch"]["p50_ns"].as_u64().expect("it was measured");
        for row in user {
            assert!(median(kernel[0]) < median(row), "{document:#}");
        }
    });
}
