//! The task set of each policy (docs/policies.md) on the three hosts: in virtual time, and in a
//! virtual machine whose clock counts instructions.

use std::process::Command;

use serde_json::{json, Value};

use crate::{tools, Bench, Failure, Part};

const KERNEL: &str = "6.18";
const HOSTS: [&str; 3] = ["sim", "user", "kernel"];

/// A set of examples/, the policies that it shows, and further options.
const SETS: [(&str, &str, &str); 13] = [
    ("servers.toml", "rm; deferrable, polling", ""),
    ("servers.toml", "dm; deferrable, polling", "--policy dm"),
    ("servo.toml", "edf", ""),
    ("reclaiming.toml", "edf with reclaim", ""),
    ("three-levels.toml", "fp, edf, rm", ""),
    ("time-driven.toml", "td", ""),
    ("imprecise.toml", "imprecise", ""),
    ("dual.toml", "dual", ""),
    ("objective.toml", "objective", ""),
    ("shares.toml", "wfq, sfq", ""),
    ("control-and-media.toml", "edf; constant_bandwidth", ""),
    ("requests.toml", "servers of tasks, sporadic", ""),
    ("adaptive.toml", "edf; adaptive", ""),
];

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let seconds = if bench.quick { 1 } else { 2 };
    tools::progress(&format!("examples: {KERNEL}"));
    let all = boot(bench, seconds)?;
    tools::progress("");
    println!(
        "Examples for {seconds} s, beside a load: releases / missed; from a release of the task \
         with the shortest period to its running, median and worst, us; CPU of the user host for \
         a release, us"
    );
    const COLUMNS: [i32; 6] = [-24, -28, 14, 14, 14, 34];
    let last = "user, kernel; CPU";
    tools::row(COLUMNS, ["set", "policies", HOSTS[0], HOSTS[1], HOSTS[2], last]);
    let mut figures = Vec::new();
    for ((set, policies, options), runs) in SETS.into_iter().zip(&all) {
        let counts = runs.each_ref().map(|run| [total(run, "periods"), total(run, "missed")]);
        let cells = counts.map(|[periods, missed]| format!("{periods} / {missed}"));
        let [of_user, of_kernel] = [&runs[1], &runs[2]].map(latency);
        let cpu = runs[1]["dispatcher"]["cpu_ns"].as_u64().unwrap_or(0);
        let each = us(cpu.checked_div(counts[1][0]).unwrap_or(0));
        let last = format!("{of_user}, {of_kernel}; {each}");
        tools::row(COLUMNS, [set, policies, &cells[0], &cells[1], &cells[2], &last]);
        let late = runs.each_ref().map(missed);
        figures.push(json!({ "set": set, "late": late, "options": options, "policies": policies,
            "releases_and_missed": counts, "user_cpu_ns": cpu,
            "latency": [runs[1]["kernel_dispatcher"], runs[2]["kernel_dispatcher"]] }));
    }
    Ok(Part { figures: Value::Array(figures), verdicts: Vec::new() })
}

fn total(run: &Value, key: &str) -> u64 {
    run["totals"][key].as_u64().unwrap_or(0)
}

/// The tasks that missed deadlines.
fn missed(run: &Value) -> Vec<&str> {
    let tasks = run["tasks"].as_array().into_iter().flatten();
    let late = tasks.filter(|task| task["misses"].as_u64() != Some(0));
    late.filter_map(|task| task["name"].as_str()).collect()
}

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Release to running, median and worst, of the task with the shortest period.
fn latency(run: &Value) -> String {
    let of = |task: &Value| {
        let of = &task["release_latency"];
        let period = task["period_ns"].as_u64()?;
        Some((period, of["median_ns"].as_u64()?, of["worst_ns"].as_u64()?))
    };
    let tasks = run["tasks"].as_array().into_iter().flatten();
    match tasks.filter_map(of).min_by_key(|&(period, ..)| period) {
        Some((_, median, worst)) => format!("{} {}", us(median), us(worst)),
        None => "-".to_owned(),
    }
}

/// The results of each set, by host.
fn boot(bench: &Bench, seconds: u32) -> Result<Vec<[Value; 3]>, Failure> {
    let back = tempfile::tempdir()?;
    let there = back.path().join("back");
    let mut run = Command::new(tools::in_tree("vm/run"));
    run.arg(KERNEL).arg("--results").arg(&there);
    run.arg("--with").arg(format!("{}:/bin/punctual", bench.punctual.display()));
    for file in std::fs::read_dir(tools::in_tree("examples"))? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        run.arg("--with").arg(format!("{}:/job/{name}", path.display()));
    }
    let mut job = String::new();
    for (n, (set, _, options)) in SETS.iter().enumerate() {
        for host in &HOSTS[1..] {
            let run =
                format!("--host {host} --cpu 0 --overload --duration {seconds}s {options} {set}");
            job += &tools::run_step(&run, &format!("{host}-{n}"));
        }
    }
    tools::in_guest(&mut run, &job)?;
    let mut all = Vec::new();
    for (n, (set, _, options)) in SETS.iter().enumerate() {
        // Missed deadlines are no failure.
        let simulated = Command::new(&bench.punctual)
            .arg("sim")
            .arg(tools::in_tree("examples").join(set))
            .args(["--quiet", "--json", "--duration", &format!("{seconds}s")])
            .args(options.split_whitespace())
            .output()?;
        let of = |host: &str| tools::result_in(&there.join(format!("{host}-{n}")));
        all.push([
            tools::result_of(&String::from_utf8(simulated.stdout)?)?,
            of("user")?,
            of("kernel")?,
        ]);
    }
    Ok(all)
}
