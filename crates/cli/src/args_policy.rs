//! The arguments of `punctual policy`.

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(
    after_help = "docs/policies.md describes each, with the attributes of its jobs, and says \
how to add one.

Exit codes: 0 done; 2 there is no such policy."
)]
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
}

#[derive(Args)]
pub struct List {
    /// The list as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Show {
    /// Its name in task sets
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The description as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
