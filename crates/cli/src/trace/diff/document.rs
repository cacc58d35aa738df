//! The JSON document of `punctual trace diff`.

use std::path::Path;

use punctual_timeline::{Comparison, Figures, Percentiles, TaskComparison};
use serde::Serialize;

use super::Read;
use crate::args_trace::DiffArgs;

/// How two traces differ.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiffResult {
    /// The comparison.
    pub(super) diff: TraceDiff,
}

/// Two traces compared, over the time that both have.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct TraceDiff {
    /// Whether all tasks, counts, and times within the tolerance are the same.
    same: bool,
    /// The first trace.
    a: ComparedTrace,
    /// The second trace.
    b: ComparedTrace,
    /// Times that are at most so far apart are the same, ns.
    tolerance_ns: u64,
    /// The time that was compared, ns.
    compared_ns: u64,
    /// Where the schedules part for longer than the tolerance first; `null`: nowhere.
    parting: Option<DiffParting>,
    /// For how long other tasks executed, in all such partings together, ns.
    apart_ns: u64,
    /// The tasks of the first, then those that only the second has.
    tasks: Vec<DiffTask>,
    /// It was interrupted before the end of a trace.
    interrupted: bool,
}

/// One of two traces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ComparedTrace {
    /// The file.
    file: String,
    /// The host that recorded it.
    host: String,
    /// The CPU.
    cpu: u32,
    /// The policy's name.
    policy: String,
    /// Records that were read.
    records: u64,
    /// Records that the run itself has lost.
    lost_records: u64,
    /// Periods outside the time that both have.
    left_out_periods: u64,
    /// It was read to its end.
    whole: bool,
}

/// Where two schedules part.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DiffParting {
    /// From the first release that both have, ns.
    at_ns: u64,
    /// The same on the clock of the first trace, ns.
    a_clock_ns: u64,
    /// The same on the clock of the second trace, ns.
    b_clock_ns: u64,
    /// The task that executes in the first; `null`: none.
    a_task: Option<String>,
    /// The task that executes in the second; `null`: none.
    b_task: Option<String>,
    /// How long they stay apart, ns.
    length_ns: u64,
}

/// A task in both traces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DiffTask {
    /// Its name.
    name: String,
    /// Whether its figures are the same.
    same: bool,
    /// Its figures in the first; `null`: it has no such task.
    a: Option<DiffFigures>,
    /// Its figures in the second; `null`: it has no such task.
    b: Option<DiffFigures>,
}

/// Figures of a task in the time that both traces have.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DiffFigures {
    /// Periods that were reported.
    releases: u64,
    /// Deadlines that were missed.
    misses: u64,
    /// Periods in which it overran.
    overruns: u64,
    /// Execution time per period; `null` without periods.
    execution: Option<DiffSpread>,
    /// Release to completion; `null` without completions.
    response: Option<DiffSpread>,
    /// Release to first execution; `null` where the host does not know it.
    latency: Option<DiffSpread>,
}

/// Times, exact.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DiffSpread {
    /// Median, ns.
    p50_ns: u64,
    /// 99 % are at most this, ns.
    p99_ns: u64,
    /// The longest, ns.
    worst_ns: u64,
}

/// The comparison as the document has it.
pub(super) fn document(
    args: &DiffArgs,
    compared: &Comparison,
    sides: [&Read; 2],
    whole: bool,
    interrupted: bool,
) -> TraceDiff {
    let trace = |path: &Path, n: usize| ComparedTrace {
        file: path.display().to_string(),
        host: sides[n].header.host.clone(),
        cpu: sides[n].header.cpu,
        policy: sides[n].header.policy.clone(),
        records: sides[n].records,
        lost_records: sides[n].side.lost,
        left_out_periods: compared.left_out[n],
        whole: whole && !sides[n].interrupted,
    };
    let task = |task: &TaskComparison| DiffTask {
        name: task.name.clone(),
        same: task.is_same(compared.tolerance),
        a: task.figures[0].as_ref().map(DiffFigures::of),
        b: task.figures[1].as_ref().map(DiffFigures::of),
    };
    TraceDiff {
        same: compared.is_same(),
        a: trace(&args.a, 0),
        b: trace(&args.b, 1),
        tolerance_ns: compared.tolerance,
        compared_ns: compared.compared,
        parting: compared.parting.as_ref().map(|p| DiffParting {
            at_ns: p.at,
            a_clock_ns: p.clocks[0],
            b_clock_ns: p.clocks[1],
            a_task: p.tasks[0].clone(),
            b_task: p.tasks[1].clone(),
            length_ns: p.length,
        }),
        apart_ns: compared.apart,
        tasks: compared.tasks.iter().map(task).collect(),
        interrupted,
    }
}

impl DiffFigures {
    fn of(figures: &Figures) -> DiffFigures {
        let spread = |spread: Option<Percentiles>| {
            spread.map(|s| DiffSpread { p50_ns: s.p50, p99_ns: s.p99, worst_ns: s.worst })
        };
        DiffFigures {
            releases: figures.releases,
            misses: figures.misses,
            overruns: figures.overruns,
            execution: spread(figures.execution),
            response: spread(figures.response),
            latency: spread(figures.latency),
        }
    }
}
