//! The command `punctual`.

mod args;
mod args_measure;
mod args_policy;
mod args_profile;
mod args_report;
mod args_trace;
mod check;
mod clean;
mod compare;
mod doctor;
mod drive;
mod generate;
mod measure;
mod output;
mod policy;
mod profile;
mod progress;
mod replay;
mod report;
mod run;
#[cfg(test)]
mod schema;
mod screen;
mod set;
mod sim;
mod top;
mod trace;
mod usage;

use clap::Parser;
use std::process::ExitCode;

use args::{Cli, Command};
use args_measure::Instrument;
use output::Caller;

fn main() -> ExitCode {
    // Before the first thread: later it takes tens of milliseconds.
    punctual_sys::futex::fix_hash_size();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &words),
    };
    output::set_color(cli.color);
    let caller = Caller::of(&cli.command);
    match &cli.command {
        Command::Run(args) => caller.finish(run::run(args)),
        Command::Sim(args) => sim::run(args, caller),
        Command::Check(args) => caller.finish(check::run(args)),
        Command::Trace(args) => trace::run(args, caller),
        Command::Doctor(args) => caller.finish(doctor::run(args)),
        Command::Top(args) => caller.finish(top::run(args)),
        Command::Report(args) => caller.finish(report::run(args)),
        Command::Measure(args) => match &args.instrument {
            Instrument::Determinism(args) => caller.finish(measure::determinism::run(args)),
            Instrument::Latency(args) => caller.finish(measure::latency::run(args)),
            Instrument::Overhead(args) => caller.finish(measure::overhead::run(args)),
            Instrument::Spinner(args) => caller.finish(measure::overhead::spin(args)),
        },
        Command::Profile(args) => caller.finish(profile::run(args)),
        Command::Policy(args) => caller.finish(policy::run(args)),
        Command::Clean(_) => caller.finish(clean::run()),
        Command::Completions(args) => caller.finish(generate::completions(args)),
        Command::Man(args) => caller.finish(generate::man(args)),
    }
}
