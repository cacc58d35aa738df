//! `punctual trace why`: why deadlines were missed.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_explain::{Explainer, Explanation};
use punctual_report::why::{all, one, WhyResult};
use punctual_trace::{Period, Trace};

use super::{damaged, exit_code, reader};
use crate::args_trace::Why;
use crate::drive::stop_on_signals;
use crate::output::{Outcome, MISSED};
use crate::progress::Progress;

pub fn run(args: &Why) -> Result<Outcome<WhyResult>, Diagnostic> {
    // A trace of a program that adds jobs has their policy, which no file may name. A program with
    // another policy of that name has traces of that one.
    let _ = punctual_policies::register(&[&punctual_policies::JOBS]);
    let stop = stop_on_signals()?;
    let (trace, cut, interrupted) = read(args, &stop)?;
    let explainer = Explainer::new(&trace)?;
    let task = args.task.as_deref().map(|name| place(&explainer, name)).transpose()?;
    let result = match (task, args.number) {
        (Some(task), Some(number)) => {
            let miss = explainer.explain(period(&explainer, task, number)?);
            WhyResult::new(&explainer, 1, &[miss], true)
        }
        _ => {
            let mut misses = explainer.misses();
            misses.retain(|miss: &Explanation| task.is_none_or(|task| miss.period.task == task));
            let tasks = 0..explainer.set().tasks.len() as u32;
            let asked = tasks.filter(|&t| task.is_none_or(|task| t == task));
            let periods = asked.map(|t| explainer.whole_periods(t)).sum();
            WhyResult::new(&explainer, periods, &misses, false)
        }
    };
    let (verdict, text) = one_or_all(args, &result);
    let ok = result.misses.is_empty();
    let code = exit_code(interrupted, cut.as_ref(), if ok { 0 } else { MISSED });
    let text =
        if interrupted { format!("Interrupted, and explained until then: {text}") } else { text };
    Ok(Outcome { verdict, ok: code == 0, code, result, text, error: cut })
}

fn one_or_all(args: &Why, result: &WhyResult) -> (String, String) {
    match args.number.and_then(|_| one(result, true)) {
        Some(texts) => texts,
        None => all(result, true),
    }
}

/// What can be read of a trace; why not all of it, if it is damaged; whether it was interrupted.
fn read(args: &Why, stop: &AtomicBool) -> Result<(Trace, Option<Diagnostic>, bool), Diagnostic> {
    let mut reader = reader(&args.file)?;
    let mut progress = Progress::new(args.quiet, None);
    let (mut records, mut damage, mut interrupted) = (Vec::new(), None, false);
    for record in reader.by_ref() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => damage = Some(damaged(&args.file, &error, Some("explained"))),
        }
        if records.len() % 65_536 == 0 {
            progress.count(records.len() as u64, &"records read");
            interrupted = stop.load(Ordering::Relaxed);
            if interrupted {
                break;
            }
        }
    }
    progress.clear();
    Ok((Trace { header: reader.header().clone(), records }, damage, interrupted))
}

/// The place of a task in the set.
fn place(explainer: &Explainer, name: &str) -> Result<u32, Diagnostic> {
    let tasks = &explainer.set().tasks;
    let place = tasks.iter().position(|task| task.name == name);
    place.map(|place| place as u32).ok_or_else(|| {
        let names: Vec<&str> = tasks.iter().take(20).map(|task| task.name.as_str()).collect();
        let help = format!("name one of {}", names.join(", "));
        Diagnostic::usage(format!("the trace has no task {name:?}"), help)
    })
}

/// The period with this number, which was missed.
fn period(explainer: &Explainer, task: u32, number: u64) -> Result<&Period, Diagnostic> {
    let name = &explainer.set().tasks[task as usize].name;
    let list = format!("`punctual trace why FILE {name}` lists its misses");
    let found = explainer.periods(task).iter().find(|period| period.number == number);
    match found {
        Some(period) if period.miss => Ok(period),
        Some(_) => Err(Diagnostic::usage(format!("{name} met deadline {number}"), list)),
        None => {
            Err(Diagnostic::usage(format!("the trace has no release {number} of {name}"), list))
        }
    }
}
