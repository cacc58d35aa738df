//! Programs in C, compiled and linked as users do it.

mod common;

use std::process::Command;

use common::LIBRARY;
use punctual_test_support::c_library::objects;
use punctual_test_support::installed::Installed;
use punctual_test_support::process::{finish, has_succeeded, run};

#[test]
fn clocks_advance_and_are_those_of_posix() {
    LIBRARY.passes("time.c");
}

#[test]
fn attributes_keep_what_they_were_given() {
    LIBRARY.passes("attributes.c");
}

#[test]
fn the_papers_fifos_take_all_or_nothing() {
    LIBRARY.passes("fifos.c");
}

#[test]
fn the_fifos_of_later_versions_have_many_writers() {
    LIBRARY.passes("rt_fifos.c");
}

#[test]
fn handlers_are_called_for_other_programs_or_for_this_one() {
    LIBRARY.passes("handlers.c");
}

#[test]
fn buffers_are_shared_by_name() {
    LIBRARY.passes("buffers.c");
}

#[test]
fn threads_are_made_joined_cancelled_and_deleted() {
    LIBRARY.passes("threads.c");
}

#[test]
fn threads_have_periods_are_suspended_and_sleep() {
    LIBRARY.passes("periods.c");
}

#[test]
fn tasks_of_the_first_version_have_periods() {
    LIBRARY.passes("tasks.c");
}

#[test]
fn threads_are_tasks_by_their_priorities_and_within_a_budget() {
    LIBRARY.passes("hard.c");
}

#[test]
fn a_program_has_the_papers_parameters_for_itself() {
    LIBRARY.passes("paper.c");
}

#[test]
fn programs_are_loaded_started_killed_reaped_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = |name: &str| folder.path().join(name);
    LIBRARY.compile("tests/c/programs.c", &program("programs"), &[]);
    LIBRARY.compile("tests/c/loaded.c", &program("probe"), &[]);
    for name in ["periodic", "asks", "exits", "crashes", "spins"] {
        std::fs::copy(program("probe"), program(name)).expect("there is room");
    }
    let objects = objects();
    let mut command = LIBRARY.command(program("programs"), objects.path());
    let (status, text) = finish(command.env("PUNCTUAL_RTLINUX_MEMORY", "128"));
    if !has_succeeded(&command, status, &text) {
        return;
    }
    for how in ["exits) has ended: exit status: 3", "crashes) has ended: signal: 6 (SIGABRT)"] {
        assert!(text.contains(how), "{text}");
    }
    assert!(text.contains("spins) has ended: signal: 9 (SIGKILL)"), "{text}");
}

#[test]
fn output_goes_to_standard_error_and_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    LIBRARY.compile("tests/c/output.c", &program, &[]);
    let output = run(&mut Command::new(&program));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text, format!("3 of four\nlog\n{}", "0".repeat(511)));
}

#[test]
fn the_headers_are_clean_in_every_version_of_c_and_cpp() {
    let inclusions = LIBRARY.inclusions();
    assert!(inclusions.len() > 16, "{inclusions:?}");
    // ISO C wants a declaration at least.
    let declares = |program: &String| format!("{program}extern int declared;\n");
    let programs: Vec<String> = inclusions.iter().map(declares).collect();
    // As programs that use clocks have it.
    LIBRARY.is_clean(&programs, &["-D_GNU_SOURCE"]);
}

#[test]
fn the_library_exports_its_functions_with_a_version_and_nothing_else() {
    LIBRARY.exports_its_functions();
}

#[test]
fn programs_are_built_by_rtlinux_config_and_uninstalling_leaves_nothing() {
    let installed = Installed::new(&LIBRARY);
    let program = installed.compile("time.c", ["--cflags", "--ldflags"]);
    run(Command::new(program).env("LD_LIBRARY_PATH", installed.config("--library-dir")));
    let module = installed.compile("module.c", ["--module-cflags", "--module-ldflags"]);
    let objects = objects();
    // It finds the library by itself.
    let mut runner = LIBRARY.command(installed.program("rtlinux-run"), objects.path());
    let (status, text) = finish(runner.arg(module).arg("periods=1"));
    assert_eq!(status.code(), Some(0), "{text}");
    installed.refuses("--what");
    installed.uninstall();
}
