//! punctuald with its reservations on the kernel host. What it does for clients in general is shown
//! by the tests of the service (`real/service*.rs`), some of which run with this host too.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_service::{ServiceClient, TaskRequest};
use punctual_test_support::judge_timing;

use crate::machine::{
    executed, executed_thread, is_ordinary, scheduler_becomes, threads_of, until, Machine,
};
use crate::punctual::{executing_companion, Running, Scratch, PUNCTUAL};

pub struct Service {
    process: Running,
    pub socket: PathBuf,
    _scratch: Scratch,
}

impl Service {
    pub fn start() -> Service {
        let scratch = Scratch::new();
        let (socket, config) = (scratch.path("socket"), scratch.file("config", "cpus = [0]\n"));
        let mut command = Command::new(&*PUNCTUAL);
        command.args(["serve", "--host", "kernel", "--config"]).arg(config);
        command.arg("--socket").arg(&socket).stdin(Stdio::null()).stdout(Stdio::null());
        let process = Running::of(command.spawn().expect("it was built"));
        let service = Service { process, socket, _scratch: scratch };
        until("it serves", || ServiceClient::require(&service.socket).is_ok());
        service
    }

    pub fn client(&self) -> ServiceClient {
        ServiceClient::require(&self.socket).expect("it serves")
    }

    pub fn kill(&self) {
        self.process.send(libc::SIGKILL);
    }
}

/// 2 ms in 10 ms for a process, or for one thread of it.
pub fn request(process: &Running, tid: Option<u32>) -> TaskRequest {
    let whole = TaskRequest::new("program", process.id() as i32, 10_000_000, 2_000_000);
    TaskRequest { tid: tid.map(|tid| tid as i32), ..whole }
}

/// In 500 ms.
pub fn assert_share(executed: impl Fn() -> u64, per_cent: f64) {
    const TIME: Duration = Duration::from_millis(500);
    let before = executed();
    std::thread::sleep(TIME);
    let share = (executed() - before) as f64 / TIME.as_nanos() as f64 * 100.0;
    judge_timing(|| assert!((share - per_cent).abs() < 2.0, "{share} % and not {per_cent} %"));
}

pub fn is_an_ordinary_one(program: &Running) {
    until("its threads are ordinary ones", || {
        threads_of(program.id()).into_iter().all(is_ordinary)
    });
}

#[test]
fn a_program_is_an_ordinary_one_again_when_it_is_released_or_its_client_or_the_service_ends() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let (program, _beside) = (executing_companion("spin"), executing_companion("spin"));
    let service = Service::start();
    let reserve = |client: &mut ServiceClient| {
        let reserved = client.reserve(&[request(&program, None)]).expect("it fits");
        scheduler_becomes("enabled");
        assert_share(|| executed(program.id()), 20.0);
        reserved[0].id
    };
    let mut client = service.client();
    let id = reserve(&mut client);
    client.release(id).expect("its own");
    scheduler_becomes("disabled");
    is_an_ordinary_one(&program);
    reserve(&mut client);
    drop(client);
    scheduler_becomes("disabled");
    is_an_ordinary_one(&program);
    let mut client = service.client();
    reserve(&mut client);
    service.kill();
    scheduler_becomes("disabled");
    is_an_ordinary_one(&program);
    assert!(client.status().is_err());
}

#[test]
fn a_single_thread_has_its_budget_and_the_others_of_its_process_none() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let program = executing_companion("spin-threads 2");
    until("it has its threads", || threads_of(program.id()).len() == 2);
    let threads = threads_of(program.id());
    let service = Service::start();
    let mut client = service.client();
    client.reserve(&[request(&program, Some(threads[1]))]).expect("it fits");
    assert_share(|| executed_thread(threads[1]), 20.0);
    // One that could wait for its releases, and does not.
    client.reserve_thread(&request(&program, Some(threads[0]))).expect("it fits");
    assert_share(|| executed_thread(threads[0]), 20.0);
    let twice = client.reserve(&[request(&program, Some(threads[1]))]).expect_err("it has one");
    assert!(twice.cause.contains("is a task's already"), "{twice}");
    let whole = client.reserve(&[request(&program, None)]).expect_err("a thread of it has one");
    assert!(whole.cause.contains("is a task's already"), "{whole}");
    let none = client.reserve(&[request(&program, Some(1))]).expect_err("it is init's");
    assert!(none.cause.contains("has no thread 1"), "{none}");
    drop(client);
    scheduler_becomes("disabled");
    is_an_ordinary_one(&program);
}

#[test]
fn reservations_end_with_the_scheduler_and_later_ones_start_another() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("disabled by sysrq-S");
    let (program, _beside) = (executing_companion("spin"), executing_companion("spin"));
    let service = Service::start();
    let mut client = service.client();
    let reserved = client.reserve(&[request(&program, None)]).expect("it fits");
    scheduler_becomes("enabled");
    std::fs::write("/proc/sysrq-trigger", "S").expect("root may");
    until("the client gets its end", || {
        let events = client.take_events().expect("it serves").events;
        events.into_iter().any(|event| event.id == reserved[0].id && event.ended.is_some())
    });
    is_an_ordinary_one(&program);
    until("another reservation is made", || client.reserve(&[request(&program, None)]).is_ok());
    scheduler_becomes("enabled");
    assert_share(|| executed(program.id()), 20.0);
    drop(client);
    scheduler_becomes("disabled");
}
