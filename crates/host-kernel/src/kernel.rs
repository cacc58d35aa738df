//! The BPF object, loaded.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use libbpf_rs::{Object, ObjectBuilder, PrintLevel, ProgramInput};

use crate::privilege::Missing;

/// ELF wants its headers aligned.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/dispatcher.bpf.o")));

/// Why the dispatcher is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Privileges.
    #[error("{0}")]
    Missing(Missing),
    /// The kernel refused it.
    #[error("the kernel refused the dispatcher's BPF object ({cause}); it needs Linux 6.10 or later with CONFIG_BPF_JIT{}", said(.log))]
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

/// What libbpf says while it loads. One load at a time, for libbpf's print function is global.
static SAID: Mutex<String> = Mutex::new(String::new());
static LOADING: Mutex<()> = Mutex::new(());

fn listen(_: PrintLevel, text: String) {
    if let Ok(mut said) = SAID.lock() {
        said.push_str(&text);
    }
}

/// What the calling thread has executed.
fn execution() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The end of a verifier's log tells what is wrong.
fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
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
        let _one = LOADING.lock().unwrap_or_else(|e| e.into_inner());
        let before = libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
        let (start, executed) = (Instant::now(), execution());
        let loaded = ObjectBuilder::default().open_memory(&OBJECT.0).and_then(|o| o.load());
        let (load_time, load_execution) = (start.elapsed(), execution().saturating_sub(executed));
        libbpf_rs::set_print(before);
        let log = SAID.lock().map(|mut said| std::mem::take(&mut *said)).unwrap_or_default();
        match loaded {
            Ok(object) => Ok(Kernel { object, load_time, load_execution }),
            Err(cause) => Err(KernelError::Refused { cause, log: last_lines(&log) }),
        }
    }

    /// Opening, verifying and compiling, in all.
    pub fn load_time(&self) -> Duration {
        self.load_time
    }

    /// What of that this thread executed, in libbpf and in the kernel: the rest it waited for a CPU.
    pub fn load_execution(&self) -> Duration {
        self.load_execution
    }

    /// What the verifier did, by program.
    pub fn statistics(&self) -> Vec<ProgramStatistics> {
        statistics(&self.object)
    }

    /// Runs a program once with `context`, which it may change; what it returned.
    pub(crate) fn run(&mut self, program: &'static str, context: &mut [u8]) -> Result<i32, KernelError> {
        let found = self.object.progs_mut().find(|p| p.name() == program).ok_or(KernelError::NoProgram(program))?;
        let input = ProgramInput { context_in: Some(context), ..ProgramInput::default() };
        let output = found.test_run(input).map_err(|cause| KernelError::Run { program, cause })?;
        Ok(output.return_value as i32)
    }
}

/// What the verifier did for each program of a loaded object.
pub(crate) fn statistics(object: &Object) -> Vec<ProgramStatistics> {
    object
        .progs()
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
