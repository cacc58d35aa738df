//! `--compare`: the same set under several hosts, a column each. By measure and then by task,
//! because the values to compare belong in one line.

use crate::grid::{grid, wrap, Column};
use crate::headline::headline;
use crate::table::{unreported, View, NONE};
use crate::units::{duration, percent, rate, time, Unit};
use punctual_session::results::{ppm, HostKind, Results, TaskKind, TaskResult};

/// Each run's verdict, a line or more each.
#[must_use]
pub fn verdicts(runs: &[Results], view: &View) -> String {
    runs.iter()
        .map(|run| wrap(&format!("{}: {}", run.title(), headline(run)), 0, view.width))
        .collect()
}

/// The runs side by side, tasks matched by their place in the set; then what helps each run that
/// could not take place, and the runs' notes. Ends in a line break.
#[must_use]
pub fn side_by_side(runs: &[Results], view: &View) -> String {
    let Some(set) = runs.iter().max_by_key(|run| run.tasks.len()) else {
        return String::new();
    };
    let rows = rows(runs, &set.tasks, view.wide);
    let mut columns = vec![Column::new("", "", 0).cells(rows.iter().map(|row| row.head.clone()))];
    for (i, run) in runs.iter().enumerate() {
        columns.push(
            Column::new("", run.title(), 0).marked(rows.iter().map(|row| row.cells[i].clone())),
        );
    }
    let mut out = grid(columns, usize::MAX, view.color);
    out.push('\n');
    let legend = if view.wide {
        "budget received: p1 / median / p99 over the periods in which the task could use all of it \
         and the measurer was punctual. response time: of the jobs that were completed."
    } else {
        "execution time: over all periods; more than 100 % where no budget is enforced. response \
         time: of the jobs that were completed."
    };
    out.push_str(&wrap(legend, 0, view.width));
    for run in runs {
        for step in run.not_possible.iter().flat_map(|why| &why.help) {
            out.push_str(&format!("{}: {step}\n", run.title()));
        }
    }
    for run in runs.iter().filter(|run| run.totals.unreported > 0) {
        out.push_str(&wrap(&format!("{}: {}", run.title(), unreported(run)), 0, view.width));
    }
    for (titles, note) in notes(runs) {
        out.push_str(&wrap(&format!("{}: {note}", titles.join(", ")), 0, view.width));
    }
    out
}

/// Each note once, with the runs that have it.
fn notes(runs: &[Results]) -> Vec<(Vec<&str>, &str)> {
    let mut notes: Vec<(Vec<&str>, &str)> = Vec::new();
    for run in runs {
        for note in &run.notes {
            match notes.iter_mut().find(|(_, known)| known == note) {
                Some((titles, _)) => titles.push(run.title()),
                None => notes.push((vec![run.title()], note)),
            }
        }
    }
    notes
}

/// Under the kernel's own policies it is not known whether an unmodified program is in time.
fn judged(run: &Results, task: &TaskResult) -> bool {
    let baseline = matches!(run.host, HostKind::Fifo | HostKind::Deadline | HostKind::Other);
    task.periods > 0 && !(baseline && foreign(task))
}

fn foreign(task: &TaskResult) -> bool {
    matches!(task.kind, TaskKind::Command | TaskKind::Pid)
}

struct Row {
    head: String,
    cells: Vec<(String, bool)>,
}

type Cell<'a> = &'a dyn Fn(&Results, &TaskResult) -> Option<(String, bool)>;

fn rows(runs: &[Results], tasks: &[TaskResult], wide: bool) -> Vec<Row> {
    let worst = runs
        .iter()
        .flat_map(|run| &run.tasks)
        .filter_map(|t| t.response_time)
        .map(|r| r.worst_ns)
        .max();
    let unit = Unit::for_longest(worst.unwrap_or(0));
    let mut rows = Vec::new();
    let mut block = |title: String, cell: Cell| {
        let lines: Vec<Row> = tasks
            .iter()
            .enumerate()
            .map(|(i, task)| Row {
                head: format!(
                    "  {} ({} in {})",
                    task.name,
                    time(task.budget_ns),
                    time(task.period_ns)
                ),
                cells: runs.iter().map(|run| one(run, i, cell)).collect(),
            })
            // A task without figures is left out of the block, and an empty block altogether.
            .filter(|row| row.cells.iter().any(|(text, _)| text != NONE))
            .collect();
        if !lines.is_empty() {
            rows.push(Row { head: title, cells: vec![(String::new(), false); runs.len()] });
            rows.extend(lines);
        }
    };
    block("deadlines missed, % of periods".into(), &|run, t| {
        judged(run, t).then(|| (rate(t.misses_ppm), t.misses > 0))
    });
    block("execution time, % of budget".into(), &|_, t| {
        (t.assigned_ns > 0).then(|| (percent(ppm(t.received_ns, t.assigned_ns)), false))
    });
    if wide {
        block("budget received, % of assigned".into(), &|_, t| {
            let b = t.budget_received?;
            Some((
                format!(
                    "{} / {} / {}",
                    percent(b.p1_ppm),
                    percent(b.median_ppm),
                    percent(b.p99_ppm)
                ),
                false,
            ))
        });
        block("budget received in the long run, % of assigned".into(), &|_, t| {
            t.long_run_ppm.map(|received| (percent(received), t.shortfall_ns > 0))
        });
        block("budget off by more than 5 %, % of periods".into(), &|_, t| {
            t.budget_received.map(|b| (rate(b.off_5_percent_ppm), false))
        });
        block(format!("response time p99, {}", unit.name), &|_, t| {
            t.response_time.map(|r| (unit.show(r.p99_ns), false))
        });
    }
    block(format!("response time, worst, {}", unit.name), &|_, t| {
        t.response_time.map(|r| (unit.show(r.worst_ns), false))
    });
    if runs.iter().any(|run| run.load.is_some()) {
        let cells = runs
            .iter()
            .map(|run| (run.load.map_or(NONE.to_owned(), |load| percent(load.share_ppm)), false));
        rows.push(Row {
            head: "left for the background process, % of the CPU".into(),
            cells: cells.collect(),
        });
    }
    let ran = runs.iter().map(|run| match run.not_possible {
        None => (duration(run.duration_ns), false),
        Some(_) => ("not run".to_owned(), false),
    });
    rows.push(Row { head: "measured for".into(), cells: ran.collect() });
    rows
}

fn one(run: &Results, task: usize, cell: Cell) -> (String, bool) {
    let task = run.tasks.get(task).filter(|_| run.not_possible.is_none());
    task.and_then(|task| cell(run, task)).unwrap_or((NONE.to_owned(), false))
}
