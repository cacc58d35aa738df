//! Roles of this test binary (see adversarial.rs) that hold the kernel's cgroup locks nearly all
//! the time. Each is an ordinary process at nice 19 on one CPU.

use std::path::Path;
use std::time::Instant;

use crate::adversarial::LIFE;

/// Sleeping threads of the process that is moved: the longer a move takes, the likelier its
/// preemption.
const THREADS: usize = 32;

fn begin(cpu: &str) {
    let _ = punctual_sys::sched::pin(0, cpu.parse().unwrap_or(0));
    // SAFETY: plain calls on the calling process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// A process of many threads that moves itself to and fro between two groups.
pub fn move_between_groups(dir: &str, cpu: &str) {
    begin(cpu);
    for _ in 0..THREADS {
        drop(std::thread::Builder::new().stack_size(64 << 10).spawn(|| std::thread::sleep(LIFE)));
    }
    let (me, end) = (std::process::id().to_string(), Instant::now() + LIFE);
    for group in ["a", "b"].iter().cycle().take_while(|_| Instant::now() < end) {
        let _ = std::fs::write(Path::new(dir).join(group).join("cgroup.procs"), &me);
    }
}

/// Makes and removes a group.
pub fn make_groups(dir: &str, cpu: &str) {
    begin(cpu);
    let (group, end) = (Path::new(dir).join("x"), Instant::now() + LIFE);
    while Instant::now() < end {
        let _ = std::fs::create_dir(&group);
        let _ = std::fs::remove_dir(&group);
    }
}
