//! The scheduling groups of the configuration: reservations by roles that name one compete in it.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual::{Policy, SchedulingGroup};
use punctual_diagnostic::is_printable;
use punctual_taskset::{fmt_ns, DURATION_LIMIT, LEAST_PERIOD, LONGEST_NAME};
use serde::Deserialize;

use crate::config_value::{duration, WrongKey};
use crate::share::{ppm, MOST_PPM};

/// The policies of a group: those for which a reservation needs no more than its times.
const POLICIES: [Policy; 3] = [Policy::Edf, Policy::RateMonotonic, Policy::DeadlineMonotonic];

/// A share of a CPU for reservations that are scheduled among themselves (RED-Linux, section V-A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceGroup {
    /// By which roles name it.
    pub name: String,
    /// Its CPU.
    pub cpu: u32,
    /// Time between two replenishments of its budget, ns.
    pub period_ns: u64,
    /// Execution time of all its members together in each period, ns.
    pub budget_ns: u64,
    /// Which of its members executes.
    pub policy: Policy,
}

/// An entry `[[scheduling_group]]` of the configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupKeys {
    name: toml::Spanned<String>,
    cpu: toml::Spanned<u32>,
    period: toml::Spanned<String>,
    budget: toml::Spanned<String>,
    policy: Option<toml::Spanned<String>>,
}

impl ServiceGroup {
    /// Budget by period, parts per million.
    pub fn ppm(&self) -> u64 {
        ppm(self.budget_ns, self.period_ns)
    }

    /// As a dispatcher is declared with it.
    pub fn declared(&self) -> SchedulingGroup {
        let ns = Duration::from_nanos;
        SchedulingGroup::new(&self.name, ns(self.period_ns), ns(self.budget_ns))
            .cpu(self.cpu)
            .policy(self.policy)
    }

    fn of(keys: &GroupKeys) -> Result<ServiceGroup, WrongKey> {
        let wrong = |span, cause: String, help: String| Err((span, cause, help));
        let (name, cpu) = (keys.name.get_ref(), *keys.cpu.get_ref());
        let length = name.chars().count();
        if name.trim().is_empty() || length > LONGEST_NAME || !name.chars().all(is_printable) {
            let cause = format!("{name:?} is not the name of a group");
            let help = format!("give 1 to {LONGEST_NAME} printable characters");
            return wrong(keys.name.span(), cause, help);
        }
        let time = |what: &str, key: &toml::Spanned<String>| {
            let example = format!("write, for example, {what} = \"4ms\"");
            let time = duration(what, key.get_ref()).and_then(|ns| match ns {
                0 => Err(format!("{what} is 0")),
                DURATION_LIMIT.. => Err(format!("{what} is too long")),
                _ => Ok(ns),
            });
            time.map_err(|cause| (key.span(), cause, example))
        };
        let (period_ns, budget_ns) = (time("period", &keys.period)?, time("budget", &keys.budget)?);
        if period_ns < LEAST_PERIOD {
            let (period, least) = (fmt_ns(period_ns), fmt_ns(LEAST_PERIOD));
            let cause = format!("period {period} is less than {least}");
            return wrong(keys.period.span(), cause, "lengthen it, and the budget with it".into());
        }
        if ppm(budget_ns, period_ns) > MOST_PPM {
            let (budget, period) = (fmt_ns(budget_ns), fmt_ns(period_ns));
            let cause = format!("budget {budget} is more than 90 % of its period {period}");
            return wrong(keys.budget.span(), cause, "lower the budget".to_owned());
        }
        let policy = match &keys.policy {
            None => Policy::default(),
            Some(key) => {
                let found = POLICIES.into_iter().find(|policy| policy.name() == key.get_ref());
                found.ok_or_else(|| {
                    let cause = format!("a group cannot have the policy {:?}", key.get_ref());
                    let names = POLICIES.map(Policy::name).join(", ");
                    (key.span(), cause, format!("use one of {names}"))
                })?
            }
        };
        Ok(ServiceGroup { name: name.clone(), cpu, period_ns, budget_ns, policy })
    }
}

/// The groups of a configuration whose reservations are on `cpus` (`None`: every CPU).
///
/// # Errors
/// A wrong value; two of one name; one on another CPU; those of a CPU have more than 90 % of it.
pub(crate) fn read(
    entries: &[GroupKeys],
    cpus: Option<&[u32]>,
) -> Result<Vec<ServiceGroup>, WrongKey> {
    let mut groups: Vec<ServiceGroup> = Vec::new();
    let mut of_cpu: BTreeMap<u32, u64> = BTreeMap::new();
    for keys in entries {
        let group = ServiceGroup::of(keys)?;
        let (name, cpu) = (&group.name, group.cpu);
        if groups.iter().any(|other| other.name == *name) {
            let cause = format!("there are two groups {name:?}");
            return Err((keys.name.span(), cause, "give one of them another name".to_owned()));
        }
        if cpus.is_some_and(|cpus| !cpus.contains(&cpu)) {
            let cause = format!("no reservations are made on CPU {cpu}");
            return Err((keys.cpu.span(), cause, "add it to the key cpus".to_owned()));
        }
        let sum = of_cpu.entry(cpu).or_default();
        *sum += group.ppm();
        if *sum > MOST_PPM {
            let cause = format!("the groups on CPU {cpu} have more than 90 % of it");
            return Err((keys.budget.span(), cause, "lower their budgets".to_owned()));
        }
        groups.push(group);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use crate::access::AccessRules;

    fn group(name: &str, more: &str) -> String {
        format!("[[scheduling_group]]\nname = {name:?}\nperiod = \"10ms\"\n{more}")
    }

    #[test]
    fn a_group_has_what_its_entry_says_and_edf_without_a_policy() {
        let text = [
            group("media", "cpu = 1\nbudget = \"4ms\"\npolicy = \"rm\"\n"),
            group("control", "cpu = 1\nbudget = \"5ms\"\n"),
        ]
        .concat();
        let access = AccessRules::parse(&text, "service.toml").expect("it is right");
        let of: Vec<_> = access
            .groups()
            .iter()
            .map(|g| (&g.name[..], g.cpu, g.period_ns, g.budget_ns, g.policy.name()))
            .collect();
        let want = [
            ("media", 1, 10_000_000, 4_000_000, "rm"),
            ("control", 1, 10_000_000, 5_000_000, "edf"),
        ];
        assert_eq!(of, want);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let right = "cpu = 1\nbudget = \"4ms\"\n";
        let cases = [
            (group("", right), "service.toml:2:8: \"\" is not the name of a group"),
            (group("a", "budget = \"4ms\"\n"), "missing field `cpu`"),
            (group("a", "cpu = 1\nbudget = \"soon\"\n"), "service.toml:5:10: budget: "),
            (group("a", "cpu = 1\nbudget = \"0ms\"\n"), "budget is 0"),
            (group("a", "cpu = 1\nbudget = \"9.1ms\"\n"), "budget 9.1 ms is more than 90 % of"),
            (group("a", right).replace("10ms", "10us"), ":3:10: period 10 us is less than 100 us"),
            (
                group("a", "cpu = 1\nbudget = \"4ms\"\npolicy = \"fp\"\n"),
                "service.toml:6:10: a group cannot have the policy \"fp\"",
            ),
            (group("a", right) + &group("a", right), "service.toml:7:8: there are two groups"),
            (
                group("a", right) + &group("b", "cpu = 1\nbudget = \"6ms\"\n"),
                "service.toml:10:10: the groups on CPU 1 have more than 90 % of it",
            ),
            (format!("cpus = [2]\n{}", group("a", right)), ":5:7: no reservations are made on CPU"),
        ];
        for (text, expected) in cases {
            let error = AccessRules::parse(&text, "service.toml").expect_err(&text).to_string();
            assert!(error.contains(expected), "{error}\nnot {expected}");
        }
    }
}
