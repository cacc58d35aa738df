//! What is shown while it runs: a compact table on a terminal, single lines elsewhere.

use crate::grid::{grid, Column};
use crate::table::NONE;
use crate::units::{count, duration, percent, rate, Unit};
use punctual_session::results::{BudgetReceived, Results, TaskResult};

/// Formats the compact table that is redrawn in place: two lines of heading and one per task, each
/// with its line break, without colour. At most 80 columns unless names are long. Its height is
/// constant during a run.
#[must_use]
pub fn live(results: &Results) -> String {
    const SHARE: &str = "budget received (%)";
    let tasks = &results.tasks;
    let each = |show: &dyn Fn(&TaskResult) -> String| tasks.iter().map(show).collect::<Vec<_>>();
    let longest = tasks.iter().filter_map(|t| t.response_time).map(|r| r.p99_ns).max().unwrap_or(0);
    let unit = Unit::for_longest(longest);
    let budget = |get: &dyn Fn(&BudgetReceived) -> String| -> Vec<String> {
        tasks.iter().map(|t| t.budget_received.as_ref().map_or(NONE.to_owned(), get)).collect()
    };
    let missed = Column::new("", "missed", 0)
        .marked(tasks.iter().map(|t| (t.misses.to_string(), t.misses > 0)));
    let columns = vec![
        Column::new("", &duration(results.duration_ns), 0).cells(each(&|t| t.name.clone())),
        Column::new("", "periods", 1).cells(each(&|t| t.periods.to_string())),
        missed,
        Column::new(SHARE, "p1", 3).cells(budget(&|b| percent(b.p1_ppm))),
        Column::new(SHARE, "median", 0).cells(budget(&|b| percent(b.median_ppm))),
        Column::new(SHARE, "p99", 3).cells(budget(&|b| percent(b.p99_ppm))),
        Column::new("periods off by", "> 5 % (%)", 2).cells(budget(&|b| rate(b.off_5_percent_ppm))),
        Column::new("response", &format!("p99 ({})", unit.name), 4)
            .cells(each(&|t| t.response_time.map_or(NONE.to_owned(), |r| unit.show(r.p99_ns)))),
    ];
    grid(columns, 100, false)
}

/// One line of progress for logs and pipes, without a line break.
#[must_use]
pub fn plain_line(results: &Results) -> String {
    let totals = &results.totals;
    let mut line = format!(
        "{}: {}, {} missed",
        duration(results.duration_ns),
        count(totals.periods, "period"),
        totals.missed
    );
    if totals.unreported > 0 {
        line.push_str(&format!(", {} unreported", totals.unreported));
    }
    // The task whose budget is kept worst stands for all.
    let received = results.tasks.iter().filter_map(|t| t.budget_received.map(|b| (t, b)));
    if let Some((task, b)) =
        received.max_by_key(|(_, b)| (b.off_5_percent_ppm, b.median_ppm.abs_diff(1_000_000)))
    {
        line.push_str(&format!(
            "; budgets kept worst: {} {} % median, {} % of periods off by more than 5 %",
            task.name,
            percent(b.median_ppm),
            rate(b.off_5_percent_ppm)
        ));
    }
    line
}
