//! Adoption, commands and their return, by one owner in good order.

#[path = "../common/mod.rs"]
mod common;

mod adoption;
mod commands;
mod descendants;
mod refusals;
mod single_threads;

use common::*;
use punctual_process::*;

/// A role: nothing unless it was started for it.
#[test]
fn victim() {
    if is_role("victim") {
        be_victim();
    }
}

/// A role: nothing unless it was started for it.
#[test]
fn unprivileged() {
    if is_role("unprivileged") {
        println!("{}", check_privileges(&[0]).unwrap_err());
    }
}

fn setup(freezer: bool) -> Option<(Journal, Option<CgroupBase>)> {
    if !permitted(freezer) {
        return None;
    }
    let journal = Journal::create().unwrap();
    let base = freezer.then(|| CgroupBase::create(&journal).unwrap());
    Some((journal, base))
}

fn finish(journal: &Journal) -> RestoreReport {
    let report = restore(journal);
    assert!(report.is_complete(), "{report:?}");
    assert!(!journal.path().exists());
    assert!(groups_of(std::process::id() as i32).is_empty());
    report
}

/// The process `sleep SECONDS`.
fn sleeping(seconds: &str) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let command = format!("sleep\0{seconds}\0").into_bytes();
    pids.find(|p| std::fs::read(format!("/proc/{p}/cmdline")).is_ok_and(|c| c == command))
}
