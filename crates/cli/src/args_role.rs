//! The arguments of `punctual role`.

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(after_help = "A role is a file NAME.toml in /etc/punctual/roles.d, \
/usr/local/lib/punctual/roles.d or /usr/lib/punctual/roles.d; of one name the first holds. \
PUNCTUAL_ROLES names other folders in their place, separated by colons. docs/roles.md has the \
keys.

Exit codes: 0 done; 2 there is no such role, or the file of a role is wrong; 4 a folder cannot be \
read.")]
pub struct RoleCommand {
    #[command(subcommand)]
    pub action: RoleAction,
}

#[derive(Subcommand)]
pub enum RoleAction {
    /// All roles of this machine
    List(ListRoles),
    /// One role: what it gives, and the file that it is from
    Show(ShowRole),
}

#[derive(Args)]
pub struct ListRoles {
    /// The list as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ShowRole {
    /// Its name
    pub name: String,
    /// The role as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
