//! `punctual measure latency`: the table, and what it comes to.

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_measure::distribution::LatencySpread;
use punctual_measure::latency::{
    self, LatencyPlan, LatencyProgress, LatencyResult, LatencyRow, PaperRow, PERIOD, PERIODS,
    TABLE_6_MACHINE,
};
use punctual_measure::loads::Workload;
use punctual_measure::require::{Requirement, Violation};
use punctual_report::grid::{grid, paint, wrap, Column, Ink};
use punctual_report::View;

use super::not_kept;
use crate::args_measure::MeasureLatency;
use crate::drive::stop_on_signals;
use crate::output::{self, Outcome, INTERRUPTED, MISSED};
use crate::progress::Progress;
use crate::set::last_cpu;

/// Periods of each row with `--quick`.
const QUICK: u64 = 2_000;

pub fn run(args: &MeasureLatency) -> Result<Outcome<LatencyResult>, Diagnostic> {
    let requirements = match &args.require {
        Some(text) => Requirement::parse_list(text, &LatencySpread::FIGURES)?,
        None => Vec::new(),
    };
    let named: Vec<Workload> = args.load.iter().filter_map(|name| Workload::named(name)).collect();
    let plan = LatencyPlan {
        cpu: args.cpu.unwrap_or_else(last_cpu),
        class: args.host.into(),
        periods: args.periods.unwrap_or(if args.quick { QUICK } else { PERIODS }),
        workloads: if named.is_empty() { Workload::ALL.to_vec() } else { named },
        generator: args.generator.map(Into::into),
        reference: args.reference,
        requirements,
        stop: stop_on_signals()?,
    };
    // Of measured time; the reference takes as long again, and is not counted.
    let mut progress =
        Progress::new(args.quiet, Some(plan.periods * plan.workloads.len() as u64 * PERIOD));
    let width = output::view(false).width;
    let measured = latency::measure(&plan, &mut |step| {
        progress.tick(
            step.done * PERIOD,
            &format_args!("{}{}", step.workload, rest(&step, plan.reference, width)),
        );
    });
    progress.clear();
    let (result, error) = measured?;
    Ok(outcome(result, error, &plan.workloads, &output::view(args.wide)))
}

/// What is still to come, where the terminal has room for it.
fn rest(step: &LatencyProgress, reference: bool, width: usize) -> String {
    const BAR: u64 = 20;
    let left = (step.planned - step.done) * PERIOD * if reference { 2 } else { 1 } / 1_000_000_000;
    let filled = (step.done * BAR / step.planned.max(1)) as usize;
    match width {
        ..60 => String::new(),
        60..90 => format!(", {left} s left"),
        _ => {
            format!(" [{}{}] {left} s left", "#".repeat(filled), "-".repeat(BAR as usize - filled))
        }
    }
}

fn outcome(
    result: LatencyResult,
    error: Option<Diagnostic>,
    planned: &[Workload],
    view: &View,
) -> Outcome<LatencyResult> {
    let unproven = !result.requirements.is_empty() && result.judged() == 0;
    let code = match &error {
        Some(error) => error.exit_code(),
        None if result.interrupted => INTERRUPTED,
        None if !result.violations.is_empty() => MISSED,
        None if unproven => Kind::Machine.exit_code(),
        None => 0,
    };
    let verdict = verdict(&result, planned.len());
    let text = text(&result, &verdict, code == 0, view);
    Outcome { verdict, ok: code == 0, code, result, text, error }
}

/// The result in one sentence.
fn verdict(result: &LatencyResult, planned: usize) -> String {
    let measured = result.rows.iter().filter(|row| row.latency.is_some()).count();
    let rows = if planned == 1 { "row" } else { "rows" };
    let cut = if result.interrupted {
        format!("Interrupted after {measured} of {planned} {rows}: ")
    } else {
        String::new()
    };
    if let Some(violations) = not_kept(&result.violations) {
        return format!("{cut}{violations}");
    }
    let worst = |row: &&LatencyRow| row.latency.map_or(0, |latency| latency.max_ns);
    let real_time = result
        .rows
        .iter()
        .filter(|row| row.workload != Workload::NonRealTime && row.latency.is_some());
    let Some(row) = real_time.max_by_key(worst) else {
        return match result.rows.iter().find_map(|row| Some((row.workload, row.latency?))) {
            Some((workload, latency)) => {
                format!(
                    "{cut}The ordinary job woke up to {} us late ({workload}).",
                    us(latency.max_ns)
                )
            }
            None => format!("{cut}Nothing was measured."),
        };
    };
    let kept = if result.requirements.is_empty() { "" } else { "All requirements are kept: " };
    let p99 = result
        .rows
        .iter()
        .filter(|r| r.workload != Workload::NonRealTime)
        .filter_map(|r| r.latency);
    let p99 = p99.map(|latency| latency.p99_ns).max().unwrap_or(0);
    format!(
        "{cut}{kept}The job woke up to {} us late ({}); 99 % of its wake-ups were within {} us in \
         each row.",
        us(worst(&row)),
        row.workload,
        us(p99)
    )
}

/// us with one digit.
fn us(ns: u64) -> String {
    let tenths = (ns + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn text(result: &LatencyResult, verdict: &str, ok: bool, view: &View) -> String {
    let ink = if ok { Ink::Good } else { Ink::Bad };
    let mut text: String =
        wrap(verdict, 0, view.width).lines().map(|l| paint(l, ink, view.color) + "\n").collect();
    text.push('\n');
    text.push_str(&grid(columns(result, view.wide), view.width, view.color));
    let mut say = |line: &str| text.push_str(&wrap(line, 2, view.width));
    for row in &result.rows {
        if let Some(why) = &row.not_possible {
            say(&format!("{}: not measured: {why}.", row.workload));
        }
        if row.lost > 0 {
            say(&format!(
                "{}: {} wake-ups are missing: the table's own thread got no CPU.",
                row.workload, row.lost
            ));
        }
        row.notes.iter().for_each(|note| say(&format!("{}: {note}.", row.workload)));
        if let Some(reference) = &row.reference {
            let percent = reference.ratio_ppm / 10_000;
            let windows = reference.p50_ns.len();
            say(&format!(
                "{}: the job's median is {}.{:02} times that of {} ({windows} windows in turns).",
                row.workload,
                percent / 100,
                percent % 100,
                reference.command
            ));
        }
    }
    result
        .violations
        .iter()
        .map(Violation::describe)
        .for_each(|line| say(&format!("Not kept: {line}.")));
    result.warnings.iter().for_each(|warning| say(&format!("Noise: {warning}.")));
    if view.wide {
        say(&machine(result));
        say(&format!("Paper: Table 6 of the RED-Linux paper, on a {TABLE_6_MACHINE}."));
    }
    text
}

fn machine(result: &LatencyResult) -> String {
    let machine = &result.machine;
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    format!(
        "Machine: {}, Linux {} ({}), CPU {}, clock source {}{}.",
        or(&machine.cpu_model),
        or(&machine.kernel),
        or(&machine.preemption),
        result.cpu,
        or(&machine.clock_source),
        if machine.virtual_machine == Some(true) { ", a virtual machine" } else { "" }
    )
}

fn columns(result: &LatencyResult, wide: bool) -> Vec<Column> {
    const LATE: &str = "woke late (us)";
    let rows = &result.rows;
    let of = |figure: fn(&LatencySpread) -> u64,
              spread: fn(&LatencyRow) -> Option<LatencySpread>| {
        rows.iter()
            .map(move |row| spread(row).map_or("-".to_owned(), |s| us(figure(&s))))
            .collect::<Vec<_>>()
    };
    let late = |head: &str, expendable, figure: fn(&LatencySpread) -> u64| {
        Column::new(LATE, head, expendable).cells(of(figure, |row| row.latency))
    };
    let violated =
        |row: &LatencyRow| result.violations.iter().any(|v| v.workload == row.workload.name());
    let maximum = rows
        .iter()
        .map(|row| (row.latency.map_or("-".to_owned(), |l| us(l.max_ns)), violated(row)));
    let count = rows.iter().map(|row| row.latency.map_or(0, |latency| latency.count).to_string());
    let mut columns = vec![
        Column::new("", "load", 0).cells(rows.iter().map(|row| row.workload.to_string())),
        Column::new("", "periods", 4).cells(count),
        late("min", 3, |s| s.min_ns),
        late("avg", 2, |s| s.average_ns),
        late("p50", 1, |s| s.p50_ns),
        late("p99", 0, |s| s.p99_ns),
        late("p99.9", 3, |s| s.p999_ns),
        Column::new(LATE, "max", 0).marked(maximum),
    ];
    let part = |group,
                head: &str,
                figure: fn(&LatencySpread) -> u64,
                spread: fn(&LatencyRow) -> Option<LatencySpread>| {
        Column::new(group, head, 5).cells(of(figure, spread))
    };
    if wide {
        const QUEUED: &str = "of it, runnable (us)";
        const REST: &str = "timer, switch (us)";
        const RELEASE: &str = "release (us)";
        const DISPATCHER: &str = "dispatcher (us)";
        const PAPER: &str = "paper (us)";
        let dispatcher = rows.iter().map(|row| row.dispatcher.as_ref());
        let wake = |figure: fn(&punctual_session::results::DispatcherStats) -> u64| {
            dispatcher
                .clone()
                .map(move |stats| stats.map_or("-".to_owned(), |stats| us(figure(stats))))
        };
        let paper = |figure: fn(&PaperRow) -> u64| {
            rows.iter().map(move |row| {
                PaperRow::of(row.workload).map_or("-".into(), |p| figure(&p).to_string())
            })
        };
        columns.extend([
            part(QUEUED, "avg", |s| s.average_ns, |row| row.scheduling_delay),
            part(QUEUED, "p99", |s| s.p99_ns, |row| row.scheduling_delay),
            part(REST, "avg", |s| s.average_ns, |row| row.timer_and_switch),
            part(REST, "p99", |s| s.p99_ns, |row| row.timer_and_switch),
            part(RELEASE, "p50", |s| s.p50_ns, |row| row.release_latency),
            part(RELEASE, "p99", |s| s.p99_ns, |row| row.release_latency),
            Column::new(DISPATCHER, "p50", 5).cells(wake(|stats| stats.wakeup_latency_p50_ns)),
            Column::new(DISPATCHER, "p99", 5).cells(wake(|stats| stats.wakeup_latency_p99_ns)),
            Column::new(PAPER, "min", 1).cells(paper(|row| row.min_us)),
            Column::new(PAPER, "avg", 1).cells(paper(|row| row.average_us)),
            Column::new(PAPER, "max", 1).cells(paper(|row| row.max_us)),
        ]);
    }
    columns
}
