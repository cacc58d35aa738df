//! `bpf/commands.h` for this side.

use punctual_analysis::JobCap;
use punctual_dispatcher::raw::{JobAttr, Limits, ReservationAttr};

/// Error numbers of commands, as the header describes them.
pub(crate) const WRONG_CPU: i64 = -(libc::EXDEV as i64);
pub(crate) const NO_THREAD: i64 = -(libc::ESRCH as i64);
pub(crate) const REAL_TIME: i64 = -(libc::EOPNOTSUPP as i64);
pub(crate) const BUSY: i64 = -(libc::EBUSY as i64);
extern "C" {
    static punctual_domains: u32;
    static punctual_limits: Limits;
    static punctual_cap_window: u64;
    static punctual_cap_share: u64;
}

/// Domains that the arena has.
pub(crate) fn domains() -> usize {
    // SAFETY: a constant of `bpf/abi.c`; so below.
    unsafe { punctual_domains as usize }
}

/// What the block of a domain has room for.
pub(crate) fn arena_limits() -> Limits {
    // SAFETY: as above.
    unsafe { punctual_limits }
}

/// What jobs may execute in a window.
pub(crate) fn cap() -> JobCap {
    // SAFETY: as above.
    unsafe { JobCap { window: punctual_cap_window, share: punctual_cap_share } }
}

/// `enum punctual_member_flag`.
pub(crate) const COOPERATES: u32 = 1;
pub(crate) const ALLOCATOR: u32 = 2;
pub(crate) const ALONE: u32 = 4;

/// `enum punctual_release_flag`.
pub(crate) const LATE: u32 = 1;
pub(crate) const IN_BACKGROUND: u32 = 2;

/// The context of a test-run program.
///
/// # Safety
/// It is laid out as the program's `struct` in the header, so that any bytes which the program
/// writes are a value of it.
pub(crate) unsafe trait Context {
    /// The program's name.
    fn program(&self) -> &'static str;
}

/// `struct punctual_create`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Create {
    pub domain: u32,
    pub cpu: u32,
    pub asks_policies: u32,
    pub unused: u32,
    pub limits: Limits,
    pub granularity: u64,
}

/// The `kind` and the union of `struct punctual_command`.
#[repr(C, u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The kernel reads the arguments.
#[allow(dead_code)]
pub(crate) enum Command {
    JobAdd(JobAttr) = 2,
    JobCancel { job: u64 } = 3,
    ReservationAdd(ReservationAttr) = 6,
    ReservationChange { to: ReservationAttr, reservation: u32 } = 7,
    ReservationRemove { reservation: u32 } = 8,
    WindowAdd { start: u64, length: u64, begins: u32 } = 10,
    WindowDrop = 11,
    JobState { used: u64, remaining: u64, job: u64 } = 16,
    ReservationJob { reservation: u32 } = 19,
    ReservationDelayed { reservation: u32 } = 20,
    ReservationError { error: i64, reservation: u32 } = 21,
    TaskAdd = 32,
    TaskRetire { task: u32 } = 33,
    TaskJoin { task: u32, thread: u32, flags: u32 } = 34,
    GroupOrder { group: u32, order: u32 } = 36,
    TimerAdd { at: u64, cookie: u64 } = 37,
    TimerCancel { timer: u64 } = 38,
    ReleaseEnd { task: u32, flags: u32 } = 39,
    TaskLend { task: u32, to: u32 } = 40,
    TaskSuspend { task: u32, on: u32 } = 41,
    TimerCreate = 48,
    TimerProcess = 49,
}

/// `struct punctual_command`: a command, and its result once the program has run.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    domain: u32,
    unused: u32,
    pub result: i64,
    pub now: u64,
    pub command: Command,
}

impl Call {
    pub fn new(domain: u32, command: Command) -> Call {
        Call { domain, unused: 0, result: 0, now: 0, command }
    }
}

/// `struct punctual_poll`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Poll {
    pub domain: u32,
    pub pop: u32,
    pub records: u64,
    pub events: u64,
    pub record_count: u64,
    pub event_tail: u64,
    pub throttles: u64,
    pub arm_failures: u64,
    pub head: u64,
}

const REASON: usize = 128;
const MESSAGE: usize = 1024;

/// `struct punctual_exit`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    pub code: i64,
    pub kind: u32,
    pub unused: u32,
    reason: [u8; REASON],
    message: [u8; MESSAGE],
}

impl Exit {
    pub fn of(bytes: &[u8]) -> Option<Exit> {
        // SAFETY: as many bytes as it has, and any bytes are a value of it.
        (bytes.len() >= size_of::<Exit>())
            .then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }

    pub fn reason(&self) -> String {
        text(&self.reason)
    }

    pub fn message(&self) -> String {
        text(&self.message)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

// SAFETY: the tests compare it with the header.
unsafe impl Context for Create {
    fn program(&self) -> &'static str {
        "punctual_create"
    }
}
// SAFETY: as above; the program does not write `kind`, and writes integers only.
unsafe impl Context for Call {
    fn program(&self) -> &'static str {
        match self.command {
            Command::TaskAdd
            | Command::TaskRetire { .. }
            | Command::TaskJoin { .. }
            | Command::GroupOrder { .. }
            | Command::TimerAdd { .. }
            | Command::TimerCancel { .. }
            | Command::ReleaseEnd { .. }
            | Command::TaskLend { .. }
            | Command::TaskSuspend { .. }
            | Command::TimerCreate
            | Command::TimerProcess => "punctual_task_command",
            _ => "punctual_command",
        }
    }
}
// SAFETY: as the first.
unsafe impl Context for Poll {
    fn program(&self) -> &'static str {
        "punctual_poll"
    }
}

#[cfg(test)]
#[path = "abi/tests.rs"]
mod tests;
