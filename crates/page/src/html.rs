//! The page: text and tables as HTML, so that they need no script; the data of the pictures beside.

use std::fmt::Write;

use punctual_report::units::{grouped, percent, time};
use punctual_session::results::{HostKind, Machine, TaskResult, TimeSpread};
use punctual_trace::{Period, NEVER};
use serde_json::{json, Value};

use crate::columns::Columns;
use crate::histogram::Histogram;
use crate::measured;
use crate::recorded::{Recorded, Track};
use crate::spreads::Spreads;
use crate::{is_good, Page, PageRun};

/// The page's own scripts, in the order in which they need each other.
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/uplot-1.6.32.iife.min.js"),
    include_str!("../assets/data.js"),
    include_str!("../assets/style.js"),
    include_str!("../assets/gantt.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/page.js"),
];
const STYLES: [&str; 2] =
    [include_str!("../assets/uplot-1.6.32.min.css"), include_str!("../assets/page.css")];
/// The licence asks for its text in all copies.
const UPLOT_LICENSE: &str = include_str!("../assets/uplot-LICENSE.txt");
/// Nothing is loaded from anywhere.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta name=\"color-scheme\" content=\"light dark\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n";

impl Page {
    /// The whole page: one document that loads nothing.
    #[must_use]
    pub fn html(&self) -> String {
        let verdict = escape(&self.verdict());
        let state = if self.is_good() { "good" } else { "bad" };
        let mut out = format!("{HEAD}<title>{verdict}</title>\n");
        STYLES.iter().for_each(|style| push(&mut out, &["<style>", style, "</style>\n"]));
        push(&mut out, &["<main>\n<h1 class=\"", state, "\">", &verdict, "</h1>\n"]);
        for text in self.unread.iter().chain(self.damage()) {
            push(&mut out, &["<p class=\"banner\" role=\"alert\">", &escape(text), "</p>\n"]);
        }
        let spreads = self.spreads();
        if self.runs.len() > 1 {
            self.comparison(&mut out, &spreads);
        }
        measured::comparison(&mut out, &self.measurements, &spreads);
        for (number, run) in self.runs.iter().enumerate() {
            run.section(&mut out, number);
        }
        self.measurements.iter().for_each(|measurement| measurement.section(&mut out));
        push(
            &mut out,
            &["<footer>punctual ", env!("CARGO_PKG_VERSION"), " · drawn by uPlot 1.6.32 (MIT)"],
        );
        push(
            &mut out,
            &["<details><summary>Licence of uPlot</summary><pre>", &escape(UPLOT_LICENSE)],
        );
        out.push_str("</pre></details></footer>\n</main>\n");
        for (number, recorded) in
            self.runs.iter().enumerate().filter_map(|(n, run)| Some((n, run.recorded.as_ref()?)))
        {
            let _ = write!(out, "<script type=\"text/plain\" id=\"data-{number}\">");
            push(&mut out, &[&columns(recorded).packed(), "</script>\n"]);
        }
        let runs: Vec<Value> = self.runs.iter().map(PageRun::described).collect();
        for (id, data) in [("runs", json!(runs)), ("spreads", json!(spreads))] {
            push(&mut out, &["<script type=\"application/json\" id=\"", id, "\">"]);
            push(&mut out, &[&in_script(&data), "</script>\n"]);
        }
        SCRIPTS.iter().for_each(|script| push(&mut out, &["<script>", script, "</script>\n"]));
        out.push_str("</html>\n");
        out
    }

    /// All runs beside each other.
    fn comparison(&self, out: &mut String, spreads: &[Spreads]) {
        out.push_str("<section><h2>Comparison</h2>\n");
        let heads =
            ["run", "host", "policy", "kernel", "periods", "missed", "short of budget", "verdict"];
        let rows = self.runs.iter().map(|run| {
            let r = &run.results;
            let kernel = r.machine.kernel.as_deref().unwrap_or("not recorded");
            let totals = &r.totals;
            vec![
                run.title.clone(),
                host(r.host).to_owned(),
                r.policy.clone(),
                kernel.to_owned(),
                grouped(totals.periods),
                grouped(totals.missed),
                grouped(totals.short),
                run.verdict.clone(),
            ]
        });
        table(out, heads.map(str::to_owned), rows);
        for spreads in spreads.iter().filter(|spreads| spreads.id.starts_with("compare-")) {
            figure(out, &spreads.id, &escape(&spreads.caption));
        }
        out.push_str("</section>\n");
    }
}

impl PageRun {
    fn section(&self, out: &mut String, number: usize) {
        let r = &self.results;
        push(out, &["<section><h2>", &escape(&self.title), "</h2>\n<p class=\""]);
        push(
            out,
            &[if is_good(self) { "good" } else { "bad" }, "\">", &escape(&self.verdict), "</p>\n"],
        );
        for line in &r.notes {
            push(out, &["<p>", &escape(line), "</p>\n"]);
        }
        if let Some(why) = &r.not_possible {
            push(out, &["<pre>", &escape(&why.help.join("\n")), "</pre></section>\n"]);
            return;
        }
        if self.recorded.is_some() {
            figure(out, &format!("gantt-{number}"), "Schedule");
        }
        figures_table(out, &r.tasks);
        for (place, track) in
            self.recorded.iter().flat_map(|recorded| recorded.tasks.iter().enumerate())
        {
            let name = escape(&track.name);
            if !track.periods.is_empty() {
                out.push_str("<div class=\"pair\">");
                figure(
                    out,
                    &format!("times-{number}-{place}"),
                    &format!("{name}: latency and response"),
                );
                figure(
                    out,
                    &format!("budget-{number}-{place}"),
                    &format!("{name}: budget received per period"),
                );
                out.push_str("</div>\n");
            }
        }
        match self.machine_known {
            true => machine(out, &r.machine),
            false => {
                out.push_str("<p>Traces do not name the machine; the results of the run do.</p>\n")
            }
        }
        out.push_str("</section>\n");
    }

    /// What the scripts need of it.
    fn described(&self) -> Value {
        let tasks = self.recorded.as_ref().map(|recorded| {
            let tasks = recorded.tasks.iter().map(|track| {
                json!({
                    "name": track.name,
                    "intervals": track.intervals.len(),
                    "periods": track.periods.len(),
                    "latency": Histogram::of(track.latencies()),
                    "response": Histogram::of(track.responses()),
                })
            });
            json!({ "length": recorded.length, "tasks": tasks.collect::<Vec<_>>() })
        });
        json!({ "recorded": tasks })
    }
}

impl Track {
    /// Release to first execution of each period in which the task executed, ns.
    pub fn latencies(&self) -> Vec<u64> {
        let started = self.periods.iter().filter(|period| period.started != NEVER);
        started.map(|period| period.started.saturating_sub(period.release)).collect()
    }

    /// Release to completion of each period that was completed, ns.
    pub fn responses(&self) -> Vec<u64> {
        let completed = self.periods.iter().filter(|period| period.completed != NEVER);
        completed.map(|period| period.completed.saturating_sub(period.release)).collect()
    }
}

/// What `assets/data.js` reads, in its order. Times are from the origin.
fn columns(recorded: &Recorded) -> Columns {
    let mut columns = Columns::default();
    let since = |time: u64| time.saturating_sub(recorded.origin);
    for Track { intervals, periods, .. } in &recorded.tasks {
        columns.push(intervals.iter().map(|interval| since(interval.from)));
        columns.push(intervals.iter().map(|interval| interval.to.saturating_sub(interval.from)));
        columns.push(intervals.iter().map(|interval| interval.background.into()));
        let mut push = |field: fn(&Period) -> u64| columns.push(periods.iter().map(field));
        push(|period| period.number);
        push(|period| period.deadline.saturating_sub(period.release));
        // 0 is never.
        push(|p| if p.started == NEVER { 0 } else { p.started.saturating_sub(p.release) + 1 });
        push(|p| if p.completed == NEVER { 0 } else { p.completed.saturating_sub(p.release) + 1 });
        push(|period| period.assigned);
        push(|period| period.received);
        push(|p| {
            let flags = [p.miss, p.overrun, p.ready_throughout, p.woken_late];
            flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u64::from(flag))
        });
        columns.push(periods.iter().map(|period| since(period.release)));
    }
    columns
}

/// What executed a run, as the comparison names it.
fn host(kind: HostKind) -> &'static str {
    match kind {
        HostKind::User => "user host",
        HostKind::Kernel => "kernel host",
        HostKind::Sim => "simulator",
        baseline => baseline.title(),
    }
}

fn figures_table(out: &mut String, tasks: &[TaskResult]) {
    let heads = [
        "task",
        "period",
        "budget",
        "periods",
        "missed",
        "overran",
        "received, in periods that wanted all",
        "latency: median, p99, worst",
        "response",
    ];
    let spread = |times: Option<TimeSpread>| match times {
        Some(t) => format!("{}, {}, {}", time(t.median_ns), time(t.p99_ns), time(t.worst_ns)),
        None => "-".to_owned(),
    };
    let rows = tasks.iter().map(|task| {
        let received =
            task.long_run_ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{} %", percent(ppm)));
        vec![
            task.name.clone(),
            time(task.period_ns),
            time(task.budget_ns),
            grouped(task.periods),
            grouped(task.misses),
            grouped(task.overruns),
            received,
            spread(task.release_latency),
            spread(task.response_time),
        ]
    });
    table(out, heads.map(str::to_owned), rows);
}

pub(crate) fn machine(out: &mut String, machine: &Machine) {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    let list = |cpus: &[usize]| match cpus {
        [] => "none".to_owned(),
        cpus => cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let throttling = match (machine.rt_runtime_us, machine.rt_period_us) {
        (Some(-1), _) => "none".to_owned(),
        (Some(runtime), Some(period)) => {
            format!("real-time classes have {runtime} us of each {period} us")
        }
        _ => "not known".to_owned(),
    };
    let guest = match machine.virtual_machine {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known",
    };
    out.push_str("<h3>Machine</h3>\n");
    let rows = [
        ("kernel", format!("{} {}", text(&machine.kernel), text(&machine.build))),
        ("preemption", text(&machine.preemption)),
        (
            "ticks per second",
            machine.hz.map_or_else(|| "not known".to_owned(), |hz| hz.to_string()),
        ),
        ("distribution", text(&machine.distribution)),
        ("processor", format!("{}, {}", text(&machine.cpu_model), machine.arch)),
        ("CPUs online", list(&machine.cpus)),
        ("isolated CPUs", list(&machine.isolated_cpus)),
        ("clock source", text(&machine.clock_source)),
        ("throttling", throttling),
        ("virtual machine", guest.to_owned()),
    ];
    table(out, [], rows.map(|(name, value)| vec![name.to_owned(), value]));
}

/// A picture's place. `title` is HTML.
pub(crate) fn figure(out: &mut String, id: &str, title: &str) {
    push(out, &["<figure id=\"", id, "\"><figcaption>", title, "</figcaption></figure>\n"]);
}

/// A table that scrolls where it is too wide; heads and cells are text.
pub(crate) fn table(
    out: &mut String,
    heads: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    out.push_str("<div class=\"wide\"><table><tr>");
    heads.into_iter().for_each(|head| push(out, &["<th>", &escape(&head)]));
    out.push('\n');
    for row in rows {
        out.push_str("<tr>");
        row.iter().for_each(|cell| push(out, &["<td>", &escape(cell)]));
        out.push('\n');
    }
    out.push_str("</table></div>\n");
}

pub(crate) fn push(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}

/// Text as HTML, also in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON in a script element: only `<` could end it.
fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_the_element_that_it_is_in() {
        assert_eq!(escape("</script>&\"'"), "&lt;/script&gt;&amp;&quot;&#39;");
        assert_eq!(in_script(&json!("</script><!--")), "\"\\u003c/script>\\u003c!--\"");
    }
}
