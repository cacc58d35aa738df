//! gsi.h on the kernel host: the programs of RED-Linux's figures. Needs sched_ext, and programs
//! that were compiled outside of the guest: `vm/tests`.

#[path = "common/figures.rs"]
mod figures;
#[path = "../../punctual/tests/common/traced_jobs.rs"]
mod traced_jobs;

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use figures::{bands, figure_5, figures_3_and_4, figures_6_and_7};
use punctual_test_support::process::end_of;
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
    let path = me.ancestors().nth(2).expect("in a folder of cargo's").join("c/capi").join(name);
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
    let ended = end_of(&mut command.spawn().expect("it runs"));
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
    // In each of its 20 rounds; one more or less where the process comes to its first job late.
    judge_timing(|| assert!(executed.abs_diff(20) <= 1, "{executed}"));
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
    let folder = Scratch::new();
    let Some(trace) = run("gsi_groups", &folder) else { return };
    figures_6_and_7(&read(&trace));
}

#[test]
fn one_process_too_many_is_refused_and_the_scheduler_goes_when_its_allocator_is_killed() {
    let Some(program) = program("gsi_limit") else { return };
    let mut command = Command::new(program);
    command.env("PUNCTUAL_GSI_HOST", "kernel").stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("it runs");
    let group = child.id() as i32;
    let ended = end_of(&mut child);
    let goes = comes_true(|| {
        let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
        state.trim() == "disabled"
    });
    // SAFETY: system calls; the group is that of the child's processes, which hold its number.
    let alive = unsafe { libc::kill(-group, 0) } == 0;
    // SAFETY: as above.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    // They have the other end of the pipe.
    let mut output = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("it is text");
    assert_eq!(output, "full\n", "{ended:?}");
    assert_eq!(ended.and_then(|status| status.signal()), Some(libc::SIGKILL));
    assert!(alive, "its processes live on");
    assert!(goes, "they do not keep the scheduler");
}

#[test]
fn the_watchdog_ends_the_jobs_of_an_allocator_that_lets_a_process_wait_too_long() {
    run("gsi_watchdog", &Scratch::new());
}

#[test]
fn calls_of_gsi_refuse_what_is_wrong_and_report_how_jobs_end() {
    run("gsi", &Scratch::new());
}
