//! What is refused before anything starts. Needs no privileges.

use std::time::Duration;

use punctual::{ErrorKind, Overrun, Policy, Ppm, Punctual};

const MS: Duration = Duration::from_millis(1);

fn one(name: &str, period: Duration, budget: Duration) -> Punctual {
    Punctual::on_cpu(0).task(name).period(period).budget(budget).spawn(|_| {})
}

#[track_caller]
fn refused(set: Punctual, kind: ErrorKind, cause: &str, help: &str) {
    let e = set.admit().expect_err("it should be refused");
    assert_eq!(e.kind, kind, "{e}");
    assert!(e.cause.contains(cause) && e.help.contains(help), "{e}");
}

#[test]
fn ninety_percent_is_admitted_and_a_nanosecond_more_is_not() {
    let admitted = one("a", 10 * MS, 9 * MS).admit().expect("it fits");
    assert_eq!(admitted.loads()[0].utilization, Ppm(900_000));
    let more = 9 * MS + Duration::from_nanos(1);
    refused(one("a", 10 * MS, more), ErrorKind::NotAdmitted, "CPU 0", "\"a\"");
    assert_eq!(one("a", 10 * MS, more).admit().expect_err("refused").exit_code(), 3);
    let loads = one("a", 10 * MS, more).overload().admit().expect("overridden").loads().to_vec();
    assert!(loads[0].utilization > Ppm(900_000));
}

#[test]
fn what_the_dispatcher_takes_and_can_enforce_is_part_of_admission() {
    let us = Duration::from_micros;
    refused(
        one("tiny", MS, us(10)),
        ErrorKind::NotAdmitted,
        "task \"tiny\": its budget of 10 us",
        "at least 60 us",
    );
    // 80 % of the CPU, but 10,000 releases and ends of budgets in each second.
    refused(one("fast", us(100), us(80)), ErrorKind::NotAdmitted, "CPU 0", "\"fast\"");
    assert!(one("slow", 100 * MS, 80 * MS).admit().is_ok());
}

#[test]
fn each_cpu_is_admitted_by_itself() {
    let set = |cpu| {
        let set =
            Punctual::on_cpus([0, 1]).task("a").cpu(0).period(10 * MS).budget(6 * MS).spawn(|_| {});
        set.task("b").cpu(cpu).period(10 * MS).budget(6 * MS).spawn(|_| {})
    };
    assert_eq!(set(1).admit().expect("they fit").loads().len(), 2);
    refused(set(0), ErrorKind::NotAdmitted, "CPU 0", "");
    refused(set(7), ErrorKind::Usage, "CPU 7 is not one of the set's", "use one of those");
    let unplaced = Punctual::on_cpus([0, 1]).task("a").period(10 * MS).budget(MS).spawn(|_| {});
    refused(unplaced, ErrorKind::Usage, "does not say on which", ".cpu(0)");
    refused(Punctual::on_cpus([]), ErrorKind::Usage, "no CPU", "at least one");
}

#[test]
fn times_out_of_range_are_refused_with_the_tasks_name() {
    let usage = ErrorKind::Usage;
    refused(
        one("servo", MS, 2 * MS),
        usage,
        "task \"servo\": budget 2 ms is more than its period 1 ms",
        "at most",
    );
    refused(one("servo", Duration::ZERO, MS), usage, "task \"servo\": period 0 ns", "at least");
    refused(one("servo", MS, Duration::ZERO), usage, "the budget is 0", "");
    refused(one("servo", Duration::MAX, MS), usage, "the period is too long", "2^62");
    let late =
        Punctual::on_cpu(0).task("t").period(MS).budget(MS / 4).deadline(2 * MS).spawn(|_| {});
    refused(late, usage, "deadline 2 ms is more than its period 1 ms", "");
    let far =
        Punctual::on_cpu(0).task("t").period(MS).budget(MS / 4).start(Duration::MAX).spawn(|_| {});
    refused(far, usage, "the start is too long", "");
}

#[test]
fn what_is_missing_is_named() {
    let usage = ErrorKind::Usage;
    refused(
        Punctual::on_cpu(0).task("t").budget(MS).spawn(|_| {}),
        usage,
        "lacks a period",
        ".period(",
    );
    refused(
        Punctual::on_cpu(0).task("t").period(MS).spawn(|_| {}),
        usage,
        "lacks a budget",
        ".budget(",
    );
    let fixed = Punctual::on_cpu(0).policy(Policy::FixedPriority);
    refused(
        fixed.task("t").period(MS).budget(MS / 2).spawn(|_| {}),
        usage,
        "needs its priority",
        ".priority(",
    );
}

#[test]
fn names_are_unique_and_the_first_fault_is_reported() {
    let twice = one("a", 10 * MS, MS).task("a").period(10 * MS).budget(MS).spawn(|_| {});
    refused(twice, ErrorKind::Usage, "two tasks \"a\"", "another name");
    let both = one("first", MS, 2 * MS).task("second").period(MS).budget(2 * MS).spawn(|_| {});
    refused(both, ErrorKind::Usage, "first", "");
    refused(one("", MS, MS / 2), ErrorKind::Usage, "name of a task is empty", "");
    refused(
        one("a", MS, MS / 2).policy(Policy::RateMonotonic),
        ErrorKind::Usage,
        "policy is given after",
        "before",
    );
    let many =
        one("a", MS, MS / 10).task_limit(1).task("b").period(MS).budget(MS / 10).spawn(|_| {});
    refused(many, ErrorKind::Usage, "one more than the limit", ".task_limit()");
    refused(one("a", MS, MS / 10).task_limit(0), ErrorKind::Usage, "task limit of 0", "");
}

#[test]
fn an_empty_command_and_an_impossible_pid_are_refused() {
    let none: [&str; 0] = [];
    let draft = || Punctual::on_cpu(0).task("t").period(10 * MS).budget(MS);
    refused(draft().command(none), ErrorKind::Usage, "command is empty", "");
    refused(draft().pid(0), ErrorKind::Usage, "pid 0 is out of range", "");
}

/// Its default action would end the program. (No test of this binary installs a handler.)
#[test]
fn an_overrun_signal_without_a_handler_is_refused() {
    let draft =
        || Punctual::on_cpu(0).task("t").period(10 * MS).budget(MS).overrun(Overrun::Signal);
    refused(draft().spawn(|_| {}), ErrorKind::Usage, "SIGXCPU has no handler", "install one");
    assert!(draft().command(["true"]).admit().is_ok(), "a command installs its own");
}
