//! What a period costs a task that waits for the next one, and how late it wakes, beside a
//! SCHED_FIFO thread in a loop of clock_nanosleep(TIMER_ABSTIME).

use crate::side_by_side::{figure, in_turns, print, print_heading, verdict, Subject, Windows};
use crate::threads::{self, set_level, Load};
use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns, CpuClock};
use punctual_sys::sched::pin;
use punctual_sys::thread_name;
use serde_json::Map;
use std::time::Duration;

/// ns.
const PERIOD: u64 = 1_000_000;
const BUDGET: u64 = 100_000;
/// Not counted at the beginning of a window.
const SKIPPED: usize = 50;
/// SCHED_FIFO, of the thread.
const LEVEL: i32 = 50;
/// CPU time of a period is at most so many times the thread's.
const LIMIT: f64 = 2.5;
/// The median wake-up is at most so much later than the thread's, ns.
const LATER: f64 = 8_000.0;

/// CPU time per period, median and p99 of the wake-up latency, ns.
type Figures = [f64; 3];

/// The periods of a window, as the loop sees them.
struct Loop {
    latencies: Vec<u64>,
    count: usize,
    /// CPU time at the first one that counts, ns.
    begun: u64,
}

impl Loop {
    fn new(periods: usize) -> Loop {
        let count = periods + SKIPPED;
        Loop { latencies: Vec::with_capacity(count), count, begun: 0 }
    }

    /// A period that was due at `due`, until which `cpu_time` was used; true: it was the last one.
    fn period(&mut self, due: u64, cpu_time: impl FnOnce() -> u64) -> bool {
        let now = monotonic_ns();
        if self.latencies.len() == SKIPPED {
            self.begun = cpu_time();
        }
        self.latencies.push(now.saturating_sub(due));
        self.latencies.len() == self.count
    }

    fn figures(mut self, ended: u64) -> Figures {
        let used = ended - self.begun;
        let latencies = &mut self.latencies[SKIPPED..];
        latencies.sort_unstable();
        let [median, p99] = [latencies.len() / 2, latencies.len() * 99 / 100];
        let per_period = used as f64 / latencies.len() as f64;
        [per_period, latencies[median] as f64, latencies[p99] as f64]
    }
}

/// With the dispatcher's thread.
fn of_task(cpu: u32, periods: usize) -> Result<Figures, Failure> {
    let running = tools::start(cpu)?;
    let name = thread_name::of_cpu(thread_name::DISPATCHER, cpu);
    let dispatcher = CpuClock::of_thread(threads::named(&name).ok_or("no dispatcher's thread")?);
    let cpu_time = move || thread_cpu_ns() + dispatcher.read().unwrap_or(0);
    let task = running.task("waits").period(Duration::from_nanos(PERIOD));
    let task = task.budget(Duration::from_nanos(BUDGET)).spawn(move |task| {
        let mut periods = Loop::new(periods);
        while let Some(released) = task.wait_period() {
            if periods.period(released.release.as_nanos(), cpu_time) {
                break;
            }
        }
        periods.figures(cpu_time())
    })?;
    let figures = task.join().map_err(|end| format!("the task ended: {end:?}"))?;
    running.stop()?;
    Ok(figures)
}

fn of_thread(cpu: u32, periods: usize) -> Result<Figures, Failure> {
    threads::apart(move || {
        pin(0, cpu)?;
        set_level(0, LEVEL)?;
        let mut periods = Loop::new(periods);
        let mut next = monotonic_ns() + PERIOD;
        loop {
            sleep_until(next);
            if periods.period(next, thread_cpu_ns) {
                return Ok(periods.figures(thread_cpu_ns()));
            }
            next += PERIOD;
        }
    })
}

fn windows(bench: &Bench, beside: &str, load: bool) -> Result<Windows<Figures>, Failure> {
    let periods = if bench.quick { 500 } else { 2_000 };
    let cpu = bench.cpu;
    let life = 2 * (periods + SKIPPED) as u64 * PERIOD + 1_000_000_000;
    let loaded = || load.then(|| Load::ordinary(cpu, life));
    let subjects = vec![
        Subject::new("clock_nanosleep", || {
            let _load = loaded();
            of_thread(cpu, periods)
        }),
        Subject::new("wait_period", || {
            let _load = loaded();
            of_task(cpu, periods)
        }),
    ];
    in_turns(bench, &format!("wait-period beside {beside}"), subjects)
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut figures = Map::new();
    let mut verdicts = Vec::new();
    print_heading("A period of 1 ms of a task that only waits");
    for (beside, load) in [("nothing", false), ("a load", true)] {
        let all = windows(bench, beside, load)?;
        let [cost, median, p99] = [0, 1, 2].map(|k| figure(&all, k));
        let (ratio, found) = print(&format!("beside {beside}: CPU time"), &cost);
        figures.insert(format!("cpu_time_beside_{}", key(beside)), found);
        let promise = format!("wait_period beside {beside}: CPU against clock_nanosleep's");
        verdicts.push(verdict(&promise, LIMIT, &ratio));
        let (_, found) = print("    wake-up latency, median", &median);
        figures.insert(format!("latency_beside_{}", key(beside)), found);
        let later = median[1].1.iter().zip(&median[0].1).map(|(task, thread)| task - thread);
        let later = Spread::of(later);
        verdicts.push(Verdict::new(
            format!("wait_period beside {beside}: wakes later, us, median"),
            format!("{}", LATER / 1e3),
            later.show(1e3, 1),
            later.median() <= LATER,
        ));
        let (_, found) = print("    wake-up latency, p99", &p99);
        figures.insert(format!("latency_p99_beside_{}", key(beside)), found);
    }
    println!();
    Ok(Part { figures: figures.into(), verdicts })
}

fn key(beside: &str) -> String {
    beside.replace(' ', "_")
}
