//! `punctual check`: does it fit, and why not. Nothing is started.

use std::io::Write;
use std::process::ExitCode;

use punctual_admission::{advise, analyse, report, summary, Advice, Analysis, CpuAnalysis, LIMIT};
use punctual_taskset::Loaded;
use serde_json::{json, Value};

use crate::args::Check;
use crate::failure::{say, Failure, NOT_ADMITTED, USAGE};

/// Of the JSON document; docs/check.md describes it.
const VERSION: u32 = 1;

pub fn run(args: &Check) -> Result<ExitCode, Failure> {
    let Loaded { set, unrepresented } = Loaded::load(&args.file)?;
    let analysis = analyse(&set);
    let advice: Vec<Advice> = analysis.cpus.iter().filter(|cpu| !cpu.fits()).map(|cpu| advise(&set, cpu)).collect();
    let out = &mut std::io::stdout();
    if args.json {
        let document = document(&analysis, &advice, &unrepresented).map_err(|e| {
            Failure::new(USAGE, format!("the result cannot be told as JSON: {e}"), "run it without --json")
        })?;
        say(out, &format!("{document:#}"));
    } else {
        for line in &unrepresented {
            say(&mut std::io::stderr(), &format!("punctual: left out: {line}"));
        }
        // A reader that has gone (head) is no failure.
        let _ = out.write_all(report(&analysis, &advice).as_bytes());
        say(out, &summary(&analysis));
    }
    Ok(if analysis.fits() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ADMITTED) })
}

fn document(analysis: &Analysis, advice: &[Advice], unrepresented: &[String]) -> Result<Value, serde_json::Error> {
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
        "limit_ppm": LIMIT.0,
        "cpus": cpus,
        "unrepresented": unrepresented,
    }))
}
