//! Punctual stopped, by Ctrl-Z or by a signal that it cannot handle: no task keeps its real-time
//! level without a budget, and all have theirs again when it continues.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use punctual_sys::clock::CpuClock;

use crate::kills::{set, NEEDS};
use crate::machine::{one_cpu, permitted, wait_for_cpu, Cpu, Random};
use crate::process::{
    attributes, describe, eventually, kill, marked, name_of, parent_of, pids, state_of, threads_of,
};
use crate::punctual::{adversarial, assert_nothing_left, list, Running, Scratch};
use crate::victim::Victim;

/// In a process group that this process could continue, as a shell's jobs are: in another one the
/// kernel ignores SIGTSTP.
fn start(cpu: &Cpu, file: &str) -> Running {
    wait_for_cpu(cpu.0);
    Running::from(|c| c.args(["run", file]).process_group(0))
}

fn programs(punctual: &Running) -> impl Iterator<Item = i32> {
    marked(&punctual.mark).into_iter().filter(|p| !name_of(*p).starts_with("punctual"))
}

/// The real-time priorities of all threads of its programs; 0 for an ordinary one.
fn priorities(punctual: &Running, victim: Option<&Victim>) -> Vec<i32> {
    let threads = programs(punctual).chain(victim.map(Victim::pid)).flat_map(threads_of);
    threads.filter_map(|t| Some(attributes(t)?.priority)).collect()
}

/// What they executed, ns.
fn executed(punctual: &Running) -> u64 {
    programs(punctual).filter_map(|p| CpuClock::of_process(p).read()).sum()
}

fn all_raised(punctual: &Running, victim: Option<&Victim>) -> bool {
    let all = priorities(punctual, victim);
    !all.is_empty() && all.iter().all(|p| *p > 0)
}

/// Of the only task of a set, ns.
const BUDGET: u64 = 10_000_000;

/// A set of one task, in this role.
fn alone(cpu: &Cpu, role: &[&str]) -> String {
    format!(
        "cpu = {}\npolicy = \"edf\"\nduration = \"120s\"\n[[task]]\nname = \"alone\"\n\
         period = \"20ms\"\nbudget = \"{BUDGET}ns\"\ncommand = {}\n",
        cpu.0,
        list(&adversarial(&role.join(" ")))
    )
}

fn is_stopped(punctual: &Running) -> bool {
    state_of(punctual.pid()) == Some('T')
}

/// Its end as the user has it, with the report of the stop.
fn interrupted(punctual: Running, cpu: &Cpu) {
    kill(punctual.pid(), libc::SIGINT);
    let ended = punctual.end();
    ended.assert_code(130).assert_says(&["was stopped for"]).assert_nothing_left(&[cpu.0]);
    assert!(ended.out.contains("Punctual was stopped for"), "{}", ended.out);
}

#[test]
fn a_stopped_punctual_leaves_no_task_at_a_real_time_level_and_raises_all_when_it_continues() {
    if !permitted(&NEEDS) {
        return;
    }
    let (cpu, scratch, mut random) = (one_cpu(), Scratch::new(), Random::seeded(11));
    let victim = Victim::start();
    for round in 0..3 {
        let file = scratch.file("set.toml", &set(cpu.0, round, victim.pid()));
        let mut punctual = start(&cpu, &file);
        punctual.wait_for("its tasks", |p| all_raised(p, Some(&victim)));
        for signal in [libc::SIGSTOP, libc::SIGTSTP] {
            std::thread::sleep(Duration::from_micros(random.below(30_000)));
            kill(punctual.pid(), signal);
            punctual.wait_for("the stop", is_stopped);
            punctual.wait_for("the end of all levels", |p| {
                priorities(p, Some(&victim)).iter().all(|p| *p == 0)
            });
            kill(punctual.pid(), libc::SIGCONT);
            punctual.wait_for("all levels", |p| all_raised(p, Some(&victim)));
        }
        interrupted(punctual, &cpu);
        victim.assert_as_before();
    }
}

/// The level of a task that has the CPU to itself never changes: nothing else would set it again.
#[test]
fn a_punctual_that_is_stopped_and_continued_at_any_instant_keeps_its_levels() {
    if !permitted(&NEEDS) {
        return;
    }
    let (cpu, scratch, mut random) = (one_cpu(), Scratch::new(), Random::seeded(12));
    let mut punctual = start(&cpu, &scratch.file("set.toml", &alone(&cpu, &["spin"])));
    punctual.wait_for("its task", |p| all_raised(p, None));
    for _ in 0..20 {
        kill(punctual.pid(), libc::SIGSTOP);
        std::thread::sleep(Duration::from_micros(80_000 + random.below(150_000)));
        kill(punctual.pid(), libc::SIGCONT);
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
    }
    // The level is set at the first event after SIGCONT, at its next budget at the latest.
    let before = executed(&punctual);
    let mut seen = false;
    punctual.wait_for("its level, or a hundred budgets", |p| {
        seen = all_raised(p, None);
        seen || executed(p) >= before + 100 * BUDGET
    });
    assert!(seen, "{:?} after a hundred budgets", priorities(&punctual, None));
    interrupted(punctual, &cpu);
}

#[test]
fn priorities_that_a_program_chose_outlast_a_stop() {
    if !permitted(&NEEDS) {
        return;
    }
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let text = alone(&cpu, &["priorities", &scratch.path("progress"), "0", "40", "50"]);
    let mut punctual = start(&cpu, &scratch.file("set.toml", &text));
    let in_order = |p: &Running| {
        let mut all = priorities(p, None);
        all.sort_unstable();
        matches!(all[..], [a, b, c] if a >= 60 && b == a + 1 && c == b + 1)
    };
    punctual.wait_for("three levels", in_order);
    kill(punctual.pid(), libc::SIGSTOP);
    punctual.wait_for("the end of all levels", |p| priorities(p, None).iter().all(|p| *p == 0));
    let before = executed(&punctual);
    kill(punctual.pid(), libc::SIGCONT);
    // A wrong choice is noticed when the levels are set, and changes them at the next release.
    punctual.wait_for("several budgets", |p| executed(p) >= before + 5 * BUDGET);
    punctual.wait_for("three levels again", in_order);
    interrupted(punctual, &cpu);
}

#[test]
fn whatever_is_killed_beside_a_stopped_punctual_nothing_stays_behind() {
    if !permitted(&NEEDS) {
        return;
    }
    let (cpu, scratch, mut random) = (one_cpu(), Scratch::new(), Random::seeded(13));
    let victim = Victim::start();
    for round in 0..12 {
        let file = scratch.file("set.toml", &set(cpu.0, round, victim.pid()));
        let mut punctual = start(&cpu, &file);
        punctual.wait_for("its tasks", |p| all_raised(p, Some(&victim)));
        let guardian = punctual.guardian().expect("it stands watch");
        kill(punctual.pid(), libc::SIGSTOP);
        // Before, while and after the levels are taken away.
        std::thread::sleep(Duration::from_micros(random.below(250_000)));
        match round / 3 {
            0 => kill(punctual.pid(), libc::SIGKILL),
            1 => kill(guardian, libc::SIGKILL),
            2 => kill(watch_of(guardian), libc::SIGKILL),
            _ => {
                kill(watch_of(guardian), libc::SIGKILL);
                kill(punctual.pid(), libc::SIGKILL);
            }
        }
        if matches!(round / 3, 1 | 2) {
            kill(punctual.pid(), libc::SIGCONT);
            punctual.wait_for("all levels", |p| all_raised(p, Some(&victim)));
            kill(punctual.pid(), libc::SIGINT);
        }
        assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu.0]);
        punctual.reap();
        victim.assert_as_before();
    }
}

#[test]
fn a_killed_watch_is_replaced_and_does_its_work() {
    if !permitted(&NEEDS) {
        return;
    }
    let (cpu, scratch) = (one_cpu(), Scratch::new());
    let mut punctual = start(&cpu, &scratch.file("set.toml", &alone(&cpu, &["spin"])));
    punctual.wait_for("its task", |p| all_raised(p, None));
    let first = punctual.guardian().expect("it stands watch");
    kill(watch_of(first), libc::SIGKILL);
    punctual.wait_for("another guardian", |p| p.guardian().is_some_and(|g| g != first));
    watch_of(punctual.guardian().expect("it stands watch"));
    kill(punctual.pid(), libc::SIGSTOP);
    punctual.wait_for("the end of its level", |p| priorities(p, None).iter().all(|p| *p == 0));
    kill(punctual.pid(), libc::SIGCONT);
    punctual.wait_for("its level", |p| all_raised(p, None));
    interrupted(punctual, &cpu);
}

/// The guardian's ordinary child.
fn watch_of(guardian: i32) -> i32 {
    let is_watch = |p: &i32| parent_of(*p) == Some(guardian) && name_of(*p) == "punctual-watch";
    let mut found = None;
    eventually("the guardian's child", || {
        found = pids().into_iter().find(is_watch);
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("{}", describe(guardian)))
}
