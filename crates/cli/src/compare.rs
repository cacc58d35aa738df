//! `punctual run --compare`: the same set under the kernel's own policies.

use punctual_diagnostic::Diagnostic;
use punctual_process::Output;
use punctual_session::results::Results;
use punctual_session::{HostKind, RunOptions, Session, StartOutcome};
use punctual_taskset::TaskSet;

use crate::args::{BaselineArg, Run};
use crate::drive::{drive, Signals};
use crate::screen::Screen;

/// Runs the set under one baseline. What cannot be pinned is run unpinned, and its column is
/// labelled so.
///
/// # Errors
/// The request cannot be meant: a command that does not start.
pub fn run(
    args: &Run,
    set: &TaskSet,
    baseline: BaselineArg,
    overload: bool,
    signals: &Signals,
) -> Result<Vec<Results>, Diagnostic> {
    let host = match baseline {
        BaselineArg::Fifo => HostKind::Fifo,
        BaselineArg::Deadline => HostKind::Deadline,
        BaselineArg::Other => HostKind::Other,
    };
    let mut columns = Vec::new();
    for unpinned in [false, true] {
        let mut screen = Screen::new(args.quiet, false);
        let label = unpinned.then(|| format!("{}, not pinned", host.title()));
        screen.print_line(&format!(
            "next: the same set under {}",
            label.as_deref().unwrap_or(host.title())
        ));
        // The run under Punctual has shown the commands' output.
        let output = Output::Nowhere;
        let options = RunOptions {
            stop: signals.stop.clone(),
            load: args.load,
            output,
            unpinned,
            label,
            ..RunOptions::default()
        };
        match Session::new(set.clone(), host)?.unchecked(overload).start(options)? {
            StartOutcome::Running(running) => {
                columns.push(drive(*running, None, None, None, signals, &mut screen)?.results);
                break;
            }
            StartOutcome::NotPossible(refusal, results) => {
                columns.push(*results);
                if !refusal.unpinned_may_work {
                    break;
                }
            }
        }
    }
    Ok(columns)
}
