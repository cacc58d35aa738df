//! A scheduler that is loaded ahead of the run that it is for.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_diagnostic::Diagnostic;

use crate::probe::Timer;
use crate::scheduler::Scheduler;

/// A scheduler that the kernel has verified, and that schedules nothing yet. A run that is started
/// with it has the machine some 100 ms sooner. Clones share one scheduler, which the first run
/// takes.
#[derive(Clone)]
pub struct LoadedScheduler(Arc<Mutex<Option<(Timer, Scheduler)>>>);

impl LoadedScheduler {
    /// Loads it. Another one may be attached meanwhile.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn load() -> Result<LoadedScheduler, Diagnostic> {
        let loaded = load()?;
        Ok(LoadedScheduler(Arc::new(Mutex::new(Some(loaded)))))
    }

    /// It, unless a run has it already.
    pub(crate) fn take(&self) -> Option<(Timer, Scheduler)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for LoadedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedScheduler").finish_non_exhaustive()
    }
}

/// Loads the scheduler for the kind of timer that this kernel permits.
pub(crate) fn load() -> Result<(Timer, Scheduler), Diagnostic> {
    let timer = Timer::of_this_kernel()?;
    Ok((timer, Scheduler::load(|open| timer.prepare(open))?))
}
