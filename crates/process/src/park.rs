//! Parks a task of unmodified programs: one interface to the freezer and stop
//! signals.

use crate::cgroup::{Cgroup, CgroupBase};
use crate::journal::{Journal, Purpose};
use crate::proc::Identity;
use crate::stop::StopGroup;
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::Children;
use std::io;

/// Room for this many processes in a task without cgroup v2.
const STOP_CAPACITY: usize = 256;

/// What parks and resumes one task. Share it by `Arc` between the dispatcher and the housekeeper.
#[derive(Debug)]
pub enum Park {
    /// By the cgroup v2 freezer.
    Freezer(Cgroup),
    /// By SIGSTOP and SIGCONT.
    Stop(StopGroup),
}

/// The same call for either kind.
macro_rules! either {
    ($park:expr, $p:ident => $call:expr) => {
        match $park {
            Park::Freezer($p) => $call,
            Park::Stop($p) => $call,
        }
    };
}

impl Park {
    /// For a command that is about to be started; without `base`, by stop signals.
    pub fn for_command(
        journal: &Journal,
        base: Option<&CgroupBase>,
        name: &str,
    ) -> Result<Self, Diagnostic> {
        match base {
            Some(b) => Ok(Self::Freezer(b.group(name)?)),
            None => Ok(Self::Stop(StopGroup::new(journal, Purpose::Command, STOP_CAPACITY))),
        }
    }

    /// For a running process that is about to be adopted, whose user we trust to leave it in its
    /// cgroup.
    pub fn for_process(
        journal: &Journal,
        base: Option<&CgroupBase>,
        pid: i32,
        name: &str,
    ) -> Result<Self, Diagnostic> {
        match base {
            Some(b) => Ok(Self::Freezer(b.group_for(pid, name)?)),
            None => Ok(Self::Stop(StopGroup::new(journal, Purpose::Adopted, STOP_CAPACITY))),
        }
    }

    /// For a running process of a user that must not be able to leave it: by a cgroup below ours.
    pub fn confining(base: &CgroupBase, name: &str) -> Result<Self, Diagnostic> {
        Ok(Self::Freezer(base.confining_group(name)?))
    }

    /// Before any process joins: has the kernel keep the task's threads on `cpu`, whatever affinity
    /// they choose. `false` where there is no cgroup with a cpuset: then only their affinity keeps
    /// them there ([`Threads`](crate::Threads)). Not real-time safe.
    pub fn bind(&self, cpu: u32) -> bool {
        match self {
            Self::Freezer(c) => c.bind(cpu),
            Self::Stop(_) => false,
        }
    }

    /// What its threads inherit: a new process is in the cgroup of its parent at once, but no stop
    /// signal reaches it before the housekeeper has found it.
    pub(crate) fn children(&self) -> Children {
        match self {
            Self::Freezer(_) => Children::Inherit,
            Self::Stop(_) => Children::AreOrdinary,
        }
    }

    /// Parks the task. Real-time safe.
    pub fn park(&self) -> io::Result<()> {
        either!(self, p => p.park())
    }

    /// Resumes it. Real-time safe.
    pub fn resume(&self) -> io::Result<()> {
        either!(self, p => p.resume())
    }

    /// CPU time that it used, in nanoseconds. Real-time safe. See [`Cgroup::usage_ns`] and
    /// [`StopGroup::usage_ns`].
    pub fn usage_ns(&self) -> io::Result<u64> {
        either!(self, p => p.usage_ns())
    }

    /// Whether all of it has stopped. Not real-time safe.
    pub fn is_parked(&self) -> io::Result<bool> {
        match self {
            Self::Freezer(c) => c.looks_frozen(),
            Self::Stop(s) => Ok(s.is_stopped()),
        }
    }

    /// Whether all of it has stopped, if one system call can tell: `None` with stop signals.
    /// For the dispatcher. Real-time safe.
    pub fn stands_still(&self) -> Option<bool> {
        match self {
            // A group that is gone has no processes.
            Self::Freezer(c) => Some(c.is_frozen().unwrap_or(true)),
            Self::Stop(_) => None,
        }
    }

    /// Sets the FIFO level (0: ordinary) that the task has from now on. Matters to stop signals
    /// only, which change the leaders' level. Real-time safe.
    pub fn set_level(&self, level: i32) {
        if let Self::Stop(s) = self {
            s.set_level(level);
        }
    }

    /// Housekeeping: finds processes that joined. Nothing to do for a cgroup. Not real-time safe.
    pub fn rescan(&self) -> Result<usize, Diagnostic> {
        match self {
            Self::Freezer(_) => Ok(0),
            Self::Stop(s) => s.rescan(),
        }
    }

    /// Its processes. Not real-time safe.
    pub fn procs(&self) -> Vec<i32> {
        either!(self, p => p.procs())
    }

    /// Before its processes are restored, while they have their budget still: see
    /// [`Cgroup::prepare_moves`]. Not real-time safe.
    pub fn prepare_restoration(&self) {
        if let Self::Freezer(c) = self {
            c.prepare_moves();
        }
    }

    /// Its threads. Not real-time safe.
    pub fn threads(&self) -> Vec<i32> {
        either!(self, p => p.threads())
    }

    /// Kills all of it. Not real-time safe.
    pub fn kill(&self) -> io::Result<()> {
        match self {
            Self::Freezer(c) => c.kill(),
            Self::Stop(s) => {
                s.rescan().map(|_| ()).map_err(|e| io::Error::other(e.to_string())).and(s.kill())
            }
        }
    }

    /// Removes its cgroup; all its processes must be gone or restored.
    pub fn remove(&self) -> Result<(), Diagnostic> {
        match self {
            Self::Freezer(c) => c.remove(),
            Self::Stop(_) => Ok(()),
        }
    }

    pub(crate) fn add(&self, id: Identity) -> Result<(), Diagnostic> {
        match self {
            Self::Freezer(c) => c.add(id.pid),
            Self::Stop(s) => s.add(id),
        }
    }
}
