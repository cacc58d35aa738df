//! Ordinary processes that hold the kernel's cgroup locks nearly all the time, on the CPU of a run:
//! each write to cgroup.freeze waits for one of them, and the holder is often preempted.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_test_support::comes_true;

use crate::bounded::end_within;
use crate::process::cgroup_mount;
use crate::punctual::adversarial;

/// The processes and their groups; ended and removed when this is dropped.
pub struct CgroupWork {
    dir: PathBuf,
    processes: Vec<Child>,
}

impl CgroupWork {
    /// Starts them on this CPU.
    pub fn on(cpu: u32) -> CgroupWork {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mount = cgroup_mount().expect("Need::Freezer holds");
        let dir = mount.join(format!("real-cgroup-work-{}-{number}", std::process::id()));
        for group in [dir.clone(), dir.join("a"), dir.join("b")] {
            std::fs::create_dir(&group).unwrap_or_else(|e| panic!("{}: {e}", group.display()));
        }
        let mut work = CgroupWork { dir, processes: Vec::new() };
        for role in ["move-between-groups", "make-groups"] {
            let words = adversarial(&format!("{role} {} {cpu}", work.dir.display()));
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
            work.processes.push(command.spawn().unwrap());
        }
        let works = |group: &str| {
            std::fs::read_to_string(work.dir.join(group)).is_ok_and(|t| !t.is_empty())
        };
        assert!(
            comes_true(|| works("a/cgroup.procs") || works("b/cgroup.procs")),
            "the work on cgroups never begins"
        );
        work
    }
}

impl CgroupWork {
    /// One of them waits until all threads have left fork or exit in which they are.
    pub fn awaits_forks(&self) -> bool {
        self.processes.iter().any(|process| {
            let place = std::fs::read_to_string(format!("/proc/{}/wchan", process.id()));
            place.is_ok_and(|place| place == "cgroup_procs_write_start")
        })
    }
}

impl Drop for CgroupWork {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = end_within(process, Duration::from_secs(20));
        }
        let groups = ["x", "a", "b", ""].map(|g| self.dir.join(g));
        // A process that has just ended may still be counted in its group.
        let removed = comes_true(|| {
            groups.iter().for_each(|g| drop(std::fs::remove_dir(g)));
            !self.dir.exists()
        });
        if !removed {
            eprintln!("{} is left", self.dir.display());
        }
    }
}
