//! Programs in C, compiled and linked as users do it.

mod common;

use std::path::Path;
use std::process::Command;

use common::LIBRARY;
use punctual_test_support::c_library::objects;
use punctual_test_support::installed::Installed;
use punctual_test_support::process::run;
use punctual_test_support::{comes_true, judge_timing, missing};

#[test]
fn names_are_numbers_and_handles_are_looked_up() {
    LIBRARY.passes("names.c");
}

#[test]
fn time_is_monotonic_and_counts_are_nanoseconds() {
    LIBRARY.passes("time.c");
}

#[test]
fn tasks_are_suspended_sleep_and_have_priorities() {
    LIBRARY.passes("tasks.c");
}

#[test]
fn semaphores_count_order_inherit_and_are_barriers() {
    LIBRARY.passes("semaphores.c");
}

#[test]
fn conditions_are_waited_for_and_mutexes_locked_again() {
    LIBRARY.passes("conditions.c");
}

#[test]
fn messages_are_sent_called_and_returned() {
    LIBRARY.passes("messages.c");
}

#[test]
fn mailboxes_pass_bytes_in_order_and_are_polled() {
    LIBRARY.passes("mailboxes.c");
}

#[test]
fn bits_are_waited_for() {
    LIBRARY.passes("bits.c");
}

#[test]
fn queues_order_messages_by_priority() {
    LIBRARY.passes("message_queues.c");
}

#[test]
fn fifos_are_found_by_number() {
    LIBRARY.passes("fifos.c");
}

#[test]
fn memory_is_shared_by_name() {
    LIBRARY.passes("shared_memory.c");
}

#[test]
fn programs_find_each_other_by_name_and_outlive_each_other() {
    LIBRARY.passes("two_programs.c");
}

#[test]
fn programs_that_begin_together_find_or_make_the_same_objects() {
    LIBRARY.passes("found_or_made.c");
}

#[test]
fn killed_programs_leave_nothing_behind_and_nothing_half_done() {
    LIBRARY.passes("killed.c");
}

#[test]
fn hard_tasks_have_periods_and_budgets() {
    LIBRARY.passes("hard.c");
}

#[test]
fn a_control_thread_in_cpp_has_its_period_and_keeps_to_its_budget() {
    LIBRARY.passes("control_thread.cpp");
}

#[test]
fn the_watchdog_looks_after_tasks_that_overrun() {
    LIBRARY.passes("watchdog.c");
}

#[test]
fn a_used_up_budget_is_a_signal_whose_handler_may_wait() {
    LIBRARY.passes("budget_signal.c");
}

/// What a program with hard tasks prints; `None`: the machine does not permit it, or another
/// dispatcher has had the CPU for too long.
fn hard_output(program: &Path) -> Option<String> {
    let objects = objects();
    let mut soft = String::new();
    let got = comes_true(|| {
        let output = run(&mut LIBRARY.command(program, objects.path()));
        soft = String::from_utf8_lossy(&output.stderr).into_owned();
        if soft.contains("tasks are soft") {
            return false;
        }
        soft = String::from_utf8_lossy(&output.stdout).into_owned();
        true
    });
    if !got {
        missing(soft.trim());
        return None;
    }
    Some(soft)
}

#[test]
fn the_papers_example_catches_up_after_each_overrun() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    LIBRARY.compile("examples/budget.c", &program, &[]);
    let Some(text) = hard_output(&program) else { return };
    let numbers: Vec<u32> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [20, overruns, late] = numbers[..] else { panic!("{text}") };
    // Four of the jobs need more than a budget; a slow machine makes more of them late.
    assert!(overruns >= 4 && late >= 4, "{text}");
    judge_timing(|| assert_eq!((overruns, late), (4, 4), "{text}"));
}

#[test]
fn output_goes_to_standard_error_and_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    LIBRARY.compile("tests/c/print.c", &program, &[]);
    let output = run(&mut Command::new(&program));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text, format!("3 of four\nscreen\n{}", "0".repeat(255)));
}

#[test]
fn the_headers_are_clean_in_every_version_of_c_and_cpp() {
    LIBRARY.is_clean(&LIBRARY.inclusions(), &[]);
}

#[test]
fn the_library_exports_its_functions_with_a_version_and_nothing_else() {
    LIBRARY.exports_its_functions();
}

#[test]
fn a_program_is_built_by_rtai_config_and_uninstalling_leaves_nothing() {
    let installed = Installed::new(&LIBRARY);
    let program = installed.compile("names.c", ["--lxrt-cflags", "--lxrt-ldflags"]);
    let objects = objects();
    let mut start = LIBRARY.command(program, objects.path());
    run(start.env("LD_LIBRARY_PATH", installed.config("--library-dir")));
    installed.refuses("--module-cflags");
    installed.uninstall();
}
