//! Unmodified programs: commands and adopted processes, with threads and children, well-behaved and
//! not.

use std::process::Command;

use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{
    children, executed, executed_by, family, is_dead, is_ordinary, keep_executing,
    scheduler_becomes, until, Machine,
};
use crate::punctual::{
    adopt, adversarial, companion, keeps_its_budget, list, replays, results, run, says, start,
    task, trace, words_of, Scratch,
};
use crate::trace::{runs, table_began};

/// A set of a spinning task, 1 ms in 2 ms, and a command, 2 ms in 10 ms.
pub fn beside(command: &[String]) -> String {
    format!(
        "cpu = 0\npolicy = \"edf\"\nduration = \"500ms\"\n\
         [[task]]\nname = \"spinning\"\nperiod = \"2ms\"\nbudget = \"1ms\"\n\
         work = {{ spin = \"forever\" }}\n\
         [[task]]\nname = \"command\"\nperiod = \"10ms\"\nbudget = \"2ms\"\ncommand = {}\n",
        list(command)
    )
}

/// The set runs beside a load; both tasks have their budgets, and the command no more than its own.
fn is_kept_to_its_budget(role: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let (set, path) =
        (scratch.file("set.toml", &beside(&adversarial(role))), scratch.path("trace"));
    let own = KernelsOwn::watch();
    let run = start(&set, &["--load", "--trace", path.to_str().expect("plain")]).output();
    let results = results(&run);
    keeps_its_budget(task(&results, "spinning"), check::precision(&own));
    // A program inside fork or exit is not interrupted where the kernel is not preemptible: some
    // tens of microseconds.
    let late = check::lateness(&own).max(100_000);
    let seen = check::holds(&trace(&path), &own, late);
    replays(&path);
    // 2 ms for each release, of which the first and the last may be cut.
    let (executed, assigned) = (seen[&1].executed, seen[&1].releases * 2_000_000);
    assert!(seen[&1].releases >= 50, "{role}: {} releases", seen[&1].releases);
    assert!(
        executed + 4_000_000 >= assigned && executed <= assigned + late,
        "{role}: {executed} ns of {assigned}"
    );
}

#[test]
fn a_command_that_spins_gets_its_budget_and_executes_nothing_before_its_release() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let text = beside(&adversarial("spin"))
        .replace("name = \"command\"\n", "name = \"command\"\noffset = \"40ms\"\n");
    let (set, path) = (scratch.file("set.toml", &text), scratch.path("trace"));
    let own = KernelsOwn::watch();
    let run =
        start(&set, &["--duration", "200ms", "--trace", path.to_str().expect("plain")]).output();
    keeps_its_budget(task(&results(&run), "command"), check::precision(&own));
    let trace = trace(&path);
    let first = runs(&trace).into_iter().find(|run| run.0 == 1).expect("it runs").1;
    assert!(first >= table_began(&trace) + 40_000_000, "it ran at {first}");
}

#[test]
fn a_command_with_sibling_threads_gets_one_budget() {
    is_kept_to_its_budget("spin-threads 4");
}

#[test]
fn a_command_with_children_and_orphans_gets_one_budget() {
    is_kept_to_its_budget("family");
}

#[test]
fn a_fork_storm_gets_its_budget_and_disturbs_no_other_task() {
    is_kept_to_its_budget("fork-storm");
}

#[test]
fn a_command_stays_a_member_over_exec() {
    is_kept_to_its_budget("exec");
}

#[test]
fn a_daemon_stays_a_member() {
    is_kept_to_its_budget("daemon");
}

#[test]
fn a_command_that_changes_its_policy_stays_a_member() {
    is_kept_to_its_budget("demote");
}

#[test]
fn a_command_that_changes_its_affinity_stays_a_member() {
    is_kept_to_its_budget("escape");
}

/// A debugger that has stopped a task, and is stopped itself.
#[test]
fn a_stopped_debugger_stops_its_task_and_no_other() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let words = adversarial("spin");
    let own = KernelsOwn::watch();
    let run = start(&scratch.file("set.toml", &beside(&words)), &["--duration", "1s"]);
    let tasks = run.tasks_after(2, 50_000_000);
    let is_command = |pid: &&u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|c| c.ends_with(b"adversarial:spin\0"))
    };
    let traced = *tasks.iter().find(is_command).expect("the command");
    let debugger = debugger_of(traced);
    let at_stop = executed(traced);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(executed(traced), at_stop, "it is stopped");
    // SAFETY: a child of ours that was not waited for.
    unsafe {
        libc::kill(debugger, libc::SIGKILL);
        libc::waitpid(debugger, std::ptr::null_mut(), 0);
    }
    until("it continues", || executed(traced) > at_stop + 10_000_000);
    let results = results(&run.output());
    keeps_its_budget(task(&results, "spinning"), check::precision(&own));
    // In the periods in which it was stopped and let go it had less.
    let received = &task(&results, "command")["budget_received"];
    assert!(
        received["median_ppm"].as_u64().is_some_and(|m| m.abs_diff(1_000_000) <= 5_000),
        "{received:#}"
    );
}

/// A process that has stopped another by ptrace, and is stopped.
pub fn debugger_of(traced: u32) -> i32 {
    // SAFETY: the child makes system calls only, and leaves by _exit.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let traced = traced as i32;
            let seized = libc::ptrace(libc::PTRACE_SEIZE, traced, 0, 0);
            let asked = libc::ptrace(libc::PTRACE_INTERRUPT, traced, 0, 0);
            let stopped = libc::waitpid(traced, std::ptr::null_mut(), libc::__WALL);
            if seized != 0 || asked != 0 || stopped != traced {
                libc::_exit(1);
            }
            libc::raise(libc::SIGSTOP);
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, libc::WUNTRACED), child);
        assert!(libc::WIFSTOPPED(status), "it could not attach: {status}");
        child
    }
}

#[test]
fn a_running_process_is_adopted_with_its_threads_and_continues_afterwards() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let adopted = companion("family");
    until("it executes", || executed_by(&family(adopted.id())) > 20_000_000);
    // The loader has no budget while it loads.
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PGRP, adopted.id(), 19) }, 0);
    let all = family(adopted.id());
    let run = adopt(&adopted, "--period 10ms --budget 3ms --load --duration 1400ms");
    scheduler_becomes("enabled");
    // A thread that waits for its turn among all others is the task's from that turn on.
    std::thread::sleep(std::time::Duration::from_millis(800));
    let before = executed_by(&all);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let meanwhile = executed_by(&all) - before;
    assert_eq!(results(&run.output())["tasks"][0]["misses"], 0);
    assert!((54_000_000..=66_000_000).contains(&meanwhile), "{meanwhile} ns of 60 ms");
    assert!(all.iter().all(|&pid| is_ordinary(pid)), "{all:?}");
    keep_executing(&all);
}

#[test]
fn a_process_with_a_real_time_thread_is_not_adopted() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let victim = companion("victim");
    until("its thread is in SCHED_RR", || {
        let rr = |thread: &u32| {
            // SAFETY: a system call without memory.
            let policy = unsafe { libc::sched_getscheduler(*thread as i32) };
            policy >= 0 && policy & 0xff == libc::SCHED_RR
        };
        crate::machine::threads_of(victim.id()).iter().any(rr)
    });
    let pid = victim.id().to_string();
    let output =
        run(&["--period", "10ms", "--budget", "3ms", "--duration", "100ms", "--pid", &pid])
            .output();
    assert!(matches!(output.status.code(), Some(2 | 4)), "{}", words_of(&output));
    let said = words_of(&output);
    assert!(said.contains("SCHED_RR") || said.contains("real-time"), "{said}");
}

#[test]
fn a_command_runs_to_its_end() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let text: String =
        (0..20_000u32).map(|n| format!("{} ", n.wrapping_mul(2_654_435_761))).collect();
    let file = scratch.file("numbers", &text);
    let name = file.to_str().expect("plain");
    let words = [
        "--period", "20ms", "--budget", "5ms", "--cpu", "0", "--load", "--", "xz", "-k", "-T2",
        name,
    ];
    let output = run(&words).output();
    let results = results(&output);
    assert!(results["tasks"][0]["periods"].as_u64() >= Some(5), "{results:#}");
    let unpacked =
        Command::new("xz").args(["-dc", &format!("{name}.xz")]).output().expect("xz is there");
    assert_eq!(String::from_utf8_lossy(&unpacked.stdout), text);
}

#[test]
fn a_run_exits_as_its_command_did() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let words = |role| adversarial(role);
    let named = |name: &str| vec![name.to_owned()];
    for (command, code) in [
        (words("exit 30 0"), 0),
        (words("exit 30 3"), 3),
        (["sh", "-c", "kill -TERM $$"].map(str::to_owned).to_vec(), 128 + libc::SIGTERM),
        (named("no-such-program"), 127),
        (named("/tmp"), 126),
    ] {
        let mut all = vec!["--period", "10ms", "--budget", "3ms", "--cpu", "0", "--"];
        all.extend(command.iter().map(String::as_str));
        says(&run(&all).output(), code, &[&format!("\"exit_code\": {code}")]);
    }
}

#[test]
fn an_overrun_is_signalled() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let script = "trap 'echo overrun' XCPU; while :; do :; done";
    let words: Vec<String> = ["sh", "-c", script].map(str::to_owned).to_vec();
    let text = beside(&words)
        .replace("name = \"command\"\n", "name = \"command\"\noverrun = \"signal\"\n");
    let own = KernelsOwn::watch();
    let output = start(&scratch.file("set.toml", &text), &["--load"]).output();
    keeps_its_budget(task(&results(&output), "spinning"), check::precision(&own));
    let said = String::from_utf8_lossy(&output.stderr).matches("overrun\n").count();
    // One for each of 50 periods.
    assert!((45..=51).contains(&said), "{said} signals: {}", words_of(&output));
}

#[test]
fn a_task_that_overran_continues_in_the_background() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let text = beside(&adversarial("spin"))
        .replace("name = \"command\"\n", "name = \"command\"\noverrun = \"background\"\n");
    let path = scratch.path("trace");
    let _load = companion("spin");
    let own = KernelsOwn::watch();
    let run = start(&scratch.file("set.toml", &text), &["--trace", path.to_str().expect("plain")]);
    let tasks = run.tasks_after(2, 20_000_000);
    let before = executed_by(&tasks);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let meanwhile = executed_by(&tasks) - before;
    let results = results(&run.output());
    keeps_its_budget(task(&results, "spinning"), check::precision(&own));
    replays(&path);
    // 70 % by budgets; of the rest half, beside the load.
    assert!((155_000_000..=185_000_000).contains(&meanwhile), "{meanwhile} ns of 200 ms");
}

#[test]
fn a_run_ends_with_its_commands() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let text = beside(&adversarial("exit 30 3")).replace("duration = \"500ms\"\n", "");
    let (_, command) = text.split_once("[[task]]\nname = \"command\"").expect("two tasks");
    let text = format!("cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"command\"{command}");
    let output = start(&scratch.file("set.toml", &text), &["--load"]).output();
    assert!(
        task(&results(&output), "command")["periods"].as_u64() >= Some(1),
        "{}",
        words_of(&output)
    );
}

#[test]
fn an_interrupted_run_ends_its_tasks() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run =
        start(&scratch.file("set.toml", &beside(&adversarial("family"))), &["--duration", "60s"]);
    run.tasks_after(2, 20_000_000);
    let all: Vec<u32> = children(run.id()).into_iter().flat_map(family).collect();
    run.send(libc::SIGINT);
    says(&run.output(), 130, &[]);
    until("they are dead", || all.iter().all(|&pid| is_dead(pid)));
}
