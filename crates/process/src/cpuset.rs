//! A cpuset for the cgroup of a task: the kernel itself keeps all its threads on one CPU.
//!
//! Without it their affinity alone keeps them there, which each may change without privileges: the
//! housekeeper then moves them back ([`Threads::rescan`](crate::Threads::rescan)).
//!
//! ```text
//!   UNIT                 delegated to us by systemd: +cpuset by `parent_of_groups`
//!    ├ punctuald         this process (DelegateSubgroup=punctuald)
//!    └ punctual-ID       our group of groups: +cpuset by `offer`
//!       └ own.NAME       cpuset.cpus by `bind`, and all possible CPUs by `release`
//! ```
//!
//! A group has a cpuset where its parent offers that controller, and a group with processes of its
//! own can offer none (EBUSY), but for the root. So elsewhere there is a cpuset only where an
//! administrator has enabled the controller in the group that this process is in, or that an
//! adopted process was in.
//!
//! Nothing of it is in the journal. What is written to our groups goes with them. UNIT is ours to
//! divide until systemd removes it, and a cpuset without CPUs of its own has those of its parent.

use rustix::fs::getxattr;
use std::io;
use std::path::{Path, PathBuf};

/// Of systemd/punctuald.service.in: the name of the group of the service's own processes.
pub(crate) const SUBGROUP: &str = "punctuald";

/// The group below which we make ours: `own`, the one that this process is in, or where systemd
/// has put us into a subgroup for that purpose, and cpusets can be offered, its parent. `top` is
/// the topmost group that is mounted.
pub(crate) fn parent_of_groups(own: PathBuf, top: &Path) -> PathBuf {
    let unit = own.parent().filter(|unit| {
        own.ends_with(SUBGROUP) && unit.starts_with(top) && is_delegated(unit) && offer(unit)
    });
    unit.map(Path::to_owned).unwrap_or(own)
}

/// Whether systemd has left this group to the processes of its unit: since version 251 it says so
/// by this attribute.
fn is_delegated(unit: &Path) -> bool {
    let mut value = [0u8; 1];
    getxattr(unit, "user.delegate", &mut value).is_ok_and(|length| value[..length] == *b"1")
}

/// Lets the groups in this one have cpusets, where it has one itself; whether they can.
pub(crate) fn offer(dir: &Path) -> bool {
    std::fs::write(dir.join("cgroup.subtree_control"), "+cpuset").is_ok()
}

/// Keeps the threads of a group on one CPU, later ones included; whether there is a cpuset for it.
pub(crate) fn bind(dir: &Path, cpu: u32) -> bool {
    set_cpus(dir, &cpu.to_string()).is_ok()
}

/// Gives the group the CPUs of its parent, so that its threads can have their own again. The
/// kernel refuses an empty set while there are processes.
pub(crate) fn release(dir: &Path) {
    if let Ok(possible) = std::fs::read_to_string("/sys/devices/system/cpu/possible") {
        let _ = set_cpus(dir, &possible);
    }
}

fn set_cpus(dir: &Path, cpus: &str) -> io::Result<()> {
    std::fs::write(dir.join("cpuset.cpus"), cpus)
}
