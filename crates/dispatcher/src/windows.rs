//! Windows of a reservation: the time-driven table.

use crate::{checked, ffi, Dispatcher, Refusal};

impl Dispatcher {
    /// Drafts a window of the next reservation: from `start` ns after a release on, `length` ns
    /// long. The next [`Dispatcher::add_reservation`] or [`Dispatcher::change_reservation`] takes
    /// all that were drafted, and makes of each release one job per window, one after the other:
    /// its start and finish are the window's, its budget what is left of the release's, as far as
    /// the window is long.
    ///
    /// Windows stand in rows, each for one release; `begins` says that this one is the first of the
    /// next row. Of m rows, the first is for release 0, m, 2 m and so on.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for one that is 0 ns long, or begins before the end of the one before
    /// it in its row; [`Refusal::Full`] beyond [`Limits::windows`](crate::Limits::windows).
    pub fn draft_window(
        &mut self,
        start: u64,
        length: u64,
        begins: bool,
        now: u64,
    ) -> Result<(), Refusal> {
        // SAFETY: `raw` is a dispatcher, and `&mut self` makes the access exclusive.
        checked(unsafe { ffi::pd_window_add(self.raw(), start, length, begins.into(), now) })
            .map(drop)
    }

    /// Takes back the windows that were drafted: after a refusal, lest the next reservation takes
    /// them.
    pub fn drop_windows(&mut self, now: u64) {
        // SAFETY: as above.
        unsafe { ffi::pd_window_drop(self.raw(), now) };
    }
}
