//! How soon the kernel host's scheduler is there: counted in a virtual machine, step by
//! step, on an idle machine. How long that is here follows from what can be loaded in both: the
//! dispatcher's object, which needs no sched_ext.

use std::io::BufReader;
use std::path::Path;

use punctual_host_kernel::{Kernel, Start};
use punctual_trace::{kind, Record, Trace};
use serde_json::{json, Value};

use crate::windows::Spread;
use crate::{guest, Failure, Verdict};

/// What is promised, ns.
const MOST_NS: f64 = 200e6;
/// Loads here, of which the median is taken.
const LOADS: u32 = 9;

/// Of the dispatcher's object, ns of this thread.
fn dispatcher() -> Result<u64, Failure> {
    Ok(Kernel::load()?.load_execution().as_nanos() as u64)
}

/// In the guest: the steps, ns.
pub fn steps() -> Result<Value, Failure> {
    guest::settle();
    let dispatcher = dispatcher()?;
    let s = Start::try_it(0).map_err(|e| e.to_string())?;
    let ns = |d: std::time::Duration| d.as_nanos() as u64;
    Ok(json!({ "probe_ns": ns(s.probe), "open_ns": ns(s.open), "load_ns": ns(s.load),
        "create_ns": ns(s.create), "attach_ns": ns(s.attach), "detach_ns": ns(s.detach),
        "dispatcher_ns": dispatcher }))
}

/// How fast this machine loads.
pub struct Rate {
    /// The dispatcher's object, ns, of which each is so many counted ones.
    here: f64,
    ratio: f64,
    /// The guest's kernel, which is to be the nearest to ours: each version's verifier does
    /// something else.
    kernel: &'static str,
}

impl Rate {
    /// # Errors
    /// The running kernel does not take the dispatcher's object.
    pub fn measure<'a>(
        all: impl Iterator<Item = (&'static str, &'a Load)>,
    ) -> Result<Rate, Failure> {
        let loads = (0..LOADS).map(|_| dispatcher()).collect::<Result<Vec<_>, _>>()?;
        let here = Spread::of(loads.into_iter().map(|ns| ns as f64)).median();
        let ours = version(&std::fs::read_to_string("/proc/sys/kernel/osrelease")?);
        let nearest =
            all.min_by_key(|(kernel, _)| (version(kernel) > ours, version(kernel).abs_diff(ours)));
        let (kernel, load) = nearest.ok_or("no kernels")?;
        Ok(Rate { here, ratio: load.step("dispatcher") as f64 / here, kernel })
    }
}

/// 6.18.44 and 6.18-rt are 6018.
fn version(release: &str) -> u32 {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    numbers.next().unwrap_or(0) * 1_000 + numbers.next().unwrap_or(0)
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
        Ok(Load {
            steps: serde_json::from_str(&text("load")?)?,
            ready: ready - began,
            first: first - began,
        })
    }

    fn step(&self, name: &str) -> u64 {
        self.steps[format!("{name}_ns")].as_u64().unwrap_or(0)
    }

    /// Opening and loading, counted ns; and on a machine as fast as this one, ns.
    fn loaded(&self, rate: &Result<Rate, Failure>) -> (f64, Option<f64>) {
        let counted = (self.step("open") + self.step("load")) as f64;
        (counted, rate.as_ref().ok().map(|rate| counted / rate.ratio))
    }

    pub fn json(&self, rate: &Result<Rate, Failure>) -> Value {
        let mut all = self.steps.clone();
        all["loaded_here_ns"] = self.loaded(rate).1.into();
        all["ready_ns"] = self.ready.into();
        all["first_release_ns"] = self.first.into();
        all
    }

    pub fn verdict(&self, kernel: &str, rate: &Result<Rate, Failure>) -> Verdict {
        let (counted, loads) = self.loaded(rate);
        let here = loads.map_or("not known".to_owned(), |ns| format!("{:.0} ms", ns / 1e6));
        Verdict::new(
            format!("{kernel}: the scheduler is loaded after"),
            format!("{:.0} ms", MOST_NS / 1e6),
            format!("{here} ({:.0} million instructions)", counted / 1e6),
            loads.is_some_and(|ns| ns <= MOST_NS),
        )
    }
}

pub fn print<'a>(all: impl Iterator<Item = (&'a str, &'a Load)>, rate: &Result<Rate, Failure>) {
    const STEPS: [&str; 6] = ["probe", "open", "load", "create", "attach", "detach"];
    println!(
        "  {:<8} ms of that clock to start: {:>46} {:>12}",
        "", "command to tasks", "1st release"
    );
    print!("  {:<8}", "");
    STEPS.iter().for_each(|step| print!(" {step:>8}"));
    println!();
    let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    for (kernel, load) in all {
        print!("  {kernel:<8}");
        STEPS.iter().for_each(|step| print!(" {:>8}", ms(load.step(step))));
        println!(" {:>20} {:>12}", ms(load.ready), ms(load.first));
    }
    match rate {
        Ok(Rate { here, ratio, kernel }) => println!(
            "  In loading, {ratio:.1} of them take this machine a ns: {:.1} ms for the \
             dispatcher's object alone, and {:.0} million under {kernel}",
            here / 1e6,
            here * ratio / 1e6,
        ),
        Err(e) => println!(
            "  How long that is here is not known, for the dispatcher's object does not load: {e}"
        ),
    }
}
