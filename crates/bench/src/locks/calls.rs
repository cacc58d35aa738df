//! The calls of libpunctual, from C.

use crate::{tools, Failure};
use std::ffi::{c_char, c_int, CStr};
use std::time::Duration;
// Has cargo link the calls.
use punctual_capi as _;

extern "C" {
    // calls.c
    fn bench_lock_calls(
        cpu: u32,
        period: u64,
        budget: u64,
        pairs: u64,
        per_pair: *mut f64,
    ) -> c_int;
    fn punctual_last_error() -> *const c_char;
}

/// CPU time of lock and unlock in a task, ns.
pub fn per_pair(cpu: u32, period: Duration, budget: Duration, pairs: u64) -> Result<f64, Failure> {
    let [period, budget] = [period, budget].map(|time| time.as_nanos() as u64);
    tools::patiently(|| {
        let mut found = 0.0;
        // SAFETY: `found` is there.
        match unsafe { bench_lock_calls(cpu, period, budget, pairs, &mut found) } {
            0 => Ok(found),
            // SAFETY: a text of this thread.
            _ => Err(unsafe { CStr::from_ptr(punctual_last_error()) }.to_str()?.into()),
        }
    })
}
