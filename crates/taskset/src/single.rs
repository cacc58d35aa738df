//! The set of one task that a command line describes.

use std::path::Path;

use crate::checks::{self, LARGEST_CPU, LARGEST_PID, LONGEST_NAME};
use crate::duration::{fmt_ns, DURATION_LIMIT};
use crate::policy::{refuse_policy, POLICIES};
use crate::{error, Body, Domain, Overrun, PolicySpec, Spin, Step, TaskSet, TaskSpec};
use punctual_diagnostic::is_printable;
use punctual_diagnostic::Diagnostic;

/// What errors call the place of a set that came from no file.
const PLACE: &str = "command line";

/// A set of one task in the making; [`Single::build`] checks it as a file is checked.
#[derive(Debug, Clone)]
#[must_use = "it makes nothing before build()"]
pub struct Single {
    task: TaskSpec,
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

    /// The CPU, 0 to [`LARGEST_CPU`].
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.task.cpu = cpu;
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

    /// The set, if it passes the checks that a file does.
    ///
    /// # Errors
    /// The first thing wrong with it; the place is `command line`.
    pub fn build(self) -> Result<TaskSet, Diagnostic> {
        let Single { mut task, deadline, policy, duration } = self;
        if !POLICIES.contains(&policy.as_str()) {
            let (cause, help) = refuse_policy(&policy);
            return Err(error::whole(PLACE, cause, help));
        }
        checks::name("a task", &task.name).map_err(|(cause, help)| error::whole(PLACE, cause, help))?;
        if let Some((_, cause, help)) = checks::times(Some(task.period), Some(task.budget), deadline).into_iter().next()
        {
            return Err(error::whole(PLACE, cause, help));
        }
        if let Err((cause, help)) = body(&task.body) {
            return Err(error::whole(PLACE, cause, help));
        }
        if task.cpu > LARGEST_CPU {
            let cause = format!("cpu {} is out of range", task.cpu);
            let help = format!("use a CPU from 0 to {LARGEST_CPU}");
            return Err(error::whole(PLACE, cause, help));
        }
        if let Some(ns) = duration.filter(|ns| !(1..DURATION_LIMIT).contains(ns)) {
            let cause = format!("duration {} is out of range", fmt_ns(ns));
            let help = "make it longer than 0 and less than 2^62 ns, or leave it out";
            return Err(error::whole(PLACE, cause, help));
        }
        task.deadline = deadline.unwrap_or(task.period);
        Ok(TaskSet {
            cpus: vec![task.cpu],
            domain: Domain::Partitioned,
            policy: PolicySpec { name: policy },
            duration,
            tasks: vec![task],
            groups: Vec::new(),
            budget_groups: Vec::new(),
        })
    }
}

fn body(body: &Body) -> Result<(), (String, String)> {
    match body {
        Body::Command(words) => checks::command(words),
        Body::Pid(pid) if !(1..=LARGEST_PID).contains(pid) => {
            Err((format!("pid {pid} is out of range"), format!("use the id of a running process, 1 to {LARGEST_PID}")))
        }
        Body::Pid(_) => Ok(()),
        Body::Spin(spin) => execution(spin),
        Body::Steps(steps) => {
            if steps.is_empty() {
                return Err(("the list of steps is empty".to_owned(), "give at least one step".to_owned()));
            }
            steps.iter().try_for_each(|step| match step {
                Step::Spin(spin) => execution(spin),
                Step::Sleep(0) => Err(("a sleep is 0".to_owned(), "make it at least 1ns".to_owned())),
                Step::Sleep(_) => Ok(()),
            })
        }
    }
}

fn execution(spin: &Spin) -> Result<(), (String, String)> {
    let nothing = || Err(("the execution time is 0".to_owned(), "make it at least 1ns".to_owned()));
    let empty = |what: &str| Err((format!("the {what} is empty"), "give at least one execution time".to_owned()));
    match spin {
        Spin::For(0) => nothing(),
        Spin::Uniform { min, max, .. } if *min == 0 || min > max => Err((
            format!("{} to {} is no range of execution times", fmt_ns(*min), fmt_ns(*max)),
            "put the shorter duration first, and make it at least 1ns".to_owned(),
        )),
        Spin::Histogram { bins, .. } if bins.is_empty() => empty("histogram"),
        Spin::Histogram { bins, .. } if bins.iter().any(|(ns, _)| *ns == 0) => nothing(),
        Spin::Histogram { bins, .. } if bins.iter().any(|(_, weight)| *weight == 0) => Err((
            "a weight of the histogram is 0".to_owned(),
            "make each weight at least 1, or leave its execution time out".to_owned(),
        )),
        Spin::Recorded(times) if times.is_empty() => empty("recording"),
        Spin::Recorded(times) if times.contains(&0) => nothing(),
        Spin::For(_) | Spin::Uniform { .. } | Spin::Histogram { .. } | Spin::Recorded(_) | Spin::Forever => Ok(()),
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
