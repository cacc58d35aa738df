//! The command `punctual`, as a library: a program with scheduling policies of its own gets the
//! whole command line by [`run_with`] (docs/policies.md, "Write your own").
//!
//! ```no_run
//! use punctual_cli::policies::{per_release, JobParams, MemberParams};
//! use punctual_cli::policies::{PolicyEntry, PolicyInfo, Release, ReleasePolicy};
//!
//! static INFO: PolicyInfo = PolicyInfo {
//!     name: "shortest",
//!     title: "shortest budget first",
//!     ..PolicyInfo::POLICY
//! };
//!
//! static SHORTEST: PolicyEntry =
//!     PolicyEntry::new(&INFO, |entry, _setup| Ok(per_release(entry, Shortest)));
//!
//! struct Shortest;
//!
//! impl ReleasePolicy for Shortest {
//!     fn first(&mut self, task: &MemberParams, release: &Release) -> JobParams {
//!         let (start, finish, budget) = (release.at, release.deadline, release.left);
//!         JobParams { start, finish, budget, priority: -(task.budget as i64) }
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     punctual_cli::run_with(&[&SHORTEST])
//! }
//! ```

mod args;
mod args_fifo;
mod args_lock;
mod args_measure;
mod args_policy;
mod args_profile;
mod args_report;
mod args_role;
mod args_trace;
mod check;
mod clean;
mod compare;
mod doctor;
mod drive;
mod fifo;
mod fifo_device;
mod fifo_stream;
mod generate;
mod hangup;
mod live;
mod lock;
mod measure;
mod output;
mod plugin;
mod policy;
mod policy_new;
mod profile;
mod program;
mod progress;
mod reload;
mod replay;
mod report;
mod role;
mod run;
#[cfg(test)]
mod schema;
mod screen;
mod serve;
mod set;
mod sim;
mod stuck_policy;
mod top;
mod trace;
mod usage;

use std::process::ExitCode;

use clap::FromArgMatches;

pub use punctual_policies as policies;
use punctual_policies::PolicyEntry;

use args::{Cli, Command};
use args_fifo::FifoAction;
use args_lock::LockAction;
use args_measure::Instrument;
use args_policy::PolicyAction;
use args_role::RoleAction;
use output::Caller;

/// The command line of `punctual`, on the arguments of this program, with the program's own
/// scheduling policies beside the built-in ones: in task sets, `--policy`, `policy list` and
/// `policy show`, on every host. Help and errors name the program as its first argument does.
///
/// To be called first in `main`, before there are threads: parts of a run are processes of their
/// own, which begin as copies of this one; a measurement executes this program again. Returns the
/// exit code of the command; it is 2 if a policy is refused: its name is invalid, or that of
/// another policy or a kind of server.
#[must_use]
pub fn run_with(policies: &[&'static PolicyEntry]) -> ExitCode {
    // Before the first thread: later it takes tens of milliseconds.
    punctual_sys::futex::fix_hash_size();
    let words: Vec<_> = std::env::args_os().collect();
    program::set_name(words.first());
    punctual_plugin::enable();
    if let Err(error) = policies::register(policies) {
        return ExitCode::from(usage::caller(&words).report(&error));
    }
    let matches = match program::command().try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => return usage::report(&error, &words),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &words),
    };
    output::set_color(cli.color);
    let caller = Caller::of(&cli.command);
    stuck_policy::bound(caller);
    match &cli.command {
        Command::Run(args) => caller.finish(run::run(args)),
        Command::Sim(args) => sim::run(args, caller),
        Command::Check(args) => caller.finish(check::run(args)),
        Command::Trace(args) => trace::run(args, caller),
        Command::Doctor(args) => caller.finish(doctor::run(args)),
        Command::Top(args) => caller.finish(top::run(args)),
        Command::Reload(args) => caller.finish(reload::run(args)),
        Command::Report(args) => caller.finish(report::run(args)),
        Command::Measure(args) => match &args.instrument {
            Instrument::Determinism(args) => caller.finish(measure::determinism::run(args)),
            Instrument::Latency(args) => caller.finish(measure::latency::run(args)),
            Instrument::Overhead(args) => caller.finish(measure::overhead::run(args)),
            Instrument::Spinner(args) => caller.finish(measure::overhead::spin(args)),
        },
        Command::Profile(args) => caller.finish(profile::run(args)),
        Command::Policy(args) => match &args.action {
            PolicyAction::List(args) => caller.finish(Ok(policy::list(args))),
            PolicyAction::Show(args) => caller.finish(policy::show(args)),
            PolicyAction::New(args) => caller.finish(policy_new::run(args)),
            PolicyAction::Header => caller.finish(Ok(policy::header())),
        },
        Command::Role(args) => match &args.action {
            RoleAction::List(_) => caller.finish(role::list()),
            RoleAction::Show(args) => caller.finish(role::show(args)),
        },
        Command::Fifo(args) => match &args.action {
            FifoAction::Create(args) => caller.finish(fifo::create(args)),
            FifoAction::List(args) => caller.finish(fifo::list(args)),
            FifoAction::Remove(args) => caller.finish(fifo::remove(args)),
            FifoAction::Cat(args) => caller.finish(fifo_stream::cat(args)),
            FifoAction::Put(args) => caller.finish(fifo_stream::put(args)),
            FifoAction::Device(args) => caller.finish(fifo_device::serve(args)),
        },
        Command::Lock(args) => match &args.action {
            LockAction::List(args) => caller.finish(lock::list(args)),
            LockAction::Remove(args) => caller.finish(lock::remove(args)),
        },
        Command::Serve(args) => caller.finish(serve::run(args)),
        Command::Clean(_) => caller.finish(clean::run()),
        Command::Completions(args) => caller.finish(generate::completions(args)),
        Command::Man(args) => caller.finish(generate::man(args)),
    }
}
