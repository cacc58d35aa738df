//! `punctual check`: does it fit, and why not. Nothing is started.

use punctual_analysis::{advise, analyse_within, Advice, Analysis, Capacity, DomainAnalysis, Ppm};
use punctual_report::analysis::{report, summary};
use punctual_session::results::HostCosts;
use punctual_session::Session;
use punctual_taskset::Loaded;
use serde::Serialize;

use crate::args::{Check, RealHost};
use crate::output::{print_message, Outcome};
use crate::set;
use punctual_diagnostic::{Diagnostic, Kind};

/// The result of `punctual check --json`; docs/check.md describes it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckResult {
    /// Whether the set may run.
    fits: bool,
    /// The host that it is to run on, `user` or `kernel`; `null` in theory.
    host: Option<&'static str>,
    /// What that host takes for its own work; `null` in theory.
    costs: Option<HostCosts>,
    /// The most that budgets may be of a CPU, ppm.
    limit_ppm: Ppm,
    /// The same together with the host's own work, ppm.
    total_ppm: Ppm,
    /// One entry per domain.
    domains: Vec<DomainResult>,
    /// What of an rt-app file is not in the set, each with its path.
    unrepresented: Vec<String>,
}

/// One domain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DomainResult {
    /// Its analysis.
    #[serde(flatten)]
    analysis: DomainAnalysis,
    /// Whether all its deadlines are met, and it is no fuller than the host permits.
    fits: bool,
    /// Whether all its deadlines are met, however full it is.
    schedulable: bool,
    /// What would make it fit; `null` if it does.
    advice: Option<Advice>,
}

impl DomainResult {
    fn of(domain: DomainAnalysis, advice: &[Advice]) -> DomainResult {
        DomainResult {
            fits: domain.fits(),
            schedulable: domain.schedulable(),
            advice: advice.iter().find(|a| a.domain == domain.load.domain).cloned(),
            analysis: domain,
        }
    }
}

pub fn run(args: &Check) -> Result<Outcome<CheckResult>, Diagnostic> {
    let Loaded { set, unrepresented } = set::load(&args.file, &args.instead)?;
    set.only_cpus()?;
    let capacity =
        args.host.map_or(Capacity::THEORY, |host| Session::capacity_of(host.into(), &set));
    let analysis = analyse_within(&set, &capacity);
    let late = analysis.domains.iter().filter(|domain| !domain.fits());
    let advice: Vec<Advice> = late.map(|domain| advise(&set, domain)).collect();
    if !args.json {
        unrepresented.iter().for_each(|line| print_message(&format!("left out: {line}")));
    }
    let (verdict, fits) = (summary(&analysis), analysis.fits());
    let text = text(args.host, &capacity, &analysis, &advice);
    let result = CheckResult {
        fits,
        host: args.host.map(name),
        costs: HostCosts::of(&capacity.costs),
        limit_ppm: capacity.limit,
        total_ppm: capacity.total,
        domains: analysis.domains.into_iter().map(|d| DomainResult::of(d, &advice)).collect(),
        unrepresented,
    };
    let code = if fits { 0 } else { Kind::NotAdmitted.exit_code() };
    Ok(Outcome { verdict, ok: fits, code, result, text, error: None })
}

/// The verdict, on what it is based, and the analysis of each domain.
fn text(
    host: Option<RealHost>,
    capacity: &Capacity,
    analysis: &Analysis,
    advice: &[Advice],
) -> String {
    let basis = match host {
        None => {
            "In theory, for a host that takes no time itself; for a real one: --host user, --host \
             kernel."
                .to_owned()
        }
        Some(host) => format!("On the {} host: {}.", name(host), capacity.costs),
    };
    let style = if analysis.fits() { anstyle::AnsiColor::Green } else { anstyle::AnsiColor::Red }
        .on_default()
        .bold();
    let report = report(analysis, advice);
    format!("{style}{}{style:#}\n{basis}\n\n{}\n", summary(analysis), report.trim_end())
}

fn name(host: RealHost) -> &'static str {
    match host {
        RealHost::User => "user",
        RealHost::Kernel => "kernel",
    }
}
