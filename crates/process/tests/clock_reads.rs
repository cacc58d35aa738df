//! A read of a thread's clock holds a lock of the open file.

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use common::*;
use punctual_process::*;
use punctual_sys::sched;

/// On one CPU: an ordinary thread looks whether the adopted one has ended, a thread above it reads
/// the clock, and one in between executes whenever that has to wait.
#[test]
fn a_read_of_the_clock_never_waits_for_housekeeping() {
    const READS: u64 = 3000;
    let _alone = alone();
    if !permitted(false) {
        return;
    }
    let journal = Journal::create().unwrap();
    let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleep.id() as i32;
    let cpu = sched::cpus(&sched::affinity(0).unwrap()).last().unwrap();
    let adopted = adopt_thread(&journal, pid, pid, cpu).unwrap();
    let [reads, waited, done] = [const { AtomicBool::new(false) }; 3];
    let at = |level| {
        sched::set_affinity(0, &sched::only(cpu)).unwrap();
        sched::set_level(0, level, sched::Children::AreOrdinary).unwrap();
    };
    let (adopted, reads, waited, done) = (&adopted, &reads, &waited, &done);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            at(0);
            while !done.load(SeqCst) {
                assert!(!adopted.has_ended());
            }
        });
        let between = threads.spawn(move || {
            at(10);
            while !done.load(SeqCst) {
                std::thread::park();
                waited.fetch_or(reads.load(SeqCst), SeqCst);
            }
        });
        threads.spawn(move || {
            at(20);
            for n in 0..READS {
                std::thread::sleep(Duration::from_micros(50 + n % 31));
                reads.store(true, SeqCst);
                between.thread().unpark();
                let executes = adopted.clock().is_some();
                reads.store(false, SeqCst);
                if !executes {
                    break;
                }
            }
            done.store(true, SeqCst);
            between.thread().unpark();
        });
    });
    assert!(adopted.give_back().is_empty());
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert!(restore(&journal).is_complete());
    assert!(!waited.load(SeqCst), "it waited for the ordinary thread");
}
