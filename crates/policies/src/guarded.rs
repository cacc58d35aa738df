//! Policies of the program: one that panics, or answers too late, is stopped, and not the host.
//!
//! A panic is caught where the allocators call the policy; the time of an answer is measured there.
//! The policy is not called again: it makes no jobs. The allocators then give its group another
//! policy ([`Allocators::handle`]). To catch panics, they must unwind, the default of a program of
//! one's own. `calls.rs` finds policies that do not return.
//!
//! [`Allocators::handle`]: crate::Allocators::handle

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Once, OnceLock};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::TaskId;
use punctual_sys::clock;
use punctual_taskset::{fmt_ns, PolicySpec, Window};

use crate::calls::{call_in_progress, Calls};
use crate::entry::Setup;
use crate::policy::{MemberParams, PolicyEvent, ReservationParams, SchedulingPolicy};
use crate::{Context, PolicyEntry};

/// Why a policy was stopped, as what it did: `has panicked: ...`; empty until then. It is kept for
/// the life of the program: a policy is stopped once.
pub(crate) type Stopped = Arc<OnceLock<&'static str>>;

/// Makes a policy of the program, which may take `longest_answer` for an event, ns of CPU time;
/// `None`: as long as it likes.
///
/// # Errors
/// Why it cannot be made: as it says, or with the message of its panic.
pub(crate) fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
    longest_answer: Option<u64>,
) -> Result<(Box<dyn SchedulingPolicy>, Stopped), Diagnostic> {
    let stopped = Stopped::default();
    keep_panics_quiet();
    let calls = Calls::watched(entry.info.name)?;
    let made = caught(&calls, || (entry.make)(entry, setup));
    let policy = ManuallyDrop::new(made.unwrap_or_else(|cause| Err(error(entry, &cause)))?);
    let answers = Answers { longest: longest_answer, late: 0 };
    let guarded = Guarded { policy, calls, stopped: stopped.clone(), answers };
    ask_of_each(&guarded, setup);
    match stopped.get() {
        None => Ok((Box::new(guarded), stopped)),
        Some(cause) => Err(error(entry, cause)),
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

fn error(entry: &PolicyEntry, cause: &str) -> Diagnostic {
    Diagnostic::usage(format!("the policy \"{}\" {cause}", entry.info.name), "correct the policy")
}

struct Guarded {
    /// After a panic it is not dropped: what is left of it may not be fit for that.
    policy: ManuallyDrop<Box<dyn SchedulingPolicy>>,
    calls: Arc<Calls>,
    stopped: Stopped,
    answers: Answers,
}

/// How long answers to events may take, and did.
struct Answers {
    /// ns of CPU time.
    longest: Option<u64>,
    /// How many took longer.
    late: u32,
}

impl Answers {
    /// Counts an answer that took so much CPU time, ns. Why the policy must be stopped, if it must.
    fn count(&mut self, took: u64) -> Option<String> {
        let longest = self.longest.filter(|&longest| took > longest)?;
        self.late += 1;
        let (took, longest) = (fmt_ns(took), fmt_ns(longest));
        (self.late > 1).then(|| {
            format!("took {took} for an answer: the second one that took more than {longest}")
        })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.stopped.get().is_none() {
            // SAFETY: it is dropped here alone, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.policy) }
        }
    }
}

impl Guarded {
    fn ask<'s, T>(&'s self, otherwise: T, ask: impl FnOnce(&'s dyn SchedulingPolicy) -> T) -> T {
        if self.stopped.get().is_some() {
            return otherwise;
        }
        // The policy is not called again after a panic, so nothing meets a broken invariant of it.
        caught(&self.calls, || ask(&**self.policy)).unwrap_or_else(|cause| {
            self.stop(cause);
            otherwise
        })
    }

    fn stop(&self, cause: String) {
        // Filled once: later calls do not come here.
        let _ = self.stopped.set(cause.leak());
    }
}

thread_local! {
    /// Where the policy panicked.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls a policy: what it returns, or that it has panicked, with the message and the place.
fn caught<T>(calls: &Calls, call: impl FnOnce() -> T) -> Result<T, String> {
    let in_progress = calls.begin();
    let result = catch_unwind(AssertUnwindSafe(call));
    drop(in_progress);
    result.map_err(|cause| {
        let place = PLACE.take();
        let text = cause.downcast_ref::<&str>().copied();
        let text = text.or_else(|| cause.downcast_ref::<String>().map(String::as_str));
        format!("has panicked: {} ({place})", text.unwrap_or("no text"))
    })
}

/// A policy is called where nothing may wait, so its panic prints nothing: the host reports it. One
/// that ends the process prints as all do.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            match call_in_progress() != 0 && cfg!(panic = "unwind") {
                true => PLACE.set(info.location().map(ToString::to_string).unwrap_or_default()),
                false => others(info),
            }
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
        if self.stopped.get().is_some() {
            return false;
        }
        caught(&self.calls, || self.policy.becomes(to)).unwrap_or_else(|cause| {
            self.stop(cause);
            false
        })
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if self.stopped.get().is_some() {
            return;
        }
        let clock = || self.answers.longest.map_or(0, |_| clock::thread_cpu_ns());
        let began = clock();
        // A call of the context is complete before the policy continues, and so before it panics.
        let answered = caught(&self.calls, || self.policy.handle(context, event));
        let took = clock() - began;
        match answered {
            Ok(()) => {
                let fault = self.policy.fault().or_else(|| self.answers.count(took));
                fault.into_iter().for_each(|cause| self.stop(cause));
            }
            Err(cause) => self.stop(cause),
        }
    }
}
