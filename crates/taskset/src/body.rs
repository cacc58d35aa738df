//! What a task executes: exactly one of `work`, `command` and `pid`.

use toml::de::{DeArray, DeValue};

use crate::checks::{self, LARGEST_PID};
use crate::duration::{fmt_ns, quote};
use crate::keys::Scope;
use crate::reader::{kind, Found, Problems, Table};
use crate::{Body, Spin};

const BODIES: [&str; 3] = ["work", "command", "pid"];

/// Reads the body of a task; `None` when it is absent or at fault.
pub(crate) fn read(task: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Body> {
    let mut given: Vec<_> = BODIES.iter().filter_map(|key| Some((*key, task.get(key)?))).collect();
    given.sort_by_key(|(_, found)| found.key.start);
    if let [(first, _), (second, at), ..] = given.as_slice() {
        let cause = format!("{second} is given, and {first} as well");
        let cure = "keep one of work, command and pid, and make the other a task of its own";
        task.fault(problems, &at.key, cause, cure);
        return None;
    }
    match given.first()? {
        ("work", found) => work(task, found, problems).map(Body::Spin),
        ("command", found) => command(task, found, problems).map(Body::Command),
        _ => task.integer(problems, "pid", 1..=LARGEST_PID).map(Body::Pid),
    }
}

fn command(task: &Table<'_, '_>, found: &Found<'_, '_>, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let list = match found.value {
        DeValue::Array(list) => list,
        DeValue::String(line) => {
            let cure = format!("write a list, for no shell splits it: {}", split(line));
            task.wrong_type(problems, "command", found, "a list of strings", cure);
            return None;
        }
        _ => {
            let cure = "write a list of strings, such as command = [\"xz\", \"-T4\", \"file\"]";
            task.wrong_type(problems, "command", found, "a list of strings", cure);
            return None;
        }
    };
    let words = strings(task, list, problems)?;
    match checks::command(&words) {
        Ok(()) => Some(words),
        Err((cause, cure)) => {
            task.fault(problems, &found.at, cause, cure);
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
                let cure = match other {
                    DeValue::Integer(n) => format!("put it in quotes: {}", quote(&n.to_string())),
                    DeValue::Float(n) => format!("put it in quotes: {}", quote(&n.to_string())),
                    _ => "put each argument in quotes, in one list".to_owned(),
                };
                task.fault(problems, &element.span(), cause, cure);
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

fn work(task: &Table<'_, '_>, found: &Found<'_, '_>, problems: &mut Problems<'_>) -> Option<Spin> {
    let DeValue::Table(entries) = found.value else {
        let cure = match found.value {
            DeValue::String(word) => format!("write work = {{ spin = {} }}", quote(word)),
            _ => "write work = { spin = \"200us\" }".to_owned(),
        };
        task.wrong_type(problems, "work", found, "a table", cure);
        return None;
    };
    let work = Table { entries, at: found.at.clone(), scope: Scope::Work, whose: task.whose.clone() };
    let before = problems.count();
    work.check_keys(problems);
    let Some(spin) = work.get("spin") else {
        if problems.count() == before {
            let cure = "write work = { spin = \"200us\" } or work = { spin = \"forever\" }";
            work.fault(problems, &work.at, "work does not say how much", cure);
        }
        return None;
    };
    match spin.value {
        DeValue::String(word) if word == "forever" => Some(Spin::Forever),
        DeValue::Table(entries) => {
            let spin = Table { entries, at: spin.at.clone(), scope: Scope::Uniform, whose: task.whose.clone() };
            uniform(&spin, problems)
        }
        _ => {
            let ns = work.duration_of(problems, "spin", &spin)?;
            nonzero(&work, &spin, ns, problems).map(Spin::For)
        }
    }
}

/// `{ uniform = ["100us", "300us"], seed = 7 }`
fn uniform(spin: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Spin> {
    let before = problems.count();
    spin.check_keys(problems);
    let seed = match spin.get("seed") {
        Some(_) => spin.integer(problems, "seed", 0..=i64::MAX)?.unsigned_abs(),
        None => 0,
    };
    let example = "write it as uniform = [\"100us\", \"300us\"]";
    let Some(found) = spin.get("uniform") else {
        if problems.count() == before {
            spin.fault(problems, &spin.at, "spin lacks its range", example);
        }
        return None;
    };
    let DeValue::Array(list) = found.value else {
        spin.wrong_type(problems, "uniform", &found, "a list of two durations", example);
        return None;
    };
    if list.len() != 2 {
        let cause = format!("uniform has {} durations, not two", list.len());
        spin.fault(problems, &found.at, cause, example);
        return None;
    }
    let mut ends = [0; 2];
    for (end, element) in ends.iter_mut().zip(list) {
        let found = Found { key: found.key.clone(), at: element.span(), value: element.get_ref() };
        let ns = spin.duration_of(problems, "uniform", &found)?;
        *end = nonzero(spin, &found, ns, problems)?;
    }
    let [min, max] = ends;
    if min > max {
        let cause = format!("uniform begins with {}, more than {}", fmt_ns(min), fmt_ns(max));
        spin.fault(problems, &found.at, cause, "put the shorter duration first");
        return None;
    }
    Some(Spin::Uniform { min, max, seed })
}

fn nonzero(table: &Table<'_, '_>, found: &Found<'_, '_>, ns: u64, problems: &mut Problems<'_>) -> Option<u64> {
    if ns == 0 {
        let cure = "make it at least 1ns";
        table.fault(problems, &found.at, "the execution time is 0", cure);
        return None;
    }
    Some(ns)
}
