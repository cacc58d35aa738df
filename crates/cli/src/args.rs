//! The command line.

use clap::{ArgGroup, Args, ColorChoice, Parser, Subcommand, ValueEnum};
use punctual_policies::policies;
use punctual_session::HostKind;
use punctual_taskset::Overrun;
use std::path::PathBuf;

use crate::args_fifo::FifoCommand;
use crate::args_lock::LockCommand;
use crate::args_measure::MeasureCommand;
use crate::args_policy::PolicyCommand;
use crate::args_profile::Profile;
use crate::args_report::ReportArgs;
use crate::args_role::RoleCommand;
use crate::args_trace::TraceArgs;

macro_rules! exit_codes {
    () => {
        "0 done, all deadlines met and all budgets kept; 1 it ran, and deadlines were missed or \
         budgets not kept; 2 bad usage or a bad file; 3 not admitted; 4 the machine does not \
         permit it; 5 the kernel host's scheduler was ended while it ran; 130 interrupted."
    };
}

/// Guaranteed CPU time for programs, on a stock Linux kernel.
#[derive(Parser)]
#[command(name = "punctual", version, max_term_width = 100)]
#[command(after_help = concat!("Exit codes: ", exit_codes!(), "\n\nFirst steps:\n  \
punctual doctor                                      what is in the way of real time here\n  \
punctual profile -- COMMAND                          which budget a program needs\n  \
punctual run --period 20ms --budget 5ms -- COMMAND   give a program 5 ms in every 20\n  \
punctual run --role NAME -- COMMAND                  the same, by a role of this machine\n  \
punctual check SET.toml                              does it fit\n  \
punctual run SET.toml                                run a task set (docs/task-set.md)\n  \
punctual sim SET.toml --gantt                        the same in virtual time, drawn"))]
pub struct Cli {
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", display_order = 900)]
    #[arg(default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a task set, a command, or an already running process with enforced budgets
    Run(Box<Run>),
    /// Simulate a task set in exact virtual time, or replay a recorded run
    Sim(Box<Sim>),
    /// Check whether a task set fits: worst-case response times, slack, and the smallest change
    /// that would help; starts nothing
    Check(Check),
    /// Work with a recorded run: sum it up, explain its misses, compare, cut, draw it
    Trace(TraceArgs),
    /// Find what impairs real time on this machine; changes nothing
    Doctor(Doctor),
    /// Watch a running set, and change its budgets: live, from another terminal
    Top(crate::top::Top),
    /// Have a running set read its file again, and swap the policies that differ
    Reload(crate::reload::Reload),
    /// Results and traces as one HTML page to look at, and as SVG pictures
    Report(ReportArgs),
    /// Which period and budget a program needs: watches it, and proposes an entry for a task set
    Profile(Profile),
    /// Measure this machine: how late jobs wake, and why not to believe it
    Measure(MeasureCommand),
    /// Which scheduling policies and kinds of server there are
    Policy(PolicyCommand),
    /// Which roles there are: periods and budgets by name, for `run --role`
    Role(RoleCommand),
    /// FIFOs between tasks and other programs: make, list, read, write, remove them
    Fifo(FifoCommand),
    /// Locks between programs: list and remove them
    Lock(LockCommand),
    /// Serve all programs of this machine: reserve CPU time for them, within limits by user
    Serve(crate::serve::Serve),
    /// Restore the changes of a killed Punctual: frozen processes, priorities, cgroups
    Clean(Clean),
    /// Print a completion script for a shell, on standard output
    Completions(Completions),
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man(Man),
}

#[derive(Args)]
pub struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct Man {
    /// An existing directory
    pub directory: PathBuf,
}

#[derive(Args)]
#[command(
    override_usage = concat!(
        "punctual run [OPTIONS] SET.toml\n",
        "       punctual run [OPTIONS] --period TIME --budget TIME -- COMMAND [ARG]...\n",
        "       punctual run [OPTIONS] --period TIME --budget TIME --pid PID\n",
        "       punctual run [OPTIONS] --role NAME [-- COMMAND [ARG]... | --pid PID]",
    ),
    group(ArgGroup::new("releases").args(["period", "role"]).multiple(true)),
    group(ArgGroup::new("execution").args(["budget", "role"]).multiple(true)),
    after_help = concat!("Times are a number and a unit: 250us, 1ms, 1.5s, 2min.\n\n\
                          With -- COMMAND the standard streams are the command's: the results go \
                          to standard error (as those of time(1) do); with --json they go to \
                          standard output, and the command's output to standard error.\n\n\
                          Exit codes with -- COMMAND, as of env(1) and timeout(1): the command's \
                          own, or 128 + N if signal N ended it; 124 if --duration did; 125 \
                          Punctual failed; 126 the command cannot be executed; 127 there is no \
                          such command; 130 interrupted; with --strict 1 if deadlines were missed \
                          or budgets not kept although it did well.\n\n\
                          Exit codes for task sets and --pid: ", exit_codes!())
)]
pub(crate) struct Run {
    /// Task-set file (TOML; docs/task-set.md)
    #[arg(value_name = "SET.toml")]
    #[arg(conflicts_with_all = ["role", "period", "budget", "pid", "argv"])]
    pub file: Option<PathBuf>,

    /// Period, budget, deadline, overrun policy, CPU and scheduling policy of this role, where no
    /// option gives another one (`punctual role list`; docs/roles.md)
    #[arg(long, value_name = "NAME")]
    pub role: Option<String>,
    /// Time between releases
    #[arg(long, value_name = "TIME", requires = "execution")]
    pub period: Option<String>,
    /// Execution time per period: guaranteed, and no more than that
    #[arg(long, value_name = "TIME", requires = "releases")]
    pub budget: Option<String>,
    /// Relative deadline [default: the period]
    #[arg(long, value_name = "TIME", requires = "execution")]
    pub deadline: Option<String>,
    #[command(flatten)]
    pub instead: Instead,
    /// What happens when the budget is used up before the task is done
    #[arg(long, value_enum, value_name = "POLICY", requires = "execution")]
    pub overrun: Option<OverrunArg>,
    /// Adopt this running process, with its threads and children, instead of starting a command
    #[arg(
        long,
        value_name = "PID",
        requires = "execution",
        conflicts_with = "argv",
        allow_negative_numbers = true
    )]
    pub pid: Option<i32>,

    /// Stop after this time [default: the set's own, else when every task has ended, or at Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Run the same set under the kernel's own policies too, and print the columns side by side
    #[arg(long, value_enum, value_delimiter = ',', value_name = "fifo,deadline,other")]
    pub compare: Vec<BaselineArg>,
    /// Run although it does not fit (`punctual check` has the reasons); the result is labelled so
    #[arg(long)]
    pub overload: bool,
    /// Run a CPU-bound background process on the same CPU (of several, the first)
    #[arg(long)]
    pub load: bool,
    /// Keep the CPUs from idling, by a SCHED_IDLE thread each: lower release latency, above all in
    /// virtual machines, for more power; user host only
    #[arg(long)]
    pub no_idle: bool,
    /// Write the trace (inputs, decisions, execution, periods) to this file; with several CPUs,
    /// .cpuN is appended
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Trace records of each CPU that may wait for their file, 32 bytes each; what finds no room is
    /// missing in the trace (user host)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 65_536,
        value_parser = clap::value_parser!(u32).range(1..=1 << 26)
    )]
    pub trace_records: u32,
    /// Which host executes the decisions
    #[arg(long, value_enum, default_value_t = HostArg::User)]
    pub host: HostArg,
    /// Results as JSON on standard output (docs/results.md)
    #[arg(long)]
    pub json: bool,
    /// All columns, and the dispatcher's own figures
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Where the commands' output goes [default: inherit, with --json stderr]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub output: Option<OutputArg>,
    /// Exit with 1 if deadlines were missed or budgets not kept, although the command exited with 0
    #[arg(long)]
    pub strict: bool,

    /// Command to start, with its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "execution")]
    pub argv: Vec<String>,
}

/// What takes the place of a task set's own.
#[derive(Args, Default)]
pub struct Instead {
    /// CPU to run on, for a set of one CPU [default: the set's own, else the last that we may use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    #[arg(long, value_name = "NAME|FILE", help = policy_help())]
    pub policy: Option<String>,
}

fn policy_help() -> String {
    let by_name = policies().iter().filter(|policy| !policy.info.takes_order);
    let names = by_name.map(|policy| policy.info.name).collect::<Vec<_>>().join(", ");
    format!(
        "Policy at the top, one of {names}, or the file of a plugin [default: the set's own, else \
         edf]"
    )
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum OverrunArg {
    Carry,
    Skip,
    Background,
    Signal,
}

impl From<OverrunArg> for Overrun {
    fn from(overrun: OverrunArg) -> Overrun {
        match overrun {
            OverrunArg::Carry => Overrun::Carry,
            OverrunArg::Skip => Overrun::Skip,
            OverrunArg::Background => Overrun::Background,
            OverrunArg::Signal => Overrun::Signal,
        }
    }
}

/// Where the commands' output goes.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum OutputArg {
    /// Where Punctual's own goes
    Inherit,
    /// Nowhere
    Null,
    /// All of it to standard error
    Stderr,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum BaselineArg {
    Fifo,
    Deadline,
    Other,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum HostArg {
    /// A dispatcher thread per CPU, on any Linux
    User,
    /// Exact virtual time: nothing is started (`punctual sim` has more options)
    Sim,
    /// Inside the kernel, by sched_ext: Linux 6.18 or later (docs/kernel-host.md)
    Kernel,
    /// A dispatcher of punctuald, which all programs share (docs/service.md): needs no privileges
    Service,
    /// The service, if one listens and takes the set; else the kernel host where machine and set
    /// permit it, else the user host. Prints which, and why
    Auto,
}

/// A host that takes time for its own work, as counted in a virtual machine.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum RealHost {
    /// A dispatcher thread per CPU
    User,
    /// Inside the kernel, by sched_ext
    Kernel,
}

impl From<RealHost> for HostKind {
    fn from(host: RealHost) -> HostKind {
        match host {
            RealHost::User => HostKind::User,
            RealHost::Kernel => HostKind::Kernel,
        }
    }
}

#[derive(Args)]
#[command(
    override_usage = concat!(
        "punctual sim [OPTIONS] SET.toml\n",
        "       punctual sim [OPTIONS] --replay TRACE",
    ),
    after_help = "Times are a number and a unit: 250us, 1ms, 1.5s, 2min.\n\n\
                  Exit codes: 0 all deadlines met and budgets kept, or the replay is the same; 1 \
                  deadlines were missed or budgets not kept, or the replay is different; 2 bad \
                  usage or a bad file; 130 interrupted."
)]
pub struct Sim {
    /// Task-set file (docs/task-set.md)
    #[arg(value_name = "SET.toml", required_unless_present = "replay", conflicts_with = "replay")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub instead: Instead,
    /// Simulate for this time [default: the set's own duration, else the hyperperiod unless it is
    /// very long]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["hyperperiod", "replay"])]
    pub duration: Option<String>,
    /// Simulate until everything repeats, however long that is
    #[arg(long, conflicts_with = "replay")]
    pub hyperperiod: bool,
    /// Draw the schedule (its beginning, when it is long)
    #[arg(long, conflicts_with_all = ["json", "replay"])]
    pub gantt: bool,
    /// What a host takes of the CPU itself: as the user or the kernel host states it here, or named
    /// for each release, each switch, each timer that ends a budget, and each command (wait,
    /// suspension, wake-up) of a task [default: nothing]
    #[arg(
        long,
        alias = "overhead",
        value_name = "user|kernel|release=TIME,switch=TIME,timer=TIME,command=TIME",
        conflicts_with = "replay"
    )]
    pub costs: Option<String>,
    /// Write the trace (inputs, decisions, execution, periods) to this file; with several CPUs,
    /// .cpuN is appended
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub trace: Option<PathBuf>,
    /// Feed the inputs of this trace, of any host, to the dispatcher: it must decide the same
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["cpu", "policy"])]
    pub replay: Option<PathBuf>,
    /// Results as JSON on standard output (docs/results.md)
    #[arg(long)]
    pub json: bool,
    /// All columns
    #[arg(long, conflicts_with_all = ["json", "replay"])]
    pub wide: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 it fits; 2 bad usage or a bad file; 3 it does not fit.")]
pub struct Check {
    /// Task-set file (docs/task-set.md)
    #[arg(value_name = "SET.toml")]
    pub file: PathBuf,
    #[command(flatten)]
    pub instead: Instead,
    /// Judge it on this host: its limit, what it takes of each CPU itself, and its least budget
    /// [default: none, pure theory]
    #[arg(long, value_enum)]
    pub host: Option<RealHost>,
    /// The analysis as JSON on standard output (docs/check.md)
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 no obstacle; 4 the user host cannot work here.")]
pub struct Doctor {
    /// Findings as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Cause, effect and help beneath each finding
    #[arg(long, short, conflicts_with = "json")]
    pub verbose: bool,
}

#[derive(Args)]
pub struct Clean {
    /// The report as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
