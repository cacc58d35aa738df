//! What holds for all tasks of a set, and which host runs it.

use std::path::PathBuf;

use punctual_program_jobs::ProgramGroups;
use punctual_session::{HostKind, LoadedScheduler, RunOptions, Session, TraceFiles};
use punctual_taskset::TaskSet;

use crate::draft::{Declared, DraftContext};
use crate::handle::Link;
use crate::{Error, Host, Policy};

/// Tasks at one time on each CPU, by default.
const TASK_LIMIT: u32 = 64;
/// Records of each trace that may wait for their file, 32 bytes each, by default.
const RECORDS: u32 = 1 << 16;

/// What holds for all tasks of a set.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Without its tasks.
    pub set: TaskSet,
    pub host: Host,
    pub overload: bool,
    pub owner: Option<String>,
    pub task_limit: u32,
    pub program_groups: ProgramGroups,
    pub confine: bool,
    pub loaded: Option<LoadedScheduler>,
    pub forget_ended: bool,
    pub records: u32,
    pub trace: Option<PathBuf>,
    pub link: Link,
    /// Why it is this host, if that was chosen for the program.
    pub note: Option<String>,
}

impl Settings {
    pub fn new(set: TaskSet) -> Settings {
        Settings {
            set,
            host: Host::User,
            overload: false,
            owner: None,
            task_limit: TASK_LIMIT,
            program_groups: ProgramGroups::default(),
            confine: false,
            loaded: None,
            forget_ended: false,
            records: RECORDS,
            trace: None,
            link: Link::default(),
            note: None,
        }
    }

    pub fn context(&self) -> DraftContext<'_> {
        DraftContext { set: &self.set, link: &self.link }
    }

    /// How the session runs `set`.
    pub fn options(&self, set: &TaskSet) -> Result<RunOptions, Error> {
        let traces = self.trace.as_deref().map(|path| TraceFiles::create(path, set)).transpose()?;
        let mut options = RunOptions {
            room: self.task_limit,
            program_groups: self.program_groups,
            trace_records: self.records,
            confine: self.confine,
            loaded: self.loaded.clone(),
            forget_ended: self.forget_ended,
            traces,
            notes: self.note.iter().cloned().collect(),
            ..RunOptions::default()
        };
        if let Some(owner) = &self.owner {
            options.owner.clone_from(owner);
        }
        Ok(options)
    }

    /// Settles which host runs `set`, which has these tasks.
    pub fn choose_host(&mut self, set: &TaskSet, tasks: &[Declared]) -> HostKind {
        if let Some(kind) = self.host.kind() {
            return kind;
        }
        let options = (self.overload, self.trace.is_some());
        let by_service = match tasks.iter().any(|task| task.handles_overruns) {
            true => Err("the service calls no overrun handlers".to_owned()),
            false => Session::service_for(set, options),
        };
        let (kind, note) = match by_service {
            Ok(why) => (HostKind::Service, format!("the service host: {why}")),
            Err(why) => (HostKind::User, format!("the user host, in this program: {why}")),
        };
        self.host = kind.into();
        self.note = Some(note);
        kind
    }

    /// Refuses tasks with overrun handlers where the service runs them.
    pub fn accept_overrun_handlers<'a>(
        &self,
        mut tasks: impl Iterator<Item = &'a Declared>,
    ) -> Result<(), Error> {
        if self.host != Host::Service {
            return Ok(());
        }
        match tasks.find(|task| task.handles_overruns) {
            None => Ok(()),
            Some(Declared { spec, .. }) => Err(Error::usage(
                "the service calls no overrun handlers",
                "use the user host, or Overrun::Signal with a handler of SIGXCPU",
            )
            .of_task(&spec.name)),
        }
    }

    /// Refuses hosts that take no jobs of the program where it adds some.
    pub fn accept_jobs(&self) -> Result<(), Error> {
        let mut groups = (0..self.set.groups.len()).map(Some).chain([None]);
        let jobs = |group| self.set.policy_of(group).name == Policy::Jobs.name();
        if !matches!(self.host, Host::User | Host::Kernel | Host::Auto) && groups.any(jobs) {
            let cause = "only the user host and the kernel host take jobs of the program";
            return Err(Error::usage(cause, "leave the host out, or use another policy"));
        }
        Ok(())
    }
}
