//! Instructions of a full decision inside the kernel and natively, counted in virtual machines
//! (docs/vm.md).

use crate::{tools, Bench, Failure, Part, Verdict};
use serde_json::json;
use std::process::Command;

const KERNELS: [&str; 3] = ["6.18", "7.3", "7.3-rt"];
/// As BPF, at most so many times the native build's.
const MOST_TIMES: f64 = 3.0;

/// A line of tests/kernel_decisions.rs.
struct Decision {
    jobs: u32,
    shape: String,
    bpf: u32,
    native: u32,
}

impl Decision {
    fn read(line: &str) -> Option<Decision> {
        // The first one stands behind the test's name.
        let mut words = line[line.find("decision ")?..].split_whitespace().skip(1);
        Some(Decision {
            jobs: words.next()?.parse().ok()?,
            shape: words.next()?.to_owned(),
            bpf: words.next()?.parse().ok()?,
            native: words.next()?.parse().ok()?,
        })
    }

    fn ratio(&self) -> f64 {
        f64::from(self.bpf) / f64::from(self.native)
    }
}

/// What the tests print under a kernel, and the kernel that it was.
fn run(kernel: &str) -> Result<Vec<Decision>, Failure> {
    let said = tools::output(Command::new(tools::in_tree("vm/test")).arg(kernel).args([
        "--",
        "--release",
        "-p",
        "punctual-host-kernel",
        "--test",
        "kernel_decisions",
        "--",
        "--nocapture",
    ]))?;
    let decisions: Vec<_> = said.lines().filter_map(Decision::read).collect();
    if decisions.is_empty() {
        return Err(format!("the test under {kernel} printed no figures:\n{said}").into());
    }
    Ok(decisions)
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    println!("One full decision in a virtual machine whose clock counts instructions");
    println!(
        "  {:<8} {:>8} {:>8} {:>14} {:>14} {:>8}",
        "kernel", "jobs", "shape", "as BPF", "native", "ratio"
    );
    let mut figures = serde_json::Map::new();
    let mut verdicts = Vec::new();
    for kernel in KERNELS.into_iter().take(if bench.quick { 1 } else { KERNELS.len() }) {
        tools::progress(&format!("counted: {kernel}"));
        let decisions = run(kernel)?;
        tools::progress("");
        for d in &decisions {
            println!(
                "  {kernel:<8} {:>8} {:>8} {:>14} {:>14} {:>8.2}",
                d.jobs,
                d.shape,
                d.bpf,
                d.native,
                d.ratio()
            );
        }
        let most = decisions.iter().map(Decision::ratio).fold(0.0, f64::max);
        verdicts.push(Verdict::new(
            format!("instructions of a decision as BPF against native, {kernel}"),
            MOST_TIMES.to_string(),
            format!("at most {most:.2}"),
            most <= MOST_TIMES,
        ));
        let lines = decisions
            .iter()
            .map(|d| {
                json!({ "jobs": d.jobs, "shape": d.shape, "bpf": d.bpf, "native": d.native,
                    "ratio": d.ratio() })
            })
            .collect();
        figures.insert(kernel.to_owned(), lines);
    }
    println!();
    Ok(Part { figures: figures.into(), verdicts })
}
