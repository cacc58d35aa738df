//! A policy at work for a group, or for the servers of a kind.

use punctual_diagnostic::Diagnostic;

use crate::entry::{PolicyEntry, Setup};
use crate::guarded::{self, Stopped};
use crate::policy::SchedulingPolicy;
use crate::servers::KINDS;
use crate::{JOBS, POLICIES};

/// A policy at work, and what is said of it.
pub(crate) struct AtWork {
    pub(crate) entry: &'static PolicyEntry,
    pub(crate) policy: Box<dyn SchedulingPolicy>,
    /// Of a policy of the program.
    stopped: Option<Stopped>,
    /// That it was stopped is reported.
    reported: bool,
}

impl AtWork {
    /// Makes one. Those of Punctual are called directly, those of the program are guarded, and may
    /// take `longest_answer` for an event, ns of CPU time.
    ///
    /// # Errors
    /// As the policy says.
    pub(crate) fn make(
        entry: &'static PolicyEntry,
        setup: &Setup<'_>,
        longest_answer: Option<u64>,
    ) -> Result<AtWork, Diagnostic> {
        let mut of_punctual = POLICIES.iter().chain(&KINDS).map(|own| own.info).chain([JOBS.info]);
        let own = of_punctual.any(|own| std::ptr::eq(own, entry.info));
        let (policy, stopped) = if own {
            ((entry.make)(entry, setup)?, None)
        } else {
            let (policy, stopped) = guarded::make(entry, setup, longest_answer)?;
            (policy, Some(stopped))
        };
        Ok(AtWork { entry, policy, stopped, reported: false })
    }

    /// It may be stopped.
    pub(crate) fn is_guarded(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why it was stopped, the first time after it.
    pub(crate) fn take_stop(&mut self) -> Option<&'static str> {
        let cause = *self.stopped.as_ref()?.get()?;
        (!std::mem::replace(&mut self.reported, true)).then_some(cause)
    }
}
