//! From a task set to one that may run on a host.

use punctual_analysis::{analyse_within, verdict, Analysis, Capacity, DomainLoad};
use punctual_diagnostic::Diagnostic;
use punctual_taskset::{Costs, TaskSet};

use crate::driver::Execution;
use crate::running::StartOutcome;
use crate::{HostKind, RunOptions};

/// A task set and the host that is to run it.
#[derive(Debug, Clone)]
pub struct Session {
    set: TaskSet,
    host: HostKind,
    capacity: Capacity,
}

/// A set that fits, or that runs with `overload`.
#[derive(Debug, Clone)]
pub struct AdmittedSet {
    pub(crate) set: TaskSet,
    pub(crate) host: HostKind,
    pub(crate) capacity: Capacity,
    pub(crate) overload: bool,
    loads: Vec<DomainLoad>,
    analysis: Option<Analysis>,
}

impl Session {
    /// Checks that the host and this machine can run the set; changes nothing.
    ///
    /// # Errors
    /// What of the set this host does not do, or what the machine lacks for it.
    pub fn new(set: TaskSet, host: HostKind) -> Result<Session, Diagnostic> {
        // The hosts refuse it too, but only after an analysis that would find other faults.
        set.only_cpus()?;
        if host == HostKind::Kernel {
            punctual_host_kernel::machine::check(&set.cpus())?;
        }
        Session::of_running(set, host)
    }

    /// The same of a set that runs on the host already, and gets other tasks or parameters.
    ///
    /// # Errors
    /// What of the set this host does not do.
    pub fn of_running(set: TaskSet, host: HostKind) -> Result<Session, Diagnostic> {
        match host {
            HostKind::Kernel => punctual_host_kernel::accepts(&set)?,
            HostKind::Service => punctual_host_service::accepts(&set)?,
            _ => {}
        }
        if matches!(host, HostKind::Fifo | HostKind::Deadline | HostKind::Other)
            && set.duration.is_none()
        {
            let cause = "the kernel's own policies never end a run, and the set has no duration";
            return Err(Diagnostic::usage(cause, "give it one, such as 10s"));
        }
        let capacity = Session::capacity_of(host, &set);
        Ok(Session { set, host, capacity })
    }

    /// The best host for a set that this machine permits, and in one line why.
    pub fn best_host(set: &TaskSet) -> (HostKind, String) {
        let (kernel, why) = punctual_host_kernel::best_for(set);
        (if kernel { HostKind::Kernel } else { HostKind::User }, why)
    }

    /// What a host offers of each CPU of a set: its costs, its share, the least budget that it
    /// enforces.
    pub fn capacity_of(host: HostKind, set: &TaskSet) -> Capacity {
        match host {
            // The service is on this host, or on the next one, which has less: it admits itself.
            HostKind::User | HostKind::Service => punctual_host_user::capacity(set),
            HostKind::Kernel => punctual_host_kernel::capacity(set),
            HostKind::Sim | HostKind::Fifo | HostKind::Deadline | HostKind::Other => {
                Capacity::THEORY
            }
        }
    }

    /// For the simulator: the costs of the host that it stands for.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Session {
        self.capacity.costs = costs;
        self
    }

    /// Admits the set if it fits into the host's capacity, or anyway if `overload`.
    ///
    /// # Errors
    /// It does not fit: why, and the smallest change that would make it fit. `overload` by the
    /// service, which admits itself.
    pub fn admit(self, overload: bool) -> Result<AdmittedSet, Diagnostic> {
        let Session { mut set, host, capacity } = self;
        if host == HostKind::Service {
            punctual_host_service::accepts_options(overload, false)?;
        }
        let analysis = analyse_within(&set, &capacity);
        let (overload, loads) = match verdict(&set, &analysis) {
            Ok(admission) => (false, admission.domains),
            Err(refusal) if overload => (true, refusal.domains),
            Err(refusal) => return Err(Diagnostic::not_admitted(refusal.cause(), refusal.help())),
        };
        if !capacity.costs.is_free() {
            analysis.promote(&mut set);
        }
        Ok(AdmittedSet { set, host, capacity, overload, loads, analysis: Some(analysis) })
    }

    /// Takes the set as it is, without any test: for baselines, and for sets that were admitted
    /// before.
    #[must_use]
    pub fn unchecked(self, overload: bool) -> AdmittedSet {
        let Session { mut set, host, capacity } = self;
        if !capacity.costs.is_free() {
            analyse_within(&set, &capacity).promote(&mut set);
        }
        AdmittedSet { set, host, capacity, overload, loads: Vec::new(), analysis: None }
    }
}

impl AdmittedSet {
    /// The set as it will run.
    pub fn set(&self) -> &TaskSet {
        &self.set
    }

    /// Ends the run after this time, ns.
    pub fn set_duration(&mut self, duration: u64) {
        self.set.duration = Some(duration);
    }

    /// It does not fit, and runs because the caller insists.
    pub fn is_overload(&self) -> bool {
        self.overload
    }

    /// What the host offers.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// How full each domain is.
    pub fn loads(&self) -> &[DomainLoad] {
        &self.loads
    }

    /// The admission tests and their results; `None` without any.
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref()
    }

    /// Starts it. From here on the machine is changed; dropping the result restores it.
    ///
    /// # Errors
    /// What the machine does not permit: a CPU that another dispatcher has, missing privileges, a
    /// command or a process that is not there. Nothing is left behind then.
    pub fn start(self, options: RunOptions) -> Result<StartOutcome, Diagnostic> {
        let executions = self.set.tasks.iter().map(|_| Execution::AsDeclared).collect();
        self.start_with(options, executions)
    }

    /// Starts it; task by task, `executions` are what they execute.
    ///
    /// # Errors
    /// As [`start`](AdmittedSet::start); refused: threads of this program on a host other than the
    /// user host and the service.
    pub fn start_with(
        self,
        options: RunOptions,
        executions: Vec<Execution>,
    ) -> Result<StartOutcome, Diagnostic> {
        crate::running::start(self, options, executions)
    }
}
