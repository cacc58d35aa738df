//! Programs in C, compiled and linked as users do it.

mod common;

use std::path::Path;
use std::process::Command;

use common::{compile, hard_output, make, passes, run, HERE, LIBRARY, WARNINGS};
use punctual_test_support::judge_timing;

/// The names of all functions.
fn functions() -> Vec<String> {
    let map = std::fs::read_to_string(format!("{HERE}/liblxrt.map")).expect("it is there");
    let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| !name.contains([' ', '*', '}'])).map(str::to_owned).collect()
}

#[test]
fn names_are_numbers_and_handles_are_looked_up() {
    passes("names.c");
}

#[test]
fn time_is_monotonic_and_counts_are_nanoseconds() {
    passes("time.c");
}

#[test]
fn tasks_are_suspended_sleep_and_have_priorities() {
    passes("tasks.c");
}

#[test]
fn semaphores_count_order_inherit_and_are_barriers() {
    passes("semaphores.c");
}

#[test]
fn conditions_are_waited_for_and_mutexes_locked_again() {
    passes("conditions.c");
}

#[test]
fn messages_are_sent_called_and_returned() {
    passes("messages.c");
}

#[test]
fn mailboxes_pass_bytes_in_order_and_are_polled() {
    passes("mailboxes.c");
}

#[test]
fn bits_are_waited_for() {
    passes("bits.c");
}

#[test]
fn queues_order_messages_by_priority() {
    passes("message_queues.c");
}

#[test]
fn fifos_are_found_by_number() {
    passes("fifos.c");
}

#[test]
fn memory_is_shared_by_name() {
    passes("shared_memory.c");
}

#[test]
fn programs_find_each_other_by_name_and_outlive_each_other() {
    passes("two_programs.c");
}

#[test]
fn programs_that_begin_together_find_or_make_the_same_objects() {
    passes("found_or_made.c");
}

#[test]
fn killed_programs_leave_nothing_behind_and_nothing_half_done() {
    passes("killed.c");
}

#[test]
fn hard_tasks_have_periods_and_budgets() {
    passes("hard.c");
}

#[test]
fn a_control_thread_in_cpp_has_its_period_and_keeps_to_its_budget() {
    passes("control_thread.cpp");
}

#[test]
fn the_watchdog_looks_after_tasks_that_overrun() {
    passes("watchdog.c");
}

#[test]
fn a_used_up_budget_is_a_signal_whose_handler_may_wait() {
    passes("budget_signal.c");
}

#[test]
fn the_papers_example_catches_up_after_each_overrun() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    compile("../../examples/budget.c", &program);
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
    compile("print.c", &program);
    let output = run(&mut Command::new(&program));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text, format!("3 of four\nscreen\n{}", "0".repeat(255)));
}

#[test]
fn the_headers_are_clean_in_every_version_of_c_and_cpp() {
    let headers = std::fs::read_dir(format!("{HERE}/include/rtai")).expect("it is there");
    let headers: Vec<String> =
        headers.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let all: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
    let folder = tempfile::tempdir().expect("a folder");
    for language in ["c99", "c11", "c17", "c2x", "c++11", "c++14", "c++17", "c++20"] {
        let (compiler, kind) = match language.starts_with("c++") {
            true => ("c++", "c++"),
            false => ("cc", "c"),
        };
        let file = folder.path().join("header");
        // Each one alone, and all of them.
        for source in headers.iter().map(|h| format!("#include <{h}>\n")).chain([all.clone()]) {
            std::fs::write(&file, &source).expect("it is written");
            let mut command = Command::new(compiler);
            command.arg(format!("-std={language}")).args(WARNINGS).arg("-fsyntax-only");
            command.args(["-Wstrict-prototypes"].iter().filter(|_| kind == "c"));
            command.args(["-x", kind, "-I"]).arg(format!("{HERE}/include/rtai"));
            run(command.arg(&file));
        }
    }
}

#[test]
fn the_library_exports_its_functions_with_a_version_and_nothing_else() {
    let library = LIBRARY.path().join("liblxrt.so");
    let mut functions: Vec<String> =
        functions().iter().map(|name| format!("T {name}@@LIBLXRT_0.1")).collect();
    functions.push("A LIBLXRT_0.1".to_owned());
    functions.sort();
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library)).stdout;
    let symbols = String::from_utf8(symbols).expect("text");
    let mut symbols: Vec<&str> =
        symbols.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    symbols.sort_unstable();
    assert_eq!(symbols, functions);
}

#[test]
fn a_program_is_built_by_rtai_config_and_uninstalling_leaves_nothing() {
    let [build, folder] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let prefix = folder.path().join("usr");
    make("install", build.path(), &prefix);
    let config = |options: &[&str]| {
        let output = run(Command::new(prefix.join("bin/rtai-config")).args(options)).stdout;
        String::from_utf8(output).expect("text").trim().to_owned()
    };
    assert_eq!(config(&["--version"]), env!("CARGO_PKG_VERSION"));
    assert_eq!(Path::new(&config(&["--prefix"])), prefix);
    let program = folder.path().join("program");
    let mut command = Command::new("cc");
    command.args(config(&["--lxrt-cflags"]).split_whitespace());
    command.arg(format!("{HERE}/tests/c/names.c")).arg("-o").arg(&program);
    run(command.args(config(&["--lxrt-ldflags"]).split_whitespace()));
    let objects = folder.path().join("objects");
    let mut start = Command::new(&program);
    start.env("LD_LIBRARY_PATH", config(&["--library-dir"])).env("PUNCTUAL_SHM_DIR", &objects);
    run(&mut start);
    let refused = Command::new(prefix.join("bin/rtai-config")).arg("--module-cflags").output();
    assert_eq!(refused.expect("it is there").status.code(), Some(2));
    make("uninstall", build.path(), &prefix);
    let left = run(Command::new("find").arg(&prefix).args(["-type", "f", "-o", "-type", "l"]));
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
