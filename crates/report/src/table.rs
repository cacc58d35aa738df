//! The results of a run as text: the verdict, what was run, a row per task, a row per group, and
//! notes.
//!
//! By default a row has what most readers need. All columns make two tables ([`View::wide`]),
//! because deadlines concern every task, budgets only those that used all of theirs.

use crate::grid::{grid, paint, wrap, Column, Ink};
use crate::headline::{headline, length};
use crate::units::{count, percent, rate, time, Unit};
use punctual_session::results::{
    ppm, BudgetReceived, GroupKind, GroupResult, HostKind, Results, TaskResult, TimeSpread,
};

/// Shown where there is nothing to show.
pub(crate) const NONE: &str = "-";

/// How results are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Terminal columns: in fewer than about 100 the less important columns go.
    pub width: usize,
    /// With ANSI escapes.
    pub color: bool,
    /// All columns, and the dispatcher's own figures.
    pub wide: bool,
}

impl Default for View {
    fn default() -> View {
        View { width: 100, color: false, wide: false }
    }
}

/// The verdict, then everything else, ending in a line break.
#[must_use]
pub fn table(results: &Results, view: &View) -> String {
    format!("{}\n{}", verdict(results, view), figures(results, view))
}

/// The [`headline`] as a line of its own.
#[must_use]
pub fn verdict(results: &Results, view: &View) -> String {
    let ink =
        if results.totals.met && results.not_possible.is_none() { Ink::Good } else { Ink::Bad };
    lines(&headline(results), ink, view)
}

/// What was run, and the figures, without the verdict.
#[must_use]
pub fn figures(results: &Results, view: &View) -> String {
    let View { width, color, wide } = *view;
    let mut out = heading(results, view);
    out.push('\n');
    if let Some(why) = &results.not_possible {
        for step in &why.help {
            out.push_str(&format!("  {step}\n"));
        }
        return out;
    }
    if wide {
        out.push_str(&grid(deadlines(&results.tasks), width, color));
        if results.tasks.iter().any(|task| task.long_run_ppm.is_some()) {
            out.push('\n');
            out.push_str(&grid(budgets(&results.tasks), width, color));
        }
    } else {
        out.push_str(&grid(tasks(&results.tasks), width, color));
    }
    if !results.groups.is_empty() {
        out.push('\n');
        out.push_str(&grid(groups(&results.groups), width, color));
    }
    out.push('\n');
    out.push_str(&lines(&legend(results, wide), Ink::Faint, view));
    for task in &results.tasks {
        for text in [adaptive(task), reclaimed(task)].into_iter().flatten() {
            out.push_str(&wrap(&text, 0, width));
        }
    }
    if wide {
        out.push_str(&dispatchers(results, width));
    }
    out.push_str(&notes(results, width));
    out
}

/// A text broken into lines of one colour.
fn lines(text: &str, ink: Ink, view: &View) -> String {
    wrap(text, 0, view.width).lines().map(|line| paint(line, ink, view.color) + "\n").collect()
}

/// Two lines: what was run, and on what.
fn heading(results: &Results, view: &View) -> String {
    let cpus: Vec<String> = results.cpus.iter().map(u32::to_string).collect();
    let title = format!(
        "{}: {} for {} on CPU {}, policy {}, budgets {} % of a CPU{}{}",
        results.title(),
        count(results.tasks.len() as u64, "task"),
        length(results),
        cpus.join(","),
        results.policy,
        percent(results.utilization_ppm),
        if results.overload { ", OVERLOAD (admission overridden)" } else { "" },
        if results.interrupted { ", interrupted" } else { "" },
    );
    let title = lines(&title, Ink::Plain, view);
    if results.host == HostKind::Sim {
        return title + &lines("exact virtual time, no machine", Ink::Faint, view);
    }
    let m = &results.machine;
    let mut about = format!(
        "Linux {} {}, {}",
        m.kernel.as_deref().unwrap_or("(unknown)"),
        if m.preempt_rt { "PREEMPT_RT" } else { "(not PREEMPT_RT)" },
        count(m.cpus.len() as u64, "CPU")
    );
    if m.virtual_machine == Some(true) {
        about.push_str(", virtual machine");
    }
    if let Some(clock) = &m.clock_source {
        about.push_str(&format!(", clock {clock}"));
    }
    title + &lines(&about, Ink::Faint, view)
}

/// What most readers need.
fn tasks(tasks: &[TaskResult]) -> Vec<Column> {
    const WANTED: &str = "budget wanted in full";
    let each = |show: &dyn Fn(&TaskResult) -> String| tasks.iter().map(show).collect::<Vec<_>>();
    let share = |ppm: Option<u64>| ppm.map_or(NONE.to_owned(), percent);
    let mut columns = named(tasks);
    columns.push(Column::new("", "used %", 3).cells(each(&|t| used(t))));
    if tasks.iter().any(|t| t.long_run_ppm.is_some()) {
        columns.push(
            Column::new(WANTED, "periods", 5).cells(each(&|t| t.periods_wanting_all().to_string())),
        );
        let received = tasks.iter().map(|t| (share(t.long_run_ppm), t.shortfall_ns > 0));
        columns.push(Column::new(WANTED, "received %", 0).marked(received));
        columns.push(
            Column::new(WANTED, "worst %", 2).cells(each(&|t| share(t.worst_received_ppm()))),
        );
    }
    let response = times("response", 0, tasks.iter().map(|t| t.response_time).collect());
    columns.extend(response.into_iter().next_back());
    columns
}

/// The columns of every table of tasks.
fn named(tasks: &[TaskResult]) -> Vec<Column> {
    let each = |show: &dyn Fn(&TaskResult) -> String| tasks.iter().map(show).collect::<Vec<_>>();
    let mut columns = vec![
        Column::new("", "task", 0).cells(each(&|t| t.name.clone())),
        Column::new("", "period", 10).cells(each(&|t| time(t.period_ns))),
        Column::new("", "budget", 11).cells(each(&|t| time(t.budget_ns))),
    ];
    if tasks.iter().any(|t| t.deadline_ns != t.period_ns) {
        columns.push(Column::new("", "deadline", 12).cells(each(&|t| time(t.deadline_ns))));
    }
    columns.push(Column::new("", "periods", 1).cells(each(&|t| t.periods.to_string())));
    columns.push(
        Column::new("", "missed", 0)
            .marked(tasks.iter().map(|t| (t.misses.to_string(), t.misses > 0))),
    );
    columns
}

/// All about deadlines and times.
fn deadlines(tasks: &[TaskResult]) -> Vec<Column> {
    let each = |show: &dyn Fn(&TaskResult) -> String| tasks.iter().map(show).collect::<Vec<_>>();
    let mut columns = named(tasks);
    columns.push(Column::new("", "used %", 6).cells(each(&|t| used(t))));
    columns.push(Column::new("", "overran %", 5).cells(each(&|t| rate(t.overruns_ppm))));
    columns.extend(times("latency", 3, tasks.iter().map(|t| t.release_latency).collect()));
    columns.extend(times("response", 2, tasks.iter().map(|t| t.response_time).collect()));
    columns
}

/// Execution time received per assigned over all periods, whether the task wanted it or not.
fn used(task: &TaskResult) -> String {
    if task.assigned_ns == 0 {
        return NONE.to_owned();
    }
    percent(ppm(task.received_ns, task.assigned_ns))
}

/// Median, p99 and worst of one measure; nothing if no task has it.
fn times(what: &str, expendable: u8, spreads: Vec<Option<TimeSpread>>) -> Vec<Column> {
    let Some(longest) = spreads.iter().flatten().map(|s| s.worst_ns).max() else {
        return Vec::new();
    };
    let unit = Unit::for_longest(longest);
    // A heading is one of four, so that it needs no allocation that outlives the table.
    let group = match (what, unit.name) {
        ("latency", "us") => "latency (us)",
        ("latency", _) => "latency (ms)",
        (_, "us") => "response (us)",
        _ => "response (ms)",
    };
    let column = |head: &str, expendable: u8, get: &dyn Fn(&TimeSpread) -> u64| {
        let cells =
            spreads.iter().map(|s| s.as_ref().map_or(NONE.to_owned(), |s| unit.show(get(s))));
        Column::new(group, head, expendable).cells(cells)
    };
    vec![
        column("median", expendable * 2 + 4, &|s| s.median_ns),
        column("p99", expendable, &|s| s.p99_ns),
        column("worst", expendable * 2 + 5, &|s| s.worst_ns),
    ]
}

/// All about the budgets of the tasks that wanted all of one at least once.
fn budgets(tasks: &[TaskResult]) -> Vec<Column> {
    const SHARE: &str = "budget received (%)";
    const OFF: &str = "periods off by (%)";
    const APART: &str = "counted apart";
    let tasks: Vec<&TaskResult> = tasks.iter().filter(|t| t.long_run_ppm.is_some()).collect();
    let budget = |get: &dyn Fn(&BudgetReceived) -> String| -> Vec<String> {
        tasks.iter().map(|t| t.budget_received.as_ref().map_or(NONE.to_owned(), get)).collect()
    };
    vec![
        Column::new("", "task", 0).cells(tasks.iter().map(|t| t.name.clone())),
        Column::new("", "periods", 8).cells(budget(&|b| b.periods.to_string())),
        Column::new(SHARE, "p1", 2).cells(budget(&|b| percent(b.p1_ppm))),
        Column::new(SHARE, "median", 0).cells(budget(&|b| percent(b.median_ppm))),
        Column::new(SHARE, "p99", 2).cells(budget(&|b| percent(b.p99_ppm))),
        Column::new(SHARE, "worst", 5).cells(budget(&|b| percent(b.worst_ppm))),
        Column::new(SHARE, "long run", 4)
            .cells(tasks.iter().map(|t| t.long_run_ppm.map_or(NONE.to_owned(), percent))),
        Column::new(OFF, "> 1 %", 3).cells(budget(&|b| rate(b.off_1_percent_ppm))),
        Column::new(OFF, "> 5 %", 1).cells(budget(&|b| rate(b.off_5_percent_ppm))),
        Column::new(APART, "late wake-up", 6)
            .cells(tasks.iter().map(|t| t.late_wakeups.periods.to_string())),
        Column::new(APART, "not ready", 7).cells(tasks.iter().map(|t| t.not_ready.to_string())),
    ]
}

fn groups(groups: &[GroupResult]) -> Vec<Column> {
    const SHARE: &str = "of a CPU (%)";
    let each = |show: &dyn Fn(&GroupResult) -> String| groups.iter().map(show).collect::<Vec<_>>();
    let mut columns = vec![Column::new("", "group", 0).cells(each(&|g| g.name.clone()))];
    if groups.iter().any(|g| g.parent.is_some()) {
        columns.push(
            Column::new("", "in", 3)
                .cells(each(&|g| g.parent.clone().unwrap_or_else(|| NONE.to_owned()))),
        );
    }
    let policy = |g: &GroupResult| match g.kind {
        GroupKind::Group => g.policy.clone().unwrap_or_else(|| NONE.to_owned()),
        GroupKind::BudgetGroup => "(budget)".to_owned(),
    };
    columns.push(Column::new("", "policy", 2).cells(each(&policy)));
    columns.push(Column::new("", "period", 4).cells(each(&|g| time(g.period_ns))));
    columns.push(Column::new("", "budget", 5).cells(each(&|g| time(g.budget_ns))));
    columns.push(Column::new("", "tasks", 6).cells(each(&|g| g.tasks.to_string())));
    columns.push(Column::new(SHARE, "assigned", 1).cells(each(&|g| percent(g.assigned_ppm))));
    columns.push(Column::new(SHARE, "received", 0).cells(each(&|g| percent(g.received_ppm))));
    columns
}

/// What the columns mean.
fn legend(results: &Results, wide: bool) -> String {
    let any = |test: &dyn Fn(&TaskResult) -> bool| results.tasks.iter().any(test);
    let (wanted, done) = (any(&|t| t.long_run_ppm.is_some()), any(&|t| t.response_time.is_some()));
    let mut text = vec![
        "missed: not done at its deadline.",
        "used: execution time per budget, over all periods.",
    ];
    if wide {
        text.push("overran: wanted more than its budget.");
        if any(&|t| t.release_latency.is_some()) {
            text.push("latency: release to first execution.");
        }
    }
    match (wanted, wide) {
        (false, _) => {}
        (true, false) => text.push(
            "budget wanted in full: the periods in which the task could use all of its budget, \
             what it received of it in these, and in the one furthest from 100 %.",
        ),
        (true, true) => text.push(
            "budget received: over the periods in which the task could use all of its budget; \
             counted apart: periods in which the dispatcher itself woke up late, or the task \
             suspended itself or was done before.",
        ),
    }
    if done {
        text.push("response: release to completion.");
    }
    text.join(" ")
}

/// The budgets of a task with an adaptive server.
fn adaptive(task: &TaskResult) -> Option<String> {
    let b = task.adaptive_budget?;
    Some(format!(
        "adaptive budget of {}: {} on average, from {} to {}, {} at last; used up in {} in which \
         it was below {}",
        task.name,
        time(b.mean_ns),
        time(b.least_ns),
        time(b.most_ns),
        time(b.last_ns),
        count(b.exhausted, "period"),
        time(task.budget_ns),
    ))
}

/// What a task executed beyond its budgets.
fn reclaimed(task: &TaskResult) -> Option<String> {
    let ns = task.reclaimed_ns.filter(|&ns| ns > 0)?.checked_div(task.periods)?;
    Some(format!("{} reclaimed {} beyond its budget in each period", task.name, time(ns)))
}

/// The dispatchers' own figures.
fn dispatchers(results: &Results, width: usize) -> String {
    let mut out = String::new();
    let us = |ns: u64| ns as f64 / 1e3;
    if let Some(d) = &results.dispatcher {
        let text = format!(
            "dispatcher: {}, {:.2} us each in the handler (longest {:.1}), wake-up latency {:.1} \
             us (p99 {:.1}, worst {:.1}), {} % of a CPU in all",
            count(d.events, "event"),
            us(d.handler_mean_ns),
            us(d.handler_max_ns),
            us(d.wakeup_latency_p50_ns),
            us(d.wakeup_latency_p99_ns),
            us(d.wakeup_latency_max_ns),
            percent(ppm(d.cpu_ns, results.duration_ns)),
        );
        out.push_str(&wrap(&text, 0, width));
        if d.freezer_waits > 0 {
            let text = format!(
                "{} to the cgroup freezer waited for another process, up to {:.1} ms; programs \
                 were parked or resumed late",
                count(d.freezer_waits, "write"),
                d.freezer_wait_max_ns as f64 / 1e6,
            );
            out.push_str(&wrap(&text, 0, width));
        }
    }
    if let Some(d) = &results.kernel_dispatcher {
        let text = format!(
            "dispatcher: {}; release latency {:.2} us (p99 {:.2}, worst {:.2}; {} that were \
             selected at once)",
            count(d.events, "event"),
            us(d.release_latency_p50_ns),
            us(d.release_latency_p99_ns),
            us(d.release_latency_max_ns),
            count(d.releases, "release"),
        );
        out.push_str(&wrap(&text, 0, width));
    }
    out
}

/// The background process, what is missing, and the notes: one line each.
fn notes(results: &Results, width: usize) -> String {
    let mut out = String::new();
    if let Some(load) = &results.load {
        out.push_str(&format!(
            "the background process got {} % of the CPU\n",
            percent(load.share_ppm)
        ));
    }
    if results.totals.unreported > 0 {
        out.push_str(&wrap(&unreported(results), 0, width));
    }
    for note in &results.notes {
        out.push_str(&wrap(&format!("note: {note}"), 0, width));
    }
    out
}

/// Which figures are incomplete, and why.
pub(crate) fn unreported(results: &Results) -> String {
    let some = results.tasks.iter().filter(|t| t.unreported > 0);
    let by_task: Vec<String> = some.map(|t| format!("{} {}", t.name, t.unreported)).collect();
    format!(
        "warning: {} not in these figures, because this program did not get the CPU for so long \
         that reports of them were dropped{}{}",
        match results.totals.unreported {
            1 => "1 period is".to_owned(),
            n => format!("{n} periods are"),
        },
        if by_task.is_empty() { "" } else { ": " },
        by_task.join(", ")
    )
}
