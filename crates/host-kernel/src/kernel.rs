//! The BPF object, loaded.

use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use libbpf_rs::{Object, ObjectBuilder, ProgramInput};

use crate::privilege::Missing;
use crate::probe::Timer;
use crate::scheduler::Scheduler;
use crate::verifier_log::listening;
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::thread_cpu_ns;

/// ELF wants its headers aligned.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/dispatcher.bpf.o")));

/// Why the dispatcher is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Privileges.
    #[error("{0}")]
    Missing(Missing),
    /// The kernel refused it.
    #[error(
        "the kernel refused the dispatcher's BPF object ({cause}); it needs Linux 6.10 or later \
         with CONFIG_BPF_JIT{}",
        said(.log)
    )]
    Refused {
        /// The system's error.
        cause: libbpf_rs::Error,
        /// The last that libbpf and the verifier said.
        log: String,
    },
    /// A loaded program could not be run.
    #[error("program {program}: {cause}")]
    Run {
        /// Its name.
        program: &'static str,
        /// The system's error.
        cause: libbpf_rs::Error,
    },
    /// The object has no such program.
    #[error("the BPF object has no program {0}")]
    NoProgram(&'static str),
    /// The dispatcher does not take these limits.
    #[error("limits outside what the arena has room for")]
    Limits,
}

fn said(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!(":\n{log}")
    }
}

/// What the verifier did for one program and the functions that it calls.
#[derive(Debug, Clone)]
pub struct ProgramStatistics {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier went through.
    pub verified: u32,
    /// Bytes of machine code.
    pub machine_code: u32,
}

/// The dispatcher in the kernel, with its own arena; gone when dropped.
pub struct Kernel {
    object: Object,
    load_time: Duration,
    load_execution: Duration,
}

/// What the calling thread has executed.
fn execution() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

impl Kernel {
    /// Loads the object into the running kernel.
    ///
    /// # Errors
    /// Privileges, or the kernel's refusal with the verifier's last words.
    pub fn load() -> Result<Kernel, KernelError> {
        if let Some(missing) = Missing::here() {
            return Err(KernelError::Missing(missing));
        }
        let ((loaded, load_time, load_execution), log) = listening(|| {
            let (start, executed) = (Instant::now(), execution());
            let loaded = ObjectBuilder::default().open_memory(&OBJECT.0).and_then(|o| o.load());
            (loaded, start.elapsed(), execution().saturating_sub(executed))
        });
        match loaded {
            Ok(object) => Ok(Kernel { object, load_time, load_execution }),
            Err(cause) => Err(KernelError::Refused { cause, log }),
        }
    }

    /// Opening, verifying and compiling, in all.
    pub fn load_time(&self) -> Duration {
        self.load_time
    }

    /// What of that this thread executed, in libbpf and in the kernel: the rest it waited for a
    /// CPU.
    pub fn load_execution(&self) -> Duration {
        self.load_execution
    }

    /// What the verifier did, by program.
    pub fn statistics(&self) -> Vec<ProgramStatistics> {
        statistics(&self.object)
    }

    /// Runs a program once with `context`, which it may change; what it returned.
    pub(crate) fn run(
        &mut self,
        program: &'static str,
        context: &mut [u8],
    ) -> Result<i32, KernelError> {
        let found = self
            .object
            .progs_mut()
            .find(|p| p.name() == program)
            .ok_or(KernelError::NoProgram(program))?;
        let input = ProgramInput { context_in: Some(context), ..ProgramInput::default() };
        let output = found.test_run(input).map_err(|cause| KernelError::Run { program, cause })?;
        Ok(output.return_value as i32)
    }
}

/// The scheduler's object, loaded as for a run and let go again.
#[derive(Debug, Clone)]
pub struct SchedulerLoad {
    /// What the verifier did, by program.
    pub programs: Vec<ProgramStatistics>,
    /// Opening, verifying and compiling, in all.
    pub time: Duration,
    /// What of that this thread executed.
    pub execution: Duration,
}

impl SchedulerLoad {
    /// Loads it; nothing is scheduled by it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn try_it() -> Result<SchedulerLoad, Diagnostic> {
        let timer = Timer::of_this_kernel()?;
        let (start, executed) = (Instant::now(), execution());
        let scheduler = Scheduler::load(|open| timer.prepare(open))?;
        let (time, execution) = (start.elapsed(), execution().saturating_sub(executed));
        Ok(SchedulerLoad { programs: statistics(scheduler.object()), time, execution })
    }
}

/// What the verifier did for each program of a loaded object.
pub(crate) fn statistics(object: &Object) -> Vec<ProgramStatistics> {
    object
        .progs()
        .filter(|p| p.autoload())
        .map(|p| {
            let mut info = libbpf_sys::bpf_prog_info::default();
            let mut size = std::mem::size_of_val(&info) as u32;
            // SAFETY: `info` is `size` bytes, and the kernel writes no more.
            let failed = unsafe {
                libbpf_sys::bpf_obj_get_info_by_fd(
                    p.as_fd().as_raw_fd(),
                    std::ptr::from_mut(&mut info).cast(),
                    &mut size,
                )
            };
            ProgramStatistics {
                name: p.name().to_string_lossy().into_owned(),
                verified: if failed == 0 { info.verified_insns } else { u32::MAX },
                machine_code: info.jited_prog_len,
            }
        })
        .collect()
}
