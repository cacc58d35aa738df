//! The interface in `include/punctual_policy.h`, which has the documentation of each part, for
//! shared objects and for us. Times are ns.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// `PUNCTUAL_POLICY_VERSION`.
pub const VERSION: u32 = 1;

/// `struct punctual_attributes`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginAttributes {
    /// Of the first release, from the start of the run.
    pub offset: u64,
    /// The time between releases.
    pub period: u64,
    /// From each release.
    pub deadline: u64,
    /// The execution time of each release.
    pub budget: u64,
    /// As the set has it.
    pub priority: i64,
}

/// `struct punctual_member`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginMember {
    /// As the set has it.
    pub of: PluginAttributes,
    /// The place of what the policy keeps of it.
    pub index: u32,
    /// 0: the top.
    pub group: u32,
}

/// `struct punctual_release`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginRelease {
    /// From 0.
    pub number: u64,
    /// When it was due.
    pub at: u64,
    /// Its absolute deadline.
    pub deadline: u64,
    /// Its remaining budget.
    pub left: u64,
    /// How many jobs were made of it.
    pub part: u32,
}

/// `struct punctual_job`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginJob {
    /// Not eligible before.
    pub start: u64,
    /// Not eligible at or after it.
    pub finish: u64,
    /// At most what is left of the release.
    pub budget: u64,
    /// The larger one first.
    pub priority: i64,
}

/// `struct punctual_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginEvent {
    /// `enum punctual_event_kind`.
    pub kind: u32,
    /// `enum punctual_end`; 0: no job ended.
    pub end: u32,
    /// What the job executed.
    pub used: u64,
    /// What is left of its budget.
    pub remaining: u64,
}

/// `enum punctual_event_kind`.
pub mod event {
    #![allow(missing_docs)]
    pub const RELEASED: u32 = 1;
    pub const JOB_ENDED: u32 = 2;
    pub const READY: u32 = 3;
    pub const BLOCKED: u32 = 4;
    pub const TIMER: u32 = 5;
    pub const LOST: u32 = 6;
}

/// `enum punctual_end`.
pub mod end {
    #![allow(missing_docs)]
    pub const COMPLETED: u32 = 1;
    pub const EXHAUSTED: u32 = 2;
    pub const EXPIRED: u32 = 3;
    pub const CANCELLED: u32 = 4;
    pub const TASK_GONE: u32 = 5;
}

/// `enum punctual_refusal`.
pub mod refusal {
    #![allow(missing_docs)]
    pub const FULL: i32 = -1;
    pub const NOTHING: i32 = -2;
    pub const INVALID: i32 = -3;
    pub const BUSY: i32 = -4;
    pub const NOT_HERE: i32 = -5;
}

/// `enum punctual_order`.
pub mod order {
    #![allow(missing_docs)]
    pub const START: u32 = 1;
    pub const FINISH: u32 = 2;
    pub const BUDGET: u32 = 3;
    pub const PRIORITY: u32 = 4;
}

/// `enum punctual_admission`.
pub mod admission {
    #![allow(missing_docs)]
    pub const UNTESTED: u32 = 0;
    pub const BY_DEADLINES: u32 = 1;
}

/// `struct punctual_context`.
#[repr(C)]
#[derive(Debug)]
pub struct PluginContext {
    /// What a policy may do.
    pub calls: *const PluginCalls,
}

/// `struct punctual_calls`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct PluginCalls {
    /// Of this structure, in bytes.
    pub size: u32,
    pub now: unsafe extern "C" fn(*mut PluginContext) -> u64,
    pub member: unsafe extern "C" fn(*mut PluginContext, *mut PluginMember) -> c_int,
    pub release: unsafe extern "C" fn(*mut PluginContext, *mut PluginRelease) -> c_int,
    pub add_job: unsafe extern "C" fn(*mut PluginContext, *const PluginJob) -> c_int,
    pub replace_job: unsafe extern "C" fn(*mut PluginContext, *const PluginJob) -> c_int,
    pub cancel_job: unsafe extern "C" fn(*mut PluginContext) -> c_int,
    pub remaining: unsafe extern "C" fn(*mut PluginContext) -> u64,
    pub used: unsafe extern "C" fn(*mut PluginContext) -> u64,
    pub executed: unsafe extern "C" fn(*mut PluginContext, u32) -> u64,
    pub set_timer: unsafe extern "C" fn(*mut PluginContext, u64) -> c_int,
    pub cancel_timer: unsafe extern "C" fn(*mut PluginContext) -> c_int,
    pub extend: unsafe extern "C" fn(*mut PluginContext, u64) -> c_int,
}

/// `struct punctual_setup`.
#[repr(C)]
#[derive(Debug)]
pub struct PluginSetup {
    /// Of this structure, in bytes.
    pub size: u32,
    /// 0: the top.
    pub group: u32,
    /// There can be so many.
    pub members: u32,
    /// Of the group, in the set.
    pub tasks: u32,
    /// Those.
    pub of_set: *const PluginMember,
}

/// `struct punctual_policy`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs)]
pub struct PluginPolicy {
    pub version: u32,
    /// Of this structure, in bytes.
    pub size: u32,
    pub name: *const c_char,
    pub title: *const c_char,
    pub source: *const c_char,
    pub order: [u32; 4],
    pub admission: u32,
    pub priority: Option<unsafe extern "C" fn(*const PluginAttributes) -> i64>,
    pub make: Option<unsafe extern "C" fn(*const PluginSetup, *mut c_char, usize) -> *mut c_void>,
    pub drop: Option<unsafe extern "C" fn(*mut c_void)>,
    pub handle: Option<unsafe extern "C" fn(*mut c_void, *mut PluginContext, *const PluginEvent)>,
}

impl PluginPolicy {
    /// Of this version, without anything.
    pub const NONE: PluginPolicy = PluginPolicy {
        version: VERSION,
        size: size_of::<PluginPolicy>() as u32,
        name: ptr::null(),
        title: ptr::null(),
        source: ptr::null(),
        order: [0; 4],
        admission: admission::UNTESTED,
        priority: None,
        make: None,
        drop: None,
        handle: None,
    };
}

// SAFETY: a shared object exports it as a constant; its strings are constants too.
unsafe impl Sync for PluginPolicy {}
