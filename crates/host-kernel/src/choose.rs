//! Which host is the best that a machine and a set permit.

use punctual_taskset::TaskSet;

use crate::limits::accepts;
use crate::machine;

/// Whether it is this one, and why (not), in one line.
pub fn best_for(set: &TaskSet) -> (bool, String) {
    match accepts(set).and_then(|()| machine::check(&set.cpus())) {
        Ok(()) => (true, "this machine has sched_ext, and the set fits it".to_owned()),
        Err(e) => (false, e.cause.replace('\n', " ")),
    }
}
