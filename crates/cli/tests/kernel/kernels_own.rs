//! What the kernel does for itself beside a run, which no scheduler can preempt or put off: its
//! tracer tells.

use std::path::{Path, PathBuf};

use crate::machine::preempt_rt;
use crate::punctual::RESULTS;

/// Between soft interrupts of which one continues from the other, s: in one round, or the rest of
/// it in the kernel's thread.
const GAP: f64 = 12e-6;
/// The least urgent real-time priority, as the tracer counts them.
const LAST_REAL_TIME: u64 = 99;

/// Switches are for the reader of a failure.
const EVENTS: [&str; 4] =
    ["irq/softirq_entry", "irq/softirq_exit", "sched/sched_pi_setprio", "sched/sched_switch"];

/// An instance of the kernel's tracer that records all of these events.
pub struct KernelsOwn(PathBuf);

impl KernelsOwn {
    pub fn watch() -> KernelsOwn {
        let instance = PathBuf::from("/sys/kernel/tracing/instances/punctual-test");
        std::fs::create_dir(&instance).expect("tracefs is mounted");
        let put = |file: &str, text: &str| {
            std::fs::write(instance.join(file), text).expect("tracefs takes it")
        };
        put("buffer_size_kb", "8192");
        put("trace_clock", "mono");
        for event in EVENTS {
            put(&format!("events/{event}/enable"), "1");
        }
        KernelsOwn(instance)
    }

    /// All events of a kind: when, s, and its description.
    fn events<T>(&self, kind: &str, mut each: impl FnMut(f64, &str) -> Option<T>) -> Vec<T> {
        let text = std::fs::read_to_string(self.0.join("trace")).expect("what was traced");
        let event = |line: &str| {
            let (before, what) = line.split_once(kind)?;
            let at = before.strip_suffix(": ")?.rsplit(' ').next().and_then(|at| at.parse().ok());
            each(at.expect("seconds"), what)
        };
        text.lines().filter_map(event).collect()
    }

    /// The longest soft interrupt without a pause, ns, to a microsecond. With PREEMPT_RT no task
    /// waits for them.
    pub fn longest_soft_interrupt(&self) -> u64 {
        if preempt_rt() {
            return 0;
        }
        let (mut began, mut ended) = (None, 0.0);
        let lengths = self.events("softirq_", |at, what| {
            if what.starts_with("entry") {
                began = began.filter(|_| at - ended <= GAP).or(Some(at));
                return None;
            }
            ended = at;
            began.map(|began: f64| ((at - began) * 1e9) as u64)
        });
        lengths.into_iter().max().expect("soft interrupts")
    }

    /// When threads gave back a real-time priority that they were lent because they held what a
    /// more urgent thread waited for (a lock of the kernel's, with PREEMPT_RT): the thread, and the
    /// time, ns, to a microsecond.
    pub fn given_back(&self) -> Vec<(u64, u64)> {
        self.events("sched_pi_setprio: ", |at, what| {
            let (old, new) = (number(what, "oldprio")?, number(what, "newprio")?);
            (old <= LAST_REAL_TIME && new > LAST_REAL_TIME)
                .then_some((number(what, "pid")?, (at * 1e9) as u64))
        })
    }
}

/// The number after `name=`.
fn number(what: &str, name: &str) -> Option<u64> {
    what.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

impl Drop for KernelsOwn {
    fn drop(&mut self) {
        if std::thread::panicking() && Path::new(RESULTS).is_dir() {
            let _ = std::fs::copy(self.0.join("trace"), Path::new(RESULTS).join("kernels-own"));
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}
