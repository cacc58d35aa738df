//! The simulator: jobs per second beside SimSo's, and memory against simulated time.
//!
//! Each job goes through the public allocator interface: a timer of the policy comes, the policy
//! adds the job, the job's end comes back to it. Both simulators are measured by CPU time, so that
//! whatever else the machine does counts for neither.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_host_sim::{Options, Simulation, Watcher};
use punctual_sys::clock::thread_cpu_ns;
use punctual_taskset::TaskSet;
use punctual_trace::Period;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Periods of the ten tasks, us: nothing divides them all, so that releases seldom coincide.
const PERIODS: [u64; 10] =
    [10_007, 13_331, 17_389, 23_017, 29_989, 37_123, 47_431, 61_001, 78_787, 99_991];
/// Loads, in thousandths of a CPU: from lightly to fully used.
const LOADS: [u64; 2] = [425, 900];
/// Virtual time of a window, s: ours, and SimSo's, which comes less far.
const OURS: u64 = 2_000;
const THEIRS: u64 = 5;
const LEAST_RATE: f64 = 2e6;
/// Runs of which the least memory counts, and what two such figures may differ by, KiB.
const PEAKS: usize = 5;
const MOST_MORE: i64 = 128;
const SIMSO: &str = "simso==0.8.5";

/// Execution time per job, us.
fn budget(period: u64, load: u64) -> u64 {
    period * load / 10_000
}

fn text(load: u64) -> String {
    let tasks = PERIODS.iter().enumerate().map(|(n, &p)| {
        let c = budget(p, load);
        format!(
            "[[task]]\nname = \"t{n}\"\nperiod = \"{p}us\"\nbudget = \"{c}us\"\n\
             work = {{ spin = \"{c}us\" }}\n"
        )
    });
    format!("cpu = 0\npolicy = \"edf\"\n{}", tasks.collect::<String>())
}

#[derive(Default)]
struct Counter {
    periods: u64,
    missed: u64,
}

impl Watcher for Counter {
    fn period(&mut self, period: &Period) {
        self.periods += 1;
        self.missed += u64::from(period.miss);
    }
}

/// Jobs per second of CPU time.
fn ours(set: &TaskSet) -> Result<f64, Failure> {
    let mut options = Options::default();
    options.allocators.job_by_job = true;
    let simulation = Simulation::new(set, options)?;
    let mut seen = Counter::default();
    let begun = thread_cpu_ns();
    let outcome = simulation.run(OURS * 1_000_000_000, &mut seen)?;
    let took = thread_cpu_ns() - begun;
    if seen.missed > 0 || seen.periods != outcome.count.releases {
        return Err(
            format!("{} of {} periods were missed", seen.missed, outcome.count.releases).into()
        );
    }
    Ok(outcome.count.releases as f64 * 1e9 / took as f64)
}

/// The python that has SimSo, in an environment of its own.
fn python(bench: &Bench) -> Result<PathBuf, Failure> {
    let home = bench.punctual.with_file_name("simso");
    let python = home.join("bin/python3");
    if !python.exists() {
        tools::progress("sim: installing SimSo");
        tools::output(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    }
    if tools::output(Command::new(&python).args(["-c", "import simso"])).is_err() {
        tools::output(Command::new(&python).args(["-m", "pip", "install", "--quiet", SIMSO]))?;
    }
    Ok(python)
}

fn theirs(python: &Path, load: u64) -> Result<f64, Failure> {
    let script = tools::in_tree("bench/sim/simso_rate.py");
    let tasks = PERIODS.iter().map(|&p| format!("{p}:{}", budget(p, load)));
    let printed =
        tools::output(Command::new(python).arg(script).arg(THEIRS.to_string()).args(tasks))?;
    let numbers: Vec<f64> = printed.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [jobs, seconds] if seconds > 0.0 => Ok(jobs / seconds),
        _ => Err(format!("SimSo printed {printed:?}").into()),
    }
}

/// Peak memory of the command over so many seconds of virtual time, KiB.
fn peak(bench: &Bench, set: &Path, seconds: u64) -> Result<i64, Failure> {
    let mut sim = Command::new(&bench.punctual);
    sim.arg("sim").arg(set).args(["--quiet", "--json", "--duration", &format!("{seconds}s")]);
    let used = tools::usage(&mut sim)?;
    match used.code {
        Some(0) => Ok(used.kib),
        _ => Err("punctual sim ended with an error".into()),
    }
}

/// The least of several runs: how the loader and the allocator place things varies from run to run.
fn least_peak(bench: &Bench, set: &Path, seconds: u64) -> Result<i64, Failure> {
    let peaks = (0..PEAKS).map(|_| peak(bench, set, seconds)).collect::<Result<Vec<_>, _>>()?;
    peaks.into_iter().min().ok_or_else(|| "nothing was run".into())
}

fn memory(bench: &Bench) -> Result<(Value, Verdict), Failure> {
    let file = tools::set_file(&text(900))?;
    tools::progress("sim: memory");
    let (short, long) =
        (least_peak(bench, file.path(), OURS)?, least_peak(bench, file.path(), 10 * OURS)?);
    tools::progress("");
    println!(
        "Peak memory: {short} KiB over {OURS} s of virtual time, {long} KiB over {} s\n",
        10 * OURS
    );
    let verdict = Verdict::new(
        "memory of ten times the virtual time, without a trace",
        "the same",
        format!("{:+} KiB of {short}", long - short),
        long - short <= MOST_MORE,
    );
    Ok((json!({ "short_kib": short, "long_kib": long }), verdict))
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let python = python(bench);
    if let Err(e) = &python {
        println!("SimSo is not measured: {e}\n");
    }
    println!(
        "Simulated jobs per second of CPU time, ten tasks under EDF, each job through the \
         allocator interface"
    );
    println!("  {:<8} {:>30} {:>22} {:>24}", "load", "punctual, millions", "SimSo", "ratio");
    let (mut figures, mut verdicts) = (serde_json::Map::new(), Vec::new());
    for load in LOADS {
        let set = TaskSet::parse(&text(load), "the benchmark's set")?;
        let (mut mine, mut simso) = (Vec::new(), Vec::new());
        for window in 0..bench.windows {
            tools::progress(&format!("sim: load {} %, window {window}", load / 10));
            mine.push(ours(&set)?);
            if let Ok(python) = &python {
                simso.push(theirs(python, load)?);
            }
        }
        tools::progress("");
        let ratio = Spread::ratios(&mine, &simso);
        let (mine, simso) = (Spread::of(mine), Spread::of(simso));
        let name = format!("{:.1} %", load as f64 / 10.0);
        println!(
            "  {name:<8} {:>30} {:>22} {:>24}",
            mine.show(1e6, 2),
            simso.show(1.0, 0),
            ratio.show(1.0, 0)
        );
        verdicts.push(Verdict::new(
            format!("simulated jobs per second at {name} load"),
            format!("{:.0} million", LEAST_RATE / 1e6),
            format!("{} million", mine.show(1e6, 2)),
            mine.median() >= LEAST_RATE,
        ));
        figures.insert(
            name,
            json!({ "punctual": mine.json(), "simso": simso.json(), "ratio": ratio.json() }),
        );
    }
    println!();
    let (kib, verdict) = memory(bench)?;
    verdicts.push(verdict);
    Ok(Part { figures: json!({ "rates": figures, "memory": kib }), verdicts })
}
