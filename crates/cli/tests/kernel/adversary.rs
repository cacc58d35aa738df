//! Programs that make it hard for a scheduler to come, to stay or to go: none of them stops the
//! machine, keeps a run from ending, or is left where it was not before.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::machine::{
    children, executed, is_dead, keep_executing, preempt_rt, scheduler_becomes, set_affinity,
    until, Machine,
};
use crate::punctual::{
    adopt, companion, executing_companion, results, run_role, says, start, task, words_of, Running,
    Scratch, PUNCTUAL,
};

/// A task of 3 ms in 10 ms with this program as its command, for so long.
fn commanded(duration: &str, role: &str) -> Running {
    run_role(&format!("--period 10ms --budget 3ms --cpu 0 --duration {duration}"), role)
}

fn ends_in_some_way(run: Running) {
    let output = run.output();
    // 124: it was a command, and the duration ended it.
    assert!(matches!(output.status.code(), Some(0 | 1 | 124)), "{}", words_of(&output));
    scheduler_becomes("disabled");
}

/// Up to Linux 6.18 a task that is created while a scheduler ends is above all others, the kernel's
/// own threads that it waits for among them.
#[test]
fn a_program_that_is_always_new_keeps_no_scheduler_from_going() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.may_end_itself();
    let before = rcu();
    let _newest = companion("newest");
    for _ in 0..2 {
        ends_in_some_way(commanded("30ms", "spin"));
    }
    let killed = commanded("60s", "spin");
    scheduler_becomes("enabled");
    killed.send(libc::SIGKILL);
    drop(killed.output());
    scheduler_becomes("disabled");
    until("RCU's threads are as before", || rcu() == before);
}

/// The policies of RCU's threads, which have another one while a scheduler goes.
fn rcu() -> Vec<i32> {
    let rcu = crate::machine::pids()
        .into_iter()
        .filter(|&pid| crate::machine::name(pid).starts_with("rcu"));
    // SAFETY: a system call without memory.
    rcu.map(|pid| unsafe { libc::sched_getscheduler(pid as i32) }).collect()
}

#[test]
fn an_adopted_program_that_changes_its_policy_all_the_time_continues_afterwards() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let adopted = executing_companion("policies");
    ends_in_some_way(adopt(&adopted, "--period 10ms --budget 3ms --duration 100ms"));
    keep_executing(&[adopted.id()]);
}

/// The fork of a member that is killed in the middle of it makes no member.
#[test]
fn a_run_ends_after_forks_that_failed() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    ends_in_some_way(run_role("--period 10ms --budget 5ms --cpu 0", "shot-forks"));
}

/// Sixty threads that share 1 ms in each second: the kernel ends a scheduler that lets one of them
/// wait for 30 s.
#[test]
fn many_threads_on_a_small_budget_all_have_turns() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let words = "--period 1s --budget 1ms --cpu 0 --duration 34s";
    ends_in_some_way(run_role(words, "spin-threads 60"));
}

/// For longer than the rings last: the oldest events are there then, and the newest records.
#[test]
fn a_loader_stopped_for_long_tells_no_period_wrongly() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let one = |name: &str, period: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nbudget = \"50us\"\n\
             work = {{ spin = \"forever\" }}\n"
        )
    };
    let set = format!("cpu = 0\npolicy = \"edf\"\n{}{}", one("often", "1ms"), one("seldom", "5ms"));
    let run = start(&scratch.file("set.toml", &set), &["--duration", "9s"]);
    run.tasks_after(2, 1_000_000);
    run.send(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(8));
    run.send(libc::SIGCONT);
    let output = run.output();
    let results = results(&output);
    assert!(words_of(&output).contains("events had no room"), "{}", words_of(&output));
    for name in ["often", "seldom"] {
        let task = task(&results, name);
        let figure = |key: &str| {
            task["budget_received"][key].as_u64().unwrap_or_else(|| panic!("no {key}: {task:#}"))
        };
        assert!(figure("periods") > 50 && figure("worst_ppm") < 1_200_000, "{task:#}");
        assert!(
            task["long_run_ppm"].as_u64().is_some_and(|m| m.abs_diff(1_000_000) < 20_000),
            "{task:#}"
        );
    }
}

#[test]
fn too_few_open_files_are_named_with_their_help() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let mut command = Command::new(&*PUNCTUAL);
    command.args(["run", "--host", "kernel", "--period", "10ms", "--budget", "3ms", "--", "true"]);
    let limit = || {
        let few = libc::rlimit { rlim_cur: 20, rlim_max: 20 };
        // SAFETY: a valid limit, between fork and exec.
        match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: what it calls may be called there.
    unsafe { command.pre_exec(limit) };
    says(&command.output().expect("it was built"), 125, &["Too many open files", "ulimit -n"]);
}

/// The debugger has to wait for a killed process that it traces; a stopped debugger does not.
#[test]
fn a_run_ends_beside_a_stopped_debugger() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let run = commanded("300ms", "spin");
    let tasks = run.tasks_after(1, 5_000_000);
    let debugger = crate::tasks::debugger_of(tasks[0]);
    ends_in_some_way(run);
    // SAFETY: a child of ours that was not waited for.
    unsafe {
        libc::kill(debugger, libc::SIGKILL);
        libc::waitpid(debugger, std::ptr::null_mut(), 0);
    }
    until("its task is dead", || is_dead(tasks[0]));
}

/// While it starts, loads, attaches, runs, ends.
#[test]
fn a_loader_killed_at_any_instant_leaves_nothing() {
    const INSTANTS: u32 = 8;
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.may_end_itself();
    let before = rcu();
    let commanded = || commanded("150ms", "spin-threads 3");
    let begun = Instant::now();
    ends_in_some_way(commanded());
    let life = begun.elapsed();
    for instant in 0..INSTANTS {
        let run = commanded();
        // Most of its life passes before the scheduler is there.
        std::thread::sleep(life / 4 + life * 3 / 4 * instant / INSTANTS);
        let tasks = children(run.id());
        run.send(libc::SIGKILL);
        drop(run.output());
        scheduler_becomes("disabled");
        until("its processes are dead", || tasks.iter().all(|&pid| is_dead(pid)));
    }
    until("RCU's threads are as before", || rcu() == before);
}

/// An adopted program runs on another CPU when it joins, where no other task wants to run.
#[test]
fn two_cpus_a_program_that_runs_elsewhere_is_adopted_all_the_same() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let adopted = companion("spin");
    let elsewhere = || {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", adopted.id())).unwrap_or_default();
        // The 39th field; the second one may hold anything.
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.split_whitespace().nth(36))
            .is_some_and(|cpu| cpu == "1")
    };
    set_affinity(adopted.id(), &[1]);
    until("it runs on CPU 1", || executed(adopted.id()) > 5_000_000 && elsewhere());
    set_affinity(adopted.id(), &[0, 1]);
    let run = adopt(&adopted, "--period 10ms --budget 3ms --duration 60s");
    scheduler_becomes("enabled");
    std::thread::sleep(Duration::from_millis(100));
    let (since, before) = (Instant::now(), executed(adopted.id()));
    until("30 % of a CPU", || {
        std::thread::sleep(Duration::from_millis(100));
        let share = u128::from(executed(adopted.id()) - before) * 100 / since.elapsed().as_nanos();
        (20..=40).contains(&share)
    });
    run.send(libc::SIGINT);
    let output = run.output();
    assert_eq!(output.status.code(), Some(130), "{}", words_of(&output));
    scheduler_becomes("disabled");
}

#[test]
fn two_cpus_two_loaders_at_once_are_one_run_and_one_refusal() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    // Longer than loading takes, by which one of them may be behind.
    let words = "--period 10ms --budget 3ms --duration 5s --cpu";
    let both = [0, 1].map(|cpu| run_role(&format!("{words} {cpu}"), "spin"));
    let both = both.map(Running::output);
    let refused = both.iter().position(|o| o.status.code() == Some(125));
    let refused = refused
        .unwrap_or_else(|| panic!("none is refused: {}", both.each_ref().map(words_of).join("\n")));
    says(&both[refused], 125, &["another sched_ext scheduler"]);
    let other = &both[1 - refused];
    assert_eq!(other.status.code(), Some(124), "{}", words_of(other));
}

/// Another CPU changes nice value, policy and affinity of a task's threads while they run.
#[test]
fn two_cpus_one_of_which_changes_the_others_threads_all_the_time() {
    let Some(mut machine) = Machine::with_two_cpus() else { return };
    machine.may_end_itself();
    let adopted = executing_companion("spin-threads 3");
    let run = adopt(&adopted, "--period 10ms --budget 3ms --duration 400ms");
    scheduler_becomes("enabled");
    let threads = crate::machine::threads_of(adopted.id());
    let policies = [libc::SCHED_BATCH, libc::SCHED_IDLE, libc::SCHED_OTHER];
    let mut changes = 0;
    while crate::machine::state().as_deref() == Some("enabled") {
        for &thread in &threads {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: a valid parameter, and no memory.
            unsafe {
                libc::setpriority(libc::PRIO_PROCESS, thread, changes % 20);
                libc::sched_setscheduler(thread as i32, policies[changes as usize % 3], &none);
            }
            set_affinity(thread, if changes % 2 == 0 { &[0] } else { &[0, 1] });
            changes += 1;
        }
    }
    let output = run.output();
    // There each change wakes the timer process, which is not to eat the CPU.
    if preempt_rt() && output.status.code() == Some(5) {
        says(&output, 5, &["timer process", "more than half of the CPU"]);
    } else {
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words_of(&output));
    }
    scheduler_becomes("disabled");
    assert!(changes > 100, "{changes} changes");
    keep_executing(&[adopted.id()]);
}
