//! What `punctual profile` prints for people.

use punctual_profile::{Candidate, Pattern, ProfileResult};
use punctual_report::grid::{grid, paint, wrap, Column, Ink};
use punctual_report::units::{percent, time};
use punctual_report::View;

/// The result in one sentence.
pub fn verdict(result: &ProfileResult) -> String {
    let ProfileResult { name, jobs, .. } = result;
    let computes = result.execution.map_or_else(String::new, |execution| {
        format!("computes {} (at most {})", short(execution.p50_ns), short(execution.max_ns))
    });
    let wakes = match (result.pattern, result.period_ns) {
        (Pattern::NeverWaits, _) => {
            return format!("{name} never waits: it uses up any budget; choose by share.");
        }
        (Pattern::TooFew, _) => {
            let times = if *jobs == 1 { "once".to_owned() } else { format!("{jobs} times") };
            return format!(
                "{name} woke {times} in {}: too few to judge it.",
                short(result.observed_ns)
            );
        }
        (_, Some(period)) => format!("{name} wakes every {} and {computes}", short(period)),
        (_, None) => format!("{name} wakes in no period that was found, and {computes}"),
    };
    let deadline = short(result.deadline_ns.unwrap_or(0));
    match result.candidates.iter().find(|candidate| candidate.proposed) {
        Some(candidate) => format!(
            "{wakes}: with {} in every {}, {} % of its {jobs} jobs are done within {deadline}.",
            time(candidate.budget_ns),
            time(candidate.period_ns),
            share(candidate.beside_ppm.unwrap_or(0)),
        ),
        None => format!(
            "{wakes}: no budget lets {} % of its {jobs} jobs be done within {deadline}.",
            share(result.wanted_ppm)
        ),
    }
}

/// A time with three digits or so.
fn short(ns: u64) -> String {
    let digits = ns.max(1).ilog10() + 1;
    let unit = 10u64.pow(digits.saturating_sub(3));
    time((ns + unit / 2) / unit * unit)
}

/// A share as percent, rounded down: not all is never shown as all.
fn share(ppm: u64) -> String {
    let text = format!("{}.{:02}", ppm / 10_000, ppm / 100 % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub fn text(result: &ProfileResult, view: &View) -> String {
    let ink = if result.proposal.is_some() { Ink::Good } else { Ink::Bad };
    let mut text: String = wrap(&verdict(result), 0, view.width)
        .lines()
        .map(|line| paint(line, ink, view.color) + "\n")
        .collect();
    if !result.candidates.is_empty() {
        text.push('\n');
        text.push_str(&grid(candidates(&result.candidates), view.width, view.color));
    }
    let mut notes = Vec::new();
    describe(result, &mut notes);
    notes.extend(result.warnings.iter().map(|warning| format!("Noise: {warning}.")));
    if !notes.is_empty() {
        text.push('\n');
    }
    notes.iter().for_each(|note| text.push_str(&wrap(note, 2, view.width)));
    if view.wide {
        text.push('\n');
        text.push_str(&grid(threads(result), view.width, view.color));
    }
    if let Some(proposal) = &result.proposal {
        text.push('\n');
        text.push_str(&proposal.entry);
    }
    text
}

fn candidates(all: &[Candidate]) -> Vec<Column> {
    const MET: &str = "jobs in time (%)";
    let met = |figure: fn(&Candidate) -> Option<u64>| {
        all.iter().map(move |candidate| figure(candidate).map_or("-".to_owned(), share))
    };
    let mark = |candidate: &Candidate| if candidate.proposed { "<- proposed" } else { "" };
    vec![
        Column::new("", "period", 0).cells(all.iter().map(|one| time(one.period_ns))),
        Column::new("", "budget", 0).cells(all.iter().map(|one| time(one.budget_ns))),
        Column::new("", "share (%)", 0).cells(all.iter().map(|one| percent(one.share_ppm))),
        Column::new(MET, "alone", 1).cells(met(|one| one.alone_ppm)),
        Column::new(MET, "full CPU", 0).cells(met(|one| one.beside_ppm)),
        Column::new("", "", 2).cells(all.iter().map(|one| mark(one).to_owned())),
    ]
}

fn threads(result: &ProfileResult) -> Vec<Column> {
    let all = &result.threads;
    vec![
        Column::new("", "thread", 0).cells(all.iter().map(|thread| thread.name.clone())),
        Column::new("", "tid", 1).cells(all.iter().map(|thread| thread.tid.to_string())),
        Column::new("", "wake-ups", 0).cells(all.iter().map(|thread| thread.wake_ups.to_string())),
        Column::new("", "executed", 0).cells(all.iter().map(|thread| short(thread.executed_ns))),
    ]
}

/// What was seen, beside the verdict.
fn describe(result: &ProfileResult, notes: &mut Vec<String>) {
    let parallel = match result.parallel {
        0 | 1 => String::new(),
        n => format!(
            ", on up to {n} CPUs at a time; in a reservation its threads share one CPU, and the \
            figures are for that"
        ),
    };
    notes.push(format!(
        "Seen: {} of execution in {}, {} % of a CPU{parallel}; the first {} are left out.",
        short(u128_share(result.observed_ns, result.demand_ppm)),
        short(result.observed_ns),
        percent(result.demand_ppm),
        short(result.skipped_ns),
    ));
    if let (Some(execution), Some(distance)) = (result.execution, result.distance) {
        let regular = result.regular_percent.map_or_else(String::new, |regular| {
            format!("; {regular} % of the distances are the period or a few of it")
        });
        notes.push(format!(
            "Jobs: {}, {} to {} apart{regular}; of 100, 99 compute at most {}.",
            execution.count,
            short(distance.min_ns),
            short(distance.max_ns),
            short(execution.p99_ns),
        ));
    }
    let deadline = short(result.deadline_ns.unwrap_or(0));
    if let (Pattern::Aperiodic, Some(busiest)) = (result.pattern, result.busiest_window_ns) {
        notes.push(format!(
            "Its jobs have no period, so they are judged by {deadline} from waking (--deadline); \
            in the busiest \
             {deadline} it computed {}.",
            short(busiest)
        ));
    }
    let missed_for_one = 1_000_000u64.saturating_sub(result.wanted_ppm);
    if result.proposal.is_some() && result.jobs > 0 && result.jobs * missed_for_one < 1_000_000 {
        notes.push(format!(
            "{} jobs are few for {} %: all of them were to be in time. Watch it for longer, or \
            ask for less (--meet).",
            result.jobs,
            share(result.wanted_ppm)
        ));
    }
    if let Some(proposal) = result.proposal.as_ref().filter(|_| result.deadline_ns.is_some()) {
        notes.push(format!("Policy {}: {}.", proposal.policy, proposal.policy_reason));
    }
}

/// A share of a time, ns.
fn u128_share(ns: u64, ppm: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(ppm) / 1_000_000).unwrap_or(u64::MAX)
}
