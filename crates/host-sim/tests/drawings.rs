//! The text Gantt.

mod common;

use common::{set, MS};
use punctual_host_sim::{Gantt, Options, Simulation};

fn drawn(policy: &str, tasks: &[&str], end: u64, width: usize) -> String {
    let set = set(policy, tasks);
    let mut gantt = Gantt::new(&set, end, width);
    Simulation::new(&set, Options::default())
        .expect("it can be simulated")
        .run(end, &mut gantt)
        .expect("it runs");
    gantt.draw()
}

const PAIR: [&str; 2] = [
    "period = \"5ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }",
    "period = \"7ms\"; budget = \"4ms\"; work = { spin = \"4ms\" }",
];

#[test]
fn releases_execution_waiting_and_misses_have_their_signs() {
    let lines: Vec<String> = drawn("rm", &PAIR, 14 * MS, 80).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "    0 ns      10 ms");
    assert_eq!(lines[1], "t0  @#   @#   @#");
    // It executes from 2 to 5 and misses its deadline at 7, from where on it does the rest.
    assert_eq!(lines[2], "t1  |.###.!@");
    assert!(lines[4].starts_with("one column is 1 ms: "), "{}", lines[4]);
}

#[test]
fn of_a_run_that_is_too_long_the_beginning_is_drawn_and_it_says_so() {
    let text = drawn("edf", &PAIR, 3_500 * MS, 80);
    assert!(
        text.contains("one column is 1 ms")
            && text.contains("drawn until 420 ms, the run continued"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() < 140));
}

#[test]
fn many_tasks_and_narrow_terminals_are_no_reason_to_fail() {
    let many: Vec<&str> =
        std::iter::repeat_n("period = \"100ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }", 40)
            .collect();
    let text = drawn("edf", &many, 100 * MS, 1);
    assert!(text.contains("8 more tasks are not drawn"), "{text}");
}
