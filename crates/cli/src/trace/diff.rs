//! `punctual trace diff`.

mod document;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use punctual_diagnostic::Diagnostic;
use punctual_report::grid::{grid, paint, wrap, Column, Ink};
use punctual_report::units::{count, grouped, time as shown};
use punctual_report::View;
use punctual_timeline::{Comparison, Figures, Parting, Percentiles, Side, TaskComparison};
use punctual_trace::Header;

use super::{each_moment, exit_code, open, TraceResult};
use crate::args_trace::DiffArgs;
use crate::drive::stop_on_signals;
use crate::output::{view, Outcome, MISSED};
use crate::progress::Progress;
use crate::set::time;
use document::document;
pub use document::DiffResult;

/// What the work of two hosts may differ in, ns: 16 sets in guests that count instructions differed
/// by up to 133 us between two builds (docs/testing.md, Whether two versions decide the same).
const OF_HOSTS_NS: u64 = 200_000;

/// One trace, as far as it was read.
struct Read {
    header: Header,
    side: Side,
    records: u64,
    error: Option<Diagnostic>,
    interrupted: bool,
}

pub fn run(args: &DiffArgs) -> Result<Outcome<TraceResult>, Diagnostic> {
    let tolerance = time(args.tolerance.as_deref(), "--tolerance")?;
    let stop = stop_on_signals()?;
    let mut progress = Progress::new(args.quiet, None);
    let mut a = read(&args.a, &stop, &mut progress)?;
    let mut b = read(&args.b, &stop, &mut progress)?;
    progress.clear();
    let simulated = [&a, &b].iter().all(|read| read.header.host == "sim");
    let tolerance = tolerance.unwrap_or(if simulated { 0 } else { OF_HOSTS_NS });
    let compared = Comparison::new(&a.side, &b.side, tolerance);
    let interrupted = a.interrupted || b.interrupted;
    if compared.compared == 0 && a.error.is_none() && b.error.is_none() && !interrupted {
        return Err(Diagnostic::usage(
            format!("{} and {} have no time in common", args.a.display(), args.b.display()),
            "compare traces with periods, and parts of the same time",
        ));
    }
    let error = a.error.take().or(b.error.take());
    let same = compared.is_same();
    let verdict = verdict(&compared);
    let code = exit_code(interrupted, error.as_ref(), if same { 0 } else { MISSED });
    let text = text(args, &verdict, &compared, [&a, &b], &view(args.wide));
    let ok = code == 0;
    let diff = document(args, &compared, [&a, &b], error.is_none(), interrupted);
    let result = TraceResult::Diff(Box::new(DiffResult { diff }));
    Ok(Outcome { verdict, ok, code, result, text, error })
}

fn read(path: &Path, stop: &AtomicBool, progress: &mut Progress) -> Result<Read, Diagnostic> {
    let mut timeline = open(path)?;
    let mut side = Side::new(timeline.header());
    let (error, interrupted) =
        each_moment(path, &mut timeline, Some("compared"), (stop, progress), |moment| {
            side.add(moment);
            ControlFlow::Continue(())
        });
    let (header, records) = (timeline.header().clone(), timeline.records());
    Ok(Read { header, side, records, error, interrupted })
}

/// The most important difference first.
fn verdict(compared: &Comparison) -> String {
    let (tasks, tolerance) = (&compared.tasks, compared.tolerance);
    let sum = |side: usize, of: fn(&Figures) -> u64| -> u64 {
        tasks.iter().filter_map(|task| task.figures[side].as_ref()).map(of).sum()
    };
    let within =
        if tolerance == 0 { String::new() } else { format!(" within {}", shown(tolerance)) };
    if compared.is_same() {
        return format!(
            "The same{within}: {}, {}, {} missed, in {}.",
            count(tasks.len() as u64, "task"),
            count(sum(0, |f| f.releases), "release"),
            grouped(sum(0, |f| f.misses)),
            shown(compared.compared)
        );
    }
    let mut parts = Vec::new();
    for (side, name) in [(1, "A"), (0, "B")] {
        let lacking: Vec<&str> =
            tasks.iter().filter(|task| task.figures[side].is_none()).map(|t| &*t.name).collect();
        match lacking[..] {
            [] => {}
            [one] => parts.push(format!("only {name} has the task {one}")),
            _ => parts.push(format!("only {name} has {} of the tasks", lacking.len())),
        }
    }
    let missed = ("missed", sum(0, |f| f.misses), sum(1, |f| f.misses));
    let releases = ("releases", sum(0, |f| f.releases), sum(1, |f| f.releases));
    let overruns = ("overruns", sum(0, |f| f.overruns), sum(1, |f| f.overruns));
    for (what, a, b) in [missed, releases, overruns] {
        if a != b {
            parts.push(format!("{what} {} and {}", grouped(a), grouped(b)));
        }
    }
    if let Some(parting) = &compared.parting {
        parts.push(parted(parting));
    }
    if parts.is_empty() {
        parts.push("other times of the same tasks".to_owned());
    }
    format!("Different{within}: {}.", parts.join("; "))
}

fn parted(parting: &Parting) -> String {
    let task = |n: usize| parting.tasks[n].as_deref().unwrap_or("no task");
    format!(
        "the schedules part at {} for {}: A executes {}, B {}",
        shown(parting.at),
        shown(parting.length),
        task(0),
        task(1)
    )
}

fn text(
    args: &DiffArgs,
    verdict: &str,
    compared: &Comparison,
    sides: [&Read; 2],
    view: &View,
) -> String {
    let ink = if compared.is_same() { Ink::Good } else { Ink::Bad };
    let verdict = wrap(verdict, 0, view.width);
    let mut text: String = verdict.lines().map(|line| paint(line, ink, true) + "\n").collect();
    for (name, path, read, left_out) in [
        ("A", &args.a, sides[0], compared.left_out[0]),
        ("B", &args.b, sides[1], compared.left_out[1]),
    ] {
        let Header { host, cpu, policy, .. } = &read.header;
        let lost = match read.side.lost {
            0 => String::new(),
            lost => format!(", {} lost by the run", count(lost, "record")),
        };
        let left_out = match left_out {
            0 => String::new(),
            n => format!(", {} outside the common time", count(n, "period")),
        };
        let line = format!(
            "{name}: {}: {host} host, CPU {cpu}, policy {policy}{lost}{left_out}",
            path.display()
        );
        text.push_str(&wrap(&line, 0, view.width));
    }
    if compared.parting.is_some() {
        let line = format!(
            "{} of {} with another task in execution, in stretches longer than the tolerance",
            shown(compared.apart),
            shown(compared.compared)
        );
        text.push_str(&wrap(&line, 0, view.width));
    }
    let (listed, same): (Vec<&TaskComparison>, Vec<_>) =
        compared.tasks.iter().partition(|task| view.wide || !task.is_same(compared.tolerance));
    for task in listed {
        text.push_str(&format!("\n{}\n", task.name));
        match &task.figures {
            [Some(a), Some(b)] => text.push_str(&rows(a, b, compared.tolerance, view)),
            [a, _] => {
                text.push_str(if a.is_some() { "  only in A\n" } else { "  only in B\n" });
            }
        }
    }
    if !same.is_empty() {
        let names: Vec<&str> = same.iter().map(|task| &*task.name).collect();
        text.push('\n');
        text.push_str(&wrap(
            &format!("the same (--wide shows figures): {}", names.join(", ")),
            0,
            view.width,
        ));
    }
    text
}

/// The figures of one task, a line each.
fn rows(a: &Figures, b: &Figures, tolerance: u64, view: &View) -> String {
    let mut names = Vec::new();
    let (mut of_a, mut of_b, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for ((name, a), (_, b)) in a.counts().into_iter().zip(b.counts()) {
        names.push(format!("  {name}"));
        of_a.push(grouped(a));
        of_b.push(grouped(b));
        differences.push((signed(a, b, grouped), a != b));
    }
    for ((name, a), (_, b)) in a.times().into_iter().zip(b.times()) {
        for n in 0..3 {
            let of = |spread: Option<Percentiles>| spread.map(|spread| spread.named()[n]);
            let Some((what, _)) = of(a).or(of(b)) else { continue };
            let (a, b) = (of(a).map(|a| a.1), of(b).map(|b| b.1));
            names.push(format!("  {name} {what}"));
            of_a.push(a.map_or("-".to_owned(), shown));
            of_b.push(b.map_or("-".to_owned(), shown));
            differences.push(match a.zip(b) {
                Some((a, b)) => (signed(a, b, shown), a.abs_diff(b) > tolerance),
                None => ("-".to_owned(), false),
            });
        }
    }
    let columns = vec![
        Column::new("", "", 0).cells(names),
        Column::new("", "A", 0).cells(of_a),
        Column::new("", "B", 1).cells(of_b),
        Column::new("", "B - A", 0).marked(differences),
    ];
    grid(columns, view.width, true)
}

fn signed(a: u64, b: u64, show: fn(u64) -> String) -> String {
    match a.cmp(&b) {
        std::cmp::Ordering::Equal => "=".to_owned(),
        std::cmp::Ordering::Less => format!("+{}", show(b - a)),
        std::cmp::Ordering::Greater => format!("-{}", show(a - b)),
    }
}
