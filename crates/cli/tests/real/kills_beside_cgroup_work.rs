//! Punctual, its guardian, or both killed while a freezer write waits for a lock of the kernel.

use std::process::{Child, Command};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use punctual_test_support::LIVENESS;

use crate::bounded::end_within;
use crate::cgroup_work::CgroupWork;
use crate::freezer_lock::write_waits;
use crate::kills::{set, NEEDS};
use crate::kills_both::{clean, CLEANING};
use crate::machine::{one_cpu, online, permitted, permitted_cpu, wait_for_cpu};
use crate::process::{attributes, eventually, kill, marked, name_of};
use crate::punctual::{adversarial, assert_nothing_left, list, Running, Scratch};
use crate::service::{Service, SERVICE_NEEDS};
use crate::service_threads::{request, Program};
use crate::victim::Victim;

/// A run of a synthetic task, a command and an adopted program, at an instant at which a write
/// waits. Where none is seen within two seconds (other processes may keep us from looking), at any
/// instant.
fn started(cpu: u32, round: u64, victim: &Victim, scratch: &Scratch) -> Running {
    wait_for_cpu(cpu);
    let file = scratch.file("set.toml", &set(cpu, round, victim.pid()));
    let mut punctual = Running::start(&["run", &file, "--quiet"]);
    punctual.wait_for("the adopted program", |_| !victim.is_as_before());
    punctual.wait_for("its guardian", |p| p.guardian().is_some());
    let end = Instant::now() + Duration::from_secs(2);
    while !write_waits(&punctual) && Instant::now() < end {}
    println!("round {round}: a write waits: {}", write_waits(&punctual));
    punctual
}

#[test]
fn punctual_killed_while_a_freezer_write_waits_leaves_nothing() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (scratch, victim) = (Scratch::new(), Victim::start());
    let work = CgroupWork::on(cpu.0);
    for round in 0..6 {
        let mut punctual = started(cpu.0, round, &victim, &scratch);
        kill(punctual.pid(), libc::SIGKILL);
        assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu.0]);
        punctual.reap();
        victim.assert_as_before();
    }
    drop(work);
}

/// The guardian has to fork, and a fork waits for the work on cgroups, which waits for a thread in
/// the middle of a fork, which waits for the CPU below a task that nothing bounds any more. On a
/// kernel that preempts no fork the thread got the lock in its sleep.
#[test]
fn punctual_killed_while_a_fork_waits_below_its_tasks_leaves_nothing() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let forks = Forks::below_the_tasks_of(cpu.0);
    let runaway = list(&["sh", "-c", "while :; do :; done"].map(str::to_owned));
    let set = format!(
        "cpu = {}\npolicy = \"edf\"\n[[task]]\nname = \"runaway\"\nperiod = \"4ms\"\n\
         budget = \"2500us\"\ncommand = {runaway}\n",
        cpu.0
    );
    let file = scratch.file("set.toml", &set);
    for _ in 0..8 {
        wait_for_cpu(cpu.0);
        let mut punctual = Running::start(&["run", &file, "--quiet"]);
        punctual.wait_for("its guardian", |p| p.guardian().is_some());
        punctual.wait_for("its command", |p| {
            marked(&p.mark).into_iter().any(|pid| name_of(pid) == "sh")
        });
        forks.until_one_waits();
        kill(punctual.pid(), libc::SIGKILL);
        assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu.0]);
        punctual.reap();
    }
}

/// The same of a single thread, which is in no cgroup of a task.
#[test]
fn the_service_killed_while_a_fork_waits_below_a_thread_gives_the_thread_back() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let forks = Forks::below_the_tasks_of(cpu.0);
    for _ in 0..4 {
        // It ends by itself after a minute, for which other tests may have the CPU.
        let program = Program::start("attack spin");
        let thread = program.second();
        let mut client = service.client();
        service.reserve(&mut client, &[request(program.pid(), Some(thread), 6_000_000)]);
        let policy = || attributes(thread).map(|a| a.policy & !libc::SCHED_RESET_ON_FORK);
        eventually("it has a real-time priority", || policy() == Some(libc::SCHED_FIFO));
        forks.until_one_waits();
        kill(service.running.pid(), libc::SIGKILL);
        eventually("it is an ordinary one", || policy() == Some(libc::SCHED_OTHER));
        service.running.reap();
        service.start_again();
        wait_for_cpu(cpu.0);
    }
    drop(forks);
    service.end(cpu.0);
}

/// Forks at the lowest real-time level of one CPU, and work on cgroups of another, where there is
/// one.
struct Forks {
    forks: Child,
    work: CgroupWork,
}

impl Forks {
    fn below_the_tasks_of(cpu: u32) -> Forks {
        let other = online().into_iter().find(|&other| other != cpu).unwrap_or(cpu);
        let work = CgroupWork::on(other);
        let words = adversarial(&format!("fork-below {cpu}"));
        Forks { forks: Command::new(&words[0]).args(&words[1..]).spawn().unwrap(), work }
    }

    /// Until the work waits for a fork, or for two seconds.
    fn until_one_waits(&self) {
        let end = Instant::now() + Duration::from_secs(2);
        while !self.work.awaits_forks() && Instant::now() < end {}
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        let _ = self.forks.kill();
        let _ = end_within(&mut self.forks, LIVENESS);
    }
}

#[test]
fn a_guardian_killed_while_a_freezer_write_waits_is_replaced() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let (scratch, victim) = (Scratch::new(), Victim::start());
    let work = CgroupWork::on(cpu.0);
    let mut punctual = started(cpu.0, 0, &victim, &scratch);
    for _ in 0..3 {
        punctual.wait_for("a guardian", |p| p.guardian().is_some());
        let guardian = punctual.guardian().unwrap_or_default();
        kill(guardian, libc::SIGKILL);
        punctual.wait_for("another guardian", |p| p.guardian().is_some_and(|g| g != guardian));
    }
    kill(punctual.pid(), libc::SIGINT);
    punctual.end().assert_code(130).assert_nothing_left(&[cpu.0]);
    victim.assert_as_before();
    drop(work);
}

#[test]
fn both_killed_while_a_freezer_write_waits_are_cleaned_up_after() {
    if !permitted(&NEEDS) {
        return;
    }
    let _one = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
    let (cpu, scratch, victim) = (one_cpu(), Scratch::new(), Victim::start());
    let work = CgroupWork::on(cpu.0);
    for round in 0..3 {
        let mut punctual = started(cpu.0, round, &victim, &scratch);
        let (pid, guardian) = (punctual.pid(), punctual.guardian().unwrap_or_default());
        // A stopped guardian cannot act between the two kills.
        kill(guardian, libc::SIGSTOP);
        kill(pid, libc::SIGKILL);
        kill(guardian, libc::SIGKILL);
        // A guardian that was being replaced at this instant restores by itself; then there is
        // nothing to clean.
        std::thread::sleep(Duration::from_millis(50));
        clean();
        assert_nothing_left(pid, &punctual.mark, &[cpu.0]);
        punctual.reap();
        victim.assert_as_before();
    }
    drop(work);
}
