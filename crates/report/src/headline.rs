//! The verdict of a run in one sentence.

use crate::units::{count, duration, grouped, percent, time};
use punctual_session::results::{HostKind, PolicyChange, Results, TaskResult};

/// Tasks that are named for missed deadlines; the others are added up.
const MOST_NAMED: usize = 3;

/// What a reader wants to know first: `All deadlines met and all budgets kept: 2 tasks, 1,234
/// periods in 10.0 s.`
#[must_use]
pub fn headline(results: &Results) -> String {
    let stopped = results.dispatcher.map_or(0, |d| d.stopped_ns);
    match stopped {
        0 => verdict(results),
        ns => format!("{} Punctual was stopped for {}.", verdict(results), time(ns)),
    }
}

fn verdict(results: &Results) -> String {
    if let Some(why) = &results.not_possible {
        return format!("It could not be run: {}.", why.reason.trim_end_matches('.'));
    }
    let t = &results.totals;
    if t.periods == 0 && t.unreported == 0 {
        return "No whole period was measured: run it for longer.".to_owned();
    }
    if t.met {
        let budgets = if enforces_budgets(results.host) { " and all budgets kept" } else { "" };
        let tasks = count(results.tasks.len() as u64, "task");
        return format!(
            "All deadlines met{budgets}: {tasks}, {} in {}.",
            count(t.periods, "period"),
            length(results)
        );
    }
    let stopped = results.policy_changes.iter().filter_map(PolicyChange::stopped);
    let parts = [missed(&results.tasks), unreported(t.unreported), shortfalls(&results.tasks)];
    let all: Vec<String> = stopped.chain(parts.into_iter().flatten()).collect();
    let mut sentence = all.join("; ");
    sentence.push('.');
    sentence
}

/// How long it ran; exact for a simulated run.
pub(crate) fn length(results: &Results) -> String {
    match results.duration_ns {
        ns @ 0..=59_999_999_999 if results.host == HostKind::Sim => time(ns),
        ns => duration(ns),
    }
}

/// Under the kernel's SCHED_FIFO and SCHED_OTHER a budget is a wish.
fn enforces_budgets(host: HostKind) -> bool {
    !matches!(host, HostKind::Fifo | HostKind::Other)
}

fn missed(tasks: &[TaskResult]) -> Option<String> {
    let mut late: Vec<&TaskResult> = tasks.iter().filter(|t| t.misses > 0).collect();
    late.sort_by_key(|t| std::cmp::Reverse(t.misses));
    let named = late.iter().take(MOST_NAMED).enumerate().map(|(place, t)| {
        let (missed, all) = (grouped(t.misses), grouped(t.periods));
        let adapted = t
            .adaptive_budget
            .filter(|b| b.misses > 0)
            .map(|b| format!(" ({} when its adaptive budget was used up)", grouped(b.misses)));
        let adapted = adapted.unwrap_or_default();
        match place {
            0 => format!("{} missed {missed} of {all} deadlines{adapted}", t.name),
            _ => format!("{} {missed} of {all}{adapted}", t.name),
        }
    });
    let mut list: Vec<String> = named.collect();
    let others = late.get(MOST_NAMED..).unwrap_or_default();
    if !others.is_empty() {
        let sum = others.iter().map(|t| t.misses).sum();
        list.push(format!("{} {}", count(others.len() as u64, "other task"), grouped(sum)));
    }
    (!list.is_empty()).then(|| list.join(", "))
}

fn unreported(periods: u64) -> Option<String> {
    match periods {
        0 => None,
        1 => {
            Some("1 period was not reported: whether its deadline was met is not known".to_owned())
        }
        n => Some(format!(
            "{} periods were not reported: whether their deadlines were met is not known",
            grouped(n)
        )),
    }
}

/// The tasks that lack more than the missed deadlines account for, by up to one budget each. A task
/// whose jobs end wants all of its budget only in periods in which it is late, so that its share
/// there is no measure of its budgets.
fn shortfalls(tasks: &[TaskResult]) -> Option<String> {
    let short =
        tasks.iter().filter(|t| t.shortfall_ns > t.misses.saturating_mul(t.budget_ns)).map(|t| {
            format!(
            "{} received {} % of its budget in the {} of {} periods in which it wanted all of it",
            t.name,
            percent(t.long_run_ppm.unwrap_or(0)),
            grouped(t.periods_wanting_all()),
            grouped(t.periods)
        )
        });
    let list: Vec<String> = short.collect();
    (!list.is_empty()).then(|| list.join("; "))
}
