//! Groups, servers and budget groups, as a set's file says them.

mod common;

use common::{run, trace, Seen, MS};
use punctual_host_sim::replay;
use punctual_taskset::TaskSet;
use punctual_trace::JobEnd;

fn read(text: &str) -> TaskSet {
    TaskSet::parse(&format!("cpu = 0\n{text}"), "a test").unwrap_or_else(|e| panic!("{e}"))
}

/// What a task executed between two times, ns.
fn within(seen: &Seen, task: u32, from: u64, to: u64) -> u64 {
    let part = |&&(t, a, b): &&(u32, u64, u64)| {
        if t == task {
            b.min(to).saturating_sub(a.max(from))
        } else {
            0
        }
    };
    seen.intervals.iter().map(|s| part(&s)).sum()
}

/// RED-Linux Table 2: a table gives RM and EDF each a part of the cycle; here with windows.
const WINDOWS: &str = "policy = \"td\"
[[group]]
name = \"left\"
policy = \"rm\"
windows = [{ start = \"0ms\", length = \"4ms\" }]
cycle = \"10ms\"
[[group]]
name = \"right\"
policy = \"edf\"
windows = [{ start = \"4ms\", length = \"3ms\" }]
cycle = \"10ms\"
[[task]]
name = \"a\"
group = \"left\"
period = \"100ms\"
budget = \"90ms\"
work = { spin = \"forever\" }
[[task]]
name = \"b\"
group = \"right\"
period = \"100ms\"
budget = \"90ms\"
work = { spin = \"forever\" }
";

#[test]
fn windows_are_kept_to_the_nanosecond() {
    let seen = run(&read(WINDOWS), 40 * MS);
    let expected: Vec<_> =
        (0..4).flat_map(|n| [(0, 10 * n, 10 * n + 4), (1, 10 * n + 4, 10 * n + 7)]).collect();
    assert_eq!(seen.in_ms(), expected);
}

fn server(kind: &str) -> TaskSet {
    read(&format!(
        "policy = \"rm\"
[[group]]
name = \"events\"
policy = \"fp\"
period = \"10ms\"
budget = \"3ms\"
server = \"{kind}\"
[[task]]
name = \"button\"
priority = 1
group = \"events\"
period = \"20ms\"
budget = \"2ms\"
work = {{ spin = \"2ms\" }}
arrival = [\"5ms\"]
"
    ))
}

/// Strosnider, Lehoczky and Sha 1995: a deferrable server keeps its budget for who comes later; a
/// polling one (Sprunt, Sha and Lehoczky 1989) has lost it.
#[test]
fn a_deferrable_server_serves_at_once_and_a_polling_one_at_its_next_replenishment() {
    assert_eq!(run(&server("deferrable"), 20 * MS).in_ms(), [(0, 5, 7)]);
    assert_eq!(run(&server("polling"), 20 * MS).in_ms(), [(0, 10, 12)]);
}

const SHARED: &str = "policy = \"edf\"
[[budget_group]]
name = \"guest\"
period = \"10ms\"
budget = \"4ms\"
[[task]]
name = \"a\"
budget_group = \"guest\"
period = \"10ms\"
budget = \"3ms\"
work = { spin = \"forever\" }
[[task]]
name = \"b\"
budget_group = \"guest\"
period = \"20ms\"
budget = \"6ms\"
work = { spin = \"forever\" }
[[task]]
name = \"free\"
period = \"5ms\"
budget = \"1ms\"
work = { spin = \"1ms\" }
";

#[test]
fn what_tasks_of_a_budget_group_execute_together_never_exceeds_its_budget() {
    let seen = run(&read(SHARED), 200 * MS);
    for from in (0..200).step_by(10) {
        let both = within(&seen, 0, from * MS, (from + 10) * MS)
            + within(&seen, 1, from * MS, (from + 10) * MS);
        assert_eq!(both, 4 * MS, "from {from} ms: both always want more");
    }
    assert!(
        seen.whole(2, 200 * MS).iter().all(|p| p.end == JobEnd::Completed),
        "who is outside is not limited"
    );
}

/// Three levels, the inner ones served by the outer ones, and a budget group across.
const DEEP: &str = "policy = \"edf\"
[[budget_group]]
name = \"guest\"
period = \"20ms\"
budget = \"7ms\"
[[group]]
name = \"outer\"
policy = \"rm\"
period = \"10ms\"
budget = \"6ms\"
[[group]]
name = \"inner\"
parent = \"outer\"
policy = \"edf\"
period = \"20ms\"
budget = \"8ms\"
[[group]]
name = \"innermost\"
parent = \"inner\"
policy = \"fp\"
period = \"40ms\"
budget = \"10ms\"
server = \"polling\"
[[task]]
name = \"deep\"
priority = 1
group = \"innermost\"
budget_group = \"guest\"
period = \"40ms\"
budget = \"30ms\"
work = { spin = \"forever\" }
[[task]]
name = \"beside\"
group = \"inner\"
period = \"20ms\"
budget = \"15ms\"
work = { uniform = [\"1ms\", \"20ms\"], seed = 5 }
[[task]]
name = \"above\"
period = \"8ms\"
budget = \"3ms\"
work = { steps = [{ spin = \"1ms\" }, { sleep = \"1ms\" }, { spin = \"1ms\" }] }
";

#[test]
fn in_three_levels_every_group_gets_its_budget_and_no_more() {
    let seen = run(&read(DEEP), 400 * MS);
    for from in (0..400).step_by(40) {
        let (from, to) = (from * MS, (from + 40) * MS);
        let (deep, beside) = (within(&seen, 0, from, to), within(&seen, 1, from, to));
        assert!(deep > 0 && deep <= 10 * MS, "innermost: {deep}");
        assert!(deep + beside <= 16 * MS, "inner: {deep} + {beside}");
    }
    assert_eq!(
        seen.whole(2, 400 * MS).iter().filter(|p| p.miss).count(),
        0,
        "others are not disturbed"
    );
}

#[test]
fn hierarchies_replay_to_the_same_decisions() {
    for text in [WINDOWS, SHARED, DEEP] {
        let bytes = trace(&read(text), 400 * MS);
        let replayed = replay(&bytes[..], &mut |_| true).expect("it can be replayed");
        assert_eq!(replayed.difference, None);
        assert!(replayed.decisions > 150, "{replayed:?}");
    }
}
