//! Sets: opened, waited for, closed.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use punctual::{Error, Host, Policy, Punctual, Running, Time};

use crate::error::{error, failed, returned, CallError};
use crate::fork;
use crate::group::{add_budget_groups, add_groups, CBudgetGroup, CGroup};
use crate::handle::{HandleKind, Table};
use crate::observer::{ObserverFunction, SetObserver};
use crate::plain::{self, Plain};

pub static SETS: Table<Running, HandleOfSet> = Table::new(HandleKind::Set);

/// `struct punctual`.
pub enum HandleOfSet {}

/// `struct punctual_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SetAttr {
    pub size: usize,
    pub cpus: *const u32,
    pub cpu_count: usize,
    pub policy: u32,
    pub flags: u32,
    pub task_limit: u32,
    pub trace_records: u32,
    pub owner: *const c_char,
    pub trace: *const c_char,
    pub groups: *const CGroup,
    pub group_count: usize,
    pub budget_groups: *const CBudgetGroup,
    pub budget_group_count: usize,
    pub observer: Option<ObserverFunction>,
    pub observer_argument: *mut c_void,
    pub host: u32,
    pub reserved: u32,
}

// SAFETY: integers and pointers.
unsafe impl Plain for SetAttr {
    const FIRST: usize = offset_of!(SetAttr, groups);
}

/// PUNCTUAL_OVERLOAD
pub const OVERLOAD: u32 = 1;
/// By number: PUNCTUAL_EDF, PUNCTUAL_RM, PUNCTUAL_DM, PUNCTUAL_FP, PUNCTUAL_JOBS.
pub const POLICIES: [Policy; 5] = [
    Policy::Edf,
    Policy::RateMonotonic,
    Policy::DeadlineMonotonic,
    Policy::FixedPriority,
    Policy::Jobs,
];
/// By number: PUNCTUAL_HOST_USER, PUNCTUAL_HOST_AUTO, PUNCTUAL_HOST_SERVICE.
pub const HOSTS: [Host; 3] = [Host::User, Host::Auto, Host::Service];
/// More than any machine has.
const CPUS: usize = 1 << 16;

#[no_mangle]
pub unsafe extern "C" fn punctual_open(attr: *const SetAttr, set: *mut *mut HandleOfSet) -> c_int {
    returned(plain::not_null(set).and_then(|()| {
        // SAFETY: the caller's.
        let running = unsafe { open(attr)? };
        // SAFETY: the caller's.
        unsafe { set.write(SETS.add(Arc::new(running))) };
        Ok(())
    }))
}

/// The policy of this number.
///
/// # Errors
/// EINVAL.
pub fn policy(number: u32) -> Result<Policy, Error> {
    POLICIES.get(number as usize).copied().ok_or_else(|| {
        let cause = format!("there is no policy {number}");
        error(libc::EINVAL, cause, "use PUNCTUAL_EDF, _RM, _DM, _FP or _JOBS")
    })
}

fn host(attr: &SetAttr) -> Result<Host, Error> {
    let named = HOSTS.get(attr.host as usize).filter(|_| attr.reserved == 0);
    named.copied().ok_or_else(|| {
        let cause = format!("there is no host {}, or a reserved value is not 0", attr.host);
        error(libc::EINVAL, cause, "use PUNCTUAL_HOST_USER, _AUTO or _SERVICE")
    })
}

unsafe fn open(attr: *const SetAttr) -> Result<Running, CallError> {
    fork::watch()?;
    // SAFETY: the caller's.
    let attr = unsafe { plain::read(attr)? };
    let mut declared = match (attr.cpus.is_null(), attr.cpu_count) {
        (_, 0) => Punctual::on_last_cpu(),
        (false, 1..=CPUS) => {
            // SAFETY: the caller's.
            let cpus = unsafe { std::slice::from_raw_parts(attr.cpus, attr.cpu_count) };
            Punctual::on_cpus(cpus.iter().copied())
        }
        _ => return Err(error(libc::EINVAL, "the CPUs are no list", "name at least one").into()),
    };
    declared = declared.policy(policy(attr.policy)?).host(host(&attr)?);
    // SAFETY: the caller's.
    unsafe {
        let (nodes, count) = (attr.budget_groups, attr.budget_group_count);
        declared = add_budget_groups(declared, nodes, count, attr.cpu_count)?;
        declared = add_groups(declared, attr.groups, attr.group_count, attr.cpu_count)?;
    }
    match attr.flags {
        0 => {}
        OVERLOAD => declared = declared.overload(),
        flags => {
            let cause = format!("the flags {flags:#x} are unknown");
            return Err(error(libc::EINVAL, cause, "use PUNCTUAL_OVERLOAD or 0").into());
        }
    }
    if let Some(function) = attr.observer {
        // SAFETY: the caller's.
        let observer = unsafe { SetObserver::new(function, attr.observer_argument) };
        declared = declared.observe(move |event| observer.report(&event));
    }
    if attr.task_limit != 0 {
        declared = declared.task_limit(attr.task_limit);
    }
    if attr.trace_records != 0 {
        declared = declared.trace_records(attr.trace_records);
    }
    // SAFETY: the caller's.
    let (owner, trace) =
        unsafe { (plain::text(attr.owner, "the owner")?, plain::text(attr.trace, "the trace")?) };
    if let Some(owner) = owner {
        declared = declared.owner(owner);
    }
    if let Some(trace) = trace {
        declared = declared.trace(trace);
    }
    Ok(declared.admit()?.start()?)
}

#[no_mangle]
pub extern "C" fn punctual_close(set: *mut HandleOfSet) -> c_int {
    returned(SETS.remove(set).and_then(|running| {
        let problems = running.stop()?.problems;
        if problems.is_empty() {
            return Ok(());
        }
        let help = "see punctual clean";
        Err(punctual::Error::machine(problems.join("; "), help).with_errno(libc::EIO).into())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_wait(set: *mut HandleOfSet, until: u64) -> c_int {
    returned(SETS.get(set).and_then(|running| {
        if until == u64::MAX {
            running.wait();
            return Ok(());
        }
        let left: Duration = Time::from_nanos(until).since(Time::now());
        match running.wait_timeout(left) {
            true => Ok(()),
            false => Err(failed(libc::ETIMEDOUT, c"tasks are left, and the time is over")),
        }
    }))
}

#[no_mangle]
pub extern "C" fn punctual_clock() -> u64 {
    Time::now().as_nanos()
}
