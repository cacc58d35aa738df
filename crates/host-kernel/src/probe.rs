//! The kind of timer that this kernel permits: asked of its verifier, not of its name.

use std::env;
use std::io;

use libbpf_rs::OpenObject;

use crate::diagnostics::refused;
use crate::verifier_log::listening;
use punctual_diagnostic::Diagnostic;

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o")));

/// For tests: `process` has a kernel with timers work as one without.
const FORCED: &str = "PUNCTUAL_KERNEL_TIMER";
/// For tests: a number N has each Nth arming of the timer fail.
const FAILS: &str = "PUNCTUAL_KERNEL_ARM_FAILS";
/// For tests: a number N has each Nth ops.dispatch count as called on another CPU.
const REMOTE: &str = "PUNCTUAL_KERNEL_REMOTE_DISPATCH";
/// The section of the scheduler's object that holds nothing but `timer_config`.
const CONSTANT: &str = ".rodata.timer";

/// What wakes a domain at the dispatcher's next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A bpf_timer.
    Bpf,
    /// A process ([`TimerProcess`](crate::timer_process::TimerProcess)), where the verifier refuses
    /// bpf_timer: PREEMPT_RT.
    Process,
}

impl Timer {
    /// Loads a program with a bpf_timer, and lets it go.
    ///
    /// # Errors
    /// A refusal other than "not supported".
    pub fn of_this_kernel() -> Result<Timer, Diagnostic> {
        if env::var(FORCED).is_ok_and(|kind| kind == "process") {
            return Ok(Timer::Process);
        }
        let (refusal, log) = listening(load_probe);
        match refusal {
            0 => Ok(Timer::Bpf),
            libc::EOPNOTSUPP => Ok(Timer::Process),
            other => {
                let other = io::Error::from_raw_os_error(other);
                let log = if log.is_empty() { log } else { format!("; it said:\n{log}") };
                Err(refused(format!("the kernel refused a program with a timer: {other}{log}")))
            }
        }
    }

    /// What a budget may be short of when its job is stopped, ns; the next one has it. The process
    /// aims at the budget's end, and misses it by a microsecond at times. The timer's callback can
    /// wait for the end itself; but where something else is due just before it, a decision more
    /// would take longer than what is left.
    pub fn granularity(self) -> u64 {
        match self {
            Timer::Bpf => 1_000,
            Timer::Process => 2_000,
        }
    }

    /// Tells the scheduler's object, before it is loaded.
    ///
    /// # Errors
    /// It is an object of another version.
    pub fn prepare(self, open: &mut OpenObject) -> Result<(), Diagnostic> {
        let every = |name| env::var(name).ok().and_then(|every| every.parse().ok()).unwrap_or(0u32);
        let config = [u32::from(self == Timer::Process), every(FAILS), every(REMOTE)]
            .map(u32::to_ne_bytes)
            .concat();
        let mut map = open.maps_mut().find(|map| map.name() == CONSTANT);
        match map.as_mut().and_then(|map| map.initial_value_mut()?.get_mut(..config.len())) {
            Some(value) => value.copy_from_slice(&config),
            None => {
                let cause = format!("the BPF object has no room for {CONSTANT}");
                return Err(Diagnostic::machine(cause, "build it again"));
            }
        }
        Ok(())
    }
}

/// The kernel's answer: 0, or an error number.
fn load_probe() -> i32 {
    // SAFETY: the object is a constant of ours; what was opened is closed, and not used after that.
    unsafe {
        let object = libbpf_sys::bpf_object__open_mem(
            OBJECT.0.as_ptr().cast(),
            OBJECT.0.len() as _,
            std::ptr::null(),
        );
        if object.is_null() {
            return io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        }
        let refusal = libbpf_sys::bpf_object__load(object);
        libbpf_sys::bpf_object__close(object);
        -refusal
    }
}
