//! Budgets are received, and no more than budgets.

use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{scheduler_becomes, Machine};
use crate::punctual::{keeps_its_budget, replays, results, start, task, trace, Scratch};

pub const TWO: &str = r#"
cpu = 0
policy = "edf"
duration = "2s"
[[task]]
name = "spinning"
period = "2ms"
budget = "1ms"
work = { spin = "forever" }
[[task]]
name = "periodic"
period = "5ms"
budget = "1ms"
work = { spin = "600us" }
"#;

const THREE_LEVELS: &str = r#"
cpu = 0
policy = "edf"
duration = "500ms"
[[budget_group]]
name = "guest"
period = "20ms"
budget = "6ms"
[[group]]
name = "outer"
policy = "rm"
period = "10ms"
budget = "4ms"
[[group]]
name = "inner"
parent = "outer"
policy = "edf"
period = "10ms"
budget = "2ms"
[[task]]
name = "top"
period = "5ms"
budget = "1ms"
work = { spin = "700us" }
[[task]]
name = "low"
group = "inner"
budget_group = "guest"
period = "20ms"
budget = "3ms"
work = { spin = "forever" }
"#;

#[test]
fn a_spinning_task_gets_its_budget_beside_a_hog_and_the_trace_replays() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let (set, path) = (scratch.file("hog.toml", TWO), scratch.path("hog.trace"));
    let own = KernelsOwn::watch();
    let run = start(&set, &["--load", "--duration", "1s", "--trace", path.to_str().expect("plain")]).output();
    let results = results(&run);
    keeps_its_budget(task(&results, "spinning"), 5_000 + own.longest_soft_interrupt());
    assert_eq!(task(&results, "periodic")["misses"], 0);
    scheduler_becomes("disabled");
    replays(&path);
    check::holds(&trace(&path), &own, check::lateness(&own));
}

#[test]
fn a_task_three_levels_down_gets_its_budget_and_no_more() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let set = Scratch::new();
    let own = KernelsOwn::watch();
    let run = start(&set.file("levels.toml", THREE_LEVELS), &["--load"]).output();
    let results = results(&run);
    keeps_its_budget(task(&results, "low"), 15_000 + own.longest_soft_interrupt());
    assert_eq!(task(&results, "top")["misses"], 0);
}

#[test]
fn a_set_as_large_as_the_host_takes_meets_its_deadlines() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let group = |n| format!("[[group]]\nname = \"g{n}\"\npolicy = \"edf\"\nperiod = \"100ms\"\nbudget = \"700us\"\n");
    let task = |n| {
        let of = if n < 63 { format!("group = \"g{n}\"\n") } else { String::new() };
        format!(
            "[[task]]\nname = \"t{n}\"\nperiod = \"500ms\"\nbudget = \"100us\"\nwork = {{ spin = \"forever\" }}\n{of}"
        )
    };
    let (groups, tasks) = ((0..63).map(group), (0..256).map(task));
    let text = format!("cpu = 0\npolicy = \"edf\"\n{}", groups.chain(tasks).collect::<String>());
    let run = start(&scratch.file("large.toml", &text), &["--load", "--duration", "1s"]).output();
    let results = results(&run);
    assert_eq!(results["totals"]["missed"], 0, "{:#}", results["totals"]);
    assert!(results["totals"]["periods"].as_u64() >= Some(256), "{:#}", results["totals"]);
}
