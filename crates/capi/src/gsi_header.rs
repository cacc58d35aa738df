//! gsi.h declares what is here: a compiler of C compares functions, structures and constants.

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual::jobs::{AddedJobEnd, JobRefusal};

use crate::gsi_allocator::reason;
use crate::gsi_job::{GsiEvent, GsiJob, GROUPS, GSI_EV_JOB_EXPIRED, INFINITE};

/// Assertions in C of a structure's size, and of where each member is.
macro_rules! structures {
    ($lines:ident: $($type:ident = $name:literal { $($member:ident = $named:literal),* })*) => {$(
        assert_that(&mut $lines, format!("sizeof({}) == {}", $name, size_of::<$type>()));
        $(assert_that(
            &mut $lines,
            format!("offsetof({}, {}) == {}", $name, $named, offset_of!($type, $member)),
        );)*
    )*};
}

fn assert_that(lines: &mut String, holds: String) {
    writeln!(lines, "_Static_assert({holds}, \"{holds}\");").expect("a string grows");
}

#[test]
fn gsi_h_declares_what_is_here() {
    let mut lines = "#include <stddef.h>\n#include <gsi.h>\n".to_owned();
    structures! { lines:
        GsiJob = "GSI_JOB" {
            starttime = "starttime", finishtime = "finishtime", budget = "budget",
            priority = "priority", pid = "pid", group = "group", server = "server",
            budget_group = "budget_group", budget_server = "budget_server", private = "private"
        }
        GsiEvent = "GSI_Event" {
            kind = "type", reason = "reason", budget = "budget", time = "time", pid = "pid",
            reserved = "reserved", private = "private"
        }
    }
    let functions = [
        ("GSI_register", "int (*)(void)"),
        ("GSI_unregister", "int (*)(void)"),
        ("GSI_setQOS", "int (*)(const int *)"),
        ("GSI_setgroupQOS", "int (*)(int, const int *)"),
        ("GSI_addjob", "int (*)(const GSI_JOB *, int)"),
        ("GSI_getevents", "int (*)(GSI_Event *, int)"),
        ("GSI_abort_job", "int (*)(void)"),
        ("GSI_now", "int64_t (*)(void)"),
        ("GSI_msec_to_ticks", "int64_t (*)(int64_t)"),
    ];
    for (name, kind) in functions {
        let same = format!("__builtin_types_compatible_p(__typeof__(&{name}), {kind})");
        assert_that(&mut lines, same);
    }
    let numbers = [
        ("GSI_INFINITE", INFINITE),
        ("GSI_GROUPS", GROUPS.into()),
        ("GSI_EV_JOB_EXPIRED", GSI_EV_JOB_EXPIRED.into()),
        ("GSI_COMPLETED", reason(AddedJobEnd::Completed).into()),
        ("GSI_EXHAUSTED", reason(AddedJobEnd::Exhausted).into()),
        ("GSI_EXPIRED", reason(AddedJobEnd::Expired).into()),
        ("GSI_CANCELLED", reason(AddedJobEnd::Cancelled).into()),
        ("GSI_GONE", reason(AddedJobEnd::TaskGone).into()),
        ("GSI_GONE", reason(AddedJobEnd::Refused(JobRefusal::Nothing)).into()),
        ("QOS_PRIORITY", 0),
        ("QOS_STARTTIME", 1),
        ("QOS_FINISHTIME", 2),
        ("QOS_BUDGET", 3),
    ];
    for (name, number) in numbers {
        assert_that(&mut lines, format!("{name} == {number}"));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc")
        .args(["-x", "c", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"])
        .arg("-I")
        .arg(folder.join("include"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler is there");
    let stdin = compiler.stdin.take();
    stdin.expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    assert!(compiler.wait().expect("it ends").success(), "{lines}");

    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is there");
    let exported = read("libpunctual.map");
    let exported = exported.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let mut exported: Vec<&str> = exported.filter(|name| name.starts_with("GSI_")).collect();
    let mut declared: Vec<&str> = functions.iter().map(|(name, _)| *name).collect();
    exported.sort_unstable();
    declared.sort_unstable();
    assert_eq!(declared, exported, "the functions of libpunctual.map");
    let header = read("include/gsi.h");
    let described = |name: &&&str| header.contains(&format!("\n * {name} - "));
    let undescribed: Vec<_> = declared.iter().filter(|name| !described(name)).collect();
    assert!(undescribed.is_empty(), "the header does not describe {undescribed:?}");
}
