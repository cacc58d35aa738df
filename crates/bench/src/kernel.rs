//! The kernel host beside SCHED_FIFO and SCHED_DEADLINE, in the same boot of a virtual machine
//! whose clock counts instructions: the figures repeat, to the nanosecond, for one build.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use punctual_trace::kind::{event, EVENT, RESERVATION_ADD, RUNNING, SELECTED, STOPPED};
use punctual_trace::{Record, Trace};
use serde_json::{json, Value};

use crate::guest::{BUDGET, PERIOD, SKIPPED};
use crate::load::{self, Load, Rate};
use crate::{tools, Bench, Failure, Part, Verdict};

const KERNELS: [&str; 3] = ["6.18", "7.3", "7.3-rt"];
/// The first task is the program under measurement; `punctual-bench --burst` (crate::guest).
const SET: &str = r#"
cpu = 0
policy = "edf"
[[task]]
name = "spinning"
period = "2ms"
budget = "1ms"
command = ["/job/punctual-bench", "--burst", "/job/results/bursts"]
[[task]]
name = "periodic"
period = "5ms"
budget = "1ms"
work = { spin = "600us" }
"#;
/// First without a load: how soon the scheduler is there.
const JOB: &str = "./punctual-bench --load >results/load && \
    ./punctual-bench --stamp >results/began && \
    { punctual run --host kernel --quiet --json --duration 50ms --trace results/short set.toml \
    >results/results || [ $? = 1 ]; } && \
    ./punctual-bench --baselines >results/baselines && \
    punctual run --host kernel --load --quiet --json --trace results/trace --trace-records 1048576 \
    set.toml >results/results";

/// What the kernel's line is to keep, ns.
fn most_to_running(kernel: &str) -> u64 {
    if kernel.ends_with("-rt") {
        14_000
    } else {
        7_000
    }
}

/// Sorted; ns.
struct Sample(Vec<u64>);

impl Sample {
    fn of(mut figures: Vec<u64>) -> Result<Sample, Failure> {
        figures.sort_unstable();
        if figures.is_empty() {
            return Err("nothing was measured".into());
        }
        Ok(Sample(figures))
    }

    fn read(figures: &Value) -> Result<Sample, Failure> {
        Sample::of(serde_json::from_value(figures.clone())?)
    }

    /// Nearest rank.
    fn at(&self, percent: usize) -> u64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0[rank - 1]
    }

    fn show(&self) -> String {
        format!("{} / {} / {}", self.at(50), self.at(99), self.at(100))
    }

    /// How far the worst one is from what was promised, in percent of it.
    fn off(&self, promised: u64) -> f64 {
        self.0.iter().map(|f| f.abs_diff(promised)).max().unwrap_or(0) as f64 / promised as f64
            * 100.0
    }

    fn json(&self) -> Value {
        json!({ "p50": self.at(50), "p99": self.at(99), "max": self.at(100),
            "min": self.0[0], "count": self.0.len() })
    }
}

/// One kernel's figures.
struct Seen {
    kernel: &'static str,
    fifo: Sample,
    deadline: Sample,
    deadline_budget: Sample,
    running: Sample,
    program: Sample,
    budget: Sample,
    /// Executed per assigned, parts per million of one.
    long_run: f64,
    load: Load,
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut all = Vec::new();
    for kernel in KERNELS {
        tools::progress(&format!("kernel: {kernel}"));
        all.push(boot(bench, kernel).map_err(|e| format!("{kernel}: {e}"))?);
    }
    tools::progress("");
    let rate = Rate::measure(all.iter().map(|seen| (seen.kernel, &seen.load)));
    print(&all, &rate);
    let mut verdicts = Vec::new();
    for seen in &all {
        let kernel = seen.kernel;
        let running = seen.running.at(50);
        verdicts.push(Verdict::new(
            format!("{kernel}: release to running, median"),
            format!("{} ns", most_to_running(kernel)),
            format!("{running} ns"),
            running <= most_to_running(kernel),
        ));
        let worst = seen.budget.off(BUDGET);
        verdicts.push(Verdict::new(
            format!("{kernel}: each budget of 1 ms in 2 ms"),
            "within 0.2 %",
            format!("{worst:.3} %"),
            worst <= 0.2,
        ));
        verdicts.push(Verdict::new(
            format!("{kernel}: the long run"),
            "100 +- 0.01 %",
            format!("{:.4} %", seen.long_run * 100.0),
            (seen.long_run - 1.0).abs() <= 0.0001,
        ));
    }
    verdicts.extend(all.iter().map(|seen| seen.load.verdict(seen.kernel, &rate)));
    let figures = all.iter().map(|seen| (seen.kernel.to_owned(), seen.json(&rate))).collect();
    Ok(Part { figures: Value::Object(figures), verdicts })
}

/// One boot: first the baselines, then the set.
fn boot(bench: &Bench, kernel: &'static str) -> Result<Seen, Failure> {
    let back = tempfile::tempdir()?;
    let set = back.path().join("set.toml");
    let seconds = if bench.quick { 2 } else { 5 };
    std::fs::write(&set, format!("duration = \"{seconds}s\"\n{SET}"))?;
    let there = back.path().join("back");
    let me = std::env::current_exe()?;
    let taken = [
        (set.as_path(), "/job/set.toml"),
        (me.as_path(), "/job/punctual-bench"),
        (bench.punctual.as_path(), "/bin/punctual"),
    ];
    let mut run = Command::new(tools::in_tree("vm/run"));
    run.arg(kernel).arg("--results").arg(&there);
    for (what, place) in taken {
        run.arg("--with").arg(format!("{}:{place}", what.display()));
    }
    let done = run.args(["--", "sh", "-c", JOB]).output()?;
    let text = |name: &str| std::fs::read_to_string(there.join(name));
    if !matches!(done.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(
            format!("{}: {said}{}", done.status, text("results").unwrap_or_default()).into()
        );
    }
    let baselines: Value = serde_json::from_str(&text("baselines")?)?;
    let trace = Trace::read(&mut BufReader::new(std::fs::File::open(there.join("trace"))?))?;
    let seen = Observed::of(&trace)?;
    Ok(Seen {
        kernel,
        fifo: Sample::read(&baselines["fifo_wakeup_ns"])?,
        deadline: Sample::read(&baselines["deadline_wakeup_ns"])?,
        deadline_budget: Sample::read(&baselines["deadline_bursts_ns"])?,
        running: Sample::of(seen.running)?,
        program: Sample::of(since_release(&there.join("bursts"), seen.start)?)?,
        long_run: seen.received.iter().sum::<u64>() as f64
            / (seen.received.len() as u64 * BUDGET) as f64,
        budget: Sample::of(seen.received)?,
        load: Load::read(&there)?,
    })
}

/// The beginnings of the program's bursts after the releases, ns, where it was not stopped in
/// between.
fn since_release(bursts: &Path, start: u64) -> Result<Vec<u64>, Failure> {
    let text = std::fs::read_to_string(bursts)?;
    let times = text.lines().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let after = times.into_iter().filter(|&at| at >= start).map(|at| (at - start) % PERIOD);
    // A burst that continues after a job with an earlier deadline begins later.
    Ok(after.filter(|&ns| ns < BUDGET / 4).collect())
}

/// What the trace shows of the run.
struct Observed {
    /// The spinning task's first release.
    start: u64,
    /// From a release at which its job was selected to its task's running, ns; of both tasks. Not
    /// from one at which a more urgent job continued.
    running: Vec<u64>,
    /// By the spinning task in each whole period, by the kernel's count.
    received: Vec<u64>,
}

const RELEASED: u32 = EVENT + event::RELEASED;

impl Observed {
    fn of(trace: &Trace) -> Result<Observed, Failure> {
        let records = &trace.records;
        let owner: HashMap<u64, u32> = records
            .iter()
            .filter(|r| (EVENT + event::COMPLETED..=EVENT + event::TASK_GONE).contains(&r.kind))
            .map(|r| (r.a, r.small))
            .collect();
        // Start and period, of each task.
        let reserved: HashMap<u32, (u64, u64)> = records
            .iter()
            .filter(|r| r.kind == RESERVATION_ADD)
            .map(|r| (r.small, (r.a, r.b)))
            .collect();
        let &(start, _) = reserved.get(&0).ok_or("the trace has no reservation")?;
        let mut runs: Option<u32> = None;
        // Released and not yet selected; selected and not yet running.
        let (mut released, mut selected) = (Vec::new(), None);
        let (mut running, mut received) = (Vec::new(), Vec::new());
        for Record { time, a, small: task, kind, .. } in records.iter().copied() {
            match kind {
                RELEASED => {
                    let (start, period) =
                        *reserved.get(&task).ok_or("a release without a reservation")?;
                    released.push((task, start + a * period, time));
                    if task == 0 {
                        received.push(0);
                    }
                }
                SELECTED => {
                    let chosen = owner.get(&a).copied();
                    let at_once = |&(task, _, at): &(u32, u64, u64)| {
                        at == time && Some(task) == chosen && runs != chosen
                    };
                    selected = released.drain(..).find(at_once);
                }
                RUNNING => {
                    if let Some((_, due, _)) =
                        selected.take().filter(|(chosen, ..)| *chosen == task)
                    {
                        running.push(time - due);
                    }
                    runs = Some(task);
                }
                STOPPED => {
                    runs = None;
                    if let (0, Some(last)) = (task, received.last_mut()) {
                        *last += a;
                    }
                }
                _ => {}
            }
        }
        // The program starts in the first periods: page faults, in which the kernel defers
        // preemption. The last one may be cut.
        received.pop();
        received.drain(..SKIPPED.min(received.len()));
        running.drain(..2.min(running.len()));
        Ok(Observed { start, running, received })
    }
}

impl Seen {
    fn json(&self, rate: &Result<Rate, Failure>) -> Value {
        json!({
            "fifo_wakeup_ns": self.fifo.json(), "deadline_wakeup_ns": self.deadline.json(),
            "deadline_budget_ns": self.deadline_budget.json(),
            "release_to_running_ns": self.running.json(),
            "release_to_program_ns": self.program.json(), "budget_ns": self.budget.json(),
            "long_run": self.long_run, "start": self.load.json(rate),
        })
    }
}

fn print(all: &[Seen], rate: &Result<Rate, Failure>) {
    println!(
        "Inside the kernel, beside a background load, one CPU; ns of a clock that counts \
         instructions: p50 / p99 / max"
    );
    let ratio = |a: u64, b: u64| format!("{:.2}", a as f64 / b as f64);
    const COLUMNS: [i32; 5] = [-8, -34, 28, 14, 18];
    tools::row(COLUMNS, ["", "from release or wake-up to", "", "ratio to FIFO", "to DEADLINE"]);
    for seen in all {
        let rows = [
            ("SCHED_FIFO, in the program", &seen.fifo),
            ("SCHED_DEADLINE, in the program", &seen.deadline),
            ("Punctual, running", &seen.running),
            ("Punctual, in the program", &seen.program),
        ];
        for (n, (what, sample)) in rows.into_iter().enumerate() {
            let kernel = if n == 0 { seen.kernel } else { "" };
            let [fifo, deadline] =
                [&seen.fifo, &seen.deadline].map(|other| ratio(sample.at(50), other.at(50)));
            tools::row(COLUMNS, [kernel, what, &sample.show(), &fifo, &deadline]);
        }
    }
    tools::row(COLUMNS, ["", "1 ms in 2 ms, received", "", "worst, % off", "long run, %"]);
    for seen in all {
        let off = |sample: &Sample| format!("{:.3}", sample.off(BUDGET));
        let (theirs, ours, long) =
            (&seen.deadline_budget, &seen.budget, format!("{:.4}", seen.long_run * 100.0));
        tools::row(
            COLUMNS,
            [seen.kernel, "SCHED_DEADLINE, per burst", &theirs.show(), &off(theirs), ""],
        );
        tools::row(COLUMNS, ["", "Punctual, per period", &ours.show(), &off(ours), &long]);
    }
    load::print(all.iter().map(|seen| (seen.kernel, &seen.load)), rate);
    println!();
}
