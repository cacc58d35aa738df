//! Unmodified programs: recorded ones, and those of which nothing is known.

mod common;

use common::{set, Seen, MS};
use punctual_host_sim::{Options, ProgramStep, RecordedProgram, Simulation};
use ProgramStep::{Execute, Pause, Until};

const PROGRAM: &str = "period = \"10ms\"; budget = \"3ms\"; command = [\"program\"]";

fn run(policy: &str, tasks: &[&str], task: usize, steps: &[ProgramStep], shift: u64) -> Seen {
    let steps: Vec<ProgramStep> = steps
        .iter()
        .map(|step| match *step {
            Until(ms) => Until(ms * MS),
            Pause(ms) => Pause(ms * MS),
            Execute(ms) => Execute(ms * MS),
        })
        .collect();
    let program = RecordedProgram { task, steps: steps.into(), shift: shift * MS };
    let options = Options { programs: vec![program], ..Options::default() };
    let mut seen = Seen::default();
    Simulation::new(&set(policy, tasks), options).unwrap().run(40 * MS, &mut seen).unwrap();
    seen
}

#[test]
fn a_recorded_program_wakes_by_the_clock_and_pauses_from_its_own_end() {
    let steps = [Until(2), Execute(4), Pause(1), Execute(1), Until(5), Execute(1)];
    // 3 of 4 ms by 5 ms, when its budget is used up; the rest at the next release. The time until
    // which it then waits is past.
    let seen = run("rm", &[PROGRAM], 0, &steps, 0);
    assert_eq!(seen.in_ms(), [(0, 2, 5), (0, 10, 11), (0, 12, 14)]);
    let seen = run("rm", &[PROGRAM], 0, &steps, 5);
    assert_eq!(seen.in_ms(), [(0, 7, 11), (0, 12, 14)], "the second budget begins at 10 ms");
}

#[test]
fn under_edf_a_program_that_wakes_late_in_its_period_gets_a_part_of_its_budget() {
    // At 8 ms 2 of 10 ms are left, and so of 3 ms 0.6.
    let seen = run("edf", &[PROGRAM], 0, &[Until(8), Execute(2)], 0);
    let us: Vec<_> = seen.intervals.iter().map(|&(_, from, to)| (from / 1000, to / 1000)).collect();
    assert_eq!(us, [(8_000, 8_600), (10_000, 11_400)]);
}

#[test]
fn a_program_without_a_recording_wants_all_beside_one_that_has_one() {
    let seen = run("rm", &[PROGRAM, PROGRAM], 1, &[Until(4), Execute(1)], 0);
    assert_eq!(seen.in_ms()[..3], [(0, 0, 3), (1, 4, 5), (0, 10, 13)]);
}
