//! The names of Punctual's own threads and processes, as /proc shows them. `punctual doctor` does
//! not count these among the threads of others.

use std::ffi::CStr;

/// Of the user host: the dispatcher. Its name and those of the next four have the CPU behind them
/// ([`of_cpu`]).
pub const DISPATCHER: &str = "dispatch";
/// Of the user host: it writes to the cgroup freezer for the dispatcher.
pub const FREEZER: &str = "freezer";
/// Of the user host: it keeps the CPU from idling.
pub const NO_IDLE: &str = "no_idle";
/// Of the kernel host: it sends commands.
pub const DOMAIN: &str = "domain";
/// Of the kernel host: it reads records where the domain's thread cannot.
pub const READER: &str = "reader";
const OF_CPU: [&str; 5] = [DISPATCHER, FREEZER, NO_IDLE, DOMAIN, READER];

/// A process that restores programs after the end of Punctual.
pub const GUARDIAN: &CStr = c"punctual-guard";
/// The guardian's child that reads the state of Punctual.
pub const WATCH: &CStr = c"punctual-watch";
/// The guardian's child that reads /proc and kills.
pub const WORKER: &CStr = c"punctual-worker";
/// The kernel host's process where BPF programs have no timer.
pub const TIMER_PROCESS: &CStr = c"punctual-timer";
/// The kernel host's process that lets the kernel unregister a scheduler.
pub const DETACH: &CStr = c"punctual-detach";
/// A thread by whose end the guardian recognises that the program has ended.
pub const ALIVE: &str = "punctual-alive";
/// A thread that finds out whether real-time priority is permitted.
pub const PROBE: &str = "punctual-probe";
/// A thread that finds policies of the program that do not return.
pub const POLICIES: &str = "punctual-calls";
/// All of the above begin with it, and the command and the library's thread are called so.
const PROGRAM: &str = "punctual";
/// The threads of the kernel's own policies (`punctual run --compare`) begin with it.
pub const BASELINE: &str = "baseline";

/// The name of a CPU's thread: `freezer/1`.
#[must_use]
pub fn of_cpu(name: &str, cpu: u32) -> String {
    format!("{name}/{cpu}")
}

/// Whether a thread of this name is Punctual's. Tasks have names of their own.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let of_cpu = |(name, cpu): (&str, &str)| OF_CPU.contains(&name) && cpu.parse::<u32>().is_ok();
    let of_program = name.split('-').next().is_some_and(|n| n == PROGRAM || n == BASELINE);
    of_program || name.split_once('/').is_some_and(of_cpu)
}

/// Names the calling thread. Real-time safe.
pub fn set(name: &CStr) {
    // It fails for no name.
    let _ = rustix::thread::set_name(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_keeps_each_name_whole_and_it_is_recognised() {
        let of_cpus = OF_CPU.map(|name| of_cpu(name, 1023));
        let processes = [GUARDIAN, WATCH, WORKER, TIMER_PROCESS, DETACH].map(|name| {
            set(name);
            name.to_str().unwrap().to_owned()
        });
        for name in
            of_cpus.into_iter().chain(processes).chain([ALIVE, PROBE, POLICIES].map(String::from))
        {
            assert!(name.len() < 16 && is_ours(&name), "{name}");
        }
        let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        assert_eq!(own.trim().as_bytes(), DETACH.to_bytes());
    }

    #[test]
    fn names_of_others_are_not_ours() {
        for name in ["jackd", "freezer", "freezer/x", "dispatch/", "domain-1", "punctuality", ""] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
