//! One `[[task]]` of a file.

use toml::de::{DeTable, DeValue};

use crate::checks::{self, Field, LARGEST_CPU};
use crate::duration::quote;
use crate::keys::{nearest, Scope};
use crate::reader::{Problems, Span, Table};
use crate::{body, Body, Overrun, TaskSpec};

/// What a task needs to know of the top of its file; `None` is at fault there already.
pub(crate) struct Context<'a> {
    pub(crate) cpus: Option<&'a [u32]>,
    pub(crate) policy: Option<&'a str>,
}

/// What could be read of a task, for the checks across tasks.
pub(crate) struct Read {
    pub(crate) name: Option<(Span, String)>,
    pub(crate) body_at: Option<Span>,
    pub(crate) body: Option<Body>,
    pub(crate) spec: Option<TaskSpec>,
}

const OVERRUNS: [(&str, Overrun); 4] = [
    ("carry", Overrun::Carry),
    ("skip", Overrun::Skip),
    ("background", Overrun::Background),
    ("signal", Overrun::Signal),
];

/// Reads the task that is `number`th in its file, counted from 1.
pub(crate) fn read(
    entries: &DeTable<'_>,
    at: Span,
    number: usize,
    context: &Context<'_>,
    problems: &mut Problems<'_>,
) -> Read {
    let before = problems.count();
    let mut table = Table { entries, at, scope: Scope::Task, whose: format!("task {number}: ") };
    let name = name(&table, problems);
    if let Some((_, name)) = &name {
        table.whose = format!("task {}: ", quote(name));
    }
    table.check_keys(problems);

    let period = table.duration(problems, "period");
    let budget = table.duration(problems, "budget");
    let deadline = table.duration(problems, "deadline");
    let start = table.duration(problems, "start");
    for (field, cause, cure) in checks::times(period, budget, deadline) {
        let key = match field {
            Field::Period => "period",
            Field::Budget => "budget",
            Field::Deadline => "deadline",
        };
        let at = table.get(key).map_or(table.at.clone(), |found| found.at);
        table.fault(problems, &at, cause, cure);
    }
    let priority = table.integer(problems, "priority", i64::MIN..=i64::MAX);
    arrival(&table, problems);
    let cpu = cpu(&table, context, problems);
    let overrun = overrun(&table, problems);
    let body = body::read(&table, problems);
    let body_at = table.get("pid").map(|found| found.at);

    // Something absent is reported only for a task with nothing else wrong: the misspelt key is
    // what the user must see, not the one that is missing because of it.
    if problems.count() == before {
        missing(&table, context, problems);
    }
    let spec = assemble(&name, period, budget, cpu, &body).map(|spec| TaskSpec {
        deadline: deadline.unwrap_or(spec.period),
        start: start.unwrap_or(0),
        priority: priority.unwrap_or(0),
        overrun,
        ..spec
    });
    Read { name, body_at, body, spec }
}

/// A task of what every task must have.
fn assemble(
    name: &Option<(Span, String)>,
    period: Option<u64>,
    budget: Option<u64>,
    cpu: Option<u32>,
    body: &Option<Body>,
) -> Option<TaskSpec> {
    let name = name.as_ref()?.1.clone();
    Some(TaskSpec { cpu: cpu?, ..TaskSpec::new(name, period?, budget?, body.clone()?) })
}

fn name(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<(Span, String)> {
    let (at, name) = table.string(problems, "name", "servo")?;
    match checks::name(name) {
        Ok(()) => Some((at, name.to_owned())),
        Err((cause, cure)) => {
            table.fault(problems, &at, cause, cure);
            None
        }
    }
}

/// Reports the first absent key, at the head of the task.
fn missing(table: &Table<'_, '_>, context: &Context<'_>, problems: &mut Problems<'_>) {
    let required = [
        ("name", "a name", "add a name, such as name = \"servo\""),
        ("period", "a period", "add the time between its releases, such as period = \"20ms\""),
        ("budget", "a budget", "add the execution time it may use per period, such as budget = \"5ms\""),
    ];
    for (key, what, cure) in required {
        if table.get(key).is_none() {
            table.fault(problems, &table.at, format!("it lacks {what}"), cure);
            return;
        }
    }
    if ["work", "command", "pid"].iter().all(|key| table.get(key).is_none()) {
        let cause = "it says nothing of what to execute";
        let cure = "add one of work = { spin = \"1ms\" }, command = [\"program\"], pid = 1234";
        table.fault(problems, &table.at, cause, cure);
    } else if context.policy == Some("fp") && table.get("priority").is_none() {
        let cause = "the policy \"fp\" needs its priority";
        let cure = "add priority = 1 (larger is more important), or use \"rm\", \"dm\" or \"edf\"";
        table.fault(problems, &table.at, cause, cure);
    } else if table.get("cpu").is_none() {
        if let Some(cpus @ [first, _, ..]) = context.cpus {
            let cause = format!("it does not say on which of the CPUs {} it runs", list(cpus));
            table.fault(problems, &table.at, cause, format!("add cpu = {first}"));
        }
    }
}

/// Only `periodic` exists yet; nothing to keep.
fn arrival(table: &Table<'_, '_>, problems: &mut Problems<'_>) {
    let Some(found) = table.get("arrival") else {
        return;
    };
    let (cause, cure) = match found.value {
        DeValue::String(word) if word == "periodic" => return,
        DeValue::String(word) if word == "sporadic" => (
            "this version of Punctual does not have sporadic arrival yet".to_owned(),
            "remove it, and take the least time between two arrivals as the period",
        ),
        DeValue::Array(_) => (
            "this version of Punctual does not have lists of arrivals yet".to_owned(),
            "remove it: the task is released every period",
        ),
        DeValue::String(word) => {
            (format!("unknown arrival {}", quote(word)), "remove it, or write arrival = \"periodic\"")
        }
        _ => {
            let cure = "remove it, or write arrival = \"periodic\"";
            return table.wrong_type(problems, "arrival", &found, "a word", cure);
        }
    };
    table.fault(problems, &found.at, cause, cure);
}

/// The task's CPU: its own, or the only one of the set.
fn cpu(table: &Table<'_, '_>, context: &Context<'_>, problems: &mut Problems<'_>) -> Option<u32> {
    let Some(found) = table.get("cpu") else {
        return match context.cpus {
            Some([only]) => Some(*only),
            _ => None,
        };
    };
    let cpu = table.integer_of(problems, "cpu", &found, 0..=LARGEST_CPU)?;
    let cpus = context.cpus?;
    if !cpus.contains(&cpu) {
        let cause = format!("cpu {cpu} is not one of the set's ({})", list(cpus));
        let cure = "use one of those, or name it in cpus at the top of the file";
        table.fault(problems, &found.at, cause, cure);
        return None;
    }
    Some(cpu)
}

fn overrun(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Overrun {
    let Some((at, word)) = table.string(problems, "overrun", "carry") else {
        return Overrun::default();
    };
    if let Some((_, overrun)) = OVERRUNS.iter().find(|(name, _)| *name == word) {
        return *overrun;
    }
    let cure = match nearest(&word.to_lowercase(), &OVERRUNS.map(|(name, _)| name)) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => "use one of \"carry\", \"skip\", \"background\", \"signal\"".to_owned(),
    };
    let cause = format!("unknown overrun policy {}", quote(word));
    table.fault(problems, &at, cause, cure);
    Overrun::default()
}

/// CPU numbers for a message, the first eight of many.
fn list(cpus: &[u32]) -> String {
    let mut words: Vec<String> = cpus.iter().take(8).map(u32::to_string).collect();
    if cpus.len() > words.len() {
        words.push("...".to_owned());
    }
    words.join(", ")
}
