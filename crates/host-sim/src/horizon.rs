//! How long to simulate: until everything that can happen has happened.

use punctual_analysis::{self as analysis, periods, HyperperiodTooLong};
use punctual_taskset::{fmt_ns, Arrival, ServerSpec, TaskSet, TaskSpec};

use crate::simulation::LATEST;
use punctual_diagnostic::Diagnostic;

/// An end for a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// ns from the start.
    pub end: u64,
    /// Releases of tasks and replenishments of servers until then, about.
    pub releases: u64,
    /// The least common multiple of all periods and cycles, ns.
    pub hyperperiod: u64,
}

/// The least common multiple of the periods of all tasks and budget groups and of the periods or
/// cycles of all groups, ns: after which a periodic set without offsets repeats. Tasks that
/// are released at listed times have none and are left out.
///
/// # Errors
/// A sporadic or aperiodic task; a hyperperiod beyond 2^62 ns (146 years).
pub fn hyperperiod(set: &TaskSet) -> Result<u64, Diagnostic> {
    let random =
        |t: &&TaskSpec| matches!(t.arrival, Arrival::Sporadic { .. } | Arrival::Aperiodic { .. });
    if let Some(task) = set.tasks.iter().find(random) {
        let cause =
            format!("task \"{}\" arrives at random, so that the set never repeats", task.name);
        return Err(Diagnostic::usage(
            cause,
            "say for how long: --duration 10s, or duration in the set",
        ));
    }
    analysis::hyperperiod(set, LATEST).map_err(|HyperperiodTooLong { kind, name, period }| {
        let cause = format!(
            "the hyperperiod is more than 146 years (with {kind} \"{name}\", period {}, the common \
             multiple of all periods is beyond 2^62 ns)",
            fmt_ns(period)
        );
        Diagnostic::usage(
            cause,
            "say for how long: --duration 10s; or choose periods that divide each other",
        )
    })
}

/// The end by which a set has shown all that it does: one hyperperiod; two after the last offset
/// when there are offsets (Leung and Merrill 1980: the schedule repeats from then on); and at least
/// the deadline of the last listed arrival.
///
/// # Errors
/// As of [`hyperperiod`]; an end beyond 2^62 ns.
pub fn horizon(set: &TaskSet) -> Result<Horizon, Diagnostic> {
    let hyperperiod = hyperperiod(set)?;
    let offset = offsets(set).max().unwrap_or(0);
    let cycles = if offset > 0 { 2 } else { 1 };
    let listed = set.tasks.iter().filter_map(|t| match &t.arrival {
        Arrival::List(times) => times.last().map(|at| at.saturating_add(t.deadline)),
        _ => None,
    });
    let end =
        hyperperiod.saturating_mul(cycles).saturating_add(offset).max(listed.max().unwrap_or(0));
    if end > LATEST {
        let cause = "two hyperperiods are more than 146 years";
        return Err(Diagnostic::usage(cause, "say for how long: --duration 10s"));
    }
    let releases = periods(set).map(|(_, _, period)| end / period).fold(0, u64::saturating_add);
    Ok(Horizon { end, releases, hyperperiod })
}

fn offsets(set: &TaskSet) -> impl Iterator<Item = u64> + '_ {
    let groups = set.groups.iter().map(|g| match &g.server {
        ServerSpec::Periodic { offset, .. } => *offset,
        ServerSpec::Windows { .. } => 0,
    });
    set.tasks.iter().map(|t| t.offset).chain(groups)
}
