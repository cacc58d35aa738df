//! Policies of the program: a panic stops the policy, and not the host.
//!
//! A panic is caught where the allocators call the policy, and the policy is not called again: it
//! makes no jobs. The allocators then give its group another policy ([`Allocators::handle`]). This
//! needs panics that unwind, the default of a program of one's own.
//!
//! [`Allocators::handle`]: crate::Allocators::handle

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Once, OnceLock};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::TaskId;
use punctual_taskset::{PolicySpec, Window};

use crate::entry::Setup;
use crate::policy::{MemberParams, PolicyEvent, ReservationParams, SchedulingPolicy};
use crate::{Context, PolicyEntry};

/// The message and the place of a policy's panic; empty until then. It is kept for the life of the
/// program: a policy panics once.
pub(crate) type Panicked = Arc<OnceLock<&'static str>>;

/// Makes a policy of the program.
///
/// # Errors
/// Why it cannot be made: as it says, or with the message of its panic.
pub(crate) fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<(Box<dyn SchedulingPolicy>, Panicked), Diagnostic> {
    let panicked = Panicked::default();
    keep_panics_quiet();
    let made = caught(|| (entry.make)(entry, setup));
    let policy = made.unwrap_or_else(|cause| Err(has_panicked(entry, &cause)))?;
    let guarded = Guarded { policy: ManuallyDrop::new(policy), panicked: panicked.clone() };
    ask_of_each(&guarded, setup);
    match panicked.get() {
        None => Ok((Box::new(guarded), panicked)),
        Some(cause) => Err(has_panicked(entry, cause)),
    }
}

/// Asks what is asked before tasks run: where policies are inside the kernel, nothing else is.
fn ask_of_each(policy: &Guarded, setup: &Setup<'_>) {
    for (index, task) in setup.tasks() {
        let member = &MemberParams::of(task, index as u32, TaskId::NONE);
        let _ = (policy.admits(member), policy.reservation(member), policy.paces(member));
        let _ = (policy.observes(member), policy.budget(member));
        (0..policy.rows(member)).for_each(|row| {
            policy.windows(member, row);
        });
    }
}

fn has_panicked(entry: &PolicyEntry, cause: &str) -> Diagnostic {
    Diagnostic::usage(
        format!("the policy \"{}\" has panicked: {cause}", entry.info.name),
        "correct the policy",
    )
}

struct Guarded {
    /// After a panic it is not dropped: what is left of it may not be fit for that.
    policy: ManuallyDrop<Box<dyn SchedulingPolicy>>,
    panicked: Panicked,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.panicked.get().is_none() {
            // SAFETY: it is dropped here alone, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.policy) }
        }
    }
}

impl Guarded {
    fn ask<'s, T>(&'s self, otherwise: T, ask: impl FnOnce(&'s dyn SchedulingPolicy) -> T) -> T {
        if self.panicked.get().is_some() {
            return otherwise;
        }
        // The policy is not called again after a panic, so nothing meets a broken invariant of it.
        caught(|| ask(&**self.policy)).unwrap_or_else(|cause| {
            self.stop(cause);
            otherwise
        })
    }

    fn stop(&self, cause: String) {
        // Filled once: later calls do not come here.
        let _ = self.panicked.set(cause.leak());
    }
}

thread_local! {
    /// This thread is inside of a policy.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Where the policy panicked.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls a policy: what it returns, or the message and the place of its panic.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let outside = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(outside);
    result.map_err(|cause| {
        let place = PLACE.take();
        let text = cause.downcast_ref::<&str>().copied();
        let text = text.or_else(|| cause.downcast_ref::<String>().map(String::as_str));
        format!("{} ({place})", text.unwrap_or("no text"))
    })
}

/// A policy is called where nothing may wait, so its panic prints nothing: the host reports it. One
/// that ends the process prints as all do.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match INSIDE.get() && cfg!(panic = "unwind") {
            true => PLACE.set(info.location().map(ToString::to_string).unwrap_or_default()),
            false => others(info),
        }));
    });
}

impl SchedulingPolicy for Guarded {
    fn admits(&self, member: &MemberParams) -> bool {
        self.ask(true, |policy| policy.admits(member))
    }

    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        self.ask(None, |policy| policy.reservation(member))
    }

    fn paces(&self, member: &MemberParams) -> bool {
        self.ask(false, |policy| policy.paces(member))
    }

    fn budget(&self, member: &MemberParams) -> u64 {
        self.ask(member.budget, |policy| policy.budget(member))
    }

    fn rows(&self, member: &MemberParams) -> u64 {
        self.ask(0, |policy| policy.rows(member))
    }

    fn windows(&self, member: &MemberParams, number: u64) -> &[Window] {
        self.ask(&[], |policy| policy.windows(member, number))
    }

    fn observes(&self, member: &MemberParams) -> bool {
        self.ask(false, |policy| policy.observes(member))
    }

    fn server_priority(&self, server: &MemberParams) -> Option<i64> {
        self.ask(None, |policy| policy.server_priority(server))
    }

    fn becomes(&mut self, to: &PolicySpec) -> bool {
        if self.panicked.get().is_some() {
            return false;
        }
        caught(|| self.policy.becomes(to)).unwrap_or_else(|cause| {
            self.stop(cause);
            false
        })
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if self.panicked.get().is_some() {
            return;
        }
        // A call of the context is complete before the policy continues, and so before it panics.
        if let Err(cause) = caught(|| self.policy.handle(context, event)) {
            self.stop(cause);
        }
    }
}
