//! How long the kernel's soft interrupts take, which no scheduler can preempt: its tracer tells.

use std::path::PathBuf;

use crate::machine::preempt_rt;

/// Between soft interrupts of which one goes on from the other, s: in one round, or the rest of it in the kernel's thread.
const GAP: f64 = 12e-6;

/// A record of all soft interrupts, in an instance of the kernel's tracer.
pub struct SoftInterrupts(PathBuf);

impl SoftInterrupts {
    pub fn watch() -> SoftInterrupts {
        let instance = PathBuf::from("/sys/kernel/tracing/instances/punctual-test");
        std::fs::create_dir(&instance).expect("tracefs is mounted");
        let put = |file: &str, text: &str| std::fs::write(instance.join(file), text).expect("tracefs takes it");
        put("buffer_size_kb", "8192");
        put("trace_clock", "mono");
        put("events/irq/softirq_entry/enable", "1");
        put("events/irq/softirq_exit/enable", "1");
        SoftInterrupts(instance)
    }

    /// The longest of them without a pause, ns, to a microsecond. With PREEMPT_RT nobody waits for them.
    pub fn longest(&self) -> u64 {
        if preempt_rt() {
            return 0;
        }
        let text = std::fs::read_to_string(self.0.join("trace")).expect("what was traced");
        let (mut began, mut ended, mut longest, mut seen) = (None, 0.0, 0, 0);
        for line in text.lines() {
            let Some((before, what)) = line.split_once(": softirq_") else { continue };
            let at: f64 = before.rsplit(' ').next().and_then(|at| at.parse().ok()).expect("seconds");
            if what.starts_with("entry") {
                began = began.filter(|_| at - ended <= GAP).or(Some(at));
            } else if let Some(began) = began {
                longest = longest.max(((at - began) * 1e9) as u64);
                (ended, seen) = (at, seen + 1);
            }
        }
        assert!(seen > 0, "no soft interrupt was seen");
        longest
    }
}

impl Drop for SoftInterrupts {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
