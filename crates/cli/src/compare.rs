//! `punctual run --compare`: the same set under the kernel's own policies.

use std::sync::atomic::AtomicBool;

use punctual_report::{Collector, Host, Results, Run as About};
use punctual_taskset::TaskSet;

use crate::args::{PeerArg, Run};

pub fn run(_args: &Run, set: &TaskSet, peer: PeerArg, overload: bool, _stop: &AtomicBool) -> Results {
    let host = match peer {
        PeerArg::Fifo => Host::Fifo,
        PeerArg::Deadline => Host::Deadline,
        PeerArg::Other => Host::Other,
    };
    let about = About { overload, ..About::new(host, &set.policy.name, &set.cpus) };
    Collector::for_set(about, set).not_possible("not there yet", &[])
}
