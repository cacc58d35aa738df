//! `punctual check`: does it fit, and why not. Nothing is started.

use std::io::Write;
use std::process::ExitCode;

use punctual_analysis::{advise, analyse_within, Advice, Analysis, Capacity, CpuAnalysis};
use punctual_report::analysis::{report, summary};
use punctual_taskset::Loaded;
use serde_json::{json, Value};

use crate::args::{Check, RealHost};
use crate::output::print_line;
use crate::set;
use punctual_diagnostic::{Diagnostic, Kind};

/// Of the JSON document; docs/check.md describes it.
const VERSION: u32 = 1;

pub fn run(args: &Check) -> Result<ExitCode, Diagnostic> {
    let Loaded { set, unrepresented } = set::load(&args.file, &args.instead)?;
    let capacity = args.host.map_or(Capacity::THEORY, |host| set::capacity(host, &set));
    let analysis = analyse_within(&set, &capacity);
    let advice: Vec<Advice> = analysis.cpus.iter().filter(|cpu| !cpu.fits()).map(|cpu| advise(&set, cpu)).collect();
    let out = &mut std::io::stdout();
    if args.json {
        let document = document(args.host, &capacity, &analysis, &advice, &unrepresented).map_err(|e| {
            Diagnostic::usage(format!("the result cannot be written as JSON: {e}"), "run it without --json")
        })?;
        print_line(out, &format!("{document:#}"));
    } else {
        for line in &unrepresented {
            print_line(&mut std::io::stderr(), &format!("punctual: left out: {line}"));
        }
        // A reader that has gone (head) is no failure.
        let _ = out.write_all(report(&analysis, &advice).as_bytes());
        print_line(out, &summary(&analysis));
        print_line(
            out,
            &match args.host {
                None => "pure theory, of a host that takes no time itself; for a real one: --host user, --host kernel"
                    .to_owned(),
                Some(host) => format!("on the {} host: {}", name(host), capacity.costs),
            },
        );
    }
    Ok(if analysis.fits() { ExitCode::SUCCESS } else { ExitCode::from(Kind::NotAdmitted.exit_code()) })
}

fn name(host: RealHost) -> &'static str {
    match host {
        RealHost::User => "user",
        RealHost::Kernel => "kernel",
    }
}

fn document(
    host: Option<RealHost>,
    capacity: &Capacity,
    analysis: &Analysis,
    advice: &[Advice],
    unrepresented: &[String],
) -> Result<Value, serde_json::Error> {
    let cpu = |cpu: &CpuAnalysis| -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(cpu)?;
        value["fits"] = json!(cpu.fits());
        value["schedulable"] = json!(cpu.schedulable());
        value["advice"] = serde_json::to_value(advice.iter().find(|a| a.cpu == cpu.load.cpu))?;
        Ok(value)
    };
    let cpus = analysis.cpus.iter().map(cpu).collect::<Result<Vec<Value>, _>>()?;
    Ok(json!({
        "version": VERSION,
        "fits": analysis.fits(),
        "host": host.map(name),
        "costs": host.map(|_| capacity.costs),
        "limit_ppm": capacity.limit.0,
        "total_ppm": capacity.total.0,
        "cpus": cpus,
        "unrepresented": unrepresented,
    }))
}
