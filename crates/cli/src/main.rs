//! The command `punctual`.

mod args;
mod check;
mod clean;
mod compare;
mod doctor;
mod kernel;
mod output;
mod progress;
mod replay;
mod run;
mod screen;
mod session;
mod set;
mod sim;
mod traces;

use clap::Parser;
use std::process::ExitCode;

use args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (json, done) = match &cli.command {
        Command::Run(args) => (args.json, run::run(args)),
        Command::Sim(args) => (args.json, sim::run(args)),
        Command::Check(args) => (args.json, check::run(args)),
        Command::Doctor(args) => (args.json, doctor::run(args)),
        Command::Clean(args) => (args.json, clean::run(args)),
    };
    done.unwrap_or_else(|error| output::report(error, json))
}
