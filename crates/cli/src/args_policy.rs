//! The arguments of `punctual policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(after_help = "docs/policies.md describes each, with the attributes of its jobs, and \
has a guide to policies of your own.

Exit codes: 0 done; 2 there is no such policy, or a project cannot be written.")]
pub struct PolicyCommand {
    #[command(subcommand)]
    pub action: PolicyAction,
}

#[derive(Subcommand)]
pub enum PolicyAction {
    /// All scheduling policies and kinds of server
    List(List),
    /// One of them: what it does, its source, its limits
    Show(Show),
    /// Write a project with a policy of your own: a program with the whole command line, or, with
    /// --c, a plugin
    New(New),
    /// Print punctual_policy.h, the interface of plugins in C
    Header,
}

#[derive(Args)]
pub struct List {
    /// The list as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Show {
    /// Its name in task sets, or the file of a plugin
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// The description as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct New {
    /// Its name in task sets, and that of the folder, and of the program or the plugin
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where the sources of Punctual are: a checkout, or the URL of a git repository [default: the
    /// checkout that this program is in, else crates.io]
    #[arg(long, value_name = "PATH|URL")]
    pub source: Option<PathBuf>,
    /// A plugin in C, which task sets name by its file, instead of a Cargo project
    #[arg(long, conflicts_with = "source")]
    pub c: bool,
}
