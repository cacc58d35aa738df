//! Random sets that RM and EDF meet, and the simulator's schedule of each, as JSON on standard
//! output, for simso/compare.py: one object a line, times in ns.

use std::io::Write;

use punctual_analysis::analyse;
use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{Interval, Options, Simulation, Watcher};
use punctual_oracles::{flat, seeds, Flat, Random};
use serde_json::{json, Value};

#[derive(Default)]
struct Executed(Vec<Value>);

impl Watcher for Executed {
    fn executed(&mut self, s: &Interval) {
        self.0.push(json!([s.task, s.from, s.to]));
    }
}

/// All periods of the generator have come round.
const END: u64 = 240;

fn main() -> Result<(), Diagnostic> {
    let mut out = std::io::stdout().lock();
    for seed in seeds(150) {
        for policy in ["rm", "edf"] {
            let set = flat(policy, Flat::Critical, &mut Random::new(seed));
            if !analyse(&set).schedulable() {
                continue;
            }
            let mut executed = Executed::default();
            Simulation::new(&set, Options::default())?.run(END, &mut executed)?;
            let tasks: Vec<Value> =
                set.tasks.iter().map(|t| json!([t.budget, t.period, t.deadline])).collect();
            let line = json!({
                "seed": seed, "policy": policy, "end": END, "tasks": tasks, "executed": executed.0
            });
            if writeln!(out, "{line}").is_err() {
                // The reader has gone: it says why.
                return Ok(());
            }
        }
    }
    Ok(())
}
