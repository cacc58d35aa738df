//! Sets from files, on the hosts that the command has too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual::results::HostKind;
use punctual::{ErrorKind, Host, Punctual};
use punctual_test_support::LIVENESS;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn simulated(name: &str) -> Punctual {
    Punctual::from_file(example(name)).expect("it is in order").host(Host::Sim)
}

#[test]
fn a_set_with_groups_from_a_file_is_simulated() {
    let running =
        simulated("three-levels.toml").duration(Duration::from_secs(3)).admit().expect("it fits");
    let running = running.start().expect("nothing is needed for it");
    assert!(running.wait_timeout(LIVENESS), "three seconds of virtual time do not end");
    let outcome = running.stop().expect("it has run");
    let results = &outcome.results;
    assert_eq!(
        (results.host, results.duration_ns, results.tasks.iter().map(|t| t.misses).sum::<u64>()),
        (HostKind::Sim, 3_000_000_000, 0)
    );
    assert!(!results.groups.is_empty() && results.tasks.iter().all(|t| t.periods > 0));
}

#[test]
fn a_trace_of_the_simulator_is_written_and_whole() {
    let path = std::env::temp_dir().join(format!("punctual-library-{}", std::process::id()));
    let set = simulated("rtai-table2.toml").duration(Duration::from_millis(100)).trace(&path);
    let running = set.admit().expect("it fits").start().expect("nothing is needed for it");
    assert!(running.wait_timeout(LIVENESS));
    running.stop().expect("it has run");
    let mut file = std::io::BufReader::new(std::fs::File::open(&path).expect("it was written"));
    let trace = punctual_trace::Trace::read(&mut file).expect("it is whole");
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!((trace.header.host.as_str(), trace.lost()), ("sim", 0));
    assert!(
        trace.records.len() > 100 && trace.periods().count() > 5 && !trace.intervals().is_empty()
    );
}

#[test]
fn a_thread_of_the_program_is_refused_by_the_simulator() {
    let set = Punctual::on_cpu(0).host(Host::Sim).duration(Duration::from_secs(1)).task("a");
    let set = set.period(Duration::from_millis(10)).budget(Duration::from_millis(1)).spawn(|_| {});
    let refusal =
        set.admit().expect("it fits").start().expect_err("a thread has no place in virtual time");
    assert_eq!(refusal.kind, ErrorKind::Usage);
    assert!(refusal.help.contains("user host"), "{refusal}");
}

#[test]
fn a_simulation_without_an_end_is_refused() {
    let set = Punctual::on_cpu(0).host(Host::Sim).task("a").period(Duration::from_millis(10));
    let refusal = set
        .budget(Duration::from_millis(1))
        .command(["true"])
        .admit()
        .expect("it fits")
        .start()
        .err();
    let refusal = refusal.expect("it has no end");
    assert!(
        refusal.cause.contains("needs an end") && refusal.kind == ErrorKind::Usage,
        "{refusal}"
    );
}

#[test]
fn a_file_that_is_no_task_set_is_an_error_with_its_place() {
    let e = Punctual::from_file(example("recorded.txt")).expect_err("it is a list of times");
    assert!(e.place().is_some() && e.kind == ErrorKind::Usage, "{e}");
}
