//! Invariant 5 of the design: nothing is allocated after set-up. The allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use punctual_dispatcher::{
    Attribute, Dispatcher, For, Job, JobId, Limits, OverrunPolicy, Reservation, ReservationId,
    TaskId, INFINITE,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const LIMITS: Limits = Limits {
    jobs: 64,
    tasks: 8,
    reservations: 4,
    groups: 4,
    budget_groups: 3,
    timers: 16,
    depth: 4,
    events: 64,
    records: 64,
    windows: 6,
};

fn reservation(serves: For) -> Reservation {
    Reservation {
        deadline: 6,
        overrun: OverrunPolicy::Signal,
        wakeup_rule: true,
        ..Reservation::new(serves, 7, 3)
    }
}

/// Every call of the interface, some of them refused, until the tables have been full.
fn use_all(d: &mut Dispatcher) {
    let tasks: [TaskId; 4] = std::array::from_fn(|_| d.add_task(0).expect("room"));
    d.set_order(0, &[Attribute::Finish]).expect("a valid order");
    d.add_reservation(&reservation(For::Group(1)), 0).expect("it is valid");
    d.add_reservation(&reservation(For::Budget(1)), 0).expect("it is valid");
    let r = d.add_reservation(&reservation(For::Task(tasks[0])), 0).expect("it is valid");
    let (mut refused, mut kept) = (0u32, [JobId::from_u64(0); 8]);
    for now in 0..2000u64 {
        let task = tasks[(now % 4) as usize];
        let server = For::Group(1 + (now % 3) as u32);
        for (place, serves) in [For::Task(task), server, For::Budget(2)].into_iter().enumerate() {
            let group = if matches!(serves, For::Task(_)) { (now % 4) as u32 } else { 0 };
            let finish = if now % 3 == 0 { INFINITE } else { now + 40 };
            match d.add_job(
                &Job { finish, group, budget_group: (now % 2) as u32, ..Job::new(serves, 5) },
                now,
            ) {
                Ok(id) => kept[place] = id,
                Err(_) => refused += 1,
            }
        }
        d.ask_timer(now + 9, now, now).map_or_else(|_| refused += 1, drop);
        let _ = d.charge_task(task, 1, now);
        if let Some(selected) = d.select(0, now) {
            let _ = d.charge_job(selected, 1, now);
        }
        match now % 5 {
            0 => drop(d.task_blocked(task, now)),
            1 => drop(d.task_ready(task, now)),
            2 => drop(d.task_done(task, now)),
            3 => drop(d.cancel_job(kept[(now % 3) as usize], now)),
            _ => drop(d.complete_job(kept[0], now)),
        }
        if now % 50 == 0 {
            let by = [Attribute::Priority, Attribute::Budget, Attribute::Finish, Attribute::Start];
            d.set_order((now / 50 % 4) as u32, &by[(now / 200 % 4) as usize..])
                .expect("a valid order");
            let _ = d.draft_window(0, 1, true, now);
            let _ = d.draft_window(2, 3, false, now);
            let windows = now % 100 == 0;
            let terms = Reservation { wakeup_rule: !windows, ..reservation(For::Task(tasks[0])) };
            d.change_reservation(r, &terms, now).map_or_else(|_| d.drop_windows(now), drop);
        }
        d.advance(now);
        d.select(0, now);
        d.runner_up(0, 3);
        d.timer(0, 3, now);
        if now % 7 > 3 {
            while d.next_event().is_some() {}
        }
        d.take_lost(r);
    }
    assert!(refused > 100, "the tables were full");
    d.remove_reservation(r, 2000).expect("it is there");
    d.task_gone(tasks[1], 2000).expect("it is there");
    d.remove_reservation(ReservationId(0), 2000).expect("it is there");
}

#[test]
fn nothing_is_allocated_after_creation() {
    let mut d = Dispatcher::new(LIMITS).expect("valid limits");
    let before = ALLOCATIONS.with(Cell::get);
    assert!(before > 0, "creation was counted");
    use_all(&mut d);
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
}
