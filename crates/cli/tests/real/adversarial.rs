//! Programs that misbehave: this test binary, started as `BINARY adversarial:ROLE [ARG]…`.
//!
//! They play before `main`, so that no test harness with its threads is around them. Each ends by
//! itself after a minute, should a test fail to end it.

// By their paths, since the tests of the kernel host have this file by its path, too.
#[path = "affinity_roles.rs"]
mod affinity_roles;
#[path = "forking_roles.rs"]
mod forking_roles;
#[path = "inheritance_roles.rs"]
mod inheritance_roles;
#[path = "library_roles.rs"]
pub mod library_roles;
#[path = "page_roles.rs"]
mod page_roles;
#[path = "page_wait_roles.rs"]
pub mod page_wait_roles;
#[path = "scheduling_roles.rs"]
mod scheduling_roles;
#[path = "thread_roles.rs"]
mod thread_roles;

use std::time::{Duration, Instant};

use punctual_test_support::execute_briefly;

use crate::busy_threads;
use crate::cgroup_roles;
use crate::locking_roles;
use crate::profile_roles;

pub const LIFE: Duration = Duration::from_secs(60);

#[used]
#[link_section = ".init_array"]
static BEFORE_MAIN: extern "C" fn() = play;

extern "C" fn play() {
    let mut words = std::env::args().skip(1);
    let Some(role) = words.next().and_then(|w| w.strip_prefix("adversarial:").map(str::to_owned))
    else {
        return;
    };
    let args: Vec<String> = words.collect();
    let arg = |n: usize| args.get(n).map_or("", String::as_str);
    let numbers: Vec<u64> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let number = |n: usize| numbers.get(n).copied().unwrap_or(1);
    match role.as_str() {
        "spin" => spin(LIFE),
        "attack" => thread_roles::attack(arg(0)),
        "inherit" => inheritance_roles::wait(arg(0), number(0) as u32),
        "inherit-owner" => inheritance_roles::own(number(0) as u32, arg(1) == "nap"),
        "inherit-share" => inheritance_roles::share(),
        "page" => page_roles::attack(arg(0), arg(1)),
        "library" => library_roles::play(arg(0), arg(1), number(0) as u32),
        "waits" => page_wait_roles::wait(arg(0), arg(1)),
        "spin-threads" => many_threads(arg(0).parse().unwrap_or(4)),
        "family" => forking_roles::family(),
        "fork-storm" => forking_roles::fork_storm(),
        "exec" => exec(),
        "late-threads" => late_threads(),
        "exit" => {
            spin(Duration::from_millis(arg(0).parse().unwrap_or(0)));
            std::process::exit(arg(1).parse().unwrap_or(0));
        }
        "bursts" => bursts(arg(0).parse().unwrap_or(500), arg(1).parse().unwrap_or(3_000)),
        "deaf" => deaf(),
        "crash" => crash(),
        "map" => map(),
        "daemon" => forking_roles::daemon(),
        "demote" => scheduling_roles::change_itself(true),
        "escape" => scheduling_roles::change_itself(false),
        "policies" => scheduling_roles::change_policy(arg(0).parse().unwrap_or(50)),
        "reattribute" => scheduling_roles::reattribute(arg(0)),
        "sleep-spin" => sleep_then_spin(),
        "newest" => forking_roles::newest(),
        "shot-forks" => forking_roles::shot_forks(),
        "stop-itself" => loop {
            spin(Duration::from_millis(20));
            // SAFETY: a system call without memory.
            unsafe { libc::raise(libc::SIGSTOP) };
        },
        "clock" => tell_clock(arg(0)),
        "say" => say(arg(0).parse().unwrap_or(1)),
        "barrier" => busy_threads::barrier(arg(0), arg(1).parse().unwrap_or(2)),
        "yielding-lock" => busy_threads::yielding_lock(arg(0), arg(1).parse().unwrap_or(2)),
        "priorities" => busy_threads::priorities(
            arg(0),
            args[1..].iter().filter_map(|p| p.parse().ok()).collect(),
        ),
        "fork-below" => forking_roles::fork_below(arg(0)),
        "move-between-groups" => cgroup_roles::move_between_groups(arg(0), arg(1)),
        "make-groups" => cgroup_roles::make_groups(arg(0), arg(1)),
        "victim" => victim(),
        "periodic" => profile_roles::periodic(number(0), number(1), &numbers[2..]),
        "periodic-threads" => {
            profile_roles::periodic_threads(number(0), number(1), number(2), number(3));
        }
        "round" => locking_roles::round(arg(0), std::array::from_fn(number)),
        "chain" => locking_roles::chain(arg(0), number(0) as usize, number(1), number(2)),
        "die-with-lock" => locking_roles::die_with_lock(arg(0), number(0), number(1)),
        "wander" => affinity_roles::wander(arg(0)),
        "choose-cpus" => affinity_roles::choose_cpus(arg(0)),
        "scattered" => profile_roles::scattered(number(0)),
        _ => std::process::exit(99),
    }
    std::process::exit(0);
}

/// Spins for so long on the wall clock, never calling the kernel for more than the time.
fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        execute_briefly();
    }
}

/// A clock, ns.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec of ours.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Executes and sleeps in turns, each for up to so many microseconds (always the same ones).
fn bursts(work: u64, sleep: u64) {
    let end = Instant::now() + LIFE;
    let mut state = 1u64;
    let mut up_to = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit.max(1) * 1_000
    };
    while Instant::now() < end {
        let until = read(libc::CLOCK_PROCESS_CPUTIME_ID) + up_to(work);
        while read(libc::CLOCK_PROCESS_CPUTIME_ID) < until {}
        std::thread::sleep(Duration::from_nanos(up_to(sleep)));
    }
}

fn fork() -> i32 {
    // SAFETY: nothing of ours runs in other threads that the child could need.
    unsafe { libc::fork() }
}

fn in_child(life: impl FnOnce()) {
    if fork() == 0 {
        life();
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
}

fn many_threads(count: usize) {
    for _ in 1..count {
        std::thread::spawn(|| spin(LIFE));
    }
    spin(LIFE);
}

fn me() -> std::path::PathBuf {
    std::env::current_exe().expect("there is /proc")
}

/// Becomes another program again and again.
fn exec() {
    use std::os::unix::process::CommandExt;
    spin(Duration::from_millis(30));
    let error = std::process::Command::new(me()).arg("adversarial:exec").exec();
    eprintln!("exec: {error}");
}

fn late_threads() {
    for _ in 0..40 {
        spin(Duration::from_millis(5));
        std::thread::spawn(|| spin(LIFE));
    }
    spin(LIFE);
}

fn deaf() {
    // SAFETY: sets of our own; ignoring and blocking signals touches no memory.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    spin(LIFE);
}

/// Each call takes tens of milliseconds, in which no signal but SIGKILL and no freezer reaches it.
fn map() {
    const SIZE: usize = 128 << 20;
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        let (both, filled) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_POPULATE);
        // SAFETY: memory of our own at a place that the kernel chooses, given back at once; nothing
        // touches it.
        unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                SIZE,
                both,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | filled,
                -1,
                0,
            );
            if at != libc::MAP_FAILED {
                libc::munmap(at, SIZE);
            }
        }
    }
}

fn crash() {
    spin(Duration::from_millis(60));
    // SAFETY: none; it is to crash.
    unsafe { std::ptr::null_mut::<u32>().write_volatile(7) };
}

/// In each 100 ms sleeps for 30 ms and then spins for 60 ms of wall-clock time, executed or not.
fn sleep_then_spin() {
    let start = Instant::now();
    for cycle in 0..LIFE.as_millis() as u32 / 100 {
        let begin = start + cycle * Duration::from_millis(100);
        std::thread::sleep(
            (begin + Duration::from_millis(30)).saturating_duration_since(Instant::now()),
        );
        spin((begin + Duration::from_millis(90)).saturating_duration_since(Instant::now()));
    }
}

/// Spins, and keeps writing into a file: its CPU time and the time of day it was read, ns.
fn tell_clock(path: &str) {
    use std::os::unix::fs::FileExt;
    let Ok(file) = std::fs::File::create(path) else { std::process::exit(98) };
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        spin(Duration::from_micros(100));
        let line = format!(
            "{:020} {:020}\n",
            read(libc::CLOCK_PROCESS_CPUTIME_ID),
            read(libc::CLOCK_MONOTONIC)
        );
        let _ = file.write_all_at(line.as_bytes(), 0);
    }
}

/// So many lines on both streams.
fn say(lines: u32) {
    for n in 0..lines {
        println!("out {n}");
        eprintln!("err {n}");
    }
}

/// A program to be adopted: threads of differing policy, nice value and affinity, each busy for a
/// moment now and then.
fn victim() {
    let (notify, notified) = std::sync::mpsc::channel();
    for n in 0..4 {
        let notify = notify.clone();
        std::thread::spawn(move || {
            // SAFETY: plain scheduling calls on the calling thread.
            unsafe {
                match n {
                    0 => drop(libc::setpriority(libc::PRIO_PROCESS, 0, 5)),
                    1 => {
                        let p = libc::sched_param { sched_priority: 7 };
                        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &p);
                    }
                    2 => {
                        let mut set: libc::cpu_set_t = std::mem::zeroed();
                        libc::CPU_SET(0, &mut set);
                        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
                        let p = libc::sched_param { sched_priority: 0 };
                        libc::sched_setscheduler(0, libc::SCHED_BATCH, &p);
                    }
                    _ => {}
                }
            }
            let _ = notify.send(());
            live();
        });
    }
    for _ in 0..4 {
        let _ = notified.recv_timeout(LIFE);
    }
    println!("READY");
    live();
}

fn live() {
    let end = Instant::now() + LIFE * 5;
    while Instant::now() < end {
        spin(Duration::from_micros(200));
        std::thread::sleep(Duration::from_millis(4));
    }
}
