//! Programs in C, compiled and linked as users do it.

mod common;

use std::path::Path;
use std::process::Command;

use common::{command, compile, finish, make, objects, passes, run, HERE, LIBRARY, WARNINGS};
use punctual_test_support::missing;

/// The names of all functions.
fn functions() -> Vec<String> {
    let map = std::fs::read_to_string(format!("{HERE}/librtlinux.map")).expect("it is there");
    let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| !name.contains([' ', '*', '}'])).map(str::to_owned).collect()
}

#[test]
fn clocks_go_on_and_are_those_of_posix() {
    passes("time.c");
}

#[test]
fn attributes_keep_what_they_were_given() {
    passes("attributes.c");
}

#[test]
fn the_papers_fifos_take_all_or_nothing() {
    passes("fifos.c");
}

#[test]
fn the_fifos_of_later_versions_have_many_writers() {
    passes("rt_fifos.c");
}

#[test]
fn handlers_are_called_for_other_programs_or_for_this_one() {
    passes("handlers.c");
}

#[test]
fn buffers_are_shared_by_name() {
    passes("buffers.c");
}

#[test]
fn threads_are_made_joined_cancelled_and_deleted() {
    passes("threads.c");
}

#[test]
fn threads_have_periods_are_suspended_and_sleep() {
    passes("periods.c");
}

#[test]
fn tasks_of_the_first_version_have_periods() {
    passes("tasks.c");
}

#[test]
fn threads_are_tasks_by_their_priorities_and_within_a_budget() {
    passes("hard.c");
}

#[test]
fn a_program_has_the_papers_parameters_for_itself() {
    passes("paper.c");
}

#[test]
fn programs_are_loaded_started_killed_reaped_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = |name: &str| folder.path().join(name);
    compile("programs.c", &program("programs"));
    compile("loaded.c", &program("probe"));
    for name in ["periodic", "asks", "exits", "crashes", "spins"] {
        std::fs::copy(program("probe"), program(name)).expect("there is room");
    }
    let objects = objects();
    let mut command = command(program("programs"), objects.path());
    command.env("PUNCTUAL_RTLINUX_MEMORY", "128");
    let (status, text) = finish(command);
    match status.code() {
        Some(0) => {}
        Some(77) => return missing(text.trim()),
        _ => panic!("{status}: {text}"),
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
    compile("output.c", &program);
    let output = run(&mut Command::new(&program));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text, format!("3 of four\nlog\n{}", "0".repeat(511)));
}

/// The headers, from the folder of headers on.
fn headers() -> Vec<String> {
    let root = format!("{HERE}/include/rtlinux");
    let find = run(Command::new("find").args([&root, "-name", "*.h", "-printf", "%P\n"]));
    let mut headers: Vec<String> =
        String::from_utf8(find.stdout).expect("text").lines().map(str::to_owned).collect();
    headers.sort();
    assert!(headers.len() > 15, "{headers:?}");
    headers
}

#[test]
fn the_headers_are_clean_in_every_version_of_c_and_cpp() {
    let headers = headers();
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
            // ISO C wants a declaration at least.
            std::fs::write(&file, format!("{source}extern int declared;\n"))
                .expect("it is written");
            let mut command = Command::new(compiler);
            command.arg(format!("-std={language}")).args(WARNINGS).arg("-fsyntax-only");
            // As programs that use clocks have it.
            command.arg("-D_GNU_SOURCE");
            command.args(["-Wstrict-prototypes"].iter().filter(|_| kind == "c"));
            command.args(["-x", kind, "-I"]).arg(format!("{HERE}/include/rtlinux"));
            run(command.arg(&file));
        }
    }
}

#[test]
fn the_library_exports_its_functions_with_a_version_and_nothing_else() {
    let library = LIBRARY.path().join("librtlinux.so");
    let mut functions: Vec<String> =
        functions().iter().map(|name| format!("T {name}@@LIBRTLINUX_0.1")).collect();
    functions.push("A LIBRTLINUX_0.1".to_owned());
    functions.sort();
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library)).stdout;
    let symbols = String::from_utf8(symbols).expect("text");
    let mut symbols: Vec<&str> =
        symbols.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    symbols.sort_unstable();
    assert_eq!(symbols, functions);
}

#[test]
fn programs_are_built_by_rtlinux_config_and_uninstalling_leaves_nothing() {
    let [build, folder] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let prefix = folder.path().join("usr");
    make("install", build.path(), &prefix);
    let config = |options: &[&str]| {
        let output = run(Command::new(prefix.join("bin/rtlinux-config")).args(options)).stdout;
        String::from_utf8(output).expect("text").trim().to_owned()
    };
    assert_eq!(config(&["--version"]), env!("CARGO_PKG_VERSION"));
    assert_eq!(Path::new(&config(&["--prefix"])), prefix);
    let build_by = |flags: [&str; 2], source: &str, name: &str| {
        let file = folder.path().join(name);
        let mut command = Command::new("cc");
        command.args(config(&flags[..1]).split_whitespace());
        command.arg(format!("{HERE}/tests/c/{source}")).arg("-o").arg(&file);
        run(command.args(config(&flags[1..]).split_whitespace()));
        file
    };
    let program = build_by(["--cflags", "--ldflags"], "time.c", "program");
    run(Command::new(&program).env("LD_LIBRARY_PATH", config(&["--library-dir"])));
    let module = build_by(["--module-cflags", "--module-ldflags"], "module.c", "module.so");
    let objects = objects();
    // It finds the library by itself.
    let mut runner = command(prefix.join("bin/rtlinux-run"), objects.path());
    runner.arg(module).arg("periods=1");
    let (status, text) = finish(runner);
    assert_eq!(status.code(), Some(0), "{text}");
    let refused = Command::new(prefix.join("bin/rtlinux-config")).arg("--what").output();
    assert_eq!(refused.expect("it is there").status.code(), Some(2));
    make("uninstall", build.path(), &prefix);
    let left = run(Command::new("find").arg(&prefix).args(["-type", "f", "-o", "-type", "l"]));
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
