//! Task sets of rt-app (<https://github.com/scheduler-tools/rt-app>, doc/tutorial.txt): JSON to
//! plain data.
//!
//! Threads become tasks. What has no counterpart here is left out and named, with its path in the
//! file. `docs/task-set.md` describes how each key is read.

mod draft;
mod json;
mod phases;
mod thread;

use std::collections::{BTreeSet, HashMap};

use jsonc_parser::ast::Value;

use crate::duration::{quote, DURATION_LIMIT};
use crate::explain::nearest;
use crate::load::Loaded;
use crate::problems::{Lines, Problems};
use crate::value::Span;
use crate::{error, DomainSpec, PolicySpec, TaskSet};
use json::Object;
use punctual_diagnostic::Diagnostic;
use thread::{Class, Thread};

/// The most things that are named; beyond, they are counted.
const MOST_NAMED: usize = 1000;

/// The most tasks that instances make of a file: as many as a TOML file can hold.
const MOST_TASKS: usize = 40_000;

/// What has no counterpart, each with its path.
#[derive(Default)]
pub(crate) struct Losses {
    named: Vec<String>,
    more: usize,
    left_out: Option<String>,
    timers: HashMap<String, usize>,
    thread: usize,
}

impl Losses {
    fn add(&mut self, path: String, why: &str) {
        if self.named.len() < MOST_NAMED {
            self.named.push(format!("{path}: {why}"));
        } else {
            self.more += 1;
        }
    }

    /// Names a thread that does not become a task.
    fn leave_out(&mut self, path: String, why: &str) {
        self.left_out.get_or_insert_with(|| format!("{path}: {why}"));
        self.add(path, &format!("left out: {why}"));
    }

    /// Records which thread uses a timer: one that threads, or instances, share is not the same
    /// thing any more.
    fn timer(&mut self, name: &str, instances: usize, path: String) {
        let other = self
            .timers
            .insert(name.to_owned(), self.thread)
            .filter(|&thread| thread != self.thread);
        if !name.starts_with("unique") && (other.is_some() || instances > 1) {
            self.add(path, "each task has a timer of its own");
        }
    }

    fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.named.push(format!("and {} more", self.more));
        }
        self.named
    }
}

/// Reads the text of a file of rt-app.
///
/// `policy` is what serves the set, instead of what suits its threads.
pub(crate) fn read(text: &str, file: &str, policy: Option<&str>) -> Result<Loaded, Diagnostic> {
    let value = json::parse(text, file)?;
    let mut problems = Problems::new(text);
    let mut losses = Losses::default();
    let set = match &value {
        Value::Object(object) => {
            let range = 0..0;
            let top = Object { members: &object.properties, at: range, path: String::new() };
            whole(&top, text, policy, &mut losses, &mut problems)
        }
        _ => {
            refuse(
                &mut problems,
                &json::span(&value),
                "the file is no object",
                "write { \"tasks\" : { ... } }",
            );
            None
        }
    };
    match (problems.into_error(file), set) {
        (Some(error), _) => Err(error),
        (None, Some(set)) => Ok(Loaded { set, unrepresented: losses.into_lines() }),
        (None, None) => {
            let help = "compare it with docs/task-set.md";
            Err(error::whole(file, "the set is incomplete", help))
        }
    }
}

fn refuse(problems: &mut Problems<'_>, at: &Span, cause: impl Into<String>, help: &str) {
    problems.add(at, || (cause.into(), help.to_owned()));
}

fn whole(
    top: &Object<'_, '_>,
    text: &str,
    given: Option<&str>,
    losses: &mut Losses,
    problems: &mut Problems<'_>,
) -> Option<TaskSet> {
    // "resources" is a list of names that rt-app itself no longer needs.
    for member in
        top.members().filter(|member| !["tasks", "global", "resources"].contains(&member.key))
    {
        losses.add(top.path(member.key), "rt-app has no such key");
    }
    let global = global(top, losses, problems);
    let Some(tasks) = top.get("tasks", problems) else {
        let help = "describe its threads: { \"tasks\" : { \"thread\" : { ... } } }; or write a \
                    task set in TOML";
        refuse(problems, &top.at, "the file has no \"tasks\": it is not one of rt-app's", help);
        return None;
    };
    let tasks = top.object(tasks, problems)?;
    let mut lines = Lines::new(text);
    let mut names = HashMap::new();
    let mut threads = Vec::new();
    let mut room = phases::MOST_EVENTS;
    for member in tasks.members() {
        if names.insert(member.key, ()).is_some() {
            let cause = format!("{} is given twice", tasks.path(member.key));
            refuse(problems, &member.whole(), cause, "give each thread a name of its own");
            continue;
        }
        losses.thread += 1;
        let line = lines.at(member.whole().start);
        threads.extend(thread::read(&tasks, member, line, &global, &mut room, losses, problems));
    }
    let all: usize = threads.iter().map(|thread| thread.instances).sum();
    if all > MOST_TASKS {
        let cause = format!("the instances are {all} tasks together, more than {MOST_TASKS}");
        refuse(problems, &tasks.at, cause, "lower \"instance\"");
        return None;
    }
    let policy = given.unwrap_or_else(|| policy(&threads, losses));
    let mut cpus: BTreeSet<u32> = threads.iter().filter_map(|thread| thread.cpu).collect();
    if cpus.is_empty() {
        cpus.insert(0);
    }
    let domains: Vec<DomainSpec> = cpus.into_iter().map(DomainSpec::of_cpu).collect();
    let mut made = Vec::with_capacity(all);
    for thread in &threads {
        thread.tasks(policy, &domains, &mut made, problems);
    }
    if made.is_empty() && problems.count() == 0 {
        let (cause, help) = match &losses.left_out {
            Some(loss) => (
                format!("none of its threads can be represented: {loss}"),
                "give a thread a timer, or sleeps",
            ),
            None => ("the set has no tasks".to_owned(), "add a thread with run and timer"),
        };
        refuse(problems, &tasks.at, cause, help);
    }
    let recorded = made.iter().map(thread::times_of).fold(0, usize::saturating_add);
    if recorded > crate::MOST_RECORDED {
        let cause = format!(
            "the jobs of the set are {recorded} together, more than {}",
            crate::MOST_RECORDED
        );
        refuse(problems, &tasks.at, cause, "lower \"instance\" or \"loop\"");
    }
    Some(TaskSet {
        domains,
        policy: PolicySpec::named(policy),
        duration: global.duration,
        tasks: made,
        groups: Vec::new(),
        budget_groups: Vec::new(),
    })
}

/// One policy serves all: EDF where any thread has a deadline, else fixed priorities where any has
/// one.
fn policy(threads: &[Thread], losses: &mut Losses) -> &'static str {
    let any = |like: fn(Class) -> bool| threads.iter().any(|thread| like(thread.class));
    let (policy, why) = if any(|class| class == Class::Deadline) {
        ("edf", "is served by \"edf\", as the SCHED_DEADLINE threads are")
    } else if any(Class::is_real_time) {
        ("fp", "is served by \"fp\", below the SCHED_FIFO and SCHED_RR threads")
    } else {
        ("edf", "is served by \"edf\", with a budget each period")
    };
    for thread in threads {
        let class = thread.class;
        let kept = match policy {
            "fp" => class == Class::Fifo,
            _ => class == Class::Deadline,
        };
        if policy == "fp" && class == Class::RoundRobin {
            losses
                .add(thread.policy_path.clone(), "SCHED_RR has no time slices here: as SCHED_FIFO");
        } else if !kept {
            losses.add(thread.policy_path.clone(), &format!("{} {why}", class.name()));
        }
    }
    policy
}

/// What holds for all threads.
struct Global {
    duration: Option<u64>,
    class: Class,
}

fn global(top: &Object<'_, '_>, losses: &mut Losses, problems: &mut Problems<'_>) -> Global {
    let mut read = Global { duration: None, class: Class::Other };
    let Some(global) = top.get("global", problems).and_then(|member| top.object(member, problems))
    else {
        return read;
    };
    for member in global.members() {
        let set = matches!(member.value(), Value::BooleanLit(truth) if truth.value);
        let number = matches!(member.value(), Value::NumberLit(_));
        let named = matches!(member.value(), Value::StringLit(text) if text.value != "none");
        let why = match member.key {
            "duration" => {
                read.duration = duration(&global, problems);
                continue;
            }
            "default_policy" => {
                read.class = class(&global, "default_policy", problems).unwrap_or(Class::Other);
                continue;
            }
            // They say something of io and mem, which are named themselves.
            "io_device" | "mem_buffer_size" => continue,
            "calibration" if number => "run is execution time, independent of the CPU's speed",
            "pi_enabled" if set => "there are no locks whose priority could be inherited",
            "lock_pages" if !set => "memory is always locked",
            "ftrace" if named || set => "rt-app's trace events are not written",
            "gnuplot" if set => "rt-app's charts are not drawn",
            "cumulative_slack" if set => "slack is not added up",
            "logdir" | "log_basename" | "log_size" => "rt-app's logs are not written",
            "calibration" | "pi_enabled" | "lock_pages" | "ftrace" | "gnuplot"
            | "cumulative_slack" => continue,
            _ => "rt-app has no such key",
        };
        losses.add(global.path(member.key), why);
    }
    read
}

/// Seconds, of which a negative number means without end.
fn duration(global: &Object<'_, '_>, problems: &mut Problems<'_>) -> Option<u64> {
    let most = i64::try_from(DURATION_LIMIT / 1_000_000_000 - 1).unwrap_or(i64::MAX);
    let seconds = global.integer("duration", -1, most, problems)?;
    if seconds == 0 {
        let member = global.get("duration", problems)?;
        refuse(
            problems,
            &member.at(),
            "global.duration is 0",
            "make it longer, or -1: without end",
        );
    }
    (seconds > 0).then(|| seconds.unsigned_abs() * 1_000_000_000)
}

/// A scheduling class by rt-app's name.
fn class(object: &Object<'_, '_>, key: &str, problems: &mut Problems<'_>) -> Option<Class> {
    let (at, name) = object.string(key, problems)?;
    let found = Class::ALL.into_iter().find(|class| class.name() == name);
    if found.is_none() {
        problems.add(&at, || {
            let known = Class::ALL.map(Class::name);
            let help = match nearest(&name.to_uppercase(), &known) {
                Some(near) => format!("did you mean {}?", quote(near)),
                None => format!("use one of {}", known.join(", ")),
            };
            (format!("{} is the unknown policy {}", object.path(key), quote(name)), help)
        });
    }
    found
}
