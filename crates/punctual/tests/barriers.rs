//! Barriers between tasks.

mod common;

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;

use common::{execute, start, turn, MS};
use punctual::{Barrier, Punctual, Time, WaitError};
use punctual_test_support::comes_true;

#[test]
fn tasks_meet_at_a_barrier_phase_by_phase() {
    const TASKS: u32 = 3;
    const PHASES: u32 = 100;
    let _turn = turn();
    let barrier = Arc::new(Barrier::new(TASKS));
    let [came, last, ended] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |mut set: Punctual| {
        for n in 0..TASKS {
            let (barrier, came) = (barrier.clone(), came.clone());
            let (last, ended) = (last.clone(), ended.clone());
            let task = set.add(format!("task {n}")).period((5 + n) * MS).budget(MS);
            task.spawn(move |task| {
                for phase in 1..=PHASES {
                    came.fetch_add(1, SeqCst);
                    execute(MS / 50 * n);
                    last.fetch_add(barrier.wait(task)?.into(), SeqCst);
                    let came = came.load(SeqCst);
                    // Others may have come for the next phase already, but not for the one after.
                    assert!(
                        came >= phase * TASKS && came <= (phase + 1) * TASKS,
                        "{came}, {phase}"
                    );
                }
                ended.fetch_add(1, SeqCst);
                Ok::<(), WaitError>(())
            });
        }
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == TASKS), "{} came", came.load(SeqCst));
    assert_eq!(last.load(SeqCst), PHASES);
    running.stop().expect("it stops");
}

/// Of more tasks than the barrier is for, any may take the place of one that waits no longer.
#[test]
fn as_many_tasks_meet_as_the_barrier_is_for_also_where_waits_time_out() {
    const TASKS: u32 = 2;
    const ROUNDS: u32 = 400;
    let _turn = turn();
    let barrier = Arc::new(Barrier::new(TASKS));
    let [met, last, ended] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |mut set: Punctual| {
        for n in 0..5 {
            let barrier = barrier.clone();
            let (met, last, ended) = (met.clone(), last.clone(), ended.clone());
            let task = set.add(format!("task {n}")).period((3 + n) * MS).budget(MS / 3);
            task.spawn(move |task| {
                for round in 0..ROUNDS {
                    let until = Time::now() + MS / 100 * (1 + (round + n) % 8);
                    match barrier.wait_until(task, until) {
                        Ok(was_last) => {
                            met.fetch_add(1, SeqCst);
                            last.fetch_add(was_last.into(), SeqCst);
                        }
                        Err(e) => assert_eq!(e, WaitError::TimedOut),
                    }
                    execute(MS / 50 * n);
                }
                ended.fetch_add(1, SeqCst);
            });
        }
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 5), "{} ended", ended.load(SeqCst));
    running.stop().expect("it stops");
    println!("{} of {} waits met", met.load(SeqCst), 5 * ROUNDS);
    assert_eq!(met.load(SeqCst), TASKS * last.load(SeqCst));
}
