//! A policy in a shared object, as Punctual calls it.

use std::ffi::{c_char, c_void, CStr};
use std::ptr;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{End, TaskId};
use punctual_policies::{Context, JobParams, MemberParams, PolicyEntry, PolicyEvent};
use punctual_policies::{ReservationParams, SchedulingPolicy, Setup};

use crate::abi;
use crate::context::{member_of, Handle};
use crate::library::{self, Priority};

/// Bytes of the longest cause that a policy gives, with the final 0.
const LONGEST_CAUSE: usize = 256;

struct Adapter {
    abi: &'static abi::PluginPolicy,
    priority: Option<Priority>,
    /// What the policy keeps.
    own: *mut c_void,
    handle: &'static Handle,
}

// SAFETY: the header says that calls come from changing threads, one at a time.
unsafe impl Send for Adapter {}

impl Drop for Adapter {
    fn drop(&mut self) {
        if let Some(drop) = self.abi.drop {
            // SAFETY: its `make` returned it, and nothing uses it any more.
            unsafe { drop(self.own) };
        }
    }
}

/// Makes the policy of an entry for a group.
pub(crate) fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    let Some(abi) = library::of_entry(entry) else {
        return Err(Diagnostic::usage("the policy is in no plugin", "report it with the set"));
    };
    let tasks: Vec<_> = setup
        .tasks()
        .map(|(place, task)| member_of(&MemberParams::of(task, place as u32, TaskId::NONE)))
        .collect();
    let what = abi::PluginSetup {
        size: size_of::<abi::PluginSetup>() as u32,
        group: setup.group,
        members: setup.members,
        tasks: tasks.len() as u32,
        of_set: tasks.as_ptr(),
    };
    let mut own = ptr::null_mut();
    if let Some(make) = abi.make {
        let mut cause = [0; LONGEST_CAUSE];
        // SAFETY: all pointers are to values that outlive the call; the last byte of the cause
        // remains 0.
        own = unsafe { make(&what, cause.as_mut_ptr().cast::<c_char>(), LONGEST_CAUSE - 1) };
        if own.is_null() {
            return Err(cannot(entry.info.name, &cause));
        }
    }
    let priority = Priority::of(abi);
    Ok(Box::new(Adapter { abi, priority, own, handle: Handle::new() }))
}

fn cannot(name: &str, cause: &[u8]) -> Diagnostic {
    let cause = CStr::from_bytes_until_nul(cause).map(CStr::to_string_lossy).unwrap_or_default();
    let cause = match cause.is_empty() {
        true => "cannot serve this set, and gives no cause".to_owned(),
        false => cause.replace(|c| !punctual_diagnostic::is_printable(c), "?"),
    };
    Diagnostic::usage(format!("the policy \"{name}\": {cause}"), "change the set, or its policy")
}

impl SchedulingPolicy for Adapter {
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        let priority = self.priority.filter(|_| self.abi.handle.is_none())?;
        let priority = priority.value(&member_of(member).of);
        Some(ReservationParams { priority, wakeup_rule: false })
    }

    fn server_priority(&self, server: &MemberParams) -> Option<i64> {
        self.priority.map(|priority| priority.value(&member_of(server).of))
    }

    fn fault(&mut self) -> Option<String> {
        self.handle.misuse().map(str::to_owned)
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let Some(handle) = self.abi.handle else {
            // Where a reservation could not release it.
            if let (PolicyEvent::Released, Some(priority)) = (event, self.priority) {
                let priority = priority.value(&member_of(context.member()).of);
                let release = context.release();
                let (start, finish, budget) = (release.at, release.deadline, release.left);
                // One that is refused loses the release: the host learns of it.
                let _ = context.add_job(&JobParams { start, finish, budget, priority });
            }
            return;
        };
        let event = event_of(event);
        // SAFETY: `own` is what its `make` returned; the event outlives the call.
        self.handle.during(context, |context| unsafe { handle(self.own, context, &event) });
    }
}

fn event_of(event: PolicyEvent) -> abi::PluginEvent {
    let plain = |kind| abi::PluginEvent { kind, end: 0, used: 0, remaining: 0 };
    match event {
        PolicyEvent::Released => plain(abi::event::RELEASED),
        PolicyEvent::JobEnded { end, used, remaining } => {
            let end = match end {
                End::Completed => abi::end::COMPLETED,
                End::Exhausted => abi::end::EXHAUSTED,
                End::Expired => abi::end::EXPIRED,
                End::Cancelled => abi::end::CANCELLED,
                End::TaskGone => abi::end::TASK_GONE,
            };
            abi::PluginEvent { end, used, remaining, ..plain(abi::event::JOB_ENDED) }
        }
        PolicyEvent::Ready => plain(abi::event::READY),
        PolicyEvent::Blocked => plain(abi::event::BLOCKED),
        PolicyEvent::Timer => plain(abi::event::TIMER),
        PolicyEvent::Lost => plain(abi::event::LOST),
    }
}
