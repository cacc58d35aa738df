//! `punctual run --host kernel`: the dispatcher inside the kernel.

use std::io::BufWriter;
use std::process::ExitCode;

use punctual_host_kernel::RunOptions;
use punctual_report::{Collector, HogResult, Host, Run as About};
use punctual_taskset::TaskSet;
use punctual_workload::Hog;

use crate::args::Run;
use crate::failure::{Failure, INTERRUPTED, MACHINE, MISSED, USAGE};
use crate::run::{open_traces, print, start_hog, stop_on_signals};

pub fn run(args: &Run, set: &TaskSet, overload: bool) -> Result<ExitCode, Failure> {
    punctual_host_kernel::machine::check()?;
    punctual_host_kernel::accepts(set)?;
    let others = [(args.awake, "--awake"), (!args.compare.is_empty(), "--compare")];
    if let Some((_, option)) = others.into_iter().find(|(given, _)| *given) {
        return Err(Failure::new(
            USAGE,
            format!("{option} is not for the kernel host"),
            format!("leave out {option}, or use --host user"),
        ));
    }
    let trace = args.trace.as_ref().map(|path| open_traces(path, set)).transpose()?;
    let stop = stop_on_signals()?;
    let about = About { overload, ..About::new(Host::Kernel, &set.policy.name, &set.cpus) };
    let mut collector = Collector::for_set(about, set);
    let hog = args.hog.then(|| start_hog(0)).transpose()?;
    let options = RunOptions { stop: &stop, records: args.trace_records.next_power_of_two() as usize };
    let outcome = punctual_host_kernel::run(set, &options, &mut |period| collector.record(&period))?;
    let hog = hog.map(Hog::stop);
    collector.finish(outcome.ended);
    let mut results = collector.snapshot();
    results.duration_ns = outcome.ran;
    results.interrupted = outcome.interrupted;
    results.hog = hog.map(|h| HogResult { share_ppm: h.share_ppm() });
    results.notes.extend(outcome.notes);
    if let Some((_, file)) = trace.into_iter().flatten().next() {
        if outcome.trace.header.first > 0 {
            results
                .notes
                .push("the trace has not all records and cannot be replayed; --trace-records keeps more".into());
        }
        outcome.trace.write(&mut BufWriter::new(file)).map_err(|e| {
            Failure::new(MACHINE, format!("the trace cannot be written: {e}"), "free some room, or name another file")
        })?;
    }
    let missed = results.exit_code() != 0;
    print(args, &[results], false);
    Ok(if outcome.interrupted {
        ExitCode::from(INTERRUPTED)
    } else if missed {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}
