//! What the tests share: one real CPU at a time, and execution time to spend on it.
#![allow(dead_code)]

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::{Admitted, Error, ErrorKind, Punctual, Running};
use punctual_test_support::{comes_true, execute_briefly, ignored, missing, LIVENESS};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub const MS: Duration = Duration::from_millis(1);

/// The CPU that tests run on: the last one, so that the first is left to the machine.
pub fn cpu() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get()) as u32 - 1
}

/// The first CPU and that one; `None`, which is reported as ignored, where they are one.
pub fn two_cpus() -> Option<[u32; 2]> {
    let cpus = [0, cpu()];
    if cpus[0] == cpus[1] {
        ignored("there is one CPU");
        return None;
    }
    Some(cpus)
}

/// Tests of one binary take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts what `declare` describes. Another dispatcher may have the CPU for a while (other tests on
/// this machine). Where the machine does not permit it at all, the test is reported as ignored.
pub fn start(declare: impl Fn(Punctual) -> Punctual) -> Option<Running> {
    start_with(|| declare(Punctual::on_cpu(cpu())))
}

/// Starts a set on CPUs of its own choice.
pub fn start_with(set: impl Fn() -> Punctual) -> Option<Running> {
    let until = Instant::now() + LIVENESS;
    loop {
        let admitted: Admitted = set().admit().expect("the declaration is right");
        match admitted.start() {
            Ok(running) => return Some(running),
            Err(e) if is_taken(&e) && Instant::now() < until => std::thread::sleep(100 * MS),
            Err(e) => {
                assert!(e.kind == ErrorKind::Machine, "{e}");
                missing(e);
                return None;
            }
        }
    }
}

pub fn is_taken(e: &Error) -> bool {
    e.kind == ErrorKind::Machine && e.cause.contains("already has a dispatcher")
}

/// VmLck of this process.
pub fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let value = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line");
    value.trim().strip_suffix(" kB").and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Execution time of the calling thread.
pub fn executed() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Executes for `time` of the thread's own CPU time.
pub fn execute(time: Duration) {
    let (end, give_up) = (executed() + time, Instant::now() + LIVENESS);
    while executed() < end && Instant::now() < give_up {
        execute_briefly();
    }
}

/// The calling thread's scheduling class: SCHED_FIFO or SCHED_OTHER.
pub fn class() -> i32 {
    const RESET_ON_FORK: i32 = 0x4000_0000;
    // SAFETY: 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) & !RESET_ON_FORK }
}

/// Blocks or unblocks one signal in the calling thread.
pub fn mask(how: i32, signal: i32) {
    // SAFETY: a set on the stack, valid for the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

/// A child's end.
pub fn await_end(child: &mut Child) {
    assert!(
        comes_true(|| child.try_wait().expect("it is ours").is_some()),
        "process {} does not end",
        child.id()
    );
}

/// What a command prints, a few lines.
pub fn output_of(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let (sender, receiver) = std::sync::mpsc::channel();
    let stream = child.stdout.take().expect("it is piped");
    std::thread::spawn(move || sender.send(std::io::read_to_string(stream)));
    let text = receiver.recv_timeout(LIVENESS);
    if text.is_err() {
        drop(child.kill());
    }
    await_end(&mut child);
    text.expect("it ends").expect("text")
}
