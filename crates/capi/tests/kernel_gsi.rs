//! gsi.h on the kernel host: the programs of RED-Linux's figures. Needs sched_ext, and programs
//! that were compiled outside of the guest: `vm/tests`.

#[path = "common/figures.rs"]
mod figures;
#[path = "../../punctual/tests/common/traced_jobs.rs"]
mod traced_jobs;

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use figures::{bands, figure_5, figures_3_and_4};
use punctual_test_support::{comes_true, has_sched_ext, judge_timing, missing, Scratch};
use traced_jobs::{jobs_of, read, TracedJob};
// Has cargo build the archive, and so the boot the programs.
use punctual_capi as _;

/// A program in C as `vm/test` brings it; `None`: it is not here, or the kernel lacks something.
fn program(name: &str) -> Option<PathBuf> {
    if !has_sched_ext() {
        return None;
    }
    let me = std::env::current_exe().expect("/proc is mounted");
    let path = me.ancestors().nth(2).expect("in a folder of cargo's").join("c").join(name);
    if !path.exists() {
        missing(format!("there is no {}: vm/test makes it", path.display()));
        return None;
    }
    Some(path)
}

/// Runs it on the kernel host; its trace, if it has written one.
fn run(name: &str, folder: &Scratch) -> Option<PathBuf> {
    let trace = folder.folder().join("trace");
    let mut command = Command::new(program(name)?);
    command.env("PUNCTUAL_GSI_HOST", "kernel").env("PUNCTUAL_GSI_TRACE", &trace);
    let mut child = command.spawn().expect("it runs");
    let mut ended = None;
    let in_time = comes_true(|| {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    });
    if !in_time {
        child.kill().expect("it is alive");
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "{name}");
    Some(trace)
}

/// The ended jobs of its processes, each list that of one.
fn jobs_of_program(name: &str) -> Option<Vec<Vec<TracedJob>>> {
    let folder = Scratch::new();
    let trace = run(name, &folder)?;
    Some(jobs_of(&read(&trace)).into_values().collect())
}

#[test]
fn figures_3_and_4_execute_optional_parts_on_what_mandatory_ones_left() {
    let Some(jobs) = jobs_of_program("fig3") else { return };
    let executed = figures_3_and_4(&jobs);
    println!("{executed} optional parts executed: {jobs:?}");
    judge_timing(|| assert_eq!(executed, 20));
}

#[test]
fn mandatory_parts_come_before_other_jobs_and_optional_ones_after_them() {
    let Some(jobs) = jobs_of_program("gsi_bands") else { return };
    let executed = bands(&jobs);
    println!("{executed} optional parts executed: {jobs:?}");
}

#[test]
fn figure_5_promotes_what_the_low_band_did_not_complete() {
    let Some(jobs) = jobs_of_program("fig5") else { return };
    let executed = figure_5(&jobs);
    println!("{executed} promoted jobs executed: {jobs:?}");
}

#[test]
fn groups_share_budgets_and_execute_on_their_server_jobs() {
    run("gsi_groups", &Scratch::new());
}

#[test]
fn one_process_too_many_is_refused_and_the_scheduler_goes_when_its_allocator_is_killed() {
    let Some(program) = program("gsi_limit") else { return };
    let mut command = Command::new(program);
    command.env("PUNCTUAL_GSI_HOST", "kernel").stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("it runs");
    let group = child.id() as i32;
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let full = lines.next();
    let ended = child.wait().expect("it is a child");
    let goes = comes_true(|| {
        let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
        state.trim() == "disabled"
    });
    // SAFETY: system calls; the group is that of the child's processes, which hold its number.
    let alive = unsafe { libc::kill(-group, 0) } == 0;
    // SAFETY: as above.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    assert!(full.is_some_and(|line| line.is_ok_and(|line| line == "full")), "{ended}");
    assert_eq!(ended.signal(), Some(libc::SIGKILL));
    assert!(alive, "its processes live on");
    assert!(goes, "they do not keep the scheduler");
}

#[test]
fn calls_of_gsi_refuse_what_is_wrong_and_report_how_jobs_end() {
    run("gsi", &Scratch::new());
}
