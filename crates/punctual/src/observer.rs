//! What becomes known of a run while it runs.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::RunEvent;

/// The program's own listener.
pub(crate) struct Observer(Option<Box<dyn FnMut(RunEvent) + Send>>);

impl Observer {
    pub fn new(f: impl FnMut(RunEvent) + Send + 'static) -> Observer {
        Observer(Some(Box::new(f)))
    }

    /// One that panics is not called again; the panic hook has printed why, and the run continues.
    pub fn report(&mut self, event: RunEvent) {
        let Some(f) = &mut self.0 else { return };
        if catch_unwind(AssertUnwindSafe(|| f(event))).is_err() {
            self.0 = None;
        }
    }
}
