//! A set's run as an instrument needs it: observed to its end, with one kind of failure.

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use punctual_session::{AdmittedSet, Execution, NamedEvent, RunOptions, StartOutcome};
use punctual_sys::clock::monotonic_ns;

/// A run that has ended.
pub struct FinishedRun {
    pub results: Results,
    /// The first release, CLOCK_MONOTONIC, ns.
    pub origin: u64,
    /// What a reader should know: the host's notes, and what could not be restored.
    pub notes: Vec<String>,
}

/// Runs an admitted set to its end. `observe` gets each event; `poll` the time since the first
/// release, ns, again and again, and ends the run with `false`.
///
/// # Errors
/// It cannot start or continue, or its host was ended.
pub fn run(
    admitted: AdmittedSet,
    options: RunOptions,
    executions: Vec<Execution>,
    observe: &mut dyn FnMut(NamedEvent),
    poll: &mut dyn FnMut(u64) -> bool,
) -> Result<FinishedRun, Diagnostic> {
    let mut running = match admitted.start_with(options, executions)? {
        StartOutcome::Running(running) => running,
        StartOutcome::NotPossible(refusal, _) => {
            return Err(Diagnostic::machine(refusal.reason, refusal.help.join("; ")));
        }
    };
    let origin = running.origin();
    while running.poll(observe)? && poll(monotonic_ns().saturating_sub(origin)) {}
    let outcome = running.finish(observe)?;
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let not_restored = |problem| format!("not restored: {problem} (punctual clean)");
    let mut results = outcome.results;
    let notes = outcome.problems.into_iter().map(not_restored);
    let notes = notes.chain(std::mem::take(&mut results.notes)).collect();
    Ok(FinishedRun { results, origin, notes })
}
