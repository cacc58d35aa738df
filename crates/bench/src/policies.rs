//! What a policy in user space costs beyond a reservation of the dispatcher, on both hosts, in
//! virtual machines whose clock counts instructions: the figures repeat for one build. All tasks
//! execute the same under each policy.

use std::process::Command;

use serde_json::{json, Map, Value};

use crate::{tools, Bench, Failure, Part, Verdict};

const KERNELS: [&str; 3] = ["6.18", "7.3", "7.3-rt"];

/// The policies that are compared; the first is carried out by reservations.
const POLICIES: [(&str, &str); 4] = [
    ("edf", "\"edf\""),
    ("objective, finish", "{ name = \"objective\", order = \"finish\" }"),
    ("edf, reclaim", "{ name = \"edf\", reclaim = true }"),
    ("imprecise", "\"imprecise\""),
];

/// Some 1,100 releases in a second.
const TASKS: &str = r#"
[[task]]
name = "fast"
period = "1ms"
budget = "300us"
work = { spin = "100us" }
[[task]]
name = "slow"
period = "7ms"
budget = "2ms"
work = { spin = "1ms" }
"#;

/// One job of a release each, and always something to execute: release to running.
const LATENCY: &str = r#"
cpu = 0
policy = "imprecise"
[[task]]
name = "short"
period = "10ms"
budget = "3ms"
work = { spin = "forever" }
[[task]]
name = "long"
period = "40ms"
budget = "16ms"
work = { spin = "forever" }
"#;

/// ns of CPU time that a release may cost on the user host beyond a reservation.
const MOST_CPU: i64 = 15_000;

/// ns from release to running on the kernel host.
fn most_to_running(kernel: &str) -> u64 {
    if kernel.ends_with("-rt") {
        30_000
    } else {
        20_000
    }
}

/// One kernel's results: of each host and policy, and of the latency set.
struct Seen {
    kernel: &'static str,
    /// By host, then by policy.
    runs: [Vec<Value>; 2],
    latency: Value,
}

const HOSTS: [&str; 2] = ["user", "kernel"];

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut all = Vec::new();
    for kernel in KERNELS.into_iter().take(if bench.quick { 1 } else { KERNELS.len() }) {
        tools::progress(&format!("policies: {kernel}"));
        all.push(boot(bench, kernel).map_err(|e| format!("{kernel}: {e}"))?);
    }
    tools::progress("");
    println!("Policies in user space; ns of a clock that counts instructions");
    let (mut figures, mut verdicts) = (Map::new(), Vec::new());
    for seen in &all {
        let mut of_kernel = Map::new();
        for (host, runs) in HOSTS.into_iter().zip(&seen.runs) {
            let costs = beyond_the_first(host, runs)?;
            for ((policy, _), cost) in POLICIES.into_iter().zip(&costs).skip(1) {
                let what = format!("{}, {host} host, {policy}", seen.kernel);
                println!("  {what:<44} {cost:>8} per release beyond a reservation");
                if host == "user" {
                    let (most, is) = (format!("{MOST_CPU} ns"), format!("{cost} ns"));
                    let what = format!("{}: {policy}, CPU of a job, user host", seen.kernel);
                    verdicts.push(Verdict::new(what, most, is, *cost <= MOST_CPU));
                }
            }
            of_kernel.insert(host.to_owned(), json!(costs));
        }
        let ns = |key: &str| seen.latency["kernel_dispatcher"][key].as_u64().unwrap_or(u64::MAX);
        let keys = ["release_latency_p50_ns", "release_latency_p99_ns", "release_latency_max_ns"];
        let [median, p99, worst] = keys.map(ns);
        let what = format!("{}, kernel host, release to running", seen.kernel);
        println!("  {what:<44} {median} / {p99} / {worst}");
        let most = most_to_running(seen.kernel);
        verdicts.push(Verdict::new(
            format!("{}: release to running, policy in user space", seen.kernel),
            format!("{most} ns"),
            format!("{median} ns"),
            median <= most,
        ));
        of_kernel.insert("release_to_running_ns".into(), json!([median, p99, worst]));
        figures.insert(seen.kernel.to_owned(), Value::Object(of_kernel));
    }
    Ok(Part { figures: Value::Object(figures), verdicts })
}

/// What a release costs more than under the first policy, ns, of each. The user host's dispatcher
/// has all of it in its thread's CPU time; on the kernel host a load beside the tasks loses it.
fn beyond_the_first(host: &str, runs: &[Value]) -> Result<Vec<i64>, Failure> {
    let of_host = |run: &Value| -> Option<(i64, i64)> {
        let tasks = run["tasks"].as_array()?;
        let releases: i64 = tasks.iter().filter_map(|task| task["periods"].as_i64()).sum();
        let taken = match host {
            "user" => run["dispatcher"]["cpu_ns"].as_i64()?,
            _ => -run["load"]["share_ppm"].as_i64()? * (run["duration_ns"].as_i64()? / 1_000_000),
        };
        Some((taken, releases.max(1)))
    };
    let all: Option<Vec<_>> = runs.iter().map(of_host).collect();
    let all = all.ok_or("results without a dispatcher or a load")?;
    let (first, _) = *all.first().ok_or("no results")?;
    Ok(all.iter().map(|(taken, releases)| (taken - first) / releases).collect())
}

/// One boot: each policy on each host, then the latency set on the kernel host.
fn boot(bench: &Bench, kernel: &'static str) -> Result<Seen, Failure> {
    let back = tempfile::tempdir()?;
    let there = back.path().join("back");
    let seconds = if bench.quick { 1 } else { 2 };
    let mut run = Command::new(tools::in_tree("vm/run"));
    run.arg(kernel).arg("--results").arg(&there);
    run.arg("--with").arg(format!("{}:/bin/punctual", bench.punctual.display()));
    let mut job = String::new();
    let name = |host: &str, n: usize| format!("{host}-{n}");
    for (n, (_, policy)) in POLICIES.iter().enumerate() {
        let set = back.path().join(format!("{n}.toml"));
        std::fs::write(&set, format!("cpu = 0\npolicy = {policy}\n{TASKS}"))?;
        run.arg("--with").arg(format!("{}:/job/{n}.toml", set.display()));
    }
    // One host after the other: the first runs after the boot share the CPU with its rest.
    for host in HOSTS {
        for n in 0..POLICIES.len() {
            job += &step(host, &format!("{n}.toml"), seconds, &name(host, n));
        }
    }
    let set = back.path().join("latency.toml");
    std::fs::write(&set, LATENCY)?;
    run.arg("--with").arg(format!("{}:/job/latency.toml", set.display()));
    job += &step("kernel", "latency.toml", seconds, "latency");
    tools::in_guest(&mut run, &job)?;
    let of = |host: &str| -> Result<Vec<Value>, Failure> {
        (0..POLICIES.len()).map(|n| tools::result_in(&there.join(name(host, n)))).collect()
    };
    Ok(Seen {
        kernel,
        runs: [of("user")?, of("kernel")?],
        latency: tools::result_in(&there.join("latency"))?,
    })
}

fn step(host: &str, set: &str, seconds: u32, to: &str) -> String {
    let options = format!("--host {host} --overload --trace /tmp/t --duration {seconds}s {set}");
    tools::run_step(&options, to)
}
