//! Punctual, its dispatcher, its guardian: killed one at a time, at random instants.

use std::sync::PoisonError;
use std::time::Duration;

use crate::kills_both::{clean, CLEANING};
use crate::machine::{permitted_cpu, rounds, wait_for_cpu, Cpu, Need, Random};
use crate::process::{groups_of, journals_of, kill, marked};
use crate::punctual::{adversarial, assert_nothing_left, list, Running, Scratch};
use crate::victim::Victim;

pub const NEEDS: [Need; 3] = [Need::Root, Need::RealTime, Need::Freezer];

/// A synthetic task, a command with processes and threads, an adopted program.
pub fn set(cpu: u32, round: u64, victim: i32) -> String {
    let synthetic = r#"
[[task]]
name = "synthetic"
period = "2ms"
budget = "300us"
work = { spin = "forever" }
"#;
    programs(cpu, round, victim) + synthetic
}

/// The programs alone: no thread of Punctual's is below them, nor has to be ended first.
pub fn programs(cpu: u32, round: u64, victim: i32) -> String {
    let command = match round % 3 {
        0 => list(&adversarial("family")),
        1 => list(
            &["sh", "-c", "while :; do :; done & (sleep 50 &) ; setsid sleep 51 & sleep 52"]
                .map(str::to_owned),
        ),
        _ => list(&["sh", "-c", "yes | xz -T4 -0 -c >/dev/null"].map(str::to_owned)),
    };
    format!(
        r#"
cpu = {cpu}
policy = "edf"
duration = "120s"
[[task]]
name = "command"
period = "5ms"
budget = "1ms"
command = {command}
[[task]]
name = "adopted"
period = "5ms"
budget = "1ms"
pid = {victim}
"#
    )
}

/// The rounds of one kind of kill, on a CPU of their own, against a program that is adopted each
/// time.
fn each_round(
    salt: u64,
    percent: u64,
    mut one: impl FnMut(&Cpu, &Victim, u64, &mut Random, &Scratch),
) {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (scratch, mut random) = (Scratch::new(), Random::seeded(salt));
    let victim = Victim::start();
    for round in 0..rounds(percent) {
        one(&cpu, &victim, round, &mut random, &scratch);
        victim.assert_as_before();
    }
}

fn start(cpu: &Cpu, victim: &Victim, round: u64, scratch: &Scratch) -> Running {
    wait_for_cpu(cpu.0);
    let file = scratch.file("set.toml", &set(cpu.0, round, victim.pid()));
    Running::start(&["run", &file, "--quiet"])
}

/// Cleans up after one that was killed before it had a guardian; whether that was so.
pub fn clean_if_no_guardian_yet(pid: i32) -> bool {
    let early = no_guardian_yet(pid);
    if early {
        let _one = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
        clean();
    }
    early
}

/// Killed before it had a guardian it may leave a journal, which says that nothing was changed yet.
fn no_guardian_yet(pid: i32) -> bool {
    !journals_of(pid).is_empty() && groups_of(pid).is_empty() && {
        std::thread::sleep(Duration::from_millis(60));
        journals_of(pid).iter().all(|j| {
            let text = std::fs::read_to_string(j).unwrap_or_default();
            !["Adopted", "Child", "Group", "adopted", "child", "group"]
                .iter()
                .any(|w| text.contains(&format!("\"{w}\"")))
        })
    }
}

#[test]
fn punctual_killed_at_any_instant_leaves_nothing() {
    let mut early = 0;
    each_round(1, 35, |cpu, victim, round, random, scratch| {
        let mut punctual = start(cpu, victim, round, scratch);
        std::thread::sleep(Duration::from_micros(random.below(250_000)));
        let pid = punctual.pid();
        kill(pid, libc::SIGKILL);
        early += u32::from(clean_if_no_guardian_yet(pid));
        assert_nothing_left(pid, &punctual.mark, &[cpu.0]);
        punctual.reap();
    });
    println!("{early} times before there was a guardian");
}

#[test]
fn a_dispatcher_killed_by_its_thread_id_leaves_nothing() {
    each_round(2, 30, |cpu, victim, round, random, scratch| {
        let mut punctual = start(cpu, victim, round, scratch);
        let mut tid = None;
        punctual.wait_for("the dispatcher", |p| {
            tid = p.dispatcher();
            tid.is_some()
        });
        let (pid, tid) = (punctual.pid(), tid.unwrap());
        std::thread::sleep(Duration::from_micros(random.below(150_000)));
        if round % 2 == 0 {
            kill(tid, libc::SIGKILL);
        } else {
            // SAFETY: passes no memory.
            unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGKILL) };
        }
        assert_nothing_left(pid, &punctual.mark, &[cpu.0]);
        punctual.reap();
    });
}

#[test]
fn a_punctual_whose_threads_cannot_die_below_a_runaway_is_given_back_too() {
    killed_below_a_runaway(libc::SIGKILL);
}

/// The kernel dumps memory, and ends the first thread, when all threads have stopped.
#[test]
fn a_punctual_that_crashes_while_its_threads_cannot_stop_below_a_runaway_is_given_back_too() {
    killed_below_a_runaway(libc::SIGABRT);
}

fn killed_below_a_runaway(signal: i32) {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (scratch, mut random) = (Scratch::new(), Random::seeded(8));
    let text = format!(
        r#"
cpu = {}
policy = "rm"
duration = "120s"
[[task]]
name = "low"
period = "500ms"
budget = "10ms"
work = {{ spin = "forever" }}
[[task]]
name = "runaway"
period = "100ms"
budget = "85ms"
command = {}
"#,
        cpu.0,
        list(&adversarial("deaf"))
    );
    for _ in 0..6 {
        wait_for_cpu(cpu.0);
        let file = scratch.file("set.toml", &text);
        let mut punctual = Running::start(&["run", &file, "--quiet"]);
        punctual.wait_for("the runaway", |p| marked(&p.mark).len() > 2);
        std::thread::sleep(Duration::from_micros(50_000 + random.below(100_000)));
        kill(punctual.pid(), signal);
        assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu.0]);
        punctual.reap();
    }
}

#[test]
fn a_killed_guardian_is_replaced_and_the_run_continues() {
    const PER_RUN: u64 = 7;
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (scratch, mut random) = (Scratch::new(), Random::seeded(3));
    let victim = Victim::start();
    for round in 0..rounds(35).div_ceil(PER_RUN) {
        wait_for_cpu(cpu.0);
        let file = scratch.file("set.toml", &set(cpu.0, round, victim.pid()));
        let mut punctual = Running::start(&["run", &file]);
        let mut last = 0;
        for n in 0..PER_RUN {
            // The first one right at its start, later ones at any instant of the run. A start is
            // tried three times: so that it never fails three times in a row, each second one is
            // killed when it watches, which a busy machine may delay beyond the sleep.
            punctual.wait_for("a guardian", |p| {
                let watches = |g| punctual_sys::sched::priority(g) == Some(99);
                p.guardian().is_some_and(|g| g != last && (n % 2 == 0 || watches(g)))
            });
            let guardian = punctual.guardian().unwrap();
            if n > 0 || round % 2 == 0 {
                std::thread::sleep(Duration::from_micros(random.below(60_000)));
            }
            kill(guardian, libc::SIGKILL);
            last = guardian;
        }
        punctual.wait_for("the last guardian", |p| p.guardian().is_some_and(|g| g != last));
        punctual.wait_for("its tasks, which continue", |p| marked(&p.mark).len() > 2);
        kill(punctual.pid(), libc::SIGINT);
        let ended = punctual.end();
        ended
            .assert_code(130)
            .assert_says(&["the guardian was killed; another one watches now"])
            .assert_nothing_left(&[cpu.0]);
        victim.assert_as_before();
    }
}
