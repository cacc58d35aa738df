//! Scheduling groups and budget groups, which C passes in lists.

use std::ffi::c_char;
use std::mem::size_of;
use std::time::Duration;

use punctual::{BudgetGroup, Error, Punctual, SchedulingGroup};

use crate::error::{error, CallError};
use crate::plain::{self, Plain};
use crate::set::policy;

/// `struct punctual_group`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CGroup {
    pub size: usize,
    pub name: *const c_char,
    pub parent: *const c_char,
    pub budget_group: *const c_char,
    pub period: u64,
    pub budget: u64,
    pub priority: i64,
    pub policy: u32,
    pub cpu: u32,
}

// SAFETY: integers and pointers.
unsafe impl Plain for CGroup {
    const FIRST: usize = size_of::<CGroup>();
}

/// `struct punctual_budget_group`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CBudgetGroup {
    pub size: usize,
    pub name: *const c_char,
    pub parent: *const c_char,
    pub period: u64,
    pub budget: u64,
    pub cpu: u32,
    pub reserved: u32,
}

// SAFETY: integers and pointers.
unsafe impl Plain for CBudgetGroup {
    const FIRST: usize = size_of::<CBudgetGroup>();
}

/// More than a set may have.
const MOST: usize = 4096;

/// Adds the groups of a list to a set on so many CPUs.
///
/// # Errors
/// A value is out of its range; the list is none.
///
/// # Safety
/// That of the header.
pub unsafe fn add_groups(
    mut set: Punctual,
    list: *const CGroup,
    count: usize,
    cpus: usize,
) -> Result<Punctual, CallError> {
    // SAFETY: the caller's.
    for group in unsafe { read_list(list, count)? } {
        // SAFETY: the caller's.
        let (name, parent, node) = unsafe {
            let name = plain::text(group.name, "the group's name")?;
            let parent = plain::text(group.parent, "the parent's name")?;
            (name, parent, plain::text(group.budget_group, "the budget group's name")?)
        };
        let ns = Duration::from_nanos;
        let name = name.unwrap_or_default();
        let mut declared = SchedulingGroup::new(name, ns(group.period), ns(group.budget))
            .policy(policy(group.policy)?)
            .priority(group.priority);
        if let Some(parent) = parent {
            declared = declared.parent(parent);
        }
        if let Some(node) = node {
            declared = declared.budget_group(node);
        }
        if cpus > 1 {
            declared = declared.cpu(group.cpu);
        }
        set = set.group(declared);
    }
    Ok(set)
}

/// Adds the budget groups of a list to a set on so many CPUs.
///
/// # Errors
/// As of [`add_groups`].
///
/// # Safety
/// That of the header.
pub unsafe fn add_budget_groups(
    mut set: Punctual,
    list: *const CBudgetGroup,
    count: usize,
    cpus: usize,
) -> Result<Punctual, CallError> {
    // SAFETY: the caller's.
    for node in unsafe { read_list(list, count)? } {
        // SAFETY: the caller's.
        let (name, parent) = unsafe {
            let name = plain::text(node.name, "the budget group's name")?;
            (name, plain::text(node.parent, "the parent's name")?)
        };
        let ns = Duration::from_nanos;
        let mut declared =
            BudgetGroup::new(name.unwrap_or_default(), ns(node.period), ns(node.budget));
        if let Some(parent) = parent {
            declared = declared.parent(parent);
        }
        if cpus > 1 {
            declared = declared.cpu(node.cpu);
        }
        set = set.budget_group(declared);
    }
    Ok(set)
}

/// The elements of a list, which all have the size of the first.
unsafe fn read_list<T: Plain>(list: *const T, count: usize) -> Result<Vec<T>, Error> {
    let wrong = |cause: &str| error(libc::EINVAL, cause, "set the list, its length and all sizes");
    if count == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() || count > MOST {
        return Err(wrong("the groups are no list"));
    }
    // SAFETY: the caller's: each element begins with its size.
    let size_at =
        |n: usize, size: usize| unsafe { list.byte_add(n * size).cast::<usize>().read_unaligned() };
    let size = size_at(0, 0);
    let mut all = Vec::with_capacity(count);
    for n in 0..count {
        // The first one's size is checked when it is read, before it leads to the second.
        if size_at(n, size) != size {
            return Err(wrong("the groups of a list differ in size"));
        }
        // SAFETY: the caller's.
        all.push(unsafe { plain::read(list.byte_add(n * size))? });
    }
    Ok(all)
}
