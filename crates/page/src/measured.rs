//! Measurements of machines on the page: `measure determinism` and `measure latency`, each alone
//! and several of them side by side, kernel by kernel, as in the PREEMPT_RT article.

use punctual_measure::determinism::{DeterminismResult, DeterminismRun, ReleaseKind, TaskFigures};
use punctual_measure::distribution::LatencySpread;
use punctual_measure::latency::{LatencyResult, LatencyRow};
use punctual_measure::loads::Workload;
use punctual_report::units::grouped;
use punctual_session::results::Machine;

use crate::html::{escape, figure, machine, push, table};
use crate::spreads::{Spread, Spreads};

/// One result of `punctual measure`.
#[derive(Debug)]
pub struct Measurement {
    /// What to call it: its file.
    pub title: String,
    /// In one sentence.
    pub verdict: String,
    /// All that was asked for was measured, and all that is required is kept.
    pub ok: bool,
    /// Why it was ended early: one sentence; what was measured until then is shown.
    pub damage: Option<String>,
    pub(crate) figures: Figures,
}

/// What was measured.
#[derive(Debug)]
pub(crate) enum Figures {
    Determinism(Box<DeterminismResult>),
    Latency(Box<LatencyResult>),
}

impl Measurement {
    fn machine(&self) -> &Machine {
        match &self.figures {
            Figures::Determinism(result) => &result.machine,
            Figures::Latency(result) => &result.machine,
        }
    }

    fn determinism(&self) -> Option<&DeterminismResult> {
        match &self.figures {
            Figures::Determinism(result) => Some(result),
            Figures::Latency(_) => None,
        }
    }

    fn latency(&self) -> Option<&LatencyResult> {
        match &self.figures {
            Figures::Determinism(_) => None,
            Figures::Latency(result) => Some(result),
        }
    }

    /// Its own tables.
    pub(crate) fn section(&self, out: &mut String) {
        let state = if self.ok { "good" } else { "bad" };
        push(out, &["<section><h2>", &escape(&self.title), "</h2>\n<p class=\"", state, "\">"]);
        push(out, &[&escape(&self.verdict), "</p>\n"]);
        match &self.figures {
            Figures::Determinism(result) => {
                result.runs.iter().for_each(|run| determinism_table(out, run));
            }
            Figures::Latency(result) => latency_table(out, result),
        }
        machine(out, self.machine());
        out.push_str("</section>\n");
    }
}

/// A sentence for each kind of measurement: their own, or where there are several, both ends.
pub(crate) fn verdicts(all: &[Measurement]) -> Vec<String> {
    let sentence = |what: &str, late: &dyn Fn(&Measurement) -> Option<u64>| {
        let mut found: Vec<_> = all.iter().filter_map(|m| Some((late(m)?, m))).collect();
        found.sort_by_key(|(ns, _)| *ns);
        match &found[..] {
            [] => None,
            [(_, only)] => Some(only.verdict.clone()),
            [(least, best), .., (most, worst)] => {
                let (best, worst) = (kernel(best), kernel(worst));
                Some(format!("{what} {} us on {best} and {} us on {worst}.", us(*least), us(*most)))
            }
        }
    };
    let determinism = |m: &Measurement| {
        let runs = m.determinism()?.runs.iter();
        Some(runs.filter_map(|run| run.least_deterministic()?.determinism_ns).max().unwrap_or(0))
    };
    let latency = |m: &Measurement| {
        let rows = m.latency()?.rows.iter().filter(|row| row.workload != Workload::NonRealTime);
        Some(rows.filter_map(|row| Some(row.latency?.max_ns)).max().unwrap_or(0))
    };
    let sentences = [
        sentence("Latencies differ by up to", &determinism),
        sentence("The job woke late by at most", &latency),
    ];
    sentences.into_iter().flatten().collect()
}

/// The tables in which measurements stand side by side, and their pictures.
pub(crate) fn comparison(out: &mut String, all: &[Measurement], pictures: &[Spreads]) {
    let picture = |out: &mut String, id: &str| {
        if let Some(spreads) = pictures.iter().find(|spreads| spreads.id == id) {
            figure(out, &spreads.id, &escape(&spreads.caption));
        }
    };
    let columns: Vec<_> = all.iter().filter_map(|m| Some((m, m.determinism()?))).collect();
    if columns.len() > 1 {
        out.push_str("<section><h2>Determinism by what releases a task</h2>\n");
        for rate in rates(all) {
            let runs: Vec<_> = columns
                .iter()
                .filter_map(|(m, of)| Some((*m, of.runs.iter().find(|run| run.rate_hz == rate)?)))
                .collect();
            push(out, &["<h3>", &rate.to_string(), " Hz: best, worst, worst less best; us</h3>\n"]);
            let heads = runs.iter().map(|(m, _)| head(m));
            let kinds = kinds(runs.iter().flat_map(|(_, run)| &run.tasks));
            let rows = kinds.iter().map(|kind| {
                let cells = runs.iter().map(|(_, run)| {
                    let ends = [of_kind(run, kind, |t| t.best_ns).min()]
                        .into_iter()
                        .chain([of_kind(run, kind, |t| t.worst_ns).max()])
                        .chain([of_kind(run, kind, |t| t.determinism_ns).max()]);
                    ends.map(optional).collect::<Vec<_>>().join(", ")
                });
                [kind.clone()].into_iter().chain(cells).collect()
            });
            table(out, ["released by".to_owned()].into_iter().chain(heads), rows);
            picture(out, &format!("determinism-{rate}"));
        }
        out.push_str("</section>\n");
    }
    let columns: Vec<_> = all.iter().filter_map(|m| Some((m, m.latency()?))).collect();
    if columns.len() > 1 {
        out.push_str("<section><h2>Latency beside loads</h2>\n");
        out.push_str("<h3>Median, 99th percentile, longest; us</h3>\n");
        let heads = columns.iter().map(|(m, _)| head(m));
        let mut loads: Vec<Workload> = Vec::new();
        for row in columns.iter().flat_map(|(_, of)| &of.rows) {
            if !loads.contains(&row.workload) {
                loads.push(row.workload);
            }
        }
        let rows = loads.iter().map(|load| {
            let cells = columns.iter().map(|(_, of)| {
                let row = of.rows.iter().find(|row| row.workload == *load);
                row.and_then(|row| row.latency)
                    .map_or_else(dash, |l| [l.p50_ns, l.p99_ns, l.max_ns].map(us).join(", "))
            });
            [load.name().to_owned()].into_iter().chain(cells).collect()
        });
        table(out, ["load".to_owned()].into_iter().chain(heads), rows);
        picture(out, "latency");
        out.push_str("</section>\n");
    }
}

/// The pictures of several measurements of one kind.
pub(crate) fn spreads(all: &[Measurement]) -> Vec<Spreads> {
    let mut pictures = Vec::new();
    if all.iter().filter(|m| m.determinism().is_some()).count() > 1 {
        for rate in rates(all) {
            let series = all.iter().filter_map(|m| {
                let run = m.determinism()?.runs.iter().find(|run| run.rate_hz == rate)?;
                let spread = |kind: String| {
                    let best = of_kind(run, &kind, |t| t.best_ns).min();
                    let worst = of_kind(run, &kind, |t| t.worst_ns).max();
                    let ends = best.zip(worst);
                    (kind, ends.map(|(from, to)| Spread { from, to, mark: to }))
                };
                Some((kernel(m), kinds(&run.tasks).into_iter().map(spread).collect()))
            });
            let caption =
                format!("Latency at {rate} Hz: best to worst, by what releases a task and kernel");
            let id = format!("determinism-{rate}");
            pictures.extend(Spreads::new(&id, &caption, series.collect()));
        }
    }
    if all.iter().filter(|m| m.latency().is_some()).count() > 1 {
        let series = all.iter().filter_map(|m| {
            let spread = |row: &LatencyRow| {
                let of = |l: LatencySpread| Spread { from: l.p50_ns, to: l.p99_ns, mark: l.max_ns };
                (row.workload.name().to_owned(), row.latency.map(of))
            };
            Some((kernel(m), m.latency()?.rows.iter().map(spread).collect()))
        });
        let caption = "Latency: median to 99th percentile, and the longest, by load and kernel";
        pictures.extend(Spreads::new("latency", caption, series.collect()));
    }
    pictures
}

/// The heart beats of all of them, in the order in which they were measured.
fn rates(all: &[Measurement]) -> Vec<u32> {
    let mut rates: Vec<u32> = Vec::new();
    for run in all.iter().filter_map(Measurement::determinism).flat_map(|result| &result.runs) {
        if !rates.contains(&run.rate_hz) {
            rates.push(run.rate_hz);
        }
    }
    rates
}

/// The executive apart from the tasks that a timer releases, too.
fn kind_of(task: &TaskFigures) -> String {
    if task.name == "exec" {
        "exec".to_owned()
    } else {
        kind_name(task.kind)
    }
}

fn kind_name(kind: ReleaseKind) -> String {
    format!("{} ({})", kind.name(), kind.primitive())
}

fn kinds<'a>(tasks: impl IntoIterator<Item = &'a TaskFigures>) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in tasks.into_iter().map(kind_of) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn of_kind<'a>(
    run: &'a DeterminismRun,
    kind: &'a str,
    figure: fn(&TaskFigures) -> Option<u64>,
) -> impl Iterator<Item = u64> + 'a {
    run.tasks.iter().filter(move |task| kind_of(task) == kind).filter_map(figure)
}

fn kernel(m: &Measurement) -> String {
    m.machine().kernel.clone().unwrap_or_else(|| m.title.clone())
}

/// Of a column: the kernel, and how it preempts.
fn head(m: &Measurement) -> String {
    match &m.machine().preemption {
        Some(preemption) => format!("{} ({preemption})", kernel(m)),
        None => kernel(m),
    }
}

/// rt-exec's table of one heart beat.
fn determinism_table(out: &mut String, run: &DeterminismRun) {
    let work = match run.work == run.work_asked {
        true => run.work.to_string(),
        false => format!("{} (of {})", run.work, run.work_asked),
    };
    let ms = run.duration_ns / 1_000_000;
    let title = format!(
        "{} Hz, {}.{:03} s, {}, work {work}, CPU {}: {} % in all, {} page faults; us",
        run.rate_hz,
        ms / 1_000,
        ms % 1_000,
        run.clock_mode,
        run.cpu,
        run.cpu_use.average_ppm / 10_000,
        run.page_faults
    );
    push(out, &["<h3>", &escape(&title), "</h3>\n"]);
    let heads =
        ["task", "released by", "priority", "cycles", "late", "best", "worst", "worst less best"];
    let rows = run.tasks.iter().map(|task| {
        vec![
            task.name.clone(),
            kind_name(task.kind),
            task.priority.to_string(),
            grouped(task.cycles),
            grouped(task.late),
            optional(task.best_ns),
            optional(task.worst_ns),
            optional(task.determinism_ns),
        ]
    });
    table(out, heads.map(str::to_owned), rows);
}

fn latency_table(out: &mut String, result: &LatencyResult) {
    out.push_str("<h3>How much later than asked for the job woke; us</h3>\n");
    let heads = ["load", "periods", "min", "average", "p50", "p99", "p99.9", "max", "notes"];
    let rows = result.rows.iter().map(|row| {
        let figures = match row.latency {
            Some(l) => {
                let times = [l.min_ns, l.average_ns, l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns];
                [grouped(l.count)].into_iter().chain(times.map(us)).collect()
            }
            None => vec![dash(); 7],
        };
        let notes = row.not_possible.iter().chain(&row.notes).cloned().collect::<Vec<_>>();
        [row.workload.name().to_owned()]
            .into_iter()
            .chain(figures)
            .chain([notes.join("; ")])
            .collect()
    });
    table(out, heads.map(str::to_owned), rows);
    for warning in &result.warnings {
        push(out, &["<p>Noise: ", &escape(warning), ".</p>\n"]);
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// Microseconds with one digit.
fn us(ns: u64) -> String {
    let tenths = (ns + 50) / 100;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

fn optional(ns: Option<u64>) -> String {
    ns.map_or_else(dash, us)
}
