//! One full decision of the dispatcher: charge, due timers, end one job, add one, select, next
//! timer.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_host_kernel::Kernel;
use punctual_measure::overhead::decisions::{BothBuilds, JobShape};
use punctual_measure::overhead::paper::PaperDecision;
use serde_json::{json, Value};
use std::path::Path;
use std::process::Command;

/// Under callgrind.
const COUNTED: u32 = 6_400;
/// As BPF, for each window: some 3 ms at a time in the kernel.
const IN_KERNEL: u32 = 10_000;
const MOST_VERIFIED: u32 = 20_000;
const COLUMNS: [i32; 5] = [-8, -8, 22, 22, 20];

const SHAPES: [JobShape; 2] = [JobShape::Flat, JobShape::Trees];

fn name(shape: JobShape) -> &'static str {
    match shape {
        JobShape::Flat => "flat",
        JobShape::Trees => "trees",
    }
}

fn title(shape: JobShape) -> &'static str {
    match shape {
        JobShape::Flat => "One full decision of the dispatcher's core, jobs in group 0",
        JobShape::Trees => "The same in three levels of groups with two levels of budget groups",
    }
}

fn jobs(shape: JobShape) -> &'static [u32] {
    match shape {
        JobShape::Flat => &[1, 10, 100, 1_000, 10_000],
        JobShape::Trees => &[1, 10, 100, 1_000, 10_000, 100_000],
    }
}

/// What was promised for so many jobs, in instructions.
fn limit(shape: JobShape, jobs: u32) -> Option<f64> {
    match shape {
        JobShape::Flat => (jobs <= 100).then_some(800.0),
        JobShape::Trees => (10..=10_000).contains(&jobs).then_some(1_800.0),
    }
}

/// The benchmark of bench/core, with the flags of crates/dispatcher/build.rs.
fn compile(folder: &Path) -> Result<std::path::PathBuf, Failure> {
    let program = folder.join("decision");
    tools::output(
        Command::new("cc")
            .args(["-std=gnu11", "-O3", "-g", "-fno-strict-aliasing", "-Wall", "-Wextra", "-o"])
            .arg(&program)
            .arg(tools::in_tree("bench/core/decision.c"))
            .arg(tools::in_tree("dispatcher/dispatcher.c")),
    )?;
    Ok(program)
}

/// Instructions per decision: each call of `decide` and what it calls.
fn instructions(program: &Path, folder: &Path, jobs: u32, shape: JobShape) -> Result<f64, Failure> {
    let out = folder.join(format!("callgrind.{}.{jobs}", name(shape)));
    tools::output(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=decide", "-q"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(program)
            .args([jobs.to_string(), COUNTED.to_string(), name(shape).into()]),
    )?;
    let text = std::fs::read_to_string(out)?;
    let total =
        text.lines().find_map(|l| l.strip_prefix("totals: ").or(l.strip_prefix("summary: ")));
    Ok(total.ok_or("callgrind counted nothing")?.trim().parse::<f64>()? / f64::from(COUNTED))
}

/// Median ns and time-stamp ticks per decision (0: none here).
fn timed(program: &Path, jobs: u32, shape: JobShape) -> Result<(f64, f64), Failure> {
    let text = tools::output(Command::new(program).args([
        jobs.to_string(),
        "200000".into(),
        name(shape).into(),
    ]))?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    Ok((
        numbers.get(2).copied().ok_or("the benchmark printed too little")?,
        numbers.get(4).copied().unwrap_or(0.0),
    ))
}

/// Mean of several calls, each for `IN_KERNEL` decisions.
fn mean<E: Into<Failure>>(mut once: impl FnMut(u32) -> Result<f64, E>) -> Result<f64, Failure> {
    let times =
        (0..5).map(|_| once(IN_KERNEL).map_err(Into::into)).collect::<Result<Vec<_>, _>>()?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

/// The kernel's build beside the native one, on the same jobs.
fn side_by_side(bench: &Bench, jobs: u32, shape: JobShape) -> Result<(Value, Verdict), Failure> {
    let mut both = BothBuilds::new(jobs, shape)?;
    let (mut bpf, mut native) = (Vec::new(), Vec::new());
    for _ in 0..bench.windows.max(9) {
        bpf.push(mean(|count| both.bpf_ns(count))?);
        native.push(mean(|count| both.native_ns(count))?);
    }
    let ratio = Spread::ratios(&bpf, &native);
    let (bpf, native) = (Spread::of(bpf), Spread::of(native));
    let [here, there] = [&native, &bpf].map(|ns| ns.show(1.0, 0));
    tools::row(COLUMNS, [&jobs.to_string(), name(shape), &there, &here, &ratio.show(1.0, 2)]);
    let verdict = Verdict::new(
        format!("a decision as BPF against native, {jobs} jobs, {}", name(shape)),
        "3",
        ratio.show(1.0, 2),
        ratio.median() <= 3.0,
    );
    Ok((
        json!({ "bpf_ns": bpf.json(), "native_ns": native.json(), "ratio": ratio.json() }),
        verdict,
    ))
}

fn as_bpf(bench: &Bench) -> Result<(Value, Vec<Verdict>), Failure> {
    let loads = (0..bench.windows).map(|_| Kernel::load()).collect::<Result<Vec<_>, _>>()?;
    let wall = Spread::of(loads.iter().map(|k| k.load_time().as_secs_f64() * 1e3));
    let executed = Spread::of(loads.iter().map(|k| k.load_execution().as_secs_f64() * 1e3));
    let statistics = loads.last().ok_or("no windows")?.statistics();
    drop(loads);
    let most = statistics.iter().max_by_key(|p| p.verified).ok_or("no programs in the object")?;
    println!("The same as BPF in the running kernel, ns per decision");
    tools::row(COLUMNS, ["jobs", "shape", "BPF", "native", "ratio"]);
    let mut figures = serde_json::Map::new();
    let mut verdicts = Vec::new();
    for shape in SHAPES {
        let mut of_shape = serde_json::Map::new();
        for jobs in [1, 10, 100, 1_000, 4_000] {
            let (figure, verdict) = side_by_side(bench, jobs, shape)?;
            of_shape.insert(jobs.to_string(), figure);
            verdicts.push(verdict);
        }
        figures.insert(name(shape).into(), of_shape.into());
    }
    println!("  verifier: at most {} instructions in a program ({})", most.verified, most.name);
    println!("  loaded in {} ms, of which {} executed\n", wall.show(1.0, 1), executed.show(1.0, 1));
    verdicts.push(Verdict::new(
        "verifier instructions of a program",
        MOST_VERIFIED.to_string(),
        format!("{} ({})", most.verified, most.name),
        most.verified < MOST_VERIFIED,
    ));
    Ok((
        json!({ "jobs": figures, "verified": most.verified, "load_ms": wall.json(),
            "load_executed_ms": executed.json() }),
        verdicts,
    ))
}

/// Instructions and time of a decision, as the number of jobs grows.
fn growth(
    bench: &Bench,
    program: &Path,
    folder: &Path,
    shape: JobShape,
) -> Result<(Value, Vec<Verdict>), Failure> {
    let mut verdicts = Vec::new();
    let mut figures = serde_json::Map::new();
    println!("{}", title(shape));
    const COLUMNS: [i32; 5] = [-8, 14, 22, 26, 32];
    tools::row(
        COLUMNS,
        ["jobs", "instructions", "ns", "time-stamp ticks", "RED-Linux Table 5, us at 1 GHz"],
    );
    let times = if bench.quick { 3 } else { 9 };
    for &jobs in jobs(shape) {
        tools::progress(&format!("core: {jobs} jobs, {}", name(shape)));
        let counted = instructions(program, folder, jobs, shape)?;
        let runs =
            (0..times).map(|_| timed(program, jobs, shape)).collect::<Result<Vec<_>, _>>()?;
        let ns = Spread::of(runs.iter().map(|r| r.0));
        let ticks = Spread::of(runs.iter().map(|r| r.1));
        tools::progress("");
        let theirs = PaperDecision::of(jobs).filter(|_| shape == JobShape::Flat);
        let cells = [
            jobs.to_string(),
            format!("{counted:.0}"),
            ns.show(1.0, 0),
            ticks.show(1.0, 0),
            theirs.map_or("-".into(), |row| format!("{:.2}", row.average_ns as f64 / 1e3)),
        ];
        tools::row(COLUMNS, cells.each_ref().map(String::as_str));
        figures.insert(
            jobs.to_string(),
            json!({ "instructions": counted, "ns": ns.json(), "ticks": ticks.json() }),
        );
        if let Some(limit) = limit(shape, jobs) {
            verdicts.push(Verdict::new(
                format!("instructions of a decision, {jobs} jobs, {}", name(shape)),
                format!("{limit:.0}"),
                format!("{counted:.0}"),
                counted <= limit,
            ));
        }
    }
    println!();
    Ok((figures.into(), verdicts))
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let folder = tempfile::tempdir()?;
    let program = compile(folder.path())?;
    let (flat, mut verdicts) = growth(bench, &program, folder.path(), JobShape::Flat)?;
    let (trees, more) = growth(bench, &program, folder.path(), JobShape::Trees)?;
    verdicts.extend(more);
    let bpf = match as_bpf(bench) {
        Ok((bpf, more)) => {
            verdicts.extend(more);
            bpf
        }
        Err(e) => {
            println!("As BPF: not measured: {e}\n");
            json!({ "error": e.to_string() })
        }
    };
    Ok(Part { figures: json!({ "native": flat, "trees": trees, "bpf": bpf }), verdicts })
}
