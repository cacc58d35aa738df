//! RTAI's error numbers, as with CONFIG_RTAI_USE_NEWERR, the default on x86 (rtai_sched.h).

const BASE: i32 = 0x3FFF_FF00;

/// The time to be waited for is past: an overrun.
pub const TMROVRN: i32 = BASE + 1;
/// Another task, or a signal, ended the wait.
pub const UNBLKD: i32 = BASE + 2;
/// The time has come.
pub const TIMOUT: i32 = BASE + 3;
/// What the task waited for was deleted.
pub const OBJREM: i32 = BASE + 4;
/// There is no such object.
pub const OBJINV: i32 = BASE + 5;
/// The task does not own the resource.
pub const PERM: i32 = BASE + 6;
/// The task owns the resource, and would wait for itself.
pub const DEADLOK: i32 = BASE + 7;
