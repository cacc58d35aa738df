//! The library's tasks by the service: programs of ordinary users, and of root, have their threads,
//! commands and processes scheduled by punctuald (library_roles.rs).

use crate::adversarial::library_roles::library_end_roles::ready_file;
use crate::machine::{permitted_cpu, wait_for_cpu};
use crate::privileges::UNPRIVILEGED;
use crate::process::{eventually, kill};
use crate::service::{names, Service, SERVICE_NEEDS};
use crate::service_threads::Program;

const OTHER_USER: u32 = 65_533;
const ROOT: u32 = 0;

fn start(uid: u32, role: &str, service: &Service, cpu: u32) -> Program {
    Program::start_as(uid, &format!("library {role} {} {cpu}", service.socket))
}

/// Waits until both tasks of a program have begun.
fn await_ready(program: &Program) {
    let file = ready_file(program.pid() as u32);
    eventually("its tasks begin", || std::fs::remove_file(&file).is_ok());
}

/// Plays a role to its end, as an ordinary user.
fn play(role: &str) {
    play_as(UNPRIVILEGED, role);
}

/// Plays a role to its end.
pub fn play_as(uid: u32, role: &str) {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    start(uid, role, &service, cpu.0).assert_success();
    eventually("nothing is reserved", || names(&service).is_empty());
    service.end(cpu.0);
}

#[test]
fn threads_wait_for_their_releases_and_their_values_are_returned() {
    play("threads");
}

#[test]
fn further_threads_enter_change_and_are_stopped() {
    play("further");
}

#[test]
fn suspended_tasks_execute_nothing_until_they_were_resumed_as_often() {
    play("suspends");
}

#[test]
fn commands_processes_and_threads_of_others_are_tasks() {
    play("programs");
}

#[test]
fn what_the_service_does_not_do_is_refused_and_so_is_what_it_does_not_permit() {
    play("refused");
}

#[test]
fn a_task_of_the_service_locks_nothing() {
    play("locks");
}

#[test]
fn programs_of_two_users_share_a_cpu_within_their_budgets_and_a_third_does_not_fit() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let two = [UNPRIVILEGED, OTHER_USER].map(|uid| start(uid, "spins", &service, cpu.0));
    eventually("both have reserved", || names(&service).len() == 2);
    start(ROOT, "too-much", &service, cpu.0).assert_success();
    let enough = format!("{}.enough", service.socket);
    std::fs::write(&enough, "").expect("it is written");
    two.into_iter().for_each(Program::assert_success);
    std::fs::remove_file(enough).expect("it is there");
    service.end(cpu.0);
}

#[test]
fn tasks_end_with_the_service_and_their_threads_continue() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let program = start(UNPRIVILEGED, "ends", &service, cpu.0);
        await_ready(&program);
        kill(service.running.pid(), signal);
        program.assert_success();
        service.running.reap();
        service.start_again();
        wait_for_cpu(cpu.0);
    }
    service.end(cpu.0);
}

#[test]
fn threads_are_reserved_for_again_when_the_service_is_replaced() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let program = start(UNPRIVILEGED, "replaced", &service, cpu.0);
    await_ready(&program);
    // One of them is suspended.
    await_ready(&program);
    service.replace();
    let ready = ready_file(program.pid() as u32);
    std::fs::write(&ready, "").expect("it is written");
    program.assert_success();
    std::fs::remove_file(ready).expect("it is there");
    service.end(cpu.0);
}

#[test]
fn a_program_uses_the_service_where_one_listens_and_else_says_why_not() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    for uid in [UNPRIVILEGED, ROOT] {
        start(uid, "auto", &service, cpu.0).assert_success();
    }
    service.end(cpu.0);
    Program::start_as(ROOT, &format!("library alone /none {}", cpu.0)).assert_success();
}
