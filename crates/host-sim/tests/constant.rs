//! A simulation takes no more memory the longer it is: nothing is allocated once it runs.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{set, MS};
use punctual_host_sim::{Options, Simulation, Watcher};
use punctual_taskset::TaskSet;

struct Counting;

thread_local! {
    /// Allocations of this thread: the test harness has others.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator; counting touches nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.set(TAKEN.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct NoWatcher;
impl Watcher for NoWatcher {}

/// Allocations of a run until `end`, and its releases.
fn allocations(set: &TaskSet, end: u64, job_by_job: bool) -> (u64, u64) {
    let mut options = Options::default();
    options.allocators.job_by_job = job_by_job;
    let simulation = Simulation::new(set, options).expect("it can be simulated");
    let before = TAKEN.get();
    let outcome = simulation.run(end, &mut NoWatcher).expect("it runs");
    (TAKEN.get() - before, outcome.count.releases)
}

#[test]
fn a_hundred_times_the_virtual_time_takes_no_further_allocation() {
    let tasks = [
        "period = \"3ms\"; budget = \"1ms\"; work = { uniform = [\"0.2ms\", \"1.2ms\"], seed = 3 }",
        "period = \"7ms\"; budget = \"2ms\"; work = { steps = [{ spin = \"1ms\" }, { sleep = \
         \"2ms\" }, { spin = \"1ms\" }] }",
        "period = \"10ms\"; budget = \"1ms\"; work = { spin = \"2ms\" }; overrun = \"background\"",
        "period = \"20ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }; arrival = { sporadic = \
         \"50ms\", seed = 1 }",
    ];
    let set = set("edf", &tasks);
    let mut reclaiming = set.clone();
    reclaiming.policy.reclaim = true;
    for (set, job_by_job) in [(&set, false), (&set, true), (&reclaiming, false)] {
        let (short, few) = allocations(set, 100 * MS, job_by_job);
        let (long, many) = allocations(set, 10_000 * MS, job_by_job);
        assert!(many > 50 * few, "{few} and {many} releases");
        assert_eq!(short, long, "job by job: {job_by_job}");
    }
}
