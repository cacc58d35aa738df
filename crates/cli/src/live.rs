//! The set of a run, as far as it can be changed while it runs.

use punctual_diagnostic::{Diagnostic, Place};
use punctual_session::results::PolicyChange;
use punctual_session::{with_change, with_policies, RunningSet};
use punctual_taskset::{TaskChange, TaskSet};

use crate::args::Run;
use crate::hangup::is_read_again;
use crate::set;

/// The set of a run.
pub struct LiveSet<'a> {
    /// As it runs.
    pub set: TaskSet,
    overload: bool,
    /// Where it is from, if it can be read again.
    source: Option<Source<'a>>,
}

/// The file of a set.
struct Source<'a> {
    args: &'a Run,
    /// The set as the file had it when it was last applied.
    read: TaskSet,
}

impl<'a> LiveSet<'a> {
    /// `read`: as the arguments name it; `admitted`: as it runs, although it does not fit if
    /// `overload`.
    pub fn new(args: &'a Run, read: TaskSet, admitted: &TaskSet, overload: bool) -> LiveSet<'a> {
        let file = args.file.as_deref().filter(|file| is_read_again(file));
        let source = file.map(|_| Source { args, read });
        LiveSet { set: admitted.clone(), overload, source }
    }

    /// Whether its file can be read again.
    pub fn is_from_a_file(&self) -> bool {
        self.source.is_some()
    }

    /// Gives the task at this place another budget, ns.
    ///
    /// # Errors
    /// It has ended; the budget is refused.
    pub fn change_budget(
        &mut self,
        running: &mut RunningSet,
        place: usize,
        budget: u64,
    ) -> Result<(), Diagnostic> {
        if !running.alive().any(|alive| alive == place) {
            return Err(Diagnostic::usage("that task has ended", "choose another one"));
        }
        let change = TaskChange::of_budget(budget);
        let changed = with_change(&self.set, place, &change, running.host(), self.overload)?;
        running.change(place, &change)?;
        self.set = changed;
        Ok(())
    }

    /// Reads the set's file again and swaps the policies that differ: which these were. Nothing is
    /// changed by an error.
    ///
    /// # Errors
    /// There is no file; it cannot be read, or is at fault; it differs in anything but policies;
    /// the set does not fit a new policy, or the host does not support it.
    pub fn reload(&mut self, running: &mut RunningSet) -> Result<Vec<PolicyChange>, Diagnostic> {
        let Some(source) = &mut self.source else {
            let cause = "the run has no file that can be read again";
            return Err(Diagnostic::usage(cause, "start it with punctual run SET.toml"));
        };
        let overload = source.args.overload || self.overload;
        let read = set::read(source.args)?.set;
        let (host, file) = (running.host(), &source.read);
        let changed = with_policies(&self.set, file, &read, host, overload);
        let Some(changed) = changed.map_err(|e| in_file(e, source.args))? else {
            return Ok(Vec::new());
        };
        let swapped = running.swap_policies(&self.set, &changed.set);
        let changes = swapped.map_err(|e| in_file(e, source.args))?;
        (self.set, self.overload, source.read) = (changed.set, changed.overload, read);
        Ok(changes)
    }

    /// A reload in one line.
    pub fn report(&self, reloaded: &Result<Vec<PolicyChange>, Diagnostic>) -> String {
        let file = self.source.as_ref().and_then(|source| source.args.file.as_ref());
        let file = file.map_or_else(|| "the set".to_owned(), |file| file.display().to_string());
        match reloaded {
            Ok(changes) if changes.is_empty() => {
                format!("reloaded {file}: no policy is another one, nothing changes")
            }
            Ok(changes) => {
                let all: Vec<String> = changes.iter().map(PolicyChange::to_string).collect();
                format!("reloaded {file}: {}", all.join(", "))
            }
            Err(e) => format!("punctual: not reloaded: {e}"),
        }
    }
}

/// The same error, in the set's file.
fn in_file(error: Diagnostic, args: &Run) -> Diagnostic {
    match &args.file {
        Some(file) if error.place().is_none() => {
            error.at(Place { name: file.display().to_string(), position: None })
        }
        _ => error,
    }
}
