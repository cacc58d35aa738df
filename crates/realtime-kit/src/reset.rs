//! ResetAll: real-time threads that no reservation bounds.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use punctual_process::{pids, threads_of, Identity};
use punctual_sys::sched::Attributes;

/// Gives every real-time thread of ordinary users the ordinary class, except in processes that have
/// a reservation (`reserved`, and those in cgroups of Punctual): these have budgets.
pub fn demote_unknown(reserved: &BTreeSet<i32>) {
    demote_in(pids(), reserved);
}

fn demote_in(processes: Vec<i32>, reserved: &BTreeSet<i32>) {
    let is_unknown = |pid: &i32| {
        *pid > 1
            && !reserved.contains(pid)
            && is_ordinary_users(*pid)
            && !is_in_cgroup_of_ours(*pid)
    };
    for tid in processes.into_iter().filter(is_unknown).flat_map(threads_of) {
        let Some(identity) = Identity::of(tid) else { continue };
        if Attributes::of(tid).is_ok_and(|a| a.is_real_time()) && identity.is_alive() {
            // Refused only where it has ended meanwhile.
            let _ = Attributes::ordinary().give(tid);
        }
    }
}

fn is_ordinary_users(pid: i32) -> bool {
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|of| of.uid() != 0)
}

fn is_in_cgroup_of_ours(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .is_ok_and(|groups| groups.contains("/punctual-"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn sleep_in_real_time(uid: u32) -> Option<Child> {
        let child = Command::new("sleep").arg("600").uid(uid).spawn().ok()?;
        Attributes::fifo(1).give(child.id() as i32).ok()?;
        Some(child)
    }

    #[test]
    fn real_time_threads_of_ordinary_users_without_a_reservation_are_demoted() {
        let children: Option<Vec<Child>> =
            [0, 65_534, 65_534].map(sleep_in_real_time).into_iter().collect();
        let Some(mut children) = children else {
            return punctual_test_support::missing("a real-time priority: run this test as root");
        };
        let pids: Vec<i32> = children.iter().map(|child| child.id() as i32).collect();
        demote_in(pids.clone(), &BTreeSet::from([pids[1]]));
        let raised = |pid: &i32| Attributes::of(*pid).expect("it sleeps").is_real_time();
        let remain: Vec<bool> = pids.iter().map(raised).collect();
        for child in &mut children {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
        assert_eq!(remain, [true, true, false], "root's, one with a reservation, another");
    }
}
