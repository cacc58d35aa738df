//! The end of a command whose policy does not return.

use std::sync::OnceLock;
use std::time::Duration;

use punctual_policies::StuckPolicy;

use crate::output::Caller;

/// How long a host may take to end its run.
const HOST_ENDS: Duration = Duration::from_secs(10);

static CALLER: OnceLock<Caller> = OnceLock::new();

/// Ends this program when a policy does not return, with an error; what it has changed is then
/// restored as after any other end. Where the policy is in a thread of a host, the host has the
/// time to end the run, with results.
pub fn bound(caller: Caller) {
    let _ = CALLER.set(caller);
    punctual_policies::on_stuck_policy(end);
}

fn end(stuck: StuckPolicy) {
    if stuck.tid != std::process::id() as i32 {
        std::thread::sleep(HOST_ENDS);
    }
    if let Some(caller) = CALLER.get() {
        std::process::exit(caller.report(&stuck.diagnostic()).into());
    }
}
