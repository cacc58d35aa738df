//! How late the dispatcher's timer wakes it, beside cyclictest at the same priority, period, CPU
//! and load. Neither tunes the machine (cyclictest --default-system): what is compared is the two.

use crate::threads::Load;
use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_measure::cyclictest::percentiles;
use punctual_workload::BackgroundLoad;
use serde_json::{json, Value};
use std::process::Command;

const INTERVAL_US: u64 = 1_000;
/// Later ones all count as this late, ns.
const LATEST: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    BackgroundLoad,
    /// And a spinning SCHED_FIFO task, half of the time.
    Fifo,
}

/// Half of the time at SCHED_FIFO.
const FIFO_ON: u64 = 5_000_000;
const FIFO_CYCLE: u64 = 10_000_000;

fn dispatcher_window(bench: &Bench, beside: Beside, seconds: u64) -> Result<[f64; 2], Failure> {
    let mut set = format!(
        "cpu = {}\npolicy = \"rm\"\n[[task]]\nname = \"tick\"\nperiod = \"{INTERVAL_US}us\"\n\
         budget = \"60us\"\nwork = {{ spin = \"1us\" }}\n",
        bench.cpu
    );
    if beside == Beside::Fifo {
        set += "[[task]]\nname = \"fifo\"\nperiod = \"10ms\"\nbudget = \"5ms\"\n\
                work = { spin = \"forever\" }\n";
    }
    let duration = format!("{seconds}s");
    let mut options = vec!["--duration", duration.as_str()];
    if beside != Beside::Nothing {
        options.push("--load");
    }
    let results = tools::punctual(bench, &set, &options)?;
    let figure = |name: &str| {
        results["dispatcher"][name].as_f64().ok_or(format!("no {name} in the results"))
    };
    Ok([figure("wakeup_latency_p50_ns")?, figure("wakeup_latency_p99_ns")?])
}

fn cyclictest_window(bench: &Bench, beside: Beside, seconds: u64) -> Result<[f64; 2], Failure> {
    let life = (seconds + 5) * 1_000_000_000;
    let _load =
        (beside != Beside::Nothing).then(|| BackgroundLoad::start(bench.cpu, life)).transpose()?;
    let _fifo =
        (beside == Beside::Fifo).then(|| Load::fifo(bench.cpu, 50, life, FIFO_ON, FIFO_CYCLE));
    let text = tools::output(
        Command::new("cyclictest")
            .args(["-q", "-p99", "-t1", "-m", "-N", "--default-system"])
            .args(["-a", &bench.cpu.to_string(), "-i", &INTERVAL_US.to_string()])
            .args([
                "-l",
                &(seconds * 1_000_000 / INTERVAL_US).to_string(),
                "-h",
                &LATEST.to_string(),
            ]),
    )?;
    let [median, p99] = percentiles(&text, LATEST).ok_or("cyclictest printed no histogram")?;
    Ok([median as f64, p99 as f64])
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let seconds = if bench.quick { 1 } else { 3 };
    let mut figures = serde_json::Map::new();
    let mut verdicts = Vec::new();
    println!("Wake-up lateness, us: SCHED_FIFO 99, every {INTERVAL_US} us");
    const COLUMNS: [i32; 5] = [-22, -8, 22, 22, 20];
    tools::row(COLUMNS, ["beside", "", "Punctual", "cyclictest", "ratio"]);
    for (beside, name) in [
        (Beside::Nothing, "nothing (CPU idle)"),
        (Beside::BackgroundLoad, "a load"),
        (Beside::Fifo, "a FIFO task, a load"),
    ] {
        let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
        for n in 0..bench.windows {
            tools::progress(&format!(
                "wakeup beside {name}: window {} of {}",
                n + 1,
                bench.windows
            ));
            let pair = [
                dispatcher_window(bench, beside, seconds)?,
                cyclictest_window(bench, beside, seconds)?,
            ];
            for k in 0..2 {
                ours[k].push(pair[0][k]);
                theirs[k].push(pair[1][k]);
            }
        }
        tools::progress("");
        let mut part = serde_json::Map::new();
        for (k, (what, target)) in [("median", 1.1), ("p99", 1.2)].into_iter().enumerate() {
            let ratio = Spread::ratios(&ours[k], &theirs[k]);
            let (a, b) =
                (Spread::of(ours[k].iter().copied()), Spread::of(theirs[k].iter().copied()));
            let first = if k == 0 { name } else { "" };
            tools::row(
                COLUMNS,
                [first, what, &a.show(1e3, 1), &b.show(1e3, 1), &ratio.show(1.0, 2)],
            );
            part.insert(
                what.into(),
                json!({ "punctual_ns": a.json(), "cyclictest_ns": b.json(),
                    "ratio": ratio.json() }),
            );
            verdicts.push(Verdict::new(
                format!("wake-up {what} against cyclictest, {name}"),
                format!("{target}"),
                ratio.show(1.0, 2),
                ratio.median() <= target,
            ));
        }
        figures.insert(name.into(), Value::Object(part));
    }
    println!();
    Ok(Part { figures: Value::Object(figures), verdicts })
}
