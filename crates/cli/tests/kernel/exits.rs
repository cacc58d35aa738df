//! The scheduler is ended while it runs: the program names the cause, all tasks are in the normal
//! class, and an adopted process continues.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::budgets::TWO;
use crate::machine::{
    executed, is_ordinary, keep_executing, scheduler_becomes, set_affinity, until, Machine,
};
use crate::punctual::{
    adopt, companion, executing_companion, results_with, says, start, task, Running, Scratch,
};

const ENDED: i32 = 5;

/// An adopted process, and the run that gives it 3 ms in every 10.
fn adopting() -> (Running, Running) {
    let adopted = executing_companion("spin-threads 2");
    let run = adopt(&adopted, "--period 10ms --budget 3ms --duration 4s");
    scheduler_becomes("enabled");
    (run, adopted)
}

fn goes_on(adopted: &Running) {
    for thread in crate::machine::threads_of(adopted.id()) {
        assert!(is_ordinary(thread), "thread {thread}");
    }
    keep_executing(&[adopted.id()]);
}

#[test]
fn sysrq_s_ends_it_with_a_word() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("disabled by sysrq-S");
    let (run, adopted) = adopting();
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write("/proc/sysrq-trigger", "S").expect("root may");
    says(&run.output(), ENDED, &["SysRq", "normal class"]);
    goes_on(&adopted);
}

/// On SysRq-D the kernel prints its own state and, by ops.dump and ops.dump_task, the scheduler's.
#[test]
fn a_dump_names_the_domain_and_its_runnable_task_and_ends_nothing() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let tracer = std::path::PathBuf::from("/sys/kernel/tracing/instances/punctual-dump");
    std::fs::create_dir(&tracer).expect("tracefs is mounted");
    std::fs::write(tracer.join("events/sched_ext/sched_ext_dump/enable"), "1")
        .expect("tracefs takes it");
    let scratch = Scratch::new();
    let run = start(&scratch.file("two.toml", TWO), &["--duration", "2s"]);
    run.tasks_after(2, 20_000_000);
    std::fs::write("/proc/sysrq-trigger", "D").expect("root may");
    let dump = || std::fs::read_to_string(tracer.join("trace")).expect("what was printed");
    until("the dump is whole", || dump().contains("Event counters"));
    let dump = dump();
    for words in ["domain 0, CPU 0: now", "selected: job 0x", "allocators", "domain 0, task 0:"] {
        assert!(dump.contains(words), "no \"{words}\" in:\n{dump}");
    }
    results_with(&run.output(), 0);
    std::fs::remove_dir(&tracer).expect("it is ours");
}

/// A program that changes its policy while the scheduler goes is in the normal class before all
/// others, and above them (docs/kernel-host.md): all that the kernel waits for then has to have its
/// turns.
fn goes_beside_changes_of_policy(rounds: u64, end: fn(&Running, u64)) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    for round in 0..rounds {
        let changing = [(); 4].map(|()| companion("policies 0"));
        let run = adopt(&changing[0], "--period 1ms --budget 700us --duration 50ms");
        scheduler_becomes("enabled");
        end(&run, round);
        let ends = std::time::Instant::now();
        scheduler_becomes("disabled");
        // It lives for 60 s. What goes by itself takes some milliseconds, and 50 ms of the run are
        // to come.
        assert!(ends.elapsed() < Duration::from_secs(2), "gone after {:?}", ends.elapsed());
        drop(run);
    }
}

#[test]
fn it_goes_beside_a_program_that_changes_its_policy_all_the_time() {
    goes_beside_changes_of_policy(8, |_, _| {});
}

#[test]
fn it_goes_beside_a_program_that_changes_its_policy_all_the_time_when_its_loader_is_killed() {
    goes_beside_changes_of_policy(24, |run, round| {
        std::thread::sleep(Duration::from_micros(20_000 + 437 * round));
        run.send(libc::SIGKILL);
    });
}

/// Dual priority is decided in user space. While the loader is stopped no task gets jobs, its tasks
/// wait, and the kernel does not let them wait for more than its watchdog's time.
#[test]
fn the_watchdog_ends_it_with_a_word() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("runnable task stall");
    let scratch = Scratch::new();
    let run = start(
        &scratch.file("dual.toml", &TWO.replace("\"edf\"", "\"dual\"")),
        &["--duration", "60s"],
    );
    run.tasks_after(2, 10_000_000);
    run.send(libc::SIGSTOP);
    let waited = std::time::Instant::now();
    while crate::machine::state().as_deref() == Some("enabled") {
        assert!(waited.elapsed() < Duration::from_secs(90), "the watchdog never came");
        std::thread::sleep(Duration::from_millis(500));
    }
    run.send(libc::SIGCONT);
    says(&run.output(), ENDED, &["watchdog", "normal class"]);
}

#[test]
fn two_cpus_one_of_which_goes_end_it_with_a_word() {
    let Some(mut machine) = Machine::with_two_cpus() else { return };
    machine.expects("unregistered from BPF");
    let scratch = Scratch::new();
    let set = scratch.file("one.toml", &TWO.replace("cpu = 0", "cpu = 1"));
    let run = start(&set, &["--duration", "60s"]);
    run.tasks_after(2, 20_000_000);
    online(1, false);
    let output = run.output();
    online(1, true);
    says(&output, ENDED, &["CPU 1", "normal class"]);
}

#[test]
fn two_cpus_the_other_of_which_comes_and_goes_do_not_end_it() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let run = start(&scratch.file("zero.toml", TWO), &["--duration", "2s"]);
    run.tasks_after(2, 20_000_000);
    online(1, false);
    std::thread::sleep(Duration::from_millis(100));
    online(1, true);
    let results = untimed(&run.output());
    assert!(task(&results, "spinning")["periods"].as_u64() > Some(900), "{results:#}");
}

#[test]
fn two_cpus_have_a_dispatcher_each() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let text = on_both("10ms", "4ms", "500ms");
    let path = scratch.path("trace");
    let run = start(&scratch.file("both.toml", &text), &["--trace", path.to_str().expect("plain")]);
    let tasks = run.tasks_after(2, 40_000_000);
    for &pid in &tasks {
        assert!(executed(pid) > 0, "{pid}");
    }
    let results = untimed(&run.output());
    for name in ["first", "second"] {
        let figure = |key: &str| task(&results, name)[key].as_u64().expect("a figure");
        assert!(figure("received_ns") > figure("assigned_ns") / 2, "{results:#}");
    }
    for cpu in 0..2 {
        crate::punctual::replays(&scratch.path(&format!("trace.cpu{cpu}")));
    }
}

/// Each CPU's kernel is busy with forks of ordinary programs above which its dispatcher must stay.
#[test]
fn two_cpus_each_beside_a_fork_storm_have_a_dispatcher_each() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let storms = [0, 1].map(|cpu| {
        let storm = companion("fork-storm");
        set_affinity(storm.id(), &[cpu]);
        storm
    });
    let scratch = Scratch::new();
    let run = start(&scratch.file("both.toml", &on_both("20ms", "5ms", "2s")), &[]);
    let results = untimed(&run.output());
    drop(storms);
    for name in ["first", "second"] {
        let figure = |key: &str| task(&results, name)[key].as_u64().expect("a figure");
        assert!(figure("periods") > 90, "{results:#}");
        assert_eq!(figure("unreported"), 0, "{results:#}");
    }
}

/// A set with a task that spins on each of two CPUs.
fn on_both(period: &str, budget: &str, duration: &str) -> String {
    let one =
        format!("work = {{ spin = \"forever\" }}\nperiod = \"{period}\"\nbudget = \"{budget}\"\n");
    format!(
        "cpus = [0, 1]\ndomain = \"partitioned\"\npolicy = \"edf\"\nduration = \"{duration}\"\n\
         [[task]]\nname = \"first\"\ncpu = 0\n{one}[[task]]\nname = \"second\"\ncpu = 1\n{one}"
    )
}

/// Of two CPUs, which take turns in slices of the clock that is counted: deadlines say nothing.
fn untimed(output: &Output) -> Value {
    results_with(output, if output.status.code() == Some(1) { 1 } else { 0 })
}

fn online(cpu: u32, wanted: bool) {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    std::fs::write(path, if wanted { "1" } else { "0" }).expect("root may");
}
