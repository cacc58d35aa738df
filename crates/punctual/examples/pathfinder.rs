//! What reset Mars Pathfinder in 1997: a task waits for a mutex that a task of low priority holds,
//! which a third one preempts for long. With a mutex of the standard library, and with one that
//! lends the waiting task's budget to the holder.
//!
//!     cargo run --release -p punctual --example pathfinder -- [CPU] [TRACE]
//!
//! With TRACE, the run by lending is recorded: `punctual sim --replay TRACE`.

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::Duration;

use punctual::{Error, Mutex, Policy, Punctual, Task};

const MS: Duration = Duration::from_millis(1);

/// Executes for this time, with the data of the mutex.
type WithBus = Arc<dyn Fn(&Task<'_>, Duration) + Send + Sync>;

fn execute(task: &Task<'_>, time: Duration) {
    let end = executed() + time;
    while executed() < end && !task.is_over() {
        spin_loop();
    }
}

/// CPU time of the calling thread.
fn executed() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

fn run(cpu: u32, with_bus: &WithBus, trace: Option<&str>) -> Result<(), Error> {
    let (of_bus, of_weather) = (with_bus.clone(), with_bus.clone());
    let mut set = Punctual::on_cpu(cpu)
        .policy(Policy::DeadlineMonotonic)
        .task("bus")
        .period(20 * MS)
        .deadline(10 * MS)
        .budget(6 * MS)
        .start(2 * MS)
        .spawn(move |task| task.releases().for_each(|_| of_bus(task, MS)))
        .task("communication")
        .period(33 * MS)
        .budget(9 * MS)
        .start(MS)
        .spawn(|task| task.releases().for_each(|_| execute(task, 8 * MS)))
        .task("weather")
        .period(55 * MS)
        .budget(8 * MS)
        .spawn(move |task| task.releases().for_each(|_| of_weather(task, 4 * MS)));
    if let Some(file) = trace {
        set = set.trace(file);
    }
    let running = set.admit()?.start()?;
    std::thread::sleep(3000 * MS);
    for task in running.stop()?.results.tasks {
        println!("  {:<14} {} of {} deadlines missed", task.name, task.misses, task.periods);
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let cpu = std::env::args().nth(1).and_then(|cpu| cpu.parse().ok()).unwrap_or(1);
    let trace = std::env::args().nth(2);
    let plain = std::sync::Mutex::new(());
    println!("std::sync::Mutex");
    let with_bus = move |task: &Task<'_>, time| {
        let _held = plain.lock();
        execute(task, time);
    };
    run(cpu, &(Arc::new(with_bus) as WithBus), None)?;
    let lending = Mutex::new(());
    println!("punctual::Mutex");
    let with_bus = move |task: &Task<'_>, time| {
        let _held = lending.lock(task).expect("no task has two mutexes");
        execute(task, time);
    };
    run(cpu, &(Arc::new(with_bus) as WithBus), trace.as_deref())
}
