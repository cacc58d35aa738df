//! `punctual measure overhead`: its parts, and what they come to.

mod tables;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use punctual_diagnostic::Diagnostic;
use punctual_measure::overhead::{
    self, gaps::GapPage, MeasuredHost, OverheadPart, OverheadPlan, OverheadProgress,
    OverheadResult, FIGURES,
};
use punctual_measure::require::{Requirement, Violation};
use punctual_report::grid::{paint, wrap, Ink};
use punctual_report::View;

use super::not_kept;
use crate::args_measure::{MeasureOverhead, SpinnerArgs};
use crate::drive::stop_on_signals;
use crate::output::{self, Outcome, INTERRUPTED, MISSED};
use crate::progress::Progress;
use crate::set::last_cpu;
use tables::us;

/// How much is measured: of each row of the events and of the decisions, ns; periods of each task
/// of the budgets, as in the paper's figure; edges of each task in each row of the square wave.
struct Amount {
    events: u64,
    decisions: u64,
    periods: u64,
    edges: u64,
}

const WHOLE: Amount =
    Amount { events: 10_000_000_000, decisions: 2_000_000_000, periods: 500, edges: 30_000 };
const QUICK: Amount =
    Amount { events: 1_000_000_000, decisions: 200_000_000, periods: 100, edges: 5_000 };

pub fn run(args: &MeasureOverhead) -> Result<Outcome<OverheadResult>, Diagnostic> {
    let requirements = match &args.require {
        Some(text) => Requirement::parse_list(text, &FIGURES)?,
        None => Vec::new(),
    };
    let named: Vec<_> = args.part.iter().filter_map(|name| OverheadPart::named(name)).collect();
    let wanted = |part: &OverheadPart| named.is_empty() || named.contains(part);
    let amount = if args.quick { QUICK } else { WHOLE };
    let plan = OverheadPlan {
        cpu: args.cpu.unwrap_or_else(last_cpu),
        parts: OverheadPart::ALL.into_iter().filter(wanted).collect(),
        events: amount.events,
        decisions: amount.decisions,
        budget_periods: amount.periods,
        edges: amount.edges,
        generator: args.generator.map(Into::into),
        spinner: spinner()?,
        requirements,
        stop: stop_on_signals()?,
    };
    let mut progress = Progress::new(args.quiet, None);
    let measured = overhead::measure(&plan, &mut |step| progress.line(&|| show(step)));
    progress.clear();
    let (result, error) = measured?;
    Ok(outcome(result, error, &plan.parts, &output::view(false)))
}

/// `square-wave: user host, 1 task, network; 41 of 95 s, 54 s left`.
fn show(step: &OverheadProgress) -> String {
    let seconds = |ns: u64| ns.div_ceil(1_000_000_000);
    let OverheadProgress { what, done, planned } = step;
    let left = seconds(planned.saturating_sub(*done));
    format!("{what}; {} of {} s, {left} s left", done / 1_000_000_000, seconds(*planned))
}

/// This command as a program that spins.
fn spinner() -> Result<Vec<String>, Diagnostic> {
    let refused = |e| Diagnostic::refused("this program cannot be found", e, "mount /proc");
    let program = std::env::current_exe().map_err(refused)?;
    Ok([&program.to_string_lossy(), "measure", "spinner"].map(str::to_owned).into())
}

/// `punctual measure spinner`: executes until its time, and records what interrupts it.
pub fn spin(args: &SpinnerArgs) -> Result<Outcome<()>, Diagnostic> {
    let page = GapPage::open(Path::new(&args.page)).map_err(|e| {
        let help = "it is a part of punctual measure overhead, which gives it its page";
        Diagnostic::usage(format!("{}: {e}", args.page.display()), help)
    })?;
    page.spin(args.number, args.until, &AtomicBool::new(false));
    let (verdict, text) = (String::new(), String::new());
    Ok(Outcome { verdict, ok: true, code: 0, result: (), text, error: None })
}

fn outcome(
    result: OverheadResult,
    error: Option<Diagnostic>,
    parts: &[OverheadPart],
    view: &View,
) -> Outcome<OverheadResult> {
    let code = match &error {
        Some(error) => error.exit_code(),
        None if result.interrupted => INTERRUPTED,
        None if !result.violations.is_empty() => MISSED,
        None => 0,
    };
    let verdict = verdict(&result, parts);
    let ink = if code == 0 { Ink::Good } else { Ink::Bad };
    let mut text: String = wrap(&verdict, 0, view.width)
        .lines()
        .map(|line| paint(line, ink, view.color) + "\n")
        .collect();
    text += &tables::parts(&result, view);
    let mut say = |line: &str| text.push_str(&wrap(line, 2, view.width));
    let violations = result.violations.iter().map(Violation::describe);
    violations.for_each(|line| say(&format!("Not kept: {line}.")));
    result.warnings.iter().for_each(|warning| say(&format!("Noise: {warning}.")));
    say(&tables::machine(&result));
    Outcome { verdict, ok: code == 0, code, result, text, error }
}

/// The result in one sentence, of the parts that were measured.
fn verdict(result: &OverheadResult, parts: &[OverheadPart]) -> String {
    let cut = if result.interrupted { "Interrupted: " } else { "" };
    if let Some(violations) = not_kept(&result.violations) {
        return format!("{cut}{violations}");
    }
    let mut found = Vec::new();
    let event = result.events.iter().flat_map(|part| &part.rows).find(|row| row.average.is_some());
    if let Some((row, average)) = event.and_then(|row| Some((row, row.average?))) {
        let what = format!("{}, {}", row.host.title(), row.tasks.title());
        found.push(format!("an event takes {} us from the tasks ({what})", us(average.ns)));
    }
    let decision = result.decisions.iter().flat_map(|part| &part.rows).find(|row| row.jobs == 100);
    if let Some(row) = decision {
        let time = row.average.ns as f64 / 1e3;
        found.push(format!("a decision among 100 jobs takes {time:.2} us"));
    }
    let budgets = result.budgets.iter().flat_map(|part| &part.rows);
    let worst = budgets
        .filter(|row| !row.with_player)
        .flat_map(|row| &row.tasks)
        .max_by_key(|task| task.off_5_percent);
    if let Some(task) = worst {
        let (off, periods) = (task.off_5_percent, task.periods);
        found.push(format!("at most {off} of {periods} periods are off by more than 5 %"));
    }
    let waves = result.square_wave.iter().flat_map(|part| &part.rows);
    let worst = waves
        .filter(|row| row.host != MeasuredHost::Fifo)
        .filter_map(|row| row.variation)
        .max_by_key(|time| time.ns);
    if let Some(time) = worst {
        found.push(format!("edges each 100 us vary by up to {} us", us(time.ns)));
    }
    let kept = if result.requirements.is_empty() { "" } else { "All requirements are kept: " };
    if found.is_empty() {
        let names: Vec<_> = parts.iter().map(|part| part.name()).collect();
        return format!("{cut}Nothing was measured of {}.", names.join(", "));
    }
    let text = format!("{cut}{kept}{}.", found.join("; "));
    text[..1].to_uppercase() + &text[1..]
}
