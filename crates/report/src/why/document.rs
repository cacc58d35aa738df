//! The result of `punctual trace why --json` (docs/why.md).

use punctual_explain::{Activity, CauseKind, Explainer, Explanation, Reason};
use punctual_taskset::TaskSet;
use serde::{Deserialize, Serialize};

use super::sentence;

/// Why deadlines were missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyResult {
    /// The host that recorded the trace: `user`, `kernel` or `sim`.
    pub host: String,
    /// The CPU of its dispatcher.
    pub cpu: u32,
    /// Periods of the tasks asked for.
    pub periods: u64,
    /// Records that are missing.
    pub lost_records: u64,
    /// The misses asked for: those that were never done first, then the latest.
    pub misses: Vec<MissRow>,
    /// The whole window of the one miss asked for; else empty.
    pub time_line: Vec<SpanRow>,
}

/// One miss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissRow {
    /// The task.
    pub task: String,
    /// The number of the release.
    pub number: u64,
    /// Its time, ns.
    pub release_ns: u64,
    /// The absolute deadline, ns.
    pub deadline_ns: u64,
    /// From the deadline to the end of its work, ns; `null` if it was never done.
    pub late_ns: Option<u64>,
    /// The main cause.
    pub cause: CauseKind,
    /// How much of the window it took, ns.
    pub cause_ns: u64,
    /// What the job lacked at its deadline, ns.
    pub lacking_ns: u64,
    /// The cause in one sentence.
    pub sentence: String,
    /// What helps.
    pub help: String,
    /// They add up to the window.
    pub shares: Vec<ShareRow>,
}

/// What one activity took of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareRow {
    /// Its name in a phrase.
    pub what: String,
    /// The task that executed instead; `null` if none did.
    pub task: Option<String>,
    /// Why that one came first.
    pub reason: Option<Reason>,
    /// How long in all, ns.
    pub ns: u64,
}

/// A part of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanRow {
    /// From the release, ns.
    pub from_ns: u64,
    /// From the release, ns.
    pub to_ns: u64,
    /// Its name in a phrase.
    pub what: String,
}

impl WhyResult {
    /// Of these misses; `whole`: with the time line of the first.
    #[must_use]
    pub fn new(
        explainer: &Explainer,
        periods: u64,
        misses: &[Explanation],
        whole: bool,
    ) -> WhyResult {
        let (set, header) = (explainer.set(), explainer.header());
        let first = misses.first().filter(|_| whole);
        WhyResult {
            host: header.host.clone(),
            cpu: header.cpu,
            periods,
            lost_records: explainer.lost(),
            misses: misses.iter().map(|miss| MissRow::new(set, miss)).collect(),
            time_line: first.map_or_else(Vec::new, |miss| time_line(set, miss)),
        }
    }
}

impl MissRow {
    fn new(set: &TaskSet, e: &Explanation) -> MissRow {
        MissRow {
            task: set
                .tasks
                .get(e.period.task as usize)
                .map_or_else(String::new, |t| t.name.clone()),
            number: e.period.number,
            release_ns: e.period.release,
            deadline_ns: e.period.deadline,
            late_ns: e.late_ns(),
            cause: e.cause.kind,
            cause_ns: e.cause.ns,
            lacking_ns: e.cause.lacking_ns,
            sentence: sentence::cause(set, e),
            help: sentence::help(e.cause.kind).to_owned(),
            shares: e.shares.iter().map(|share| share_row(set, share.what, share.ns)).collect(),
        }
    }
}

fn share_row(set: &TaskSet, what: Activity, ns: u64) -> ShareRow {
    let (task, reason) = match what {
        Activity::Task { task, reason, .. } => {
            (set.tasks.get(task as usize).map(|t| t.name.clone()), Some(reason))
        }
        _ => (None, None),
    };
    ShareRow { what: sentence::activity(set, what), task, reason, ns }
}

fn time_line(set: &TaskSet, e: &Explanation) -> Vec<SpanRow> {
    let since = |at: u64| at - e.period.release;
    let row = |s: &punctual_explain::Span| SpanRow {
        from_ns: since(s.from_ns),
        to_ns: since(s.to_ns),
        what: sentence::activity(set, s.what),
    };
    e.spans.iter().map(row).collect()
}
