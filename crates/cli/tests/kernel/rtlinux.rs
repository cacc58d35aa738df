//! Programs of RT-Linux, whose tasks a service schedules inside the kernel.

use std::process::{Command, ExitStatus};

use punctual_test_support::{comes_true, missing};
use tempfile::TempDir;

use crate::machine::{until, Machine};
use crate::service::Service;

/// Runs a program in C of librtlinux's tests, as `vm/test` brings it; its tasks are the service's.
fn passes(name: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let me = std::env::current_exe().expect("/proc is mounted");
    let program = me.ancestors().nth(2).expect("in a folder of cargo's").join("c/rtlinux");
    let program = program.join(name);
    if !program.exists() {
        return missing(format!("there is no {}: vm/test makes it", program.display()));
    }
    let service = Service::start();
    let objects = TempDir::new_in("/dev/shm").expect("there is shared memory");
    let mut command = Command::new(program);
    command.env("PUNCTUAL_SHM_DIR", objects.path().join("objects"));
    command.env("PUNCTUAL_RTLINUX_HOST", "service").env("PUNCTUAL_SOCKET", &service.socket);
    let mut child = command.spawn().expect("it runs");
    let mut client = service.client();
    let mut ended: Option<ExitStatus> = None;
    let mut was_task = false;
    let in_time = comes_true(|| {
        let status = client.status().expect("it serves");
        was_task |= status.reservations.iter().any(|one| one.pid == child.id() as i32);
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    });
    if !in_time {
        child.kill().expect("it is alive");
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "{name}");
    assert!(was_task, "{name}: the service had nothing of it");
    until("nothing is reserved", || {
        client.status().is_ok_and(|status| status.reservations.is_empty())
    });
}

#[test]
fn the_calls_of_rt_linuxs_paper_hold_inside_the_kernel() {
    passes("paper");
}

#[test]
fn threads_of_rt_linux_have_their_periods_inside_the_kernel() {
    passes("periods");
}
