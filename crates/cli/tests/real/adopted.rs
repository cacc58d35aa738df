//! Programs that run already: adopted by `--pid`, they get a budget, and then what they had before.

use punctual_test_support::judge_timing;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, permitted_cpu, Need};
use crate::process::{attributes, eventually, kill, marked, state_of};
use crate::punctual::{adversarial, run, run_on, run_set, Running};
use crate::tasks::{assert_others_hold, set};
use crate::victim::Victim;

#[test]
fn an_adopted_program_gets_its_budget_and_then_its_old_life_back() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let victim = Victim::start();
    let lasting = |duration: &str| {
        let of = format!("--period 10ms --budget 2ms --duration {duration} --pid {}", victim.pid());
        run_on(cpu.0, &of)
    };
    let args = lasting("500ms");
    run(&args).assert_ran().assert_nothing_left(&[cpu.0]);
    victim.assert_as_before();
    // One that was stopped before stays stopped, and is not stopped for good.
    kill(victim.pid(), libc::SIGSTOP);
    run(&args).assert_nothing_left(&[cpu.0]);
    assert_eq!(crate::process::state_of(victim.pid()), Some('T'));
    kill(victim.pid(), libc::SIGCONT);
    victim.assert_as_before();
    // And Ctrl-C gives it back.
    let mut punctual = Running::start(&lasting("120s"));
    punctual.wait_for("the adopted program", |_| !victim.is_as_before());
    kill(punctual.pid(), libc::SIGINT);
    punctual.end().assert_code(130).assert_nothing_left(&[cpu.0]);
    victim.assert_as_before();
}

#[test]
fn an_adopted_program_that_ends_ends_the_run() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let words = adversarial("spin");
    let mut program = std::process::Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
    let of = format!("--period 10ms --budget 5ms --duration 120s --pid {}", program.id());
    let mut punctual = Running::start(&run_on(cpu.0, &of));
    let pid = program.id() as i32;
    punctual
        .wait_for("the program at its level", |_| attributes(pid).is_some_and(|a| a.priority > 0));
    kill(pid, libc::SIGTERM);
    crate::bounded::wait(&mut program);
    let ended = punctual.end();
    ended.assert_met().assert_says(&["ended"]).assert_nothing_left(&[cpu.0]);
}

#[test]
fn an_adopted_program_s_children_share_its_budget_and_live_on() {
    if !permitted(&[Need::Root, Need::RealTime, Need::Freezer]) {
        return;
    }
    let (cpu, mark) = (one_cpu(), crate::punctual::new_mark());
    let words = adversarial("family");
    let mut program = std::process::Command::new(&words[0])
        .args(&words[1..])
        .env("FAMILY", &mark)
        .spawn()
        .unwrap();
    // While a child is in execve() its environment cannot be read, so it may be missing from a
    // count.
    const FAMILY: usize = 5;
    eventually("its children", || marked(&mark).len() >= FAMILY);
    let text = set(cpu.0, &["x".to_owned()])
        .replace("command = [\"x\"]", &format!("pid = {}", program.id()));
    let ended = run_set(&text, &["--json"]);
    eventually("exactly its family", || marked(&mark).len() == FAMILY);
    let family = marked(&mark);
    let healthy = family.iter().all(|p| !matches!(state_of(*p), None | Some('T' | 't')));
    let levels: Vec<_> = family.iter().filter_map(|p| attributes(*p)).map(|a| a.priority).collect();
    crate::bounded::end_all(family.iter().copied());
    crate::bounded::wait(&mut program);
    ended.assert_nothing_left(&[cpu.0]);
    judge_timing(|| assert_others_hold(&ended.result()));
    assert!(healthy && levels.iter().all(|l| *l == 0), "{family:?}: {levels:?}");
}
