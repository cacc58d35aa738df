//! The CPUs of a set, how they are shared, and which of them a task or a group names.

use toml::de::DeValue;

use crate::checks::LARGEST_CPU;
use crate::duration::quote;
use crate::reader::{Found, Problems, Span, Table};
use crate::Domain;

/// The CPUs of the set, from `cpu` or `cpus`.
pub(crate) fn read(top: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Vec<u32>> {
    let one = top.get("cpu");
    let many = top.get("cpus");
    match (&one, &many) {
        (None, None) => return None,
        (Some(one), Some(many)) => {
            let later = if one.key.start > many.key.start { one } else { many };
            let help = "keep cpu for one CPU, or cpus for several";
            top.fault(problems, &later.key, "cpu and cpus are both given", help);
            return None;
        }
        _ => {}
    }
    if let Some(found) = one {
        if matches!(found.value, DeValue::Array(_)) {
            let help = "write one number, or use cpus for several";
            top.wrong_type(problems, "cpu", &found, "a whole number", help);
            return None;
        }
        return top.integer_of(problems, "cpu", &found, 0..=LARGEST_CPU).map(|cpu| vec![cpu]);
    }
    let found = many?;
    let DeValue::Array(list) = found.value else {
        let help = "write a list such as cpus = [0, 1], or cpu for one CPU";
        top.wrong_type(problems, "cpus", &found, "a list of CPU numbers", help);
        return None;
    };
    if list.is_empty() {
        let help = "name at least one, such as cpus = [0, 1]";
        top.fault(problems, &found.at, "the list of CPUs is empty", help);
        return None;
    }
    let mut cpus = Vec::with_capacity(list.len());
    let mut seen = std::collections::HashSet::new();
    for element in list {
        let found = Found { key: found.key.clone(), at: element.span(), value: element.get_ref() };
        let cpu = top.integer_of(problems, "cpus", &found, 0..=LARGEST_CPU)?;
        if !seen.insert(cpu) {
            let cause = format!("CPU {cpu} is listed twice");
            top.fault(problems, &found.at, cause, "name each CPU once");
            return None;
        }
        cpus.push(cpu);
    }
    Some(cpus)
}

/// How they are shared.
pub(crate) fn domain(top: &Table<'_, '_>, cpus: Option<&[u32]>, problems: &mut Problems<'_>) -> Domain {
    let instead = "use domain = \"partitioned\", and give each task its cpu";
    match top.string(problems, "domain", "partitioned") {
        Some((_, "partitioned")) => {}
        Some((at, "global")) => {
            let cause = "this version of Punctual does not have domain \"global\" yet";
            top.fault(problems, &at, cause, instead);
        }
        Some((at, "clustered")) => {
            let cause = "this version of Punctual does not have domain \"clustered\" yet";
            top.fault(problems, &at, cause, instead);
        }
        Some((at, other)) => {
            let cause = format!("unknown domain {}", quote(other));
            top.fault(problems, &at, cause, instead);
        }
        None => {
            let several = cpus.is_some_and(|cpus| cpus.len() > 1);
            if let (true, None, Some(found)) = (several, top.get("domain"), top.get("cpus")) {
                let cause = "several CPUs are given, but not how they are shared";
                let help = "add domain = \"partitioned\", and give each task its cpu";
                top.fault(problems, &found.key, cause, help);
            }
        }
    }
    Domain::Partitioned
}

/// The CPU that a task or a group names itself, if it is one of the set's (`None`: those are at fault).
pub(crate) fn own(table: &Table<'_, '_>, cpus: Option<&[u32]>, problems: &mut Problems<'_>) -> Option<(Span, u32)> {
    let found = table.get("cpu")?;
    let cpu = table.integer_of(problems, "cpu", &found, 0..=LARGEST_CPU)?;
    let cpus = cpus?;
    if !cpus.contains(&cpu) {
        let cause = format!("cpu {cpu} is not one of the set's ({})", list(cpus));
        let help = "use one of those, or name it in cpus at the top of the file";
        table.fault(problems, &found.at, cause, help);
        return None;
    }
    Some((found.at, cpu))
}

/// The cause and help for a task or a group that must name its CPU and does not; `None` where there is one only.
pub(crate) fn unnamed(cpus: Option<&[u32]>) -> Option<(String, String)> {
    let cpus @ [first, _, ..] = cpus? else {
        return None;
    };
    Some((format!("it does not say on which of the CPUs {} it runs", list(cpus)), format!("add cpu = {first}")))
}

/// CPU numbers for a message, the first eight of many.
fn list(cpus: &[u32]) -> String {
    let mut words: Vec<String> = cpus.iter().take(8).map(u32::to_string).collect();
    if cpus.len() > words.len() {
        words.push("...".to_owned());
    }
    words.join(", ")
}
