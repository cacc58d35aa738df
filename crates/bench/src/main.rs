//! `make bench`: what Punctual promises about speed and size, measured beside its baselines on the
//! machine at hand. What is compared runs in alternating windows of one invocation, and what
//! counts is the median of the windows' ratios.

mod budgets;
mod check;
mod core;
mod counted;
mod examples;
mod fifo;
mod floor;
mod footprint;
mod guest;
mod handler;
mod kernel;
mod load;
mod locks;
mod policies;
mod rtai;
mod service;
mod settling;
mod side_by_side;
mod sim;
mod threads;
mod tools;
mod trace;
mod wait_period;
mod wakeup;
mod windows;

use clap::{Parser, ValueEnum};
use punctual_session::results::Machine;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures Punctual beside its baselines.
#[derive(Parser)]
#[command(
    name = "bench/run",
    after_help = "Run it on an otherwise idle machine, as root. docs/benchmarks.md tells \
what is measured."
)]
struct Args {
    /// Only these parts [default: all]
    #[arg(value_enum)]
    parts: Vec<PartName>,
    /// Fewer and shorter windows
    #[arg(long)]
    quick: bool,
    /// CPU to measure on [default: the last one]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Pairs of windows of each comparison [default: 9; with --quick 3]
    #[arg(long, value_name = "N")]
    windows: Option<usize>,
    /// Write all figures here too
    // The script gives it, too: the last one counts.
    #[arg(long, value_name = "FILE", overrides_with = "json", default_value = "target/bench.json")]
    json: PathBuf,
    /// The command to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/punctual")]
    punctual: PathBuf,
    /// Says when it began, on standard output, and ends.
    #[arg(long, hide = true)]
    stamp: bool,
    /// In a guest: measures the kernel's own policies, and ends.
    #[arg(long, hide = true)]
    baselines: bool,
    /// In a guest: measures the steps of the kernel host's start, and ends.
    #[arg(long, hide = true)]
    load: bool,
    /// In a guest: the program that is measured. It never ends.
    #[arg(long, hide = true, value_name = "FILE")]
    burst: Option<PathBuf>,
    /// Sends back what comes over the FIFOs of this folder, on the CPU of --cpu, for 30 s at most.
    #[arg(long, hide = true, value_name = "FOLDER")]
    echo: Option<PathBuf>,
    /// Prints what switches between two threads of a kind take, on the CPU of --cpu.
    #[arg(long, hide = true, value_enum, value_name = "KIND")]
    switches: Option<rtai::Kind>,
    /// Prints the numbers of so many threads, which sleep until its input ends.
    #[arg(long, hide = true, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
enum PartName {
    /// Budget received, under Punctual and under SCHED_DEADLINE
    Budgets,
    /// Enforcement error of real runs, settled by several rules
    Settling,
    /// The dispatcher's wake-up beside cyclictest's
    Wakeup,
    /// Time in the handler, and CPU in all per event beside a bare thread's
    Handler,
    /// One decision: instructions, time, cycles, as BPF
    Core,
    /// One decision inside the kernel, counted in virtual machines
    Counted,
    /// Releases and budgets inside the kernel beside SCHED_FIFO's and SCHED_DEADLINE's, in virtual
    /// machines
    Kernel,
    /// Policies in user space on both hosts, in virtual machines
    Policies,
    /// The example of each policy on the three hosts, in a virtual machine
    Examples,
    /// Time to start, memory with 100 tasks
    Footprint,
    /// The simulator: jobs per second beside SimSo's, memory
    Sim,
    /// How soon a set of 100 tasks is checked
    Check,
    /// Reading a trace of ten million records, recording one, and `punctual top`
    Trace,
    /// FIFOs beside rtrb, iceoryx2 and a futex
    Fifo,
    /// Mutexes beside POSIX threads' ones, with priority inheritance where they are handed over
    Locks,
    /// Switches by liblxrt beside POSIX threads'
    Rtai,
    /// `wait_period` beside clock_nanosleep
    WaitPeriod,
    /// One reservation more of the service, and the service while it is idle
    Service,
}

const PARTS: [PartName; 18] = [
    PartName::Core,
    PartName::Counted,
    PartName::Kernel,
    PartName::Policies,
    PartName::Examples,
    PartName::Footprint,
    PartName::Handler,
    PartName::Wakeup,
    PartName::Budgets,
    PartName::Settling,
    PartName::Sim,
    PartName::Check,
    PartName::Trace,
    PartName::Fifo,
    PartName::Locks,
    PartName::Rtai,
    PartName::WaitPeriod,
    PartName::Service,
];

/// How to measure.
struct Bench {
    cpu: u32,
    windows: usize,
    quick: bool,
    punctual: PathBuf,
}

/// What became of one promise.
struct Verdict {
    what: String,
    target: String,
    seen: String,
    met: bool,
}

impl Verdict {
    fn new(
        what: impl Into<String>,
        target: impl Into<String>,
        seen: impl Into<String>,
        met: bool,
    ) -> Verdict {
        Verdict { what: what.into(), target: target.into(), seen: seen.into(), met }
    }
}

/// What a part found; its tables are printed already.
struct Part {
    figures: Value,
    verdicts: Vec<Verdict>,
}

/// Why something could not be measured.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.stamp {
        println!("{}", punctual_host_user::now());
        return ExitCode::SUCCESS;
    }
    if let Some(folder) = &args.echo {
        return exit_code(fifo::echo(folder, args.cpu.unwrap_or(0)));
    }
    if let Some(kind) = args.switches {
        return exit_code(rtai::serve(kind, args.cpu.unwrap_or(0), args.quick));
    }
    if let Some(count) = args.threads {
        return exit_code(service::threads(count));
    }
    if args.baselines || args.load || args.burst.is_some() {
        return in_guest(&args);
    }
    let machine = Machine::detect();
    let bench = Bench {
        cpu: args.cpu.unwrap_or_else(|| machine.cpus.last().map_or(0, |&cpu| cpu as u32)),
        windows: args.windows.unwrap_or(if args.quick { 3 } else { 9 }).max(1),
        quick: args.quick,
        punctual: args.punctual.canonicalize().unwrap_or(args.punctual.clone()),
    };
    describe(&machine, &bench);
    let mut all = json!({ "version": 1, "machine": machine, "cpu": bench.cpu,
        "windows": bench.windows, "load_before": tools::load() });
    let mut verdicts = Vec::new();
    let mut failed = false;
    for part in PARTS.into_iter().filter(|p| args.parts.is_empty() || args.parts.contains(p)) {
        let measured = match part {
            PartName::Budgets => budgets::measure(&bench),
            PartName::Settling => settling::measure(&bench),
            PartName::Wakeup => wakeup::measure(&bench),
            PartName::Handler => handler::measure(&bench),
            PartName::Core => core::measure(&bench),
            PartName::Counted => counted::measure(&bench),
            PartName::Footprint => footprint::measure(&bench),
            PartName::Sim => sim::measure(&bench),
            PartName::Check => check::measure(&bench),
            PartName::Trace => trace::measure(&bench),
            PartName::Fifo => fifo::measure(&bench),
            PartName::Locks => locks::measure(&bench),
            PartName::Rtai => rtai::measure(&bench),
            PartName::WaitPeriod => wait_period::measure(&bench),
            PartName::Service => service::measure(&bench),
            PartName::Kernel => kernel::measure(&bench),
            PartName::Policies => policies::measure(&bench),
            PartName::Examples => examples::measure(&bench),
        };
        let name = format!("{part:?}").to_lowercase();
        match measured {
            Ok(part) => {
                all[name] = part.figures;
                verdicts.extend(part.verdicts);
            }
            Err(e) => {
                eprintln!("bench: {name} could not be measured: {e}");
                all[name] = json!({ "error": e.to_string() });
                failed = true;
            }
        }
    }
    all["load_after"] = json!(tools::load());
    print_verdicts(&verdicts);
    all["verdicts"] = verdicts
        .iter()
        .map(|v| json!({ "what": v.what, "target": v.target, "seen": v.seen, "met": v.met }))
        .collect();
    if let Err(e) = std::fs::write(&args.json, format!("{all:#}\n")) {
        eprintln!("bench: {}: {e}", args.json.display());
        failed = true;
    } else {
        println!("\nAll figures: {}", args.json.display());
    }
    ExitCode::from(u8::from(failed))
}

fn in_guest(args: &Args) -> ExitCode {
    exit_code(match &args.burst {
        Some(file) => guest::burst(file),
        None => if args.load { load::steps() } else { guest::baselines() }
            .map(|figures| println!("{figures}")),
    })
}

fn exit_code(done: Result<(), Failure>) -> ExitCode {
    if let Err(e) = &done {
        eprintln!("bench: {e}");
    }
    ExitCode::from(u8::from(done.is_err()))
}

fn describe(machine: &Machine, bench: &Bench) {
    println!(
        "{}, {} CPUs{}, Linux {} ({}{}), clock {}; measured on CPU {}, {} windows of each; load \
         before {}\n",
        machine.cpu_model.as_deref().unwrap_or("unknown processor"),
        machine.cpus.len(),
        if machine.virtual_machine == Some(true) { ", virtual machine" } else { "" },
        machine.kernel.as_deref().unwrap_or("unknown"),
        machine.arch,
        if machine.preempt_rt { ", PREEMPT_RT" } else { "" },
        machine.clock_source.as_deref().unwrap_or("unknown"),
        bench.cpu,
        bench.windows,
        tools::load(),
    );
}

fn print_verdicts(verdicts: &[Verdict]) {
    if !verdicts.is_empty() {
        println!("Promises");
    }
    for Verdict { what, target, seen, met } in verdicts {
        println!("  {what:<58} {target:>14}  {seen:<30} {}", if *met { "met" } else { "NOT MET" });
    }
}
