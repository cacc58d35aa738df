//! Events are handled without memory from the heap: a real-time thread may do it.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use punctual_dispatcher::Dispatcher;
use punctual_policies::{
    AddedJob, AllocatorOptions, Allocators, JobParams, LocalDispatcher, PolicyEntry, ReleaseEvent,
    JOBS,
};
use punctual_taskset::{Arrival, DomainId, ServerKind, TaskSpec};
use support::{at_times, group, set, task};

thread_local! {
    /// Allocations of this thread while it is set.
    static COUNT: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Counting;

// SAFETY: everything is the system allocator's; counting takes no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|c| c.set(c.get().map(|n| n + 1)));
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        COUNT.with(|c| c.set(c.get().map(|n| n + 1)));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn handling_events_allocates_nothing() {
    let tasks = || {
        let a = TaskSpec { mandatory: Some(1), ..task("a", 10, 3) };
        let b =
            TaskSpec { arrival: Arrival::Sporadic { longest: 30, seed: 1 }, ..task("b", 20, 4) };
        let c = TaskSpec {
            group: Some(0),
            arrival: Arrival::Aperiodic { mean: 30, seed: 2 },
            ..task("c", 20, 4)
        };
        let e = TaskSpec { server: Some(ServerKind::Adaptive), ..task("e", 40, 8) };
        vec![a, b, c, at_times(task("d", 20, 4), &[3, 4, 5, 100, 200]), e]
    };
    for policy in ["edf", "imprecise", "dual", "td"] {
        let mut all = set(policy, tasks());
        if policy == "td" {
            all = set(policy, vec![task("a", 10, 3), task("b", 15, 4)]);
        } else {
            all.groups.push(group("g", "fp", 10, 2, ServerKind::Polling));
        }
        for job_by_job in [false, true] {
            let mut a = Allocators::with(
                &all,
                DomainId(0),
                AllocatorOptions { job_by_job, ..AllocatorOptions::default() },
            )
            .unwrap();
            let mut d = Dispatcher::new(a.limits()).unwrap();
            a.begin(&mut LocalDispatcher::new(&mut d, 0), 0).unwrap();
            for index in 0..all.tasks.len() {
                let task = d.add_task(0).unwrap();
                a.add(&mut LocalDispatcher::new(&mut d, 0), index, task).unwrap();
            }
            let (mut reported, mut events) = (0, 0);
            COUNT.with(|c| c.set(Some(0)));
            for now in 0..2_000 {
                d.advance(now);
                while let Some(event) = d.next_event() {
                    events += 1;
                    a.handle(&mut LocalDispatcher::new(&mut d, now), &event, &mut |_| {
                        reported += 1
                    });
                }
                if let Some(job) = d.select(0, now) {
                    let task = d.task_of(job).unwrap();
                    d.charge_job(job, 1, now + 1).unwrap();
                    if now % 3 == 0 {
                        a.done(&mut d, task, now + 1).unwrap();
                    }
                }
            }
            let allocations = COUNT.with(|c| c.take());
            assert_eq!(allocations, Some(0), "{policy}, {events} events");
            assert!(reported > 500, "{policy}: {reported}");
        }
    }
}

#[test]
fn adding_and_cancelling_jobs_allocates_nothing() {
    static TABLE: [&PolicyEntry; 1] = [&JOBS];
    let options = AllocatorOptions { policies: Some(&TABLE), ..AllocatorOptions::default() };
    let mut a =
        Allocators::with(&set("jobs", vec![task("a", 10, 3)]), DomainId(0), options).unwrap();
    let mut d = Dispatcher::new(a.limits()).unwrap();
    a.begin(&mut LocalDispatcher::new(&mut d, 0), 0).unwrap();
    let task = d.add_task(0).unwrap();
    a.add(&mut LocalDispatcher::new(&mut d, 0), 0, task).unwrap();
    let mut ended = 0;
    COUNT.with(|c| c.set(Some(0)));
    for n in 0..1_000 {
        let start = 10 * n;
        let params = JobParams { start: start + 2, finish: start + 9, budget: 3, priority: 0 };
        let mut report = |event| {
            ended += u32::from(matches!(event, ReleaseEvent::JobEnded { .. }));
        };
        let job = AddedJob { params, place: None, id: n, cookie: n };
        let mut gsi = LocalDispatcher::new(&mut d, start);
        a.add_job(&mut gsi, task, &job, &mut report).unwrap();
        for now in start..start + 10 {
            d.advance(now);
            while let Some(event) = d.next_event() {
                a.handle(&mut LocalDispatcher::new(&mut d, now), &event, &mut report);
            }
            if n % 2 == 0 && now == start + 4 {
                a.cancel_job(&mut LocalDispatcher::new(&mut d, now), task, n, &mut report).unwrap();
            }
            if let Some(job) = d.select(0, now) {
                d.charge_job(job, 1, now + 1).unwrap();
            }
        }
    }
    assert_eq!(COUNT.with(|c| c.take()), Some(0));
    assert_eq!(ended, 1_000);
}
