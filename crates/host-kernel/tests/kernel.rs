//! The kernel's dispatcher against the native one, in the running kernel.
//!
//! Needs CAP_BPF and CAP_PERFMON. Without them the tests say so and pass, but under `CI=true` they
//! fail: there they must run.

use punctual_host_kernel::selftest::{InKernel, Native, Subject};
use punctual_host_kernel::{Kernel, KernelError};

const SEED: u64 = 0x005E_ED0F_9A9C;
/// Where the environment variable PUNCTUAL_BATCHES names no other number: an emulated machine makes
/// fewer.
const BATCHES: u32 = 100;
/// Some of them at a time in the kernel, until it is asked for something.
const PER_BATCH: u32 = 10_000;
const DECISIONS: u32 = 2_000;

/// The loaded object; `None` where this process may not load it and need not.
fn kernel() -> Option<Kernel> {
    match Kernel::load() {
        Ok(kernel) => Some(kernel),
        Err(KernelError::Missing(missing)) if std::env::var("CI").as_deref() != Ok("true") => {
            eprintln!("not run: {missing}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn the_kernels_build_decides_as_the_native_one() {
    let Some(kernel) = kernel() else { return };
    let mut kernel = InKernel::new(kernel).expect("room for the limits");
    let mut native = Native::new();
    let batches = match std::env::var("PUNCTUAL_BATCHES") {
        Ok(number) => number.parse().expect("PUNCTUAL_BATCHES is a number"),
        Err(_) => BATCHES,
    };
    for batch in 0..batches {
        let there = kernel.exercise(SEED, batch, PER_BATCH).expect("a bounded run");
        let here = native.exercise(SEED, batch, PER_BATCH).expect("the native build cannot fail");
        assert_eq!(
            there,
            here,
            "the hashes differ first in batch {batch}, within operations {} to {} of seed \
             {SEED:#x}",
            batch * PER_BATCH,
            (batch + 1) * PER_BATCH
        );
    }
}

/// The comparison above can fail: a hash depends on each operation.
#[test]
fn another_sequence_has_another_hash() {
    let hash =
        |seed, count| Native::new().exercise(seed, 0, count).expect("the native build cannot fail");
    let this = hash(SEED, PER_BATCH);
    assert_eq!(this, hash(SEED, PER_BATCH));
    for (seed, count) in [(SEED ^ 1, PER_BATCH), (SEED, PER_BATCH - 1), (SEED, PER_BATCH + 1)] {
        assert_ne!(this, hash(seed, count), "seed {seed:#x}, {count} operations");
    }
}

/// Each on its own memory: what one does is not seen in another.
#[test]
fn several_domains_decide_by_themselves_and_each_is_made_once() {
    let Some(kernel) = kernel() else { return };
    let first = InKernel::new(kernel).expect("room for the limits");
    let others = [1, 4, 7].map(|n| first.beside(n).expect("there are eight domains"));
    for (number, why) in [(0, "it is there"), (7, "it is there"), (8, "there are eight")] {
        assert!(matches!(first.beside(number), Err(KernelError::Limits)), "domain {number}: {why}");
    }
    let mut domains: Vec<_> = std::iter::once(first).chain(others).collect();
    let mut there = vec![0; domains.len()];
    for batch in 0..8 {
        for (domain, hash) in domains.iter_mut().zip(&mut there) {
            let seed = SEED + u64::from(domain.number());
            *hash = domain.exercise(seed, batch, 500).expect("a bounded run");
        }
    }
    for (domain, hash) in domains.iter().zip(there) {
        let mut native = Native::new();
        let runs =
            (0..8).map(|batch| native.exercise(SEED + u64::from(domain.number()), batch, 500));
        let here = runs.last().expect("eight batches").expect("the native build cannot fail");
        assert_eq!(hash, here, "domain {}", domain.number());
    }
}

#[test]
fn both_builds_make_the_same_full_decisions() {
    let Some(kernel) = kernel() else { return };
    let first = InKernel::new(kernel).expect("room for the limits");
    let others: Vec<_> =
        (1..8).map(|n| first.beside(n).expect("there are eight domains")).collect();
    let work = [1, 10, 100, 4000].into_iter().flat_map(|jobs| [(jobs, false), (jobs, true)]);
    for (mut kernel, (jobs, trees)) in std::iter::once(first).chain(others).zip(work) {
        let mut native = Native::new();
        kernel.prepare_decisions(jobs, trees).expect("room for the jobs");
        native.prepare_decisions(jobs, trees).expect("room for the jobs");
        assert_eq!(
            kernel.decide(DECISIONS).expect("a bounded run"),
            native.decide(DECISIONS).expect("the native build cannot fail"),
            "{jobs} jobs, {}",
            if trees { "three levels" } else { "one group" }
        );
    }
}
