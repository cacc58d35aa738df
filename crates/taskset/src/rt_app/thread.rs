//! One thread of rt-app to a task, or as many as it has instances.

use jsonc_parser::ast::Value;

use super::draft::{Draft, Reserved};
use super::json::{Member, Object};
use super::phases::{self, Phase, Rounds, LONGEST_US};
use super::{class, refuse, Global, Losses, MOST_TASKS};
use crate::checks::{self, Field, LARGEST_CPU};
use crate::problems::Problems;
use crate::value::Span;
use crate::{Arrival, Body, DomainId, DomainSpec, Spin, TaskSpec};

/// Scheduling classes, by rt-app's names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Other,
    Batch,
    Idle,
    RoundRobin,
    Fifo,
    Deadline,
}

impl Class {
    pub(super) const ALL: [Class; 6] =
        [Class::Other, Class::Batch, Class::Idle, Class::RoundRobin, Class::Fifo, Class::Deadline];

    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Other => "SCHED_OTHER",
            Class::Batch => "SCHED_BATCH",
            Class::Idle => "SCHED_IDLE",
            Class::RoundRobin => "SCHED_RR",
            Class::Fifo => "SCHED_FIFO",
            Class::Deadline => "SCHED_DEADLINE",
        }
    }

    pub(super) fn is_real_time(self) -> bool {
        matches!(self, Class::Fifo | Class::RoundRobin)
    }
}

/// What a thread has in common with its instances.
pub(super) struct Thread {
    pub(super) class: Class,
    /// Where its class is given.
    pub(super) policy_path: String,
    pub(super) instances: usize,
    pub(super) cpu: Option<u32>,
    name: String,
    at: Span,
    /// Under the policy `fp`.
    priority: i64,
    spec: TaskSpec,
}

/// The keys of a thread or a phase that are no events.
const KEYS: [&str; 16] = [
    "instance",
    "delay",
    "phases",
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
    "cpus",
    "util_min",
    "util_max",
    "nodes_membind",
    "taskgroup",
];

/// Reads a thread; `None` when it is at fault, or left out.
pub(super) fn read(
    tasks: &Object<'_, '_>,
    member: Member<'_, '_>,
    line: u32,
    global: &Global,
    room: &mut usize,
    losses: &mut Losses,
    problems: &mut Problems<'_>,
) -> Option<Thread> {
    let before = problems.count();
    let object = tasks.object(member, problems)?;
    let own = class(&object, "policy", problems);
    let class = own.unwrap_or(global.class);
    let policy_path =
        if own.is_some() { object.path("policy") } else { "global.default_policy".to_owned() };
    let policy_path =
        if own.is_some() { policy_path } else { format!("{} ({policy_path})", object.path) };
    let instances =
        object.integer("instance", 0, MOST_TASKS as i64, problems).map_or(1, |n| n as usize);
    let delay = object.integer("delay", 0, LONGEST_US, problems).unwrap_or(0).unsigned_abs() * 1000;
    let cpu = cpus(&object, losses, problems);
    let priority = priority(&object, class, problems);
    let parts = parts(&object, problems);
    let flat = object.get("phases", problems).is_none();
    name_losses(&object, class, flat, &parts, losses);

    let deadline = class == Class::Deadline;
    let mut list = Vec::with_capacity(parts.len());
    for part in &parts {
        let rounds = phases::rounds(
            part,
            if flat { Rounds::Endless } else { Rounds::Times(1) },
            losses,
            problems,
        );
        list.push(Phase {
            rounds,
            events: phases::events(part, deadline, instances, losses, problems),
        });
    }
    let rounds = if flat {
        Rounds::Times(1)
    } else {
        phases::rounds(&object, Rounds::Endless, losses, problems)
    };
    let reserved = if deadline { Some(reserved(&object, problems)?) } else { None };
    if problems.count() != before {
        return None;
    }
    if instances == 0 {
        losses.leave_out(object.path.clone(), "it has no instance, and no task forks it");
        return None;
    }
    let wait = phases::wait(&list);
    let unrolled = phases::unroll(&list, rounds, wait, room);
    let drawn = Draft { object: &object, delay, wait, reserved };
    let spec = match unrolled {
        Some(unrolled) => drawn.task(unrolled, &list, global.duration, losses),
        None => Err("its loops are too long to be unrolled"),
    };
    let mut spec = match spec {
        Ok(spec) => spec,
        Err(why) => {
            losses.leave_out(object.path.clone(), why);
            return None;
        }
    };
    spec.line = Some(line);
    check(&object, &parts, &spec, deadline, problems);
    Some(Thread {
        class,
        policy_path,
        instances,
        cpu,
        name: member.key.to_owned(),
        at: member.whole(),
        priority,
        spec,
    })
}

/// The objects that hold events: the phases, or the thread itself.
fn parts<'a, 't>(object: &Object<'a, 't>, problems: &mut Problems<'_>) -> Vec<Object<'a, 't>> {
    let Some(member) = object.get("phases", problems) else {
        return vec![Object {
            members: object.members,
            at: object.at.clone(),
            path: object.path.clone(),
        }];
    };
    let Some(phases) = object.object(member, problems) else {
        return Vec::new();
    };
    phases.members().filter_map(|phase| phases.object(phase, problems)).collect()
}

/// Names the keys that have no counterpart.
fn name_losses(
    object: &Object<'_, '_>,
    class: Class,
    flat: bool,
    parts: &[Object<'_, '_>],
    losses: &mut Losses,
) {
    for member in object.members() {
        let empty = matches!(member.value(), Value::StringLit(text) if text.value.is_empty());
        let why = match member.key {
            "util_min" | "util_max" => "utilization is not clamped",
            "nodes_membind" => "memory is not bound to nodes",
            "taskgroup" if !empty => "cgroups of tasks are not made",
            "dl-runtime" | "dl-period" | "dl-deadline" if class != Class::Deadline => {
                "it belongs to SCHED_DEADLINE"
            }
            key if phases::event(key).is_some() && !flat && key != "runtime" => {
                "rt-app ignores it beside phases"
            }
            key if !KEYS.contains(&key) && phases::event(key).is_none() => "rt-app has no such key",
            _ => continue,
        };
        losses.add(object.path(member.key), why);
    }
    for part in parts.iter().filter(|_| !flat) {
        for member in part
            .members()
            .filter(|member| member.key != "loop" && phases::event(member.key).is_none())
        {
            let why = match KEYS.contains(&member.key) {
                true => "it holds for the whole task, not for a phase",
                false => "rt-app has no such key",
            };
            losses.add(part.path(member.key), why);
        }
    }
}

/// The first CPU that the thread may use; one dispatcher serves one CPU.
fn cpus(object: &Object<'_, '_>, losses: &mut Losses, problems: &mut Problems<'_>) -> Option<u32> {
    let Some(member) = object.get("cpus", problems) else {
        losses.add(object.path.clone(), "rt-app lets it run on every CPU; here it has one");
        return None;
    };
    let Value::Array(list) = member.value() else {
        let cause = format!("{} is not a list", object.path("cpus"));
        refuse(problems, &member.at(), cause, "write a list such as [0]");
        return None;
    };
    let mut cpus = Vec::with_capacity(list.elements.len());
    for value in &list.elements {
        let cpu = object.integer_in("cpus", value, 0, i64::from(LARGEST_CPU), problems)?;
        cpus.extend(u32::try_from(cpu));
    }
    if cpus.len() != 1 {
        losses.add(object.path("cpus"), "a task has one CPU: the first of them");
    }
    cpus.first().copied()
}

/// Larger is more important; the ordinary classes are below the others, by their nice value.
fn priority(object: &Object<'_, '_>, class: Class, problems: &mut Problems<'_>) -> i64 {
    match class {
        Class::Fifo | Class::RoundRobin => {
            object.integer("priority", 1, 99, problems).unwrap_or(10)
        }
        Class::Deadline => 0,
        Class::Idle => -41,
        Class::Other | Class::Batch => {
            -21 - object.integer("priority", -20, 19, problems).unwrap_or(0)
        }
    }
}

/// As sched_setattr(2): the period is the runtime, and the deadline the period, unless they are
/// given. The keys without "dl-" are rt-app's older ones.
fn reserved(object: &Object<'_, '_>, problems: &mut Problems<'_>) -> Option<Reserved> {
    let mut get = |keys: [&str; 2]| {
        let ns = keys.into_iter().find_map(|key| object.integer(key, 0, LONGEST_US, problems))?;
        (ns > 0).then(|| ns.unsigned_abs() * 1000)
    };
    let (runtime, period, deadline) = (
        get(["dl-runtime", "runtime"]),
        get(["dl-period", "period"]),
        get(["dl-deadline", "deadline"]),
    );
    let Some(runtime) = runtime else {
        let cause = format!("{} is SCHED_DEADLINE and lacks its dl-runtime", object.path);
        refuse(problems, &object.at, cause, "add dl-runtime and dl-period, in microseconds");
        return None;
    };
    let period = period.unwrap_or(runtime);
    Some(Reserved { runtime, period, deadline: deadline.unwrap_or(period) })
}

/// Checks the times of a task; each is reported where rt-app's file gives it.
fn check(
    object: &Object<'_, '_>,
    parts: &[Object<'_, '_>],
    spec: &TaskSpec,
    deadline: bool,
    problems: &mut Problems<'_>,
) {
    for (field, cause, help) in
        checks::times(Some(spec.period), Some(spec.budget), Some(spec.deadline))
    {
        let key = match field {
            Field::Period => "dl-period",
            Field::Budget => "dl-runtime",
            Field::Deadline => "dl-deadline",
        };
        let member = object.get(key, problems).or_else(|| object.get(&key[3..], problems));
        let at = match member.filter(|_| deadline) {
            Some(member) => member.at(),
            None => phases::period_at(&parts.iter().collect::<Vec<_>>(), &object.at),
        };
        problems.add(&at, || (format!("{}: {cause}", object.path), help));
    }
}

/// How many times a task holds, of arrivals and executions.
pub(super) fn times_of(task: &TaskSpec) -> usize {
    let arrivals = match &task.arrival {
        Arrival::List(times) => times.len(),
        _ => 0,
    };
    match &task.body {
        Body::Spin(Spin::Recorded(times)) => arrivals + times.len(),
        _ => arrivals,
    }
}

impl Thread {
    /// Adds its instances to the tasks of a set: to the first of the domains, if it has no CPU.
    pub(super) fn tasks(
        &self,
        policy: &str,
        domains: &[DomainSpec],
        made: &mut Vec<TaskSpec>,
        problems: &mut Problems<'_>,
    ) {
        let domain = self.cpu.and_then(|cpu| DomainId::of_cpu(domains, cpu)).unwrap_or_default();
        for instance in 0..self.instances {
            let name = match self.instances {
                1 => self.name.clone(),
                _ => format!("{}-{instance}", self.name),
            };
            if let Err((cause, help)) = checks::name("task", &name) {
                problems.add(&self.at, || (cause, help));
                return;
            }
            let priority = if policy == "fp" { self.priority } else { 0 };
            made.push(TaskSpec { name, priority, domain, ..self.spec.clone() });
        }
    }
}
