//! What schedules the reservations: a dispatcher for each CPU on the user host, one run for all
//! CPUs on the kernel host, whose scheduler is the machine's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use punctual::results::HostKind;
use punctual::{LoadedScheduler, Policy, Punctual, RunEvent, Running};
use punctual_diagnostic::Diagnostic;
use punctual_process::SERVICE;
use punctual_session::Session;
use punctual_taskset::{PolicySpec, TaskSet};

use crate::mailbox::Mailboxes;
use crate::scheduling_groups::ServiceGroup;

/// Reservations on one CPU.
const LIMIT: u32 = 1024;
/// The same inside the kernel, which has room for so many.
const KERNEL_LIMIT: u32 = 256;

/// The host for reservations on these CPUs, and why, if none is requested: the kernel host, where
/// this machine permits it, else the user host. `replaced`: the host of the service whose place
/// this one takes, which remains it without a request; its scheduler is no other one's.
///
/// # Errors
/// What the machine lacks for the requested one; it is another one than these.
pub fn choose(
    requested: Option<HostKind>,
    replaced: Option<HostKind>,
    cpus: impl IntoIterator<Item = u32>,
) -> Result<(HostKind, Option<String>), Diagnostic> {
    let set = TaskSet::without_tasks(cpus, PolicySpec::named(Policy::default().name()));
    match requested.or(replaced) {
        Some(HostKind::Kernel) if replaced == Some(HostKind::Kernel) => {
            Session::of_running(set, HostKind::Kernel).map(|_| (HostKind::Kernel, None))
        }
        None => {
            let (host, why) = Session::best_host(&set);
            Ok((host, Some(why)))
        }
        Some(host @ (HostKind::User | HostKind::Kernel)) => {
            Session::new(set, host).map(|_| (host, None))
        }
        Some(host) => Err(Diagnostic::usage(
            format!("the service cannot run on host {host}"),
            "use the kernel host or the user host",
        )),
    }
}

/// What the configuration says of dispatchers.
#[derive(Debug, Clone)]
pub struct DispatcherLayout {
    /// Where reservations are made.
    pub cpus: Vec<u32>,
    /// The scheduling groups on them.
    pub groups: Vec<ServiceGroup>,
}

/// A run, with what it was started with: the configuration may be another one since.
#[derive(Debug)]
pub struct ServiceRun {
    /// The run.
    pub running: Running,
    /// Its scheduling groups.
    pub groups: Vec<ServiceGroup>,
}

/// They exist while there are reservations.
#[derive(Debug)]
pub struct Dispatchers {
    host: HostKind,
    mail: Arc<Mailboxes>,
    /// The kernel host's run. Locked while one starts or ends: the next one's scheduler can only be
    /// attached when the last one's has gone.
    of_all: Mutex<Weak<ServiceRun>>,
    /// For the kernel host's next run.
    loaded: Mutex<Option<LoadedScheduler>>,
}

impl Dispatchers {
    /// None yet. `host`: the user host or the kernel host.
    pub fn new(host: HostKind, mail: Arc<Mailboxes>) -> Dispatchers {
        Dispatchers { host, mail, of_all: Mutex::new(Weak::new()), loaded: Mutex::new(None) }
    }

    /// The host that they are on, as `punctual serve --host` has it.
    pub fn host(&self) -> &'static str {
        match self.host {
            HostKind::Kernel => "kernel",
            _ => "user",
        }
    }

    /// Loads the scheduler of the kernel host's next run, which starts sooner by that.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn load_scheduler(&self) -> Result<(), Diagnostic> {
        if self.host == HostKind::Kernel {
            *self.loaded() = Some(LoadedScheduler::load()?);
        }
        Ok(())
    }

    /// The one of `cpu`, with those of all CPUs of the layout on the kernel host. Takes some 30 ms,
    /// if it has to be started.
    ///
    /// # Errors
    /// Another dispatcher or scheduler is there; the machine does not permit it.
    pub fn of_cpu(
        &self,
        cpu: u32,
        layout: &DispatcherLayout,
    ) -> Result<Arc<ServiceRun>, Diagnostic> {
        if self.host != HostKind::Kernel {
            return self.start(&[cpu], layout, LIMIT);
        }
        let mut of_all = self.of_all();
        match of_all.upgrade() {
            Some(run) => Ok(run),
            None => {
                let run = self.start(&layout.cpus, layout, KERNEL_LIMIT)?;
                *of_all = Arc::downgrade(&run);
                Ok(run)
            }
        }
    }

    fn start(
        &self,
        cpus: &[u32],
        layout: &DispatcherLayout,
        limit: u32,
    ) -> Result<Arc<ServiceRun>, Diagnostic> {
        let mail = self.mail.clone();
        let observe = move |event: RunEvent| {
            mail.deliver(&event);
        };
        let set = Punctual::on_cpus(cpus.iter().copied())
            .host(self.host)
            .owner(SERVICE)
            .task_limit(limit)
            .confine_processes()
            .forget_ended()
            .observe(observe);
        let on_them = layout.groups.iter().filter(|group| cpus.contains(&group.cpu));
        let groups: Vec<ServiceGroup> = on_them.cloned().collect();
        let set = match self.loaded().take() {
            Some(loaded) => set.loaded_scheduler(loaded),
            None => set,
        };
        let set = groups.iter().fold(set, |set, group| set.group(group.declared()));
        let running = set.admit()?.start()?;
        Ok(Arc::new(ServiceRun { running, groups }))
    }

    /// A CPU has no reservation any more: its dispatcher ends; on the kernel host, with the last
    /// CPU's.
    pub fn give_back(&self, run: Arc<ServiceRun>) {
        let _of_all = (self.host == HostKind::Kernel).then(|| self.of_all());
        let Some(run) = Arc::into_inner(run) else { return };
        match run.running.stop() {
            Ok(outcome) => {
                outcome.problems.iter().for_each(|p| eprintln!("punctuald: not restored: {p}"))
            }
            Err(e) => eprintln!("punctuald: the dispatcher has ended: {e}"),
        }
    }

    fn loaded(&self) -> MutexGuard<'_, Option<LoadedScheduler>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_all(&self) -> MutexGuard<'_, Weak<ServiceRun>> {
        self.of_all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
