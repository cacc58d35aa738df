//! What a task executes: exactly one of `work`, `command` and `pid`.

use toml::de::{DeArray, DeValue};

use crate::checks::{self, LARGEST_PID};
use crate::duration::quote;
use crate::keys::Scope;
use crate::reader::{kind, Found, Problems, Table};
use crate::recording::Recordings;
use crate::{spin, Body, Spin, Step};

/// The most steps that one job has.
pub const MOST_STEPS: usize = 1024;

const BODIES: [&str; 3] = ["work", "command", "pid"];

const STEPS: &str = "write a list such as steps = [{ spin = \"1ms\" }, { sleep = \"2ms\" }]";

/// Reads the body of a task; `None` when it is absent or at fault.
pub(crate) fn read(task: &Table<'_, '_>, recordings: &mut Recordings, problems: &mut Problems<'_>) -> Option<Body> {
    let mut given: Vec<_> = BODIES.iter().filter_map(|key| Some((*key, task.get(key)?))).collect();
    given.sort_by_key(|(_, found)| found.key.start);
    if let [(first, _), (second, at), ..] = given.as_slice() {
        let cause = format!("{second} is given, and {first} as well");
        let help = "keep one of work, command and pid, and make the other a task of its own";
        task.fault(problems, &at.key, cause, help);
        return None;
    }
    match given.first()? {
        ("work", found) => work(task, found, recordings, problems),
        ("command", found) => command(task, found, problems).map(Body::Command),
        _ => task.integer(problems, "pid", 1..=LARGEST_PID).map(Body::Pid),
    }
}

fn command(task: &Table<'_, '_>, found: &Found<'_, '_>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let list = match found.value {
        DeValue::Array(list) => list,
        DeValue::String(line) => {
            let help = format!("write a list, for no shell splits it: {}", split(line));
            task.wrong_type(problems, "command", found, "a list of strings", help);
            return None;
        }
        _ => {
            let help = "write a list of strings, such as command = [\"xz\", \"-T4\", \"file\"]";
            task.wrong_type(problems, "command", found, "a list of strings", help);
            return None;
        }
    };
    let words = strings(task, list, problems)?;
    match checks::command(&words) {
        Ok(()) => Some(words),
        Err((cause, help)) => {
            task.fault(problems, &found.at, cause, help);
            None
        }
    }
}

/// The words of a command; the first that is no string is at fault.
fn strings(task: &Table<'_, '_>, list: &DeArray<'_>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let mut words = Vec::with_capacity(list.len());
    for (number, element) in list.iter().enumerate() {
        match element.get_ref() {
            DeValue::String(word) => words.push(word.clone().into_owned()),
            other => {
                let cause = format!("the command's word {} is {}, not a string", number + 1, kind(other));
                let help = match other {
                    DeValue::Integer(n) => format!("put it in quotes: {}", quote(&n.to_string())),
                    DeValue::Float(n) => format!("put it in quotes: {}", quote(&n.to_string())),
                    _ => "put each argument in quotes, in one list".to_owned(),
                };
                task.fault(problems, &element.span(), cause, help);
                return None;
            }
        }
    }
    Some(words)
}

/// A command line as the list it should have been, as far as blanks tell.
fn split(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().take(8).map(quote).collect();
    if words.is_empty() {
        return "command = [\"program\", \"argument\"]".to_owned();
    }
    let more = if line.split_whitespace().nth(8).is_some() { ", ..." } else { "" };
    format!("command = [{}{more}]", words.join(", "))
}

/// What `work` may be: the forms of which it has one.
const WORKS: [&str; 5] = ["spin", "steps", "uniform", "histogram", "recorded"];

fn work(
    task: &Table<'_, '_>,
    found: &Found<'_, '_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Body> {
    let DeValue::Table(entries) = found.value else {
        let help = match found.value {
            DeValue::String(word) => format!("write work = {}", spin::instead(word)),
            _ => "write work = { spin = \"200us\" }".to_owned(),
        };
        task.wrong_type(problems, "work", found, "a table", help);
        return None;
    };
    let work = Table { entries, at: found.at.clone(), scope: Scope::Work, whose: task.whose.clone() };
    let before = problems.count();
    work.check_keys(problems);
    spin::one_form(&work, &WORKS, problems)?;
    let drawn = ["uniform", "histogram", "recorded"].iter().any(|key| work.get(key).is_some());
    if let (Some(seed), false) = (work.get("seed"), drawn) {
        let help = "put it beside the distribution: { uniform = [\"100us\", \"300us\"], seed = 7 }";
        work.fault(problems, &seed.key, "seed is given, but nothing is drawn", help);
    }
    if let Some(found) = work.get("spin") {
        return spin::read(&work, &found, recordings, problems).map(Body::Spin);
    }
    if let Some(found) = work.get("steps") {
        return steps(&work, &found, recordings, problems).map(Body::Steps);
    }
    if drawn {
        return spin::distribution(&work, recordings, problems).map(Body::Spin);
    }
    if problems.count() == before {
        let help = "write work = { spin = \"200us\" } or work = { spin = \"forever\" }";
        work.fault(problems, &work.at, "work does not say how much", help);
    }
    None
}

/// `steps = [{ spin = "1ms" }, { sleep = "2ms" }]`
fn steps(
    work: &Table<'_, '_>,
    found: &Found<'_, '_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Option<Vec<Step>> {
    let DeValue::Array(list) = found.value else {
        work.wrong_type(problems, "steps", found, "a list of tables", STEPS);
        return None;
    };
    if list.is_empty() {
        work.fault(problems, &found.at, "the list of steps is empty", STEPS);
        return None;
    }
    if list.len() > MOST_STEPS {
        let cause = format!("there are {} steps, more than {MOST_STEPS}", list.len());
        work.fault(problems, &found.at, cause, "make several tasks of it, or a recording");
        return None;
    }
    let mut steps = Vec::with_capacity(list.len());
    for (number, element) in list.iter().enumerate() {
        let DeValue::Table(entries) = element.get_ref() else {
            let cause = format!("step {} is {}, not a table", number + 1, kind(element.get_ref()));
            work.fault(problems, &element.span(), cause, STEPS);
            return None;
        };
        let table = Table { entries, at: element.span(), scope: Scope::Step, whose: work.whose.clone() };
        let step = step(&table, recordings, problems)?;
        if let (Step::Spin(Spin::Forever), Some(next)) = (&step, list.get(number + 1)) {
            let help = "remove it, or let the step before it end";
            work.fault(problems, &next.span(), "a step comes after one without end", help);
            return None;
        }
        steps.push(step);
    }
    Some(steps)
}

fn step(table: &Table<'_, '_>, recordings: &mut Recordings, problems: &mut Problems<'_>) -> Option<Step> {
    let before = problems.count();
    table.check_keys(problems);
    spin::one_form(table, &["spin", "sleep"], problems)?;
    if let Some(found) = table.get("spin") {
        return spin::read(table, &found, recordings, problems).map(Step::Spin);
    }
    if let Some(found) = table.get("sleep") {
        let ns = table.duration_of(problems, "sleep", &found)?;
        if ns == 0 {
            table.fault(problems, &found.at, "the sleep is 0", "make it at least 1ns, or leave it out");
            return None;
        }
        return Some(Step::Sleep(ns));
    }
    if problems.count() == before {
        table.fault(problems, &table.at, "a step says neither spin nor sleep", STEPS);
    }
    None
}
