//! The domains of a set: which CPUs it has, how they are shared, and which of them a task or a
//! group names.

use std::collections::HashSet;

use crate::domain::{cpus, list};
use crate::duration::quote;
use crate::format::{Cpu, Set};
use crate::problems::Problems;
use crate::value::{place, At, Span};
use crate::{DomainId, DomainSpec, TaskSet, LARGEST_CPU};
use punctual_diagnostic::{Place, Position};

/// The domains of the set; `None` when its CPUs are absent or at fault. `file_name` is for
/// messages.
pub(crate) fn domains(
    file: &Set,
    file_name: &str,
    text: &str,
    problems: &mut Problems<'_>,
) -> Option<Vec<DomainSpec>> {
    let cpus = read(file, problems);
    let shared = are_shared(file, problems);
    let given = if shared { place(&file.domain) } else { place(&file.cpu).or(place(&file.cpus)) };
    // A CPU that is from no file has an empty place.
    let given = given.filter(|at| !at.is_empty()).map(|at| Position::of(text, at));
    let place = given.map(|at| Place { name: file_name.to_owned(), position: Some(at) });
    let domain = |cpus| DomainSpec { cpus, place: place.clone() };
    let one_each = |cpus: Vec<u32>| cpus.into_iter().map(|cpu| domain(vec![cpu])).collect();
    Some(if shared { vec![domain(cpus?)] } else { one_each(cpus?) })
}

/// The CPUs of the set, from `cpu` or `cpus`; `None` when these are absent or at fault.
fn read(file: &Set, problems: &mut Problems<'_>) -> Option<Vec<u32>> {
    if let (Some(one), Some(many)) = (place(&file.cpu), place(&file.cpus)) {
        let later = if one.start > many.start { one } else { many };
        problems.fault_of_key(
            later,
            "cpu and cpus are both given",
            "keep cpu for one CPU, or cpus for several",
        );
        return None;
    }
    if let Some(cpu) = &file.cpu {
        return Some(vec![cpu.unsigned()]);
    }
    let list = file.cpus.as_ref()?;
    if list.is_empty() {
        problems.fault(
            &list.span,
            "the list of CPUs is empty",
            "name at least one, such as cpus = [0, 1]",
        );
        return None;
    }
    let mut seen = HashSet::new();
    if let Some(twice) = list.iter().find(|cpu| !seen.insert(cpu.0)) {
        problems.fault(
            &twice.span,
            format!("CPU {} is listed twice", twice.0),
            "name each CPU once",
        );
        return None;
    }
    Some(list.iter().map(|cpu| cpu.unsigned()).collect())
}

/// Whether they are one domain; else each is one.
fn are_shared(file: &Set, problems: &mut Problems<'_>) -> bool {
    let instead = "use domain = \"partitioned\", and give each task its cpu";
    match (&file.domain, &file.cpus) {
        (Some(domain), _) => {
            let cause = match domain.as_str() {
                "partitioned" => return false,
                "global" => return true,
                "clustered" => {
                    "this version of Punctual does not have domain \"clustered\" yet".to_owned()
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
    false
}

/// Moves a set that has one CPU, and with its domain all tasks and groups.
///
/// # Errors
/// The cause and help, where it has several.
pub(crate) fn move_set(set: &mut TaskSet, cpu: u32) -> Result<(), (String, String)> {
    if cpu > LARGEST_CPU {
        return Err((format!("cpu {cpu} is out of range"), format!("write {}", Cpu::limits())));
    }
    let cpus = set.cpus();
    if cpus.len() > 1 {
        let cpus = list(&cpus);
        let cause =
            format!("the set has several CPUs ({cpus}), and CPU {cpu} is given for all of it");
        return Err((cause, "give no CPU beside the file, or write one cpu in it".to_owned()));
    }
    set.domains = vec![DomainSpec::of_cpu(cpu)];
    Ok(())
}

/// The domain whose CPU a task or a group names itself, if it is one of the set's (`None`: those
/// are at fault).
pub(crate) fn own(
    named: &Option<At<Cpu>>,
    domains: Option<&[DomainSpec]>,
    problems: &mut Problems<'_>,
) -> Option<DomainId> {
    let (named, domains) = (named.as_ref()?, domains?);
    let cpu = named.unsigned();
    let Some(found) = DomainId::of_cpu(domains, cpu) else {
        let cause = format!("cpu {cpu} is not one of the set's ({})", list(&cpus(domains)));
        let help = "use one of those, or name it in cpus at the top of the file";
        problems.fault(&named.span, cause, help);
        return None;
    };
    let domain = &domains[found.0 as usize];
    if domain.cpus.len() > 1 {
        let cause = format!("cpu {cpu} is given, and {domain} are one domain");
        let help = "remove cpu, or use domain = \"partitioned\" at the top of the file";
        problems.fault(&named.span, cause, help);
    }
    Some(found)
}

/// The domain of a set that has one.
pub(crate) fn only(domains: Option<&[DomainSpec]>) -> Option<DomainId> {
    domains.filter(|domains| domains.len() == 1).map(|_| DomainId(0))
}

/// Refuses a task or a group that must name its CPU, in a set with several domains, and does not.
pub(crate) fn refuse_unnamed(
    domains: Option<&[DomainSpec]>,
    at: &Span,
    problems: &mut Problems<'_>,
) {
    if let Some(domains @ [_, _, ..]) = domains {
        problems.add(at, || {
            let cpus = cpus(domains);
            let cause = format!("it does not say on which of the CPUs {} it runs", list(&cpus));
            (cause, format!("add cpu = {}", cpus[0]))
        });
    }
}
