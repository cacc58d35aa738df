//! The CPUs of a set, how they are shared, and which of them a task or a group names.

use std::collections::HashSet;

use crate::duration::quote;
use crate::format::{Cpu, Set};
use crate::problems::Problems;
use crate::value::{place, At, Span};
use crate::{TaskSet, LARGEST_CPU};

/// The CPUs of the set, from `cpu` or `cpus`; `None` when these are absent or at fault.
pub(crate) fn read(file: &Set, problems: &mut Problems<'_>) -> Option<Vec<u32>> {
    if let (Some(one), Some(many)) = (place(&file.cpu), place(&file.cpus)) {
        let later = if one.start > many.start { one } else { many };
        problems.fault_of_key(later, "cpu and cpus are both given", "keep cpu for one CPU, or cpus for several");
        return None;
    }
    if let Some(cpu) = &file.cpu {
        return Some(vec![cpu.unsigned()]);
    }
    let list = file.cpus.as_ref()?;
    if list.is_empty() {
        problems.fault(&list.span, "the list of CPUs is empty", "name at least one, such as cpus = [0, 1]");
        return None;
    }
    let mut seen = HashSet::new();
    if let Some(twice) = list.iter().find(|cpu| !seen.insert(cpu.0)) {
        problems.fault(&twice.span, format!("CPU {} is listed twice", twice.0), "name each CPU once");
        return None;
    }
    Some(list.iter().map(|cpu| cpu.unsigned()).collect())
}

/// Checks how they are shared: there is one way.
pub(crate) fn check_domain(file: &Set, problems: &mut Problems<'_>) {
    let instead = "use domain = \"partitioned\", and give each task its cpu";
    match (&file.domain, &file.cpus) {
        (Some(domain), _) => {
            let cause = match domain.as_str() {
                "partitioned" => return,
                word @ ("global" | "clustered") => {
                    format!("this version of Punctual does not have domain \"{word}\" yet")
                }
                other => format!("unknown domain {}", quote(other)),
            };
            problems.fault(&domain.span, cause, instead);
        }
        (None, Some(cpus)) if cpus.len() > 1 => {
            let cause = "several CPUs are given, but not how they are shared";
            let help = "add domain = \"partitioned\", and give each task its cpu";
            problems.fault_of_key(&cpus.span, cause, help);
        }
        (None, _) => {}
    }
}

/// Moves a set that has one CPU, tasks and groups included.
///
/// # Errors
/// The cause and help, where it has several.
pub(crate) fn move_set(set: &mut TaskSet, cpu: u32) -> Result<(), (String, String)> {
    if cpu > LARGEST_CPU {
        return Err((format!("cpu {cpu} is out of range"), format!("write {}", Cpu::limits())));
    }
    if set.cpus.len() > 1 {
        let cause = format!("the set has several CPUs ({}), and CPU {cpu} is given for all of it", list(&set.cpus));
        return Err((cause, "give no CPU beside the file, or write one cpu in it".to_owned()));
    }
    set.cpus = vec![cpu];
    set.tasks.iter_mut().for_each(|task| task.cpu = cpu);
    set.groups.iter_mut().for_each(|group| group.cpu = cpu);
    set.budget_groups.iter_mut().for_each(|group| group.cpu = cpu);
    Ok(())
}

/// The CPU that a task or a group names itself, if it is one of the set's (`None`: those are at fault).
pub(crate) fn own(named: &Option<At<Cpu>>, cpus: Option<&[u32]>, problems: &mut Problems<'_>) -> Option<u32> {
    let (named, cpus) = (named.as_ref()?, cpus?);
    let cpu = named.unsigned();
    if !cpus.contains(&cpu) {
        let cause = format!("cpu {cpu} is not one of the set's ({})", list(cpus));
        problems.fault(&named.span, cause, "use one of those, or name it in cpus at the top of the file");
        return None;
    }
    Some(cpu)
}

/// The CPU of a set that has one.
pub(crate) fn only(cpus: Option<&[u32]>) -> Option<u32> {
    match cpus {
        Some([only]) => Some(*only),
        _ => None,
    }
}

/// Refuses a task or a group that must name its CPU, in a set with several, and does not.
pub(crate) fn refuse_unnamed(cpus: Option<&[u32]>, at: &Span, problems: &mut Problems<'_>) {
    if let Some(cpus @ [first, _, ..]) = cpus {
        problems.add(at, || {
            let cause = format!("it does not say on which of the CPUs {} it runs", list(cpus));
            (cause, format!("add cpu = {first}"))
        });
    }
}

/// CPU numbers for a message, the first eight of many.
fn list(cpus: &[u32]) -> String {
    let mut words: Vec<String> = cpus.iter().take(8).map(u32::to_string).collect();
    if cpus.len() > words.len() {
        words.push("...".to_owned());
    }
    words.join(", ")
}
