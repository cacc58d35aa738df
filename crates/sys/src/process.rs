//! Children of this process, and its capabilities and limits.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

pub use rustix::thread::CapabilitySet;

/// Reaps a child and returns how it ended; `None`: it has not ended, or is no child.
#[must_use]
pub fn try_wait(pid: i32) -> Option<ExitStatus> {
    wait(pid).ok().flatten()
}

/// Waits until a child has ended, and reaps it; whether it is gone. A child that was killed while a
/// debugger held it, and the debugger is stopped, is the debugger's to wait for: hence the limit.
pub fn reap(pid: i32, patience: Duration) -> bool {
    let limit = Instant::now() + patience;
    while wait(pid).is_ok_and(|status| status.is_none()) {
        if Instant::now() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn wait(pid: i32) -> io::Result<Option<ExitStatus>> {
    let mut status = 0;
    // SAFETY: writes one number.
    match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(ExitStatus::from_raw(status))),
    }
}

/// Kills a process group; none that `kill` would take for more than one. Real-time safe.
pub fn kill_group(group: i32) {
    if group > 1 {
        // SAFETY: a system call without memory arguments.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// The effective capabilities of the calling thread.
#[must_use]
pub fn capabilities() -> CapabilitySet {
    rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// RLIMIT_RTTIME for as long as it lives: real-time execution without a pause beyond it kills the
/// process. The soft limit alone is set, because it can be restored.
#[derive(Debug)]
pub struct RtTimeLimit {
    before: Option<Rlimit>,
}

impl RtTimeLimit {
    /// At most `ns` of real-time execution at a stretch.
    #[must_use]
    pub fn set(ns: u64) -> Self {
        let before = getrlimit(Resource::Rttime);
        let limit = ns / 1_000;
        if before.current.is_some_and(|current| current <= limit) {
            return Self { before: None };
        }
        let set = setrlimit(Resource::Rttime, Rlimit { current: Some(limit), ..before });
        Self { before: set.is_ok().then_some(before) }
    }
}

impl Drop for RtTimeLimit {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = setrlimit(Resource::Rttime, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn the_limit_on_real_time_execution_is_lowered_and_restored() {
        let before = getrlimit(Resource::Rttime);
        let limit = RtTimeLimit::set(5_000_000_000);
        assert_eq!(getrlimit(Resource::Rttime).current, Some(5_000_000));
        drop(RtTimeLimit::set(9_000_000_000));
        assert_eq!(getrlimit(Resource::Rttime).current, Some(5_000_000), "a lower one stays");
        drop(limit);
        assert_eq!(getrlimit(Resource::Rttime), before);
    }

    #[test]
    fn a_child_is_reaped_once_and_for_its_whole_group() {
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("1000").process_group(0).spawn().expect("sleep");
        let pid = child.id() as i32;
        assert_eq!(try_wait(pid), None);
        assert!(!reap(pid, Duration::ZERO));
        kill_group(pid);
        let limit = Instant::now() + Duration::from_secs(60);
        let status = loop {
            assert!(Instant::now() < limit, "it does not end");
            if let Some(status) = try_wait(pid) {
                break status;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(reap(pid, Duration::ZERO), "it is no child any more");
        assert_eq!(child.wait().err().and_then(|e| e.raw_os_error()), Some(libc::ECHILD));
    }
}
