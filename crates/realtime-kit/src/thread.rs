//! One thread of a client.

use punctual_daemon::{check_owner, User};
use punctual_diagnostic::is_printable;
use punctual_process::{threads_of, Identity};
use punctual_service::NAME_LIMIT;
use punctual_sys::sched::Attributes;

use crate::refusal::CallRefusal;

/// A thread, and no later one that got its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientThread {
    /// Its number and start.
    pub identity: Identity,
    /// Its process.
    pub pid: i32,
}

impl ClientThread {
    /// A thread of a process, if both are the caller's; 0 is the first one.
    ///
    /// # Errors
    /// There is none, or it is another user's.
    pub fn find(process: u64, thread: u64, caller: &User) -> Result<ClientThread, CallRefusal> {
        let gone = || CallRefusal::Failed(format!("process {process} has no thread {thread}"));
        let pid = i32::try_from(process).map_err(|_| gone())?;
        let tid = if thread == 0 { pid } else { i32::try_from(thread).map_err(|_| gone())? };
        check_owner(pid, caller)?;
        let identity = check_owner(tid, caller)?;
        let found = threads_of(pid).contains(&tid).then_some(ClientThread { identity, pid });
        found.ok_or_else(gone)
    }

    /// Whether it is there.
    pub fn is_alive(&self) -> bool {
        self.identity.is_alive()
    }

    /// Whether it still has a negative nice level.
    pub fn has_nice_level(&self) -> bool {
        self.is_alive() && Attributes::of(self.identity.pid).is_ok_and(|a| a.nice < 0)
    }

    /// The name that its process gave it, as the name of a task.
    pub fn name(&self) -> String {
        let tid = self.identity.pid;
        let comm = std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        let name: String = comm.trim_end().chars().filter(|c| is_printable(*c)).collect();
        if name.is_empty() || name.len() > NAME_LIMIT {
            return format!("thread-{tid}");
        }
        name
    }

    /// The ordinary class at a nice level, which its children do not inherit.
    ///
    /// # Errors
    /// It has gone meanwhile; the machine does not permit it.
    pub fn set_nice(&self, nice: i32) -> Result<(), CallRefusal> {
        let tid = self.identity.pid;
        let mut wanted = Attributes::ordinary();
        (wanted.nice, wanted.flags) = (nice, libc::SCHED_FLAG_RESET_ON_FORK as u64);
        let failed =
            |e| CallRefusal::Failed(format!("thread {tid} cannot have nice level {nice}: {e}"));
        wanted.give(tid).map_err(failed)?;
        // Its number may have become another thread's before.
        if self.is_alive() {
            return Ok(());
        }
        let _ = Attributes::ordinary().give(tid);
        Err(CallRefusal::Failed(format!("thread {tid} has ended")))
    }

    /// The ordinary class at nice level 0.
    pub fn demote(&self) {
        if self.is_alive() {
            // Refused only where it has ended meanwhile.
            let _ = Attributes::ordinary().give(self.identity.pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_in_its_process_alone() {
        let root = User::new(0, vec![0]);
        let pid = std::process::id().into();
        let tid = punctual_sys::sched::thread_id() as u64;
        let found = ClientThread::find(pid, tid, &root).expect("it is this one");
        assert_eq!((found.pid, found.identity.pid), (pid as i32, tid as i32));
        assert!(found.is_alive() && !found.name().is_empty());
        let first = ClientThread::find(pid, 0, &root).expect("it has a first thread");
        assert_eq!(first.identity.pid, pid as i32);
        for (process, thread) in [(1, tid), (pid, 1), (u64::MAX, tid), (pid, u64::MAX), (0, 0)] {
            assert!(matches!(
                ClientThread::find(process, thread, &root),
                Err(CallRefusal::Failed(_))
            ));
        }
        let other = User::new(12_345, vec![12_345]);
        let refusal = ClientThread::find(pid, tid, &other).expect_err("it is another user's");
        assert!(matches!(refusal, CallRefusal::Denied(_)), "{refusal:?}");
    }
}
