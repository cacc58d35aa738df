//! The arguments of `punctual profile`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::OutputArg;

#[derive(Args)]
#[command(
    override_usage = "punctual profile [OPTIONS] -- COMMAND [ARG]...
       punctual profile [OPTIONS] --pid PID",
    after_help = "The program runs as it would without Punctual. Let it do the work that it will \
do under a budget, for some thousand jobs. docs/profile.md says how the proposal is made.

With -- COMMAND the standard streams are the command's: the results go to standard error; with \
--json they go to standard output, and the command's output to standard error.

Exit codes with -- COMMAND, as of `punctual run`: the command's own, or 128 + N if signal N ended \
it; 124 if --duration did; 125 Punctual failed; 126 the command cannot be executed; 127 there is \
no such command; 130 interrupted, with what was seen until then.

Exit codes with --pid: 0 observed; 2 bad usage; 4 the machine does not permit it; 130 interrupted, \
with what was seen until then."
)]
pub struct Profile {
    /// Watch this running process, with its threads and children, and leave it as it is
    #[arg(long, value_name = "PID", conflicts_with = "argv", required_unless_present = "argv")]
    #[arg(allow_negative_numbers = true)]
    pub pid: Option<i32>,
    /// Watch for so long, then end the command [default: until it ends, or Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Leave out what it does in so long, its start-up [default: 1s, at most a fifth]
    #[arg(long, value_name = "TIME")]
    pub skip: Option<String>,
    /// How many of its jobs are to meet their deadline
    #[arg(long, value_name = "PERCENT", default_value = "99.9%", value_parser = percent)]
    pub meet: u64,
    /// The deadline of a job, from the program's wake-up for it [default: the period that is
    /// found, else 100ms]
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// The policy that the reservation is replayed under
    #[arg(long, value_enum, value_name = "NAME", default_value_t = ReplayPolicy::Edf)]
    pub policy: ReplayPolicy,
    /// CPU of the proposed set [default: the last that we may use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Write the proposal into this file, as a task set
    #[arg(long, short = 'o', value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Write the proposal as the role of this name, for `punctual run --role` (docs/roles.md)
    #[arg(long, value_name = "NAME")]
    pub write_role: Option<String>,
    /// The folder of the role [default: the first that roles are looked for in,
    /// /etc/punctual/roles.d]
    #[arg(long, value_name = "FOLDER", requires = "write_role")]
    pub role_folder: Option<PathBuf>,
    /// Replace the role if its folder has one of this name
    #[arg(long, requires = "write_role")]
    pub replace_role: bool,
    /// Results as JSON on standard output (docs/profile.md)
    #[arg(long)]
    pub json: bool,
    /// Its threads, too
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Where the command's output goes [default: inherit, with --json stderr]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub output: Option<OutputArg>,
    /// Command to start, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}

/// Policies that need nothing but period, budget and deadline.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum ReplayPolicy {
    /// The nearer deadline first
    Edf,
    /// The shorter period first
    Rm,
    /// The shorter relative deadline first
    Dm,
}

impl ReplayPolicy {
    pub fn name(self) -> &'static str {
        match self {
            ReplayPolicy::Edf => "edf",
            ReplayPolicy::Rm => "rm",
            ReplayPolicy::Dm => "dm",
        }
    }
}

/// A share such as `99.9%` in parts per million.
fn percent(text: &str) -> Result<u64, String> {
    let wrong = || "write a share such as 99.9%, above 0 and at most 100%".to_owned();
    let number = text.trim().trim_end_matches('%').trim_end();
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || rest.len() > 4 || !digits(whole) || !digits(rest) {
        return Err(wrong());
    }
    let ppm: u64 = format!("{whole}{rest:0<4}").parse().map_err(|_| wrong())?;
    (1..=1_000_000).contains(&ppm).then_some(ppm).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_share_is_a_percentage_with_up_to_four_decimals() {
        for (text, ppm) in
            [("99.9%", 999_000), ("100 %", 1_000_000), ("50", 500_000), ("0.0001%", 1)]
        {
            assert_eq!(percent(text), Ok(ppm), "{text}");
        }
        for text in ["", "%", "0", "100.1%", "-1%", "99.99999%", "1e2", "ninety", "1.-5"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
