//! A host for the threads of a test.

use std::time::{Duration, Instant};

use punctual_host_user::{Host, HostOptions};
use punctual_program_jobs::ProgramGroups;
use punctual_taskset::{DomainId, DomainSpec, PolicySpec, TaskSet};
use punctual_test_support::LIVENESS;
use punctual_trace::TraceSink;

/// A host under EDF with room for four tasks, on the first CPU that is free: another test on this
/// machine may occupy one for a while. `None` where the machine does not permit it.
pub fn start(records: u32, trace: Option<&TraceSink>) -> Option<Host> {
    let until = Instant::now() + LIVENESS;
    loop {
        for cpu in [0, 1] {
            let host = Host::start(&HostOptions {
                set: TaskSet {
                    domains: vec![DomainSpec::of_cpu(cpu)],
                    policy: PolicySpec::named("edf"),
                    duration: None,
                    tasks: Vec::new(),
                    groups: Vec::new(),
                    budget_groups: Vec::new(),
                },
                room: 4,
                program_groups: ProgramGroups::default(),
                owner: "test".to_owned(),
                traces: trace.into_iter().map(|sink| (DomainId(0), sink.clone())).collect(),
                records,
                confine: false,
            });
            match host {
                Ok(host) => return Some(host),
                Err(e)
                    if Instant::now() > until || !e.cause.contains("already has a dispatcher") =>
                {
                    assert!(std::env::var_os("CI").is_none(), "cannot run here: {e}");
                    eprintln!("not run, for this is missing: {e}");
                    return None;
                }
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
