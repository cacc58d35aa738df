//! A policy at work for a group, or for the servers of a kind.

use punctual_diagnostic::Diagnostic;

use crate::entry::{PolicyEntry, Setup};
use crate::guarded::{self, Panicked};
use crate::policy::SchedulingPolicy;
use crate::servers::KINDS;
use crate::POLICIES;

/// A policy at work, and what is said of it.
pub(crate) struct AtWork {
    pub(crate) entry: &'static PolicyEntry,
    pub(crate) policy: Box<dyn SchedulingPolicy>,
    /// Of a policy of the program.
    panicked: Option<Panicked>,
    /// Its panic was reported.
    reported: bool,
}

impl AtWork {
    /// Makes one. Those of Punctual are called directly, those of the program are guarded.
    ///
    /// # Errors
    /// As the policy says.
    pub(crate) fn make(
        entry: &'static PolicyEntry,
        setup: &Setup<'_>,
    ) -> Result<AtWork, Diagnostic> {
        let own = POLICIES.iter().chain(&KINDS).any(|own| std::ptr::eq(*own, entry));
        let (policy, panicked) = if own {
            ((entry.make)(entry, setup)?, None)
        } else {
            let (policy, panicked) = guarded::make(entry, setup)?;
            (policy, Some(panicked))
        };
        Ok(AtWork { entry, policy, panicked, reported: false })
    }

    /// It may panic.
    pub(crate) fn is_guarded(&self) -> bool {
        self.panicked.is_some()
    }

    /// The message of its panic, the first time after it.
    pub(crate) fn take_panic(&mut self) -> Option<&'static str> {
        let cause = *self.panicked.as_ref()?.get()?;
        (!std::mem::replace(&mut self.reported, true)).then_some(cause)
    }
}
