//! How soon it starts, and what it needs.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_host_user::now;
use punctual_process::descendants;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One hundred tasks, half of the CPU.
fn hundred(cpu: u32) -> String {
    let mut set = format!("cpu = {cpu}\npolicy = \"edf\"\n");
    for n in 0..100 {
        set += &format!(
            "[[task]]\nname = \"t{n}\"\nperiod = \"{}ms\"\nbudget = \"500us\"\n\
             work = {{ spin = \"300us\" }}\n",
            100 + n
        );
    }
    set
}

/// Peak resident memory of a process, KiB.
fn peak(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

/// The same of a process and of its helpers together: the guardian and the guardian's child.
fn peaks(pid: i32) -> Option<(u64, u64)> {
    let helpers = descendants(&[pid]).into_iter().filter_map(peak).sum();
    Some((peak(pid)?, helpers))
}

fn memory(bench: &Bench) -> Result<(u64, u64), Failure> {
    let file = tools::set_file(&hundred(bench.cpu))?;
    let mut child = Command::new(&bench.punctual)
        .arg("run")
        .arg(file.path())
        .args(["--quiet", "--duration", "2s"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut most = (0, 0);
    while child.try_wait()?.is_none() {
        if let Some((own, helpers)) = peaks(child.id() as i32) {
            most = (most.0.max(own), most.1.max(helpers));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = child.wait_with_output()?;
    if !matches!(done.status.code(), Some(0 | 1)) {
        return Err(format!("punctual run: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(most)
}

/// From the process's start to the first instruction of the command that it runs.
fn first_release(bench: &Bench) -> Result<f64, Failure> {
    let me = std::env::current_exe()?;
    let begun = now();
    let text = tools::output(
        Command::new(&bench.punctual)
            .args([
                "run",
                "--period",
                "10ms",
                "--budget",
                "8ms",
                "--cpu",
                &bench.cpu.to_string(),
                "--",
            ])
            .arg(&me)
            .arg("--stamp"),
    )?;
    Ok(text.trim().parse::<u64>()?.saturating_sub(begun) as f64)
}

fn version(bench: &Bench) -> Result<f64, Failure> {
    let begun = Instant::now();
    tools::output(Command::new(&bench.punctual).arg("--version"))?;
    Ok(begun.elapsed().as_nanos() as f64)
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let times = if bench.quick { 5 } else { 21 };
    let collect = |f: fn(&Bench) -> Result<f64, Failure>| -> Result<Spread, Failure> {
        Ok(Spread::of(
            (0..times).map(|_| tools::patiently(|| f(bench))).collect::<Result<Vec<_>, _>>()?,
        ))
    };
    tools::progress("footprint");
    let version = collect(version)?;
    let release = collect(first_release)?;
    let (own, helpers) = tools::patiently(|| memory(bench))?;
    let size = std::fs::metadata(&bench.punctual)?.len();
    tools::progress("");
    println!("Start and size");
    println!("  punctual --version, whole process, ms           {}", version.show(1e6, 2));
    println!("  run -- COMMAND, start to its first instruction, ms  {}", release.show(1e6, 2));
    println!(
        "  peak memory with 100 tasks, MiB                  {:.1}, its helpers {:.1}",
        mib(own),
        mib(helpers)
    );
    println!(
        "  the command's file, MiB                          {:.1}\n",
        size as f64 / (1 << 20) as f64
    );
    Ok(Part {
        figures: json!({ "version_ns": version.json(), "first_release_ns": release.json(),
            "peak_kib": own, "peak_helpers_kib": helpers, "file_bytes": size }),
        verdicts: vec![
            Verdict::new(
                "start to the command's first instruction",
                "50 ms",
                format!("{} ms", release.show(1e6, 1)),
                release.median() < 50e6,
            ),
            Verdict::new(
                "peak memory with 100 tasks, guardian included",
                "16 MB",
                format!("{:.1} MB", (own + helpers) as f64 * 1.024e-3),
                (own + helpers) * 1024 < 16_000_000,
            ),
        ],
    })
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
