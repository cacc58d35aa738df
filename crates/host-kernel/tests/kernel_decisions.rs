//! What a full decision costs inside the kernel, beside the native build's on the same machine.
//!
//! Counted where the clock counts instructions (docs/vm.md): one nanosecond is one instruction
//! there, and a figure repeats.

use punctual_host_kernel::selftest::{InKernel, Native, Subject};
use punctual_host_kernel::Kernel;
use punctual_test_support::clock_is_counted;
use std::time::Instant;

const WINDOWS: u32 = 5;
/// Decisions in each window: shorter than a tick, so that the best of the windows had none.
const DECISIONS: u32 = 400;
/// As BPF, at most so many times the native build's.
const MOST_TIMES: u64 = 3;

/// What was seen as BPF with clang 19 under Linux 6.18.15 and 7.3.4: jobs, in trees or in group 0,
/// instructions. As many as there are domains, for loading takes longest.
const SEEN: [(u32, bool, u64); 8] = [
    (1, false, 1_236),
    (10, false, 1_243),
    (100, false, 1_397),
    (1_000, false, 1_495),
    (4_000, false, 1_542),
    (10, true, 2_604),
    (100, true, 2_859),
    (4_000, true, 3_198),
];
/// Percent more that another compiler or kernel may take.
const MARGIN: u64 = 10;

/// Nanoseconds of a decision: what `DECISIONS` of them take less what a call with none takes.
fn cost(subject: &mut dyn Subject) -> u64 {
    let mut timed = |count| {
        let begun = Instant::now();
        subject.decide(count).expect("a bounded run");
        begun.elapsed().as_nanos() as u64
    };
    timed(DECISIONS);
    let with = (0..WINDOWS).map(|_| timed(DECISIONS)).min().unwrap_or(0);
    let without = (0..WINDOWS).map(|_| timed(0)).min().unwrap_or(0);
    (with - without) / u64::from(DECISIONS)
}

/// As BPF and natively.
fn costs(mut there: InKernel, jobs: u32, trees: bool) -> (u64, u64) {
    let mut here = Native::new();
    there.prepare_decisions(jobs, trees).expect("room for the jobs");
    here.prepare_decisions(jobs, trees).expect("room for the jobs");
    (cost(&mut there), cost(&mut here))
}

#[test]
fn a_decision_costs_at_most_three_times_the_native_builds() {
    if !clock_is_counted() {
        eprintln!(
            "not run: this machine's clock does not count instructions (vm/tests has one that \
             does)"
        );
        return;
    }
    println!("decision {:>8} {:>6} {:>8} {:>8} {:>6}", "jobs", "shape", "BPF", "native", "ratio");
    let mut wrong = Vec::new();
    let first = InKernel::new(Kernel::load().unwrap_or_else(|e| panic!("{e}")))
        .expect("room for the limits");
    let others: Vec<_> =
        (1..8).map(|n| first.beside(n).expect("there are eight domains")).collect();
    for (there, (jobs, trees, seen)) in std::iter::once(first).chain(others).zip(SEEN) {
        let shape = if trees { "trees" } else { "flat" };
        let (bpf, native) = costs(there, jobs, trees);
        println!(
            "decision {jobs:>8} {shape:>6} {bpf:>8} {native:>8} {:>3}.{:02}",
            bpf / native,
            bpf * 100 / native % 100
        );
        if bpf > MOST_TIMES * native {
            wrong.push(format!(
                "{jobs} jobs, {shape}: {bpf} instructions are more than {MOST_TIMES} times \
                 {native}"
            ));
        }
        if bpf > seen * (100 + MARGIN) / 100 {
            wrong.push(format!(
                "{jobs} jobs, {shape}: {bpf} instructions, {MARGIN} % more than the {seen} seen"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
