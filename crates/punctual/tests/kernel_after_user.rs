//! The user host and the kernel host in one process. Needs sched_ext: `vm/tests`.

mod common;

use common::{cpu, locked_kib, turn, MS};
use punctual::{Host, Punctual, Running};
use punctual_test_support::{has_sched_ext, Scratch};

/// A synthetic task on `host`.
fn start(host: Host, scratch: &Scratch) -> Running {
    let set = format!(
        "cpu = {}\npolicy = \"edf\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\n\
         budget = \"2ms\"\nwork = {{ spin = \"1ms\" }}\n",
        cpu()
    );
    let set = Punctual::from_file(scratch.file("set.toml", &set)).expect("a task set");
    set.host(host).admit().expect("it fits").start().expect("it starts")
}

fn stop(running: Running) {
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert!(outcome.results.tasks[0].periods > 0, "{:?}", outcome.results);
}

#[test]
fn a_kernel_host_starts_after_a_user_host_in_one_process() {
    let _turn = turn();
    if !has_sched_ext() {
        return;
    }
    let scratch = Scratch::new();
    for host in [Host::User, Host::Kernel, Host::User, Host::Kernel] {
        let running = start(host, &scratch);
        std::thread::sleep(100 * MS);
        stop(running);
        assert_eq!(locked_kib(), 0, "after {host:?}");
    }
    // SAFETY: a system call without pointers. Programs for real time lock their memory themselves.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
    let running = start(Host::Kernel, &scratch);
    std::thread::sleep(100 * MS);
    stop(running);
    assert!(locked_kib() > 0, "what the program locked itself stays locked");
    // SAFETY: a system call without arguments.
    unsafe { libc::munlockall() };
}
