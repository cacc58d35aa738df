//! The set of one task that a command line describes.

use std::path::Path;

use crate::checks::LONGEST_NAME;
use crate::recording::Recordings;
use crate::{error, load, Body, DomainSpec, Overrides, Overrun, PolicySpec, TaskSet, TaskSpec};
use punctual_diagnostic::{is_printable, Diagnostic};

/// What errors call the place of a set that came from no file.
const PLACE: &str = "command line";

/// A set of one task in the making; [`Single::build`] checks it as a file is checked.
#[derive(Debug, Clone)]
#[must_use = "it makes nothing before build()"]
pub struct Single {
    task: TaskSpec,
    cpu: u32,
    deadline: Option<u64>,
    policy: String,
    duration: Option<u64>,
}

impl TaskSet {
    /// Begins a set of one task: `budget` ns of every `period` ns for `body`, on CPU 0, by EDF,
    /// overruns carried, named after its program. For `punctual run --period 20ms --budget 5ms --
    /// COMMAND` and `--pid`.
    pub fn single(period: u64, budget: u64, body: Body) -> Single {
        Single {
            task: TaskSpec::new(default_name(&body), period, budget, body),
            cpu: 0,
            deadline: None,
            policy: "edf".to_owned(),
            duration: None,
        }
    }
}

impl Single {
    /// The task's name, 1 to [`LONGEST_NAME`] printable characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.task.name = name.into();
        self
    }

    /// What the task is called.
    #[must_use]
    pub fn task_name(&self) -> &str {
        &self.task.name
    }

    /// The CPU, 0 to [`LARGEST_CPU`](crate::LARGEST_CPU).
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = cpu;
        self
    }

    /// The relative deadline, ns, budget to period; else the period.
    pub fn deadline(mut self, deadline: u64) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What happens on overrun.
    pub fn overrun(mut self, overrun: Overrun) -> Self {
        self.task.overrun = overrun;
        self
    }

    /// How long to run, ns; else until the task has ended.
    pub fn duration(mut self, duration: u64) -> Self {
        self.duration = Some(duration);
        self
    }

    /// The policy: one of those that a task-set file may name.
    pub fn policy(mut self, name: impl Into<String>) -> Self {
        self.policy = name.into();
        self
    }

    /// The set, if it passes the checks that a file does: it is read as one.
    ///
    /// # Errors
    /// The first thing wrong with it; the place is `command line`.
    pub fn build(self) -> Result<TaskSet, Diagnostic> {
        let Single { mut task, cpu, deadline, policy, duration } = self;
        task.deadline = deadline.unwrap_or(task.period);
        let set = TaskSet {
            domains: vec![DomainSpec::of_cpu(cpu)],
            policy: PolicySpec::named(policy),
            duration,
            tasks: vec![task],
            groups: Vec::new(),
            budget_groups: Vec::new(),
        };
        let (text, recordings) = (set.to_toml(), Recordings::beside(""));
        let mut set = load::read(&text, PLACE, recordings, &Overrides::default())
            .map_err(|explained| error::whole(PLACE, explained.cause, explained.help))?;
        set.tasks.iter_mut().for_each(|task| task.line = None);
        set.domains.iter_mut().for_each(|domain| domain.place = None);
        Ok(set)
    }
}

/// A name that always passes: the program's, cut and cleaned.
fn default_name(body: &Body) -> String {
    let name: String = match body {
        Body::Command(words) => words
            .first()
            .and_then(|program| Path::new(program).file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        Body::Pid(pid) => format!("pid {pid}"),
        Body::Spin(_) | Body::Steps(_) => "spin".to_owned(),
    };
    let clean = |c: char| if is_printable(c) { c } else { '?' };
    let name: String = name.chars().take(LONGEST_NAME).map(clean).collect();
    if name.trim().is_empty() {
        return "task".to_owned();
    }
    name
}
