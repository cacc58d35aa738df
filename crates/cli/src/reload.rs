//! `punctual reload`: a running set reads its file again.

use clap::Args;
use punctual_diagnostic::Diagnostic;
use punctual_session::results::PolicyChange;
use punctual_top::client::Client;
use serde::Serialize;

use crate::output::Outcome;
use crate::top::directory;

#[derive(Args)]
#[command(after_help = "The run swaps the policies that differ, of the top and of groups; a file \
                        that differs in anything else is refused, and the run continues as it was. \
                        SIGHUP to the run does the same.\n\n\
                        Exit codes: 0 reloaded; 2 refused: a bad file, another difference, or no \
                        such run; 4 the run does not answer.")]
pub struct Reload {
    /// The process that runs the set, or the file of the set as the run names it [default: the
    /// only run]
    #[arg(value_name = "PID|SET.toml")]
    pub run: Option<String>,
    /// The policies that were swapped as JSON
    #[arg(long)]
    pub json: bool,
}

/// The result of `punctual reload --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReloadResult {
    /// The process that runs the set.
    pid: u32,
    /// The policies that were swapped; empty if none is another one.
    policy_changes: Vec<PolicyChange>,
}

pub fn run(args: &Reload) -> Result<Outcome<ReloadResult>, Diagnostic> {
    let pid = args.run.as_deref().map(named).transpose()?;
    let mut client = Client::connect(&directory(), pid)?;
    let policy_changes = client.reload()?;
    let all: Vec<String> = policy_changes.iter().map(PolicyChange::to_string).collect();
    let verdict = match all.is_empty() {
        true => "Reloaded: no policy is another one, nothing changes.".to_owned(),
        false => format!("Reloaded: {}.", all.join(", ")),
    };
    let text = format!("{verdict}\n");
    let result = ReloadResult { pid: client.pid, policy_changes };
    Ok(Outcome { verdict, ok: true, code: 0, result, text, error: None })
}

/// The process of this number, or the only one that runs the set of this file.
fn named(run: &str) -> Result<u32, Diagnostic> {
    if let Ok(pid) = run.parse() {
        return Ok(pid);
    }
    let directory = directory();
    let mut found = Vec::new();
    for pid in punctual_top::client::running(&directory) {
        // One that ends meanwhile, or is of another version, is not meant.
        let snapshot = Client::connect(&directory, Some(pid)).and_then(|mut c| c.snapshot());
        found.extend(snapshot.ok().flatten().filter(|s| s.what == run).map(|_| pid));
    }
    let help = "name the process: punctual reload PID";
    match found[..] {
        [pid] => Ok(pid),
        [] => Err(Diagnostic::usage(format!("no run of yours is of the set {run:?}"), help)),
        _ => {
            let pids = found.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Err(Diagnostic::usage(format!("processes {pids} run the set {run:?}"), help))
        }
    }
}
