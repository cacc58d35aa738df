//! `punctual run --compare`: the same set under the kernel's own policies.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use punctual_baseline::{Baseline, BaselineOutcome, BaselineRun, Options, Refusal};
use punctual_report::{Collector, Host, LoadResult, Results, Run as About};
use punctual_taskset::TaskSet;

use crate::args::{BaselineArg, Run};
use crate::screen::Screen;
use punctual_diagnostic::Diagnostic;

/// Runs the set under one baseline. What cannot be pinned is run unpinned, and its column says so.
///
/// # Errors
/// The request cannot be meant: a command that does not start.
pub fn run(
    args: &Run,
    set: &TaskSet,
    baseline: BaselineArg,
    overload: bool,
    stop: &AtomicBool,
) -> Result<Vec<Results>, Diagnostic> {
    let (baseline, host) = match baseline {
        BaselineArg::Fifo => (Baseline::Fifo, Host::Fifo),
        BaselineArg::Deadline => (Baseline::Deadline, Host::Deadline),
        BaselineArg::Other => (Baseline::Other, Host::Other),
    };
    let about = About { overload, ..About::new(host, &set.policy.name, &set.cpus) };
    let options = Options { duration: set.duration.unwrap_or(0), stop, hog: args.load, unpinned: false };
    match once(args, set, baseline, about.clone(), options)? {
        Ok(results) => Ok(vec![results]),
        Err(refusal) => {
            let mut columns = vec![refused(set, about.clone(), &refusal)];
            if refusal.unpinned_may_work {
                let label = format!("{}, not pinned", columns[0].title());
                let about = About { label: Some(label), ..about };
                columns.push(match once(args, set, baseline, about.clone(), Options { unpinned: true, ..options })? {
                    Ok(results) => results,
                    Err(refusal) => refused(set, about, &refusal),
                });
            }
            Ok(columns)
        }
    }
}

fn refused(set: &TaskSet, about: About, refusal: &Refusal) -> Results {
    Collector::for_set(about, set).not_possible(&refusal.reason, &refusal.help)
}

fn once(
    args: &Run,
    set: &TaskSet,
    baseline: Baseline,
    about: About,
    options: Options,
) -> Result<Result<Results, Refusal>, Diagnostic> {
    let collector = RefCell::new(Collector::for_set(about, set));
    let mut screen = Screen::new(args.quiet, false);
    screen.print_line(&format!("next: the same set under {}", collector.borrow().snapshot().title()));
    let outcome = punctual_baseline::run(set, baseline, &options, &mut |period| {
        collector.borrow_mut().record(&period);
        screen.tick(|| collector.borrow().snapshot());
    })?;
    let BaselineRun { started, ended, interrupted, hog, lost, notes, .. } = match outcome {
        BaselineOutcome::Ran(run) => run,
        BaselineOutcome::NotPossible(refusal) => return Ok(Err(refusal)),
    };
    let mut results = collector.into_inner().results(ended.saturating_sub(started), ended, interrupted, notes);
    results.load = hog.map(|load| LoadResult { share_ppm: load.share_ppm() });
    results.add_unreported(lost);
    Ok(Ok(results))
}
