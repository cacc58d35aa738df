//! The commands of one run: held at their exec, released together, ended with all that they
//! started; and what else a host that parks nothing changes for a run.

use crate::cgroup::CgroupBase;
use crate::command_spec::{CommandSpec, Hold};
use crate::frozen::FrozenProcess;
use crate::guardian::Guardian;
use crate::journal::{Entry, Journal};
use crate::lock::CpuLock;
use crate::park::Park;
use crate::proc::Identity;
use crate::rcu;
use crate::restore::restore;
use crate::spawn::{spawn, Spawned};
use punctual_diagnostic::Diagnostic;
use rustix::fd::BorrowedFd;
use std::io;
use std::process::ExitStatus;

/// A command of [`Commands::start_apart`].
#[derive(Debug)]
pub struct HeldCommand {
    spawned: Spawned,
    park: Park,
}

impl HeldCommand {
    /// It begins to execute. For the thread that started it.
    ///
    /// # Errors
    /// See [`Spawned::release`].
    pub fn release(&self) -> io::Result<()> {
        self.spawned.release(&self.park)
    }

    /// See [`Spawned::lock_memory`].
    ///
    /// # Errors
    /// See [`Spawned::lock_memory`].
    pub fn lock_memory(&self) -> io::Result<()> {
        self.spawned.lock_memory()
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.spawned.id().pid
    }

    /// Its pidfd: readable (POLLIN) when it has ended.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.spawned.pidfd()
    }

    /// Its exit status, once it has ended; waits for nothing.
    ///
    /// # Errors
    /// See [`Spawned::try_wait`].
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.spawned.try_wait()
    }

    /// Kills it and its process group, without waiting.
    pub fn kill(&self) {
        self.spawned.kill_group();
    }
}

/// Commands that nothing parks: they are held at their exec until [`release`](Self::release), and
/// the host's scheduling policy alone decides when they execute then. Dropping it ends them; when
/// this process is killed, its guardian does.
#[derive(Debug)]
pub struct Commands {
    journal: Journal,
    /// `None` once they were ended.
    guardian: Option<Guardian>,
    all: Vec<(Spawned, Park)>,
    /// With the first process that is frozen.
    base: Option<CgroupBase>,
}

impl Commands {
    /// None yet; the guardian stands watch, and holds the CPU locks with us. Not real-time safe, as
    /// all of this.
    ///
    /// # Errors
    /// No journal, or no process, can be made.
    pub fn new(locks: &[CpuLock]) -> Result<Self, Diagnostic> {
        let journal = Journal::create()?;
        let guardian = Some(Guardian::start(&journal, locks)?);
        Ok(Self { journal, guardian, all: Vec::new(), base: None })
    }

    /// Lets another process adopt the commands.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn let_adopt(&self) -> Result<(), Diagnostic> {
        self.journal.write(&Entry::ParkedElsewhere)
    }

    /// Starts a command, held at its exec whatever `spec` says. It dies with the calling thread.
    ///
    /// # Errors
    /// See [`spawn`].
    pub fn start(&mut self, spec: CommandSpec, name: &str) -> Result<&Spawned, Diagnostic> {
        let park = Park::for_command(&self.journal, None, name)?;
        let spawned = spawn(&self.journal, CommandSpec { hold: Hold::AtExec, ..spec }, &park)?;
        self.all.push((spawned, park));
        Ok(&self.all[self.all.len() - 1].0)
    }

    /// Starts a command that its holder releases, waits for and ends by itself, held at its exec
    /// whatever `spec` says. It dies with the calling thread. [`end`](Self::end) ends it, too, if
    /// it was not waited for.
    ///
    /// # Errors
    /// See [`spawn`].
    pub fn start_apart(&self, spec: CommandSpec, name: &str) -> Result<HeldCommand, Diagnostic> {
        let park = Park::for_command(&self.journal, None, name)?;
        let spawned = spawn(&self.journal, CommandSpec { hold: Hold::AtExec, ..spec }, &park)?;
        Ok(HeldCommand { spawned, park })
    }

    /// Freezes a running process that is none of these commands, with its children, until
    /// [`FrozenProcess::restore`] or the end.
    ///
    /// # Errors
    /// No such process, or one that may not be moved; no cgroup v2. Nothing is changed then.
    pub fn freeze(&mut self, pid: i32, name: &str) -> Result<FrozenProcess, Diagnostic> {
        let base = match &self.base {
            Some(base) => base,
            None => self.base.insert(CgroupBase::create(&self.journal)?),
        };
        FrozenProcess::new(&self.journal, base, pid, name)
    }

    /// Makes these ordinary threads until the end ([`rcu_threads`](crate::rcu_threads)).
    ///
    /// # Errors
    /// The journal cannot be written; not permitted.
    pub fn make_ordinary(&self, threads: &[Identity]) -> Result<(), Diagnostic> {
        rcu::make_ordinary(&self.journal, threads)
    }

    /// All of them, in the order of their starts.
    pub fn iter(&self) -> impl Iterator<Item = &Spawned> {
        self.all.iter().map(|(spawned, _)| spawned)
    }

    /// The exit status of one, by its place in that order; see [`Spawned::try_wait`].
    ///
    /// # Errors
    /// See [`Spawned::try_wait`].
    pub fn try_wait(&mut self, index: usize) -> io::Result<Option<ExitStatus>> {
        self.all[index].0.try_wait()
    }

    /// All begin to execute. Call it from the thread that started them.
    pub fn release(&self) {
        for (spawned, park) in &self.all {
            // A command that was killed meanwhile has nothing to release.
            let _ = spawned.release(park);
        }
    }

    /// Kills each command and its process group, without waiting. What they started in other
    /// process groups lives until [`end`](Self::end).
    pub fn kill(&self) {
        for spawned in self.iter() {
            spawned.kill_group();
        }
    }

    /// Starts another guardian if the guardian has died; what happened, in words for people.
    pub fn replace_dead_guardian(&mut self) -> Option<String> {
        self.guardian.as_mut()?.replace_if_dead()
    }

    /// Ends all commands and what they started; returns what could not be ended.
    pub fn end(mut self) -> Vec<String> {
        self.restore()
    }

    fn restore(&mut self) -> Vec<String> {
        let Some(guardian) = self.guardian.take() else { return Vec::new() };
        let report = restore(&self.journal);
        guardian.dismiss();
        report.problems
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // `punctual clean` and `punctual doctor` report what remains.
        let _ = self.restore();
    }
}
