//! Two threads on one CPU that hand over to each other, in a process of its own: it may have a
//! dispatcher, and shared memory that goes with it.

use super::calls::{answer, Object};
use super::pthread::{Channel, Gate, Semaphore};
use super::{Kind, MESSAGE};
use crate::threads::set_level;
use crate::Failure;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::sched::pin;
use serde_json::json;
use std::thread;

/// Round trips without a pause, few enough for the budget of the group of hard tasks.
const BURST: u32 = 20;
/// From one burst to the next, ns: two periods of that group.
const PAUSE: u64 = 20_000_000;
const BURSTS: u32 = 25;
const QUICK_BURSTS: u32 = 8;
/// SCHED_FIFO.
const LEVEL: i32 = 50;
/// The process ends after so many seconds, also if a thread hangs.
const LIFE: u32 = 60;

/// The half of a round trip.
type Half<'a> = &'a (dyn Fn() + Sync);

/// How the two threads are placed: on one CPU, as what.
struct Place<'a> {
    kind: Kind,
    cpu: u32,
    bursts: u32,
    tasks: &'a [Object; 2],
}

impl Place<'_> {
    /// Ends the process where the calling thread cannot be placed: the other one waits for it.
    fn enter(&self, number: usize) {
        let placed = pin(0, self.cpu).map_err(Failure::from).and_then(|()| match self.kind {
            Kind::Pthread => Ok(()),
            Kind::PthreadFifo => set_level(0, LEVEL).map_err(Failure::from),
            Kind::Soft | Kind::Hard => self.tasks[number].begin(self.cpu, self.kind == Kind::Hard),
        });
        if let Err(error) = placed {
            eprintln!("bench: {error}");
            std::process::exit(1);
        }
    }

    /// ns for each of the two switches of a round trip.
    fn measure(&self, ping: Half<'_>, pong: Half<'_>) -> Result<f64, Failure> {
        let of_rtai = matches!(self.kind, Kind::Soft | Kind::Hard);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                self.enter(1);
                for _ in 0..BURST * (self.bursts + 1) {
                    pong();
                }
            });
            let own = scope.spawn(|| {
                self.enter(0);
                if of_rtai {
                    self.tasks[1].await_begin();
                }
                let mut sum = 0;
                // The first one is not counted.
                for n in 0..=self.bursts {
                    sleep_until(monotonic_ns() + PAUSE);
                    let begin = monotonic_ns();
                    for _ in 0..BURST {
                        ping();
                    }
                    sum += if n == 0 { 0 } else { monotonic_ns() - begin };
                }
                sum as f64 / f64::from(2 * BURST * self.bursts)
            });
            let result = own.join().map_err(|_| "a measuring thread panicked")?;
            other.join().map_err(|_| "a measuring thread panicked")?;
            Ok(result)
        })
    }
}

/// Prints the four figures of one kind, as JSON.
pub fn serve(kind: Kind, cpu: u32, quick: bool) -> Result<(), Failure> {
    // SAFETY: a system call without memory.
    unsafe { libc::alarm(LIFE) };
    let bursts = if quick { QUICK_BURSTS } else { BURSTS };
    let figures = match kind {
        Kind::Pthread | Kind::PthreadFifo => of_pthread(kind, cpu, bursts),
        Kind::Soft | Kind::Hard => of_rtai(kind, cpu, bursts),
    }?;
    println!("{}", json!(figures));
    Ok(())
}

fn of_pthread(kind: Kind, cpu: u32, bursts: u32) -> Result<[f64; 4], Failure> {
    let tasks = [(); 2].map(|()| Object::none());
    let place = Place { kind, cpu, bursts, tasks: &tasks };
    let [one, two] = [(); 2].map(|()| Gate::closed());
    let suspended = place.measure(
        &|| {
            two.resume();
            one.suspend();
        },
        &|| {
            two.suspend();
            one.resume();
        },
    )?;
    let [one, two] = [(); 2].map(|()| Semaphore::new());
    let semaphores = place.measure(
        &|| {
            two.signal();
            one.wait();
        },
        &|| {
            two.wait();
            one.signal();
        },
    )?;
    let [one, two] = [(); 2].map(|()| Channel::<MESSAGE>::empty());
    let mailboxes = place.measure(
        &|| {
            two.send([1; MESSAGE]);
            one.receive();
        },
        &|| one.send(two.receive()),
    )?;
    let [one, two] = [(); 2].map(|()| Channel::<8>::empty());
    let calls = place.measure(
        &|| {
            two.send([1; 8]);
            one.receive();
        },
        &|| one.send(two.receive()),
    )?;
    Ok([suspended, semaphores, calls, mailboxes])
}

fn of_rtai(kind: Kind, cpu: u32, bursts: u32) -> Result<[f64; 4], Failure> {
    let with_tasks = |ping: &(dyn Fn(&[Object; 2]) + Sync),
                      pong: &(dyn Fn(&[Object; 2]) + Sync)| {
        let tasks = [(); 2].map(|()| Object::none());
        let place = Place { kind, cpu, bursts, tasks: &tasks };
        place.measure(&|| ping(&tasks), &|| pong(&tasks))
    };
    let suspended = with_tasks(
        &|[one, two]| {
            two.resume();
            one.suspend();
        },
        &|[one, two]| {
            two.suspend();
            one.resume();
        },
    )?;
    let [one, two] = [Object::semaphore()?, Object::semaphore()?];
    let semaphores = with_tasks(
        &|_| {
            two.signal();
            one.wait();
        },
        &|_| {
            two.wait();
            one.signal();
        },
    )?;
    let [one, two] = [Object::mailbox(MESSAGE)?, Object::mailbox(MESSAGE)?];
    let mailboxes = with_tasks(
        &|_| {
            two.send([1; MESSAGE]);
            one.receive();
        },
        &|_| one.send(two.receive()),
    )?;
    let calls = with_tasks(
        &|[_, two]| {
            two.call(1);
        },
        &|_| answer(),
    )?;
    Ok([suspended, semaphores, calls, mailboxes])
}
