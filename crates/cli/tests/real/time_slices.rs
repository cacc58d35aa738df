//! Threads of one program take turns within its budget: one that spins does not keep the others
//! from the CPU.

use punctual_test_support::judge_timing;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted};
use crate::punctual::{adversarial, list, run_set, task, Scratch};

/// The progress that the threads wrote.
fn progress(path: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|l| l.parse().unwrap()).collect()
}

/// What the threads of the only program wrote in two seconds, and the share of its budget that it
/// received, ppm.
fn run_alone(role: &str, words: &str, budget: &str) -> (Vec<u64>, u64) {
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let file = scratch.path("progress");
    let command = list(&adversarial(&format!("{role} {file} {words}")));
    let set = format!(
        "cpu = {}\npolicy = \"edf\"\nduration = \"2s\"\n\
         [[task]]\nname = \"threads\"\nperiod = \"10ms\"\nbudget = \"{budget}\"\n\
         command = {command}\n",
        cpu.0
    );
    let ended = run_set(&set, &["--json"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    let results = ended.result();
    let of = |key: &str| task(&results, "threads")[key].as_u64().unwrap();
    (progress(&file), of("received_ns") * 1_000_000 / of("assigned_ns"))
}

#[test]
fn threads_that_spin_in_a_barrier_pass_it_once_in_a_slice() {
    if !permitted(&NEEDS) {
        return;
    }
    // A round takes one slice of each thread but the last. One budget may be shorter than a slice.
    for (threads, budget, least) in [(2, "4ms", 500), (2, "500us", 60), (8, "4ms", 80)] {
        let (rounds, share) = run_alone("barrier", &threads.to_string(), budget);
        judge_timing(|| {
            assert!(rounds[0] >= least, "{threads} threads with {budget}: {rounds:?}");
            assert!(
                (970_000..=1_030_000).contains(&share),
                "{threads} threads with {budget} got {share} ppm"
            );
        });
    }
}

#[test]
fn threads_that_yield_while_a_lock_is_taken_share_the_budget() {
    if !permitted(&NEEDS) {
        return;
    }
    let (sections, _) = run_alone("yielding-lock", "2", "4ms");
    judge_timing(|| {
        let all: u64 = sections.iter().sum();
        // 800 ms of budget, 200 us of it for each section.
        assert!(all > 3_000 && sections.iter().all(|s| *s > all / 3), "{sections:?}");
    });
}

#[test]
fn threads_with_priorities_of_their_own_keep_their_order() {
    if !permitted(&NEEDS) {
        return;
    }
    let (ran, _) = run_alone("priorities", "0 30 20 30 0", "4ms");
    judge_timing(|| {
        let all: u64 = ran.iter().sum();
        let shares: Vec<u64> = ran.iter().map(|r| r * 100 / all).collect();
        // Until the housekeeper finds the threads, they have no turns and no order.
        assert!(shares[1] > 35 && shares[3] > 35, "{shares:?} %");
        assert!(shares[0] + shares[2] + shares[4] < 30, "{shares:?} %");
    });
}
