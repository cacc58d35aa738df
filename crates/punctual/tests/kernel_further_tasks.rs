//! Tasks that come, change and go while a set runs inside the kernel. Needs sched_ext: `vm/tests`.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{cpu, turn, MS};
use punctual::{ErrorKind, Host, Parameters, Punctual, Running, TaskEnd};
use punctual_sys::clock::CpuClock;
use punctual_test_support::{comes_true, has_sched_ext, judge_timing};

/// A set without tasks, and one CPU-bound process beside it.
fn start() -> Option<(Running, Other)> {
    if !has_sched_ext() {
        return None;
    }
    let set = Punctual::on_cpu(cpu()).host(Host::Kernel).forget_ended();
    let running = set.admit().expect("it fits").start().expect("it starts");
    Some((running, Other::start("while :; do :; done")))
}

/// A program of our own that the set may adopt.
struct Other(Child);

impl Other {
    fn start(script: &str) -> Other {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Other(shell.spawn().expect("a shell"))
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Its share of the CPU in this time, per cent.
    fn share(&self, time: Duration) -> f64 {
        let clock = CpuClock::of_process(self.pid());
        let before = clock.read().expect("it lives");
        std::thread::sleep(time);
        (clock.read().expect("it lives") - before) as f64 / time.as_nanos() as f64 * 100.0
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn assert_share(other: &Other, per_cent: f64) {
    let share = other.share(500 * MS);
    judge_timing(|| assert!((share - per_cent).abs() < 1.0, "{share} % and not {per_cent} %"));
}

#[test]
fn a_process_has_its_budget_and_no_more_until_it_is_stopped_and_is_an_ordinary_one_then() {
    let _turn = turn();
    let Some((running, beside)) = start() else { return };
    let other = Other::start("while :; do :; done");
    let task = running.task("other").period(10 * MS).budget(2 * MS).pid(other.pid());
    let task = task.expect("it fits");
    std::thread::sleep(50 * MS);
    assert_share(&other, 20.0);
    task.set_budget(4 * MS).expect("it fits");
    std::thread::sleep(50 * MS);
    assert_share(&other, 40.0);
    let too_long = task.change(&Parameters::new().period(30_000 * MS)).expect_err("20 s at most");
    assert_eq!(too_long.kind, ErrorKind::Usage, "{too_long}");
    task.change(&Parameters::new().period(20 * MS).deadline(15 * MS)).expect("it fits");
    std::thread::sleep(50 * MS);
    assert_share(&other, 20.0);
    task.stop().expect("it runs");
    assert_eq!(task.wait(), TaskEnd::Stopped);
    // Half of the CPU, as the other one.
    std::thread::sleep(50 * MS);
    assert_share(&other, 50.0);
    let again = running.task("other").period(10 * MS).budget(1 * MS).pid(other.pid());
    let again = again.expect("the name and the process are free");
    std::thread::sleep(50 * MS);
    assert_share(&other, 10.0);
    drop(other);
    assert_eq!(again.wait(), TaskEnd::Gone);
    drop(beside);
    assert!(running.stop().expect("it runs").results.tasks.is_empty());
}

#[test]
fn a_command_is_waited_for_and_one_that_is_stopped_is_killed() {
    let _turn = turn();
    let Some((running, _beside)) = start() else { return };
    let command = |name: &str, script: &str| {
        let task = running.task(name).period(10 * MS).budget(2 * MS);
        task.command(["sh", "-c", script]).expect("it fits")
    };
    assert_eq!(command("short", "exit 3").wait(), TaskEnd::Exited(3));
    let endless = command("endless", "while :; do :; done");
    std::thread::sleep(100 * MS);
    endless.stop().expect("it runs");
    assert_eq!(endless.wait(), TaskEnd::Signalled(libc::SIGKILL));
    let missing = running.task("none").period(10 * MS).budget(2 * MS).command(["/no/such/program"]);
    assert_eq!(missing.expect_err("it is not there").errno, Some(libc::ENOENT));
    assert!(running.alive().expect("it runs").is_empty());
}

#[test]
fn more_tasks_than_the_kernel_has_room_for_may_come_one_after_another() {
    let _turn = turn();
    let Some((running, _beside)) = start() else { return };
    let sleeping = Other::start("sleep 1000");
    for n in 0..300 {
        let task = running.task(format!("{n}")).period(10 * MS).budget(MS).pid(sleeping.pid());
        task.expect("it fits").stop().expect("it runs");
        assert!(comes_true(|| running.alive().is_ok_and(|alive| alive.is_empty())), "{n}");
    }
    assert!(running.results().expect("it runs").tasks.is_empty());
}
