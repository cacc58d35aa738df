//! What kind of kernel this is.

/// It is built with PREEMPT_RT: most of its timers expire in a thread, and not in the interrupt.
/// Not all of these kernels have /sys/kernel/realtime.
#[must_use]
pub fn is_preempt_rt() -> bool {
    std::fs::read_to_string("/proc/version").is_ok_and(|text| text.contains("PREEMPT_RT"))
}
