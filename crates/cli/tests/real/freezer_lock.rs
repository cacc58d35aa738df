//! A freezer write that waits for a lock of the kernel holds up neither the dispatcher nor other
//! tasks (docs/faults.md, "What can still delay a dispatcher").

use std::time::Duration;

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::cgroup_work::CgroupWork;
use crate::kills::NEEDS;
use crate::machine::{permitted_cpu, wait_for_cpu};
use crate::process::{eventually, kill, state_of};
use crate::punctual::{adversarial, list, run_set, task, Running, Scratch};

/// A synthetic task beside a program.
fn set(cpu: u32, duration: &str, [role, budget]: [&str; 2]) -> String {
    let program = list(&adversarial(role));
    format!(
        r#"
cpu = {cpu}
policy = "edf"
duration = "{duration}"
[[task]]
name = "loop"
period = "4ms"
budget = "400us"
work = {{ spin = "forever" }}
[[task]]
name = "program"
period = "20ms"
budget = "{budget}"
command = {program}
"#
    )
}

#[test]
fn a_program_that_is_resumed_late_delays_neither_dispatcher_nor_other_tasks() {
    beside_cgroup_work(SPINNER);
}

/// Work on cgroups executes while the program sleeps, and holds the lock when the program is to be
/// frozen.
#[test]
fn a_program_that_is_frozen_late_delays_neither_dispatcher_nor_other_tasks() {
    beside_cgroup_work(["bursts 1500 200", "8ms"]);
}

/// A program that never sleeps, and its budget in 20 ms: most of the CPU.
const SPINNER: [&str; 2] = ["spin", "15ms"];

fn beside_cgroup_work(program: [&str; 2]) {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let work = CgroupWork::on(cpu.0);
    let ended = run_set(&set(cpu.0, "2s", program), &["--json"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    drop(work);
    let spins = program == SPINNER;
    let results = ended.result();
    let of = |part: &Value, key: &str| {
        part[key].as_u64().unwrap_or_else(|| panic!("no {key} in {results:#}"))
    };
    judge_timing(|| {
        // The stall was provoked. A dispatcher that waits for the lock itself never returns here:
        // beside it the loop spins without a bound, and the holder does not execute.
        let dispatcher = &results["dispatcher"];
        assert!(of(dispatcher, "freezer_waits") > 20, "{results:#}");
        assert!(of(dispatcher, "wakeup_latency_max_ns") < 500_000, "{results:#}");
        // The other task's budget holds, and the program's loss is not taken for its own doing.
        let other = task(&results, "loop");
        assert_eq!(of(other, "misses"), 0, "{results:#}");
        assert!((990_000..=1_010_000).contains(&of(other, "long_run_ppm")), "{results:#}");
        let program = task(&results, "program");
        assert!(!spins || of(&program["late_wakeups"], "periods") > 0, "{results:#}");
        assert!(
            of(program, "received_ns") <= of(program, "assigned_ns") * 103 / 100,
            "{results:#}"
        );
    });
}

/// The freezer thread sleeps uninterruptibly: its write waits.
pub fn write_waits(punctual: &Running) -> bool {
    punctual.freezer().is_some_and(|tid| state_of(tid) == Some('D'))
}

#[test]
fn a_run_whose_freezer_write_waits_is_ended_by_a_signal() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let work = CgroupWork::on(cpu.0);
    let file = scratch.file("set.toml", &set(cpu.0, "100s", SPINNER));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        wait_for_cpu(cpu.0);
        let mut punctual = Running::start(&["run", &file, "--json"]);
        punctual.wait_for("its freezer thread", |p| p.freezer().is_some());
        eventually("a freezer write waits", || write_waits(&punctual));
        kill(punctual.pid(), signal);
        let ended = punctual.end();
        judge_timing(|| assert!(ended.took < Duration::from_secs(2), "{:?}", ended.took));
        ended.assert_code(130).assert_nothing_left(&[cpu.0]);
    }
    drop(work);
}
