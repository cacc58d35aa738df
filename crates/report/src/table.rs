//! The final table: what was run, a row per task about its deadlines, a row per task about its budget, the verdict.
//!
//! Two small tables and not one wide one: deadlines concern every task, budgets only those that used all of theirs.

use crate::grid::{grid, paint, wrap, Column, Ink};
use crate::results::{GroupKind, GroupResult, Host, Results, TaskResult, TimeSpread};
use crate::spread::ppm;
use crate::units::{count, duration, percent, rate, time, Unit};

/// Shown where there is nothing to show.
pub(crate) const NONE: &str = "-";

/// The final table, ending in a line break. `width` in terminal columns: with fewer than about 100 the less important
/// columns go. `color` with ANSI escapes.
#[must_use]
pub fn table(results: &Results, width: usize, color: bool) -> String {
    let mut out = heading(results, width, color);
    out.push('\n');
    if let Some(why) = &results.not_possible {
        out.push_str(&wrap(&format!("It could not be run: {}.", why.reason.trim_end_matches('.')), 0, width));
        for step in &why.help {
            out.push_str(&format!("  {step}\n"));
        }
        return out;
    }
    out.push_str(&grid(deadlines(&results.tasks), width, color));
    if results.tasks.iter().any(|task| task.long_run_ppm.is_some()) {
        out.push('\n');
        out.push_str(&budgets(results, width, color));
    }
    if !results.groups.is_empty() {
        out.push('\n');
        out.push_str(&grid(groups(&results.groups), width, color));
    }
    out.push('\n');
    out.push_str(&legend(results, width, color));
    out.push_str(&extras(results, width));
    let (text, good) = verdict(results);
    let ink = if good { Ink::Green } else { Ink::Red };
    wrap(&text, 0, width).lines().for_each(|line| out.push_str(&(paint(line, ink, color) + "\n")));
    out
}

/// Two lines: what was run, and on what.
fn heading(results: &Results, width: usize, color: bool) -> String {
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
    let title: String = wrap(&title, 0, width).lines().map(|line| paint(line, Ink::Bold, color) + "\n").collect();
    if results.host == Host::Sim {
        return title + &paint("exact virtual time, no machine", Ink::Faint, color) + "\n";
    }
    let m = &results.machine;
    let mut about = format!(
        "Linux {} {}, {}",
        m.kernel,
        if m.preempt_rt { "PREEMPT_RT" } else { "(not PREEMPT_RT)" },
        count(u64::from(m.cpus), "CPU")
    );
    if m.virtualised == Some(true) {
        about.push_str(", virtual machine");
    }
    if let Some(clock) = &m.clock_source {
        about.push_str(&format!(", clock {clock}"));
    }
    let about: String = wrap(&about, 0, width).lines().map(|line| paint(line, Ink::Faint, color) + "\n").collect();
    title + &about
}

/// How long it ran; a simulated run is exactly as long as it says.
fn length(results: &Results) -> String {
    match results.duration_ns {
        ns @ 0..=59_999_999_999 if results.host == Host::Sim => time(ns),
        ns => duration(ns),
    }
}

fn deadlines(tasks: &[TaskResult]) -> Vec<Column> {
    let each = |show: &dyn Fn(&TaskResult) -> String| tasks.iter().map(show).collect::<Vec<_>>();
    let mut columns = vec![
        Column::new("", "task", 0).cells(each(&|t| t.name.clone())),
        Column::new("", "period", 10).cells(each(&|t| time(t.period_ns))),
        Column::new("", "budget", 11).cells(each(&|t| time(t.budget_ns))),
    ];
    if tasks.iter().any(|t| t.deadline_ns != t.period_ns) {
        columns.push(Column::new("", "deadline", 12).cells(each(&|t| time(t.deadline_ns))));
    }
    columns.push(Column::new("", "periods", 0).cells(each(&|t| t.periods.to_string())));
    columns.push(Column::new("", "missed", 0).marked(tasks.iter().map(|t| (t.misses.to_string(), t.misses > 0))));
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
        let cells = spreads.iter().map(|s| s.as_ref().map_or(NONE.to_owned(), |s| unit.show(get(s))));
        Column::new(group, head, expendable).cells(cells)
    };
    vec![
        column("median", expendable * 2 + 4, &|s| s.median_ns),
        column("p99", expendable, &|s| s.p99_ns),
        column("worst", expendable * 2 + 5, &|s| s.worst_ns),
    ]
}

fn budgets(results: &Results, width: usize, color: bool) -> String {
    const SHARE: &str = "budget received (%)";
    const OFF: &str = "periods off by (%)";
    const APART: &str = "counted apart";
    let tasks: Vec<&TaskResult> = results.tasks.iter().filter(|t| t.long_run_ppm.is_some()).collect();
    let budget = |get: &dyn Fn(&crate::results::BudgetReceived) -> String| -> Vec<String> {
        tasks.iter().map(|t| t.budget_received.as_ref().map_or(NONE.to_owned(), get)).collect()
    };
    let columns = vec![
        Column::new("", "task", 0).cells(tasks.iter().map(|t| t.name.clone())),
        Column::new("", "periods", 8).cells(budget(&|b| b.periods.to_string())),
        Column::new(SHARE, "p1", 2).cells(budget(&|b| percent(b.p1_ppm))),
        Column::new(SHARE, "median", 0).cells(budget(&|b| percent(b.median_ppm))),
        Column::new(SHARE, "p99", 2).cells(budget(&|b| percent(b.p99_ppm))),
        Column::new(SHARE, "worst", 5).cells(budget(&|b| percent(b.worst_ppm))),
        Column::new(SHARE, "long run", 4).cells(tasks.iter().map(|t| t.long_run_ppm.map_or(NONE.to_owned(), percent))),
        Column::new(OFF, "> 1 %", 3).cells(budget(&|b| rate(b.off_1_percent_ppm))),
        Column::new(OFF, "> 5 %", 1).cells(budget(&|b| rate(b.off_5_percent_ppm))),
        Column::new(APART, "late wake-up", 6).cells(tasks.iter().map(|t| t.late_wakeups.periods.to_string())),
        Column::new(APART, "not ready", 7).cells(tasks.iter().map(|t| t.not_ready.to_string())),
    ];
    grid(columns, width, color)
}

fn groups(groups: &[GroupResult]) -> Vec<Column> {
    const SHARE: &str = "of a CPU (%)";
    let each = |show: &dyn Fn(&GroupResult) -> String| groups.iter().map(show).collect::<Vec<_>>();
    let mut columns = vec![Column::new("", "group", 0).cells(each(&|g| g.name.clone()))];
    if groups.iter().any(|g| g.parent.is_some()) {
        columns.push(Column::new("", "in", 3).cells(each(&|g| g.parent.clone().unwrap_or_else(|| NONE.to_owned()))));
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

fn legend(results: &Results, width: usize, color: bool) -> String {
    let any = |test: &dyn Fn(&TaskResult) -> bool| results.tasks.iter().any(test);
    let mut text = String::from(
        "missed: not done at its deadline. used: execution time per budget. overran: wanted more than its budget.",
    );
    if any(&|task| task.release_latency.is_some()) {
        text.push_str(" latency: release to first execution.");
    }
    if any(&|task| task.response_time.is_some()) {
        text.push_str(" response: release to done.");
    }
    if any(&|task| task.long_run_ppm.is_some()) {
        text.push_str(
            " budget received: 100 is what was promised, over the periods in which the task wanted it all; \
             apart: periods in which the dispatcher itself woke up late, or the task suspended itself or was done.",
        );
    }
    wrap(&text, 0, width).lines().map(|line| paint(line, Ink::Faint, color) + "\n").collect()
}

/// The dispatcher, the background process, and the notes: one line each.
fn extras(results: &Results, width: usize) -> String {
    let mut out = String::new();
    if let Some(d) = &results.dispatcher {
        let share = ppm(d.cpu_ns, results.duration_ns);
        let text = format!(
            "dispatcher: {} events, {:.2} us each in the handler (longest {:.1}), wake-up latency {:.1} us (p99 {:.1}, worst {:.1}), {} % of a CPU in all",
            d.events,
            d.handler_mean_ns as f64 / 1e3,
            d.handler_max_ns as f64 / 1e3,
            d.wakeup_latency_p50_ns as f64 / 1e3,
            d.wakeup_latency_p99_ns as f64 / 1e3,
            d.wakeup_latency_max_ns as f64 / 1e3,
            percent(share),
        );
        out.push_str(&wrap(&text, 0, width));
        if d.freezer_waits > 0 {
            let text = format!(
                "{} to the cgroup freezer waited for another process, up to {:.1} ms; programs were parked or resumed late",
                count(d.freezer_waits, "write"),
                d.freezer_wait_max_ns as f64 / 1e6,
            );
            out.push_str(&wrap(&text, 0, width));
        }
    }
    if let Some(d) = &results.kernel_dispatcher {
        let text = format!(
            "dispatcher: {} events; release latency {:.2} us (p99 {:.2}, worst {:.2}; {} that were selected at once)",
            d.events,
            d.release_latency_p50_ns as f64 / 1e3,
            d.release_latency_p99_ns as f64 / 1e3,
            d.release_latency_max_ns as f64 / 1e3,
            count(d.releases, "release"),
        );
        out.push_str(&wrap(&text, 0, width));
    }
    if let Some(load) = &results.load {
        out.push_str(&format!("the background process got {} % of the CPU\n", percent(load.share_ppm)));
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
        "warning: {} not in these figures, because this program did not get the CPU for so long that reports of \
         them were dropped{}{}",
        match results.totals.unreported {
            1 => "1 period is".to_owned(),
            n => format!("{n} periods are"),
        },
        if by_task.is_empty() { "" } else { ": " },
        by_task.join(", ")
    )
}

/// The verdict in words, and whether it is good.
pub(crate) fn verdict(results: &Results) -> (String, bool) {
    let v = &results.totals;
    if v.periods == 0 {
        return ("no whole period was measured: run it for longer".to_owned(), false);
    }
    let all = count(v.periods, "period");
    let deadlines = match v.missed {
        0 if v.unreported > 0 => format!("no deadline missed in {all}"),
        0 if v.short > 0 => String::new(),
        0 => format!("all deadlines met ({all})"),
        missed => {
            let most = results.tasks.iter().filter(|t| t.misses > 0).map(|t| t.name.as_str());
            format!("{missed} of {all} missed their deadline: {}", most.collect::<Vec<_>>().join(", "))
        }
    };
    let unknown = match v.unreported {
        0 => String::new(),
        n => format!("the deadlines of {n} more are unknown"),
    };
    let parts = [deadlines, unknown, short(&results.tasks)];
    (parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "), v.met)
}

/// The tasks that did not receive their budgets; nothing if all did.
pub(crate) fn short(tasks: &[TaskResult]) -> String {
    let short: Vec<String> = tasks.iter().filter(|t| t.shortfall_ns > 0).map(received).collect();
    match short.len() {
        0 => String::new(),
        1 => format!("{}: its budget was not kept", short[0]),
        _ => format!("{}: their budgets were not kept", short.join(", ")),
    }
}

fn received(task: &TaskResult) -> String {
    let periods = task.budget_received.map_or(0, |b| b.periods) + task.late_wakeups.periods;
    let (share, periods) = (percent(task.long_run_ppm.unwrap_or(0)), count(periods, "period"));
    format!("{} received {share} % of its budget over {periods} in which it was ready", task.name)
}
