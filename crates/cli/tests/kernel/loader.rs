//! The loader stopped, killed, and met by a second one.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::budgets::TWO;
use crate::kernels_own::KernelsOwn;
use crate::machine::{
    executed_by, is_dead, is_ordinary, is_stopped, pids, scheduler_becomes, until, Machine,
};
use crate::punctual::{
    adversarial, keeps_its_budget, results, says, start, task, Running, Scratch, PUNCTUAL,
};
use crate::tasks::beside;

#[test]
fn reservations_continue_while_the_loader_is_stopped_for_a_second() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let own = KernelsOwn::watch();
    let run = start(&scratch.file("stopped.toml", TWO), &[]);
    let tasks = run.tasks_after(2, 100_000_000);
    run.send(libc::SIGSTOP);
    let before = executed_by(&tasks);
    std::thread::sleep(Duration::from_secs(1));
    let meanwhile = executed_by(&tasks) - before;
    run.send(libc::SIGCONT);
    let results = results(&run.output());
    // 500 ms and 120 ms.
    assert!(
        (610_000_000..=640_000_000).contains(&meanwhile),
        "{meanwhile} ns by the kernel's count"
    );
    keeps_its_budget(task(&results, "spinning"), 10_000 + own.longest_soft_interrupt());
    assert!(task(&results, "spinning")["periods"].as_u64() >= Some(990), "{results:#}");
}

/// As a shell does it: the whole process group gets the signal, and then the one that continues it.
#[test]
fn reservations_continue_after_ctrl_z_and_so_does_the_loader_after_fg() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let own = KernelsOwn::watch();
    let mut command = Command::new(&*PUNCTUAL);
    command.args(["run", "--host", "kernel", "--json", "--overload"]);
    command.arg(scratch.file("stopped.toml", TWO)).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Running::of(command.spawn().expect("it was built"));
    let tasks = run.tasks_after(2, 100_000_000);
    let group = |signal| {
        // SAFETY: a system call without memory; the group of a child that was not waited for.
        assert_eq!(unsafe { libc::kill(-(run.id() as i32), signal) }, 0);
    };
    group(libc::SIGTSTP);
    until("it is stopped", || is_stopped(run.id()));
    let before = executed_by(&tasks);
    std::thread::sleep(Duration::from_millis(500));
    let meanwhile = executed_by(&tasks) - before;
    assert!(is_stopped(run.id()));
    group(libc::SIGCONT);
    // 250 ms and 60 ms.
    assert!(
        (305_000_000..=320_000_000).contains(&meanwhile),
        "{meanwhile} ns by the kernel's count"
    );
    let results = results(&run.output());
    keeps_its_budget(task(&results, "spinning"), 10_000 + own.longest_soft_interrupt());
}

#[test]
fn a_killed_loader_leaves_neither_scheduler_nor_tasks() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.may_end_itself();
    let scratch = Scratch::new();
    let run = start(&scratch.file("killed.toml", TWO), &[]);
    let tasks = run.tasks_after(2, 20_000_000);
    run.send(libc::SIGKILL);
    assert_eq!(run.output().status.code(), None, "it was killed");
    scheduler_becomes("disabled");
    until("the tasks are dead", || tasks.iter().all(|&pid| is_dead(pid)));
    assert!(is_ordinary(std::process::id()));
}

/// Its guardian ends what its commands have started: an orphan among them, which has no parent to
/// die with.
#[test]
fn a_loader_killed_at_any_instant_leaves_nothing_of_its_commands() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.may_end_itself();
    let scratch = Scratch::new();
    let set = scratch.file("commands.toml", &beside(&adversarial("family")));
    let remains = || {
        let command_line =
            |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        pids()
            .into_iter()
            .filter(|pid| !is_dead(*pid))
            .any(|pid| command_line(&pid).contains("adversarial:family"))
    };
    let journals = |of: u32, names: &str| {
        let counts = |entry: std::fs::DirEntry| {
            entry.file_name().to_str().is_some_and(|name| name.starts_with(&format!("{of}-")))
                && std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(names))
        };
        std::fs::read_dir("/run/punctual").into_iter().flatten().flatten().any(counts)
    };
    let mut loaders = Vec::new();
    for delay in [Some(0), Some(5), Some(20), Some(80), None] {
        let run = start(&set, &["--duration", "60s"]);
        match delay {
            Some(ms) => std::thread::sleep(Duration::from_millis(ms)),
            None => drop(run.tasks_after(2, 20_000_000)),
        }
        let loader = run.id();
        run.send(libc::SIGKILL);
        assert_eq!(run.output().status.code(), None, "it was killed");
        scheduler_becomes("disabled");
        until("the commands are dead", || !remains());
        // Killed before it had a guardian, it leaves one that names none until `clean`
        // (docs/faults.md).
        let names = if delay.is_some() { "\"guardian\"" } else { "" };
        until("its journal is gone", || !journals(loader, names));
        loaders.push(loader);
    }
    let clean = Command::new(&*PUNCTUAL).arg("clean").status();
    assert!(clean.expect("it was built").success());
    assert!(!loaders.into_iter().any(|loader| journals(loader, "")), "clean left a journal");
}

/// No dispatcher begins among the commands of another one, whose guardian has not got to them yet.
#[test]
fn a_cpu_stays_taken_until_a_killed_loaders_guardian_has_ended_its_commands() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.may_end_itself();
    let scratch = Scratch::new();
    let run = start(
        &scratch.file("commands.toml", &beside(&adversarial("spin"))),
        &["--duration", "60s"],
    );
    run.tasks_after(2, 20_000_000);
    let guardian = crate::timer::guardian_of(&run).expect("it has commands");
    crate::timer::send(guardian, libc::SIGSTOP);
    run.send(libc::SIGKILL);
    assert_eq!(run.output().status.code(), None, "it was killed");
    let set = scratch.file("next.toml", TWO);
    says(
        &start(&set, &["--duration", "20ms"]).output(),
        4,
        &["CPU 0 belonged to process", "which is gone", "still held"],
    );
    crate::timer::send(guardian, libc::SIGCONT);
    until("the guardian is done", || is_dead(guardian));
    results(&start(&set, &["--duration", "20ms"]).output());
}

#[test]
fn a_second_scheduler_is_refused_beside_the_first() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let set = scratch.file("second.toml", TWO);
    let own = KernelsOwn::watch();
    let first = start(&set, &["--duration", "1s"]);
    first.tasks_after(2, 1);
    let second = start(&set, &[]).output();
    says(&second, 4, &["another sched_ext scheduler"]);
    keeps_its_budget(
        task(&results(&first.output()), "spinning"),
        10_000 + own.longest_soft_interrupt(),
    );
}
