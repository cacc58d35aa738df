//! How soon the kernel host's scheduler is there: counted in a virtual machine, step by step, with nobody else to run.

use std::io::BufReader;
use std::path::Path;

use punctual_host_kernel::Start;
use punctual_trace::{kind, Record, Trace};
use serde_json::{json, Value};

use crate::{guest, Failure, Verdict};

/// What is promised of a real machine, ns.
const MOST_NS: u64 = 200_000_000;
/// At best a machine of today executes so many instructions in a ns.
const PER_NS: u64 = 3;

/// In the guest: the steps, ns.
pub fn steps() -> Result<Value, Failure> {
    guest::settle();
    let s = Start::try_it(0).map_err(|e| e.to_string())?;
    let ns = |d: std::time::Duration| d.as_nanos() as u64;
    Ok(json!({ "probe_ns": ns(s.probe), "open_ns": ns(s.open), "load_ns": ns(s.load), "create_ns": ns(s.create),
        "attach_ns": ns(s.attach), "detach_ns": ns(s.detach) }))
}

/// One kernel's.
pub struct Load {
    steps: Value,
    /// From the command's start until it had the machine and its tasks, ns.
    ready: u64,
    /// And until its first release, ns.
    first: u64,
}

impl Load {
    /// What a guest has brought back.
    pub fn read(back: &Path) -> Result<Load, Failure> {
        let text = |name: &str| std::fs::read_to_string(back.join(name));
        let began: u64 = text("began")?.trim().parse()?;
        let trace = Trace::read(&mut BufReader::new(std::fs::File::open(back.join("short"))?))?;
        let records = &trace.records;
        let ready = records.iter().find_map(|r| r.at()).ok_or("the trace has no times")?;
        let reserved = |r: &&Record| r.kind == kind::RESERVATION_ADD;
        let first = records.iter().find(reserved).ok_or("the trace has no reservation")?.a;
        Ok(Load { steps: serde_json::from_str(&text("load")?)?, ready: ready - began, first: first - began })
    }

    fn step(&self, name: &str) -> u64 {
        self.steps[format!("{name}_ns")].as_u64().unwrap_or(0)
    }

    pub fn json(&self) -> Value {
        let mut all = self.steps.clone();
        all["ready_ns"] = self.ready.into();
        all["first_release_ns"] = self.first.into();
        all
    }

    /// Of a machine that is as fast as is thought of.
    pub fn verdict(&self, kernel: &str) -> Verdict {
        let loads = self.step("open") + self.step("load");
        let millions = |n: u64| n as f64 / 1e6;
        Verdict {
            what: format!("{kernel}: the scheduler is loaded after"),
            target: format!("{} ms", MOST_NS / 1_000_000),
            seen: format!("{:.0} ms at {PER_NS} instructions in a ns", millions(loads / PER_NS)),
            met: loads / PER_NS <= MOST_NS,
        }
    }
}

pub fn print<'a>(all: impl Iterator<Item = (&'a str, &'a Load)>) {
    const STEPS: [&str; 6] = ["probe", "open", "load", "create", "attach", "detach"];
    println!("  {:<8} ms of that clock to start: {:>46} {:>12}", "", "command to tasks", "1st release");
    print!("  {:<8}", "");
    STEPS.iter().for_each(|step| print!(" {step:>8}"));
    println!();
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    for (kernel, load) in all {
        print!("  {kernel:<8}");
        STEPS.iter().for_each(|step| print!(" {:>8}", ms(load.step(step))));
        println!(" {:>20} {:>12}", ms(load.ready), ms(load.first));
    }
}
